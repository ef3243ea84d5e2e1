from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oop_engine import Page
from oop_engine.lab.comparison import Comparison, compare
from oop_engine.lab.scenario import Sweep, Values
from oop_engine.runners.replay import replay
from oop_engine.scenarios.thesis.links import MELD, SCENARIO, feeds, lulls, truth, variants

SMALL = {"tuples": "12000", "rate": "50", "range": "25 s", "slide": "5 s", "lull": "15 s"}


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(replace(SCENARIO, sweep=Sweep("skew", (0, 5, 10), "s")), SMALL)


def test_all_claims_hold(compared: Comparison) -> None:
    assert len(compared.claims) == 8
    assert {c.claim: c.figures for c in compared.claims if not c.holds} == {}


def test_no_plan_loses_a_packet(compared: Comparison) -> None:
    assert {run.late for run in compared.runs} == {0}
    assert {run.tuples for run in compared.runs} == {truth(small())["packets"].to_numpy().sum() // 5}


def test_memory_out_of_order_does_not_depend_on_the_rate() -> None:
    kept = [meld_peak(small(rate=rate, tuples=240 * rate)) for rate in (50, 200)]
    assert kept[0] == kept[1]


def test_tumbling_windows_of_one_packet_a_window() -> None:
    done = compare(SCENARIO, {**SMALL, "range": "5 s", "skew": "5"})
    assert done.holds
    assert {run.results for run in done.runs} == {truth(small(range="5 s")).num_rows}


def test_a_fixed_skew_leaves_out_the_claims_of_the_sweep() -> None:
    done = compare(SCENARIO, {**SMALL, "skew": "3"})
    assert (len(done.claims), done.holds) == (6, True)


def test_a_trace_without_a_delay_leaves_what_is_said_of_delays_unchecked() -> None:
    done = compare(SCENARIO, {**SMALL, "tuples": "1200", "range": "100 s", "slide": "50 s", "skew": "1"})
    assert [c.holds for c in done.claims if "no later" in c.claim] == [None]
    assert done.holds


def test_c_comes_later_by_its_skew_and_is_silent_in_its_lulls() -> None:
    values = small(skew=7)
    pages = [page for page in feeds(values)["C"] if isinstance(page, Page)]
    times = np.concatenate([page.times for page in pages])
    arrivals = np.concatenate([page.arrival for page in pages if page.arrival is not None])
    assert set(arrivals - times) == {7000}
    first, second = lulls(values, 119_402)
    assert (first, second) == ((27_500, 42_500), (67_500, 82_500))
    assert not any(start <= time < stop for start, stop in (first, second) for time in times)


def small(**more: object) -> Values:
    return {**SCENARIO.values(SMALL), **more}


def meld_peak(values: Values) -> int:
    variant = next(v for v in variants(values) if v.name == MELD)
    return replay(variant.graph, feeds(values)).statistics.peak.nbytes
