from __future__ import annotations

from dataclasses import replace

import pytest

from oop_engine.core.errors import EngineError
from oop_engine.lab.comparison import compare
from oop_engine.lab.scenario import Sweep
from oop_engine.scenarios.thesis.paned_wid import SCENARIO, Shape, points, shape_of
from tests.parts.scenarios.unfounded import unfounded

SHAPES = ("1 x 5", "5 x 5", "20 x 2", "20 x 5", "20 x 20")


@pytest.mark.slow
def test_all_claims_hold() -> None:
    compared = compare(replace(SCENARIO, sweep=Sweep("shape", SHAPES)), {"tuples": "131072"})
    assert len(compared.claims) == 6
    assert unfounded(compared) == {}


def test_one_point_has_the_claims_of_a_point() -> None:
    compared = compare(SCENARIO, {"tuples": "20000", "shape": "5 x 3"})
    assert len(compared.claims) == 4
    assert [point.shape for point in points(compared.runs)] == [Shape(5, 3)]


def test_the_cost_model_is_not_checked_beyond_the_figure() -> None:
    compared = compare(SCENARIO, {"tuples": "131072", "shape": "1000 x 3"})
    assert [claim.holds for claim in compared.claims if "cost model" in claim.claim] == [None]


@pytest.mark.parametrize(
    "shape", ["5", "5 x", "0 x 3", "a x b", "5 x 3 x 1", "-1 x 2", "1 x 2000", "30000 x 1"]
)
def test_a_shape_that_cannot_be_read_is_bad_input(shape: str) -> None:
    with pytest.raises(EngineError):
        shape_of(SCENARIO.values({"shape": shape}))
