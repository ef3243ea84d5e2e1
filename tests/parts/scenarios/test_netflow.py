from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from oop_engine import Page
from oop_engine.core.errors import EngineError
from oop_engine.lab.comparison import Comparison, compare
from oop_engine.lab.scenario import Sweep
from oop_engine.scenarios.thesis.netflow import CASES, SCENARIO, case_of, curves, feeds
from oop_engine.scenarios.truth import mean_error, wrong_results

SLACKS = (
    "band 0 ms",
    "band 1280 ms",
    "band 3200 ms",
    "block 0 s",
    "block 218.2 s",
    "block 490.9 s",
    "block 600 s",
)


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(replace(SCENARIO, sweep=Sweep("slack", SLACKS)), {"tuples": "60000"})


@pytest.mark.slow
def test_all_claims_hold(compared: Comparison) -> None:
    assert len(compared.claims) == 10
    assert {c.claim: c.figures for c in compared.claims if not c.holds} == {}


@pytest.mark.slow
def test_a_plan_is_exact_if_and_only_if_its_slack_is_enough(compared: Comparison) -> None:
    wrong = {(r.variant, r.parameters["slack"]): r.off for r in compared.runs}
    exact = {(r.variant, r.parameters["slack"]): r.exact for r in compared.runs}
    assert {plan for plan, off in wrong.items() if not off} == {plan for plan, said in exact.items() if said}


def test_the_generous_plan_is_for_band_disorder_only(compared: Comparison) -> None:
    assert set(curves(compared.runs, CASES["band"])) == {"consistent slack", "generous slack", "punctuation"}
    assert set(curves(compared.runs, CASES["block"])) == {"consistent slack", "punctuation"}


def test_one_slack_checks_the_claims_of_its_figure() -> None:
    done = compare(SCENARIO, {"tuples": "40000", "slack": "band 640 ms"})
    assert [claim.claim.split(",")[0].split(":")[0] for claim in done.claims[1:]] == ["band"] * 4
    assert done.holds


def test_blocks_do_not_overlap_in_arrival() -> None:
    values = SCENARIO.values({"tuples": "60000", "slack": "block 0 s"})
    block = CASES["block"].worst
    pages = [page for page in feeds(values)["netflow"] if isinstance(page, Page)]
    assert all(
        (page.arrival // block == page.times // block + 1).all() for page in pages if page.arrival is not None
    )


@pytest.mark.parametrize(
    "slack", ["320 ms", "bend 320 ms", "band", "band fast", "block 1 mile", "block 0.1 ms"]
)
def test_a_slack_that_cannot_be_read_is_bad_input(slack: str) -> None:
    with pytest.raises(EngineError):
        case_of(SCENARIO.values({"slack": slack}))


def table(ends: list[int], column: list[float]) -> pa.Table:
    return pa.table({"window_end": ends, "n": column})


TRUTH = table([10, 20, 30, 40], [4.0, 5.0, 10.0, 8.0])


@pytest.mark.parametrize(
    ("ends", "column", "error", "wrong"),
    [
        ([10, 20, 30, 40], [4.0, 5.0, 10.0, 8.0], 0, 0),
        ([40, 30, 20, 10], [8.0, 10.0, 5.0, 4.0], 0, 0),  # the order of results does not matter
        ([10, 20, 30, 40], [3.0, 6.0, 10.0, 8.0], (25 + 20) / 4, 50),
        ([10, 20, 40], [4.0, 5.0, 8.0], 100 / 4, 25),  # a window without a result
        ([10, 20, 30, 40, 50], [4.0, 5.0, 10.0, 4.0, 1.0], 50 / 4, 25),  # 50 is no true window
        ([], [], 100, 100),
    ],
)
def test_measures_of_error(ends: list[int], column: list[float], error: float, wrong: float) -> None:
    assert mean_error(table(ends, column), TRUTH, "n") == pytest.approx(error)
    assert wrong_results(table(ends, column), TRUTH, "n") == pytest.approx(wrong)
