"""No plan of any scenario breaks a promise on any edge: a comparison does not look, so that it takes no time."""

from __future__ import annotations

import pytest

from oop_engine import replay
from oop_engine.lab.scenario import Sweep
from tests.parts.scenarios.small import SMALL, small

FEWER = {"nyc_flights": {"days": "4"}}


@pytest.mark.slow(keep=6)
@pytest.mark.parametrize("name", SMALL)
def test_no_tuple_comes_behind_a_bound(name: str) -> None:
    scenario = small(name)
    values = scenario.values(SMALL[name].settings | FEWER.get(name, {}))
    if isinstance(sweep := scenario.sweep, Sweep):
        values[sweep.parameter] = sweep.values[0]
    for variant in scenario.variants(values):
        replay(variant.graph, scenario.feeds(values), check=True)
