from __future__ import annotations

import itertools
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import Graph, Page, Schema, replay
from oop_engine.core import ticks as module
from oop_engine.core.ticks import Ticks
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import BoundedDisorder, Heartbeat
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.runners.outcome import Outcome

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


def of(every: int, arrivals: list[int]) -> list[int]:
    clock, found = Ticks(every), []
    for now in arrivals:
        clock.start(now)
        found += clock.up_to(now)
    return found


@given(
    st.lists(st.integers(0, 1500), min_size=1, max_size=5), st.integers(1, 20), st.integers(-(10**6), 10**6)
)
def test_every_multiple_that_is_passed_comes_once(gaps: list[int], every: int, first: int) -> None:
    arrivals = [first + sum(gaps[:i]) for i in range(len(gaps))]
    assert of(every, arrivals) == [t for t in range(first + 1, arrivals[-1] + 1) if t % every == 0]


@given(st.integers(1, 10**6) | st.just(2**63 - 1), st.integers(100, 1000))
def test_a_long_silence_has_few_ticks_and_its_last(gap: int, every: int) -> None:
    found = of(every, [0, gap])
    assert len(found) <= 40_000
    assert found[-1:] == ([gap // every * every] if gap >= every else [])
    for before, after in itertools.pairwise(found):
        assert every <= after - before <= max(every, before / 1000)


def silent(gap: int, end: int, every: int, slack: int, on: Literal["inline", "local"] = "inline") -> Outcome:
    """Replay a burst, a silence, then what came in it."""
    graph = Graph("silent")
    policy = Heartbeat(BoundedDisorder(5), threshold=10, slack=slack, every=every)
    edge = graph.add("edge", Punctuate(policy), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(7), {"rows": Count()}), edge))
    times = [0, 9, 4, 13, gap + 20, gap - slack - 3, gap - slack + 30, gap + 22 + end]
    arrivals = [0, 9, 10, 13, gap + 20, gap + 21, gap + 22, gap + 22 + end]
    return replay(graph, {"in": [Page.of(SCHEMA, {"ts": times}, arrivals)]}, on=on)


@pytest.mark.parametrize(
    ("gap", "on"), [(1, "inline"), (100, "local"), (2_000, "inline"), (20_000, "inline")]
)
def test_what_comes_after_a_silence_is_as_with_each_tick(
    gap: int, on: Literal["inline", "local"], monkeypatch: pytest.MonkeyPatch
) -> None:
    coarse = silent(gap, 3, 2, gap // 2, on)
    monkeypatch.setattr(module, "_FINE", gap)
    fine = silent(gap, 3, 2, gap // 2, on)
    assert coarse.results["out"].sort_by("window_end") == fine.results["out"].sort_by("window_end")
    assert coarse.statistics.count("late") == fine.statistics.count("late")
    late_by = coarse.emitted["out"] - fine.emitted["out"]
    assert (late_by >= 0).all()
    assert late_by.max() <= gap / 1000 * (gap > 4_000)


def test_one_wrong_arrival_does_not_take_for_ever() -> None:
    outcome = silent(10**12, 3, 1000, 3)
    assert outcome.statistics.edges["edge -> count"].punctuations < 16_000
    assert outcome.statistics.count("late") == 1
    assert sum(outcome.results["out"].column("rows").to_pylist()) == 7
