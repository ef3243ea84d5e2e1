"""Graphs whose results follow from the order of rows alone take pages as a whole, with the same results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Graph, Page, Schema
from oop_engine.aggregates import First, Median
from oop_engine.core.operator import Operator
from oop_engine.operators import (
    ArrivalTime,
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Filter,
    Finalize,
    Guard,
    IfNone,
    Latest,
    Max,
    Meld,
    Ordered,
    PerGroup,
    Project,
    Punctuate,
    Session,
    Sliding,
    Sum,
    TopN,
    Tumbling,
    Upstream,
    WindowAggregate,
)
from oop_engine.operators.policies.running_bound import Lag, RunningBound
from oop_engine.policies import BoundedCount, ByQuantile, Heartbeat
from oop_engine.runners.replay import replay
from oop_engine.runners.schedule import by_order_alone
from oop_engine.triggers import AfterCount
from oop_engine.windows import Global, SlideByTuple, TupleBased
from tests.parts.toys import Hold

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
TOTALS = {"n": Count(), "total": Sum("v"), "most": Max("v")}


def windows(kind: Any, by: tuple[str, ...] = ("k",)) -> WindowAggregate:
    return WindowAggregate(kind, TOTALS, by)


BY_ORDER: dict[str, Callable[[], list[Operator]]] = {
    "tumbling": lambda: [Punctuate(BoundedDisorder(3), 2), windows(Tumbling(5))],
    "sliding, each row a bound": lambda: [Punctuate(BoundedDisorder(3)), windows(Sliding(6, 2))],
    "in order": lambda: [Punctuate(Ordered(), 1), windows(Tumbling(4), ())],
    "sessions": lambda: [Punctuate(BoundedCount(2), 3), windows(Session(2))],
    "by tuple": lambda: [Punctuate(BoundedDisorder(4), 2), windows(SlideByTuple(5, 2, of="arrival"), ())],
    "a quantile": lambda: [Punctuate(ByQuantile(0.5, 4), 2), windows(Tumbling(3))],
    "per group": lambda: [
        Punctuate(PerGroup(BoundedDisorder(2), ("k",), BoundedDisorder(9)), 2),
        windows(Tumbling(5)),
    ],
    "a watermark": lambda: [Punctuate(BoundedDisorder(8), 2, watermark=Ordered()), windows(Tumbling(5))],
    "upstream": lambda: [Punctuate(Upstream(), 2), windows(Tumbling(5))],
    "steps before": lambda: [
        Filter(pc.field("v") > 1),
        Meld(1),
        Punctuate(BoundedDisorder(3), 2),
        Distinct(("k", "v")),
    ],
    "last row of each key": lambda: [Punctuate(BoundedDisorder(3), 2), Latest(("k",), pc.field("v") > 1)],
    "counts": lambda: [Punctuate(BoundedDisorder(3), 2), windows(TupleBased(3, 2))],
    "one window, or a row of none": lambda: [
        Punctuate(BoundedDisorder(3), 2),
        windows(Global()),
        IfNone({"window_end": 0, "k": "", "n": 0, "total": 0, "most": 0}),
    ],
    "empty windows": lambda: [
        Punctuate(BoundedDisorder(3), 2),
        WindowAggregate(Tumbling(3), TOTALS, ("k",), empty=True),
    ],
    "values in a list": lambda: [
        Punctuate(BoundedDisorder(3), 2),
        WindowAggregate(Sliding(6, 2), {"m": Median("v"), "first": First("v")}, ("k",)),
    ],
    "two levels": lambda: [
        Project(["ts", "k", "v"]),
        Punctuate(BoundedDisorder(3), 2),
        windows(Tumbling(2)),
        WindowAggregate(Tumbling(6), {"most": Max("n")}, ("k",)),
    ],
    "ranks": lambda: [Punctuate(BoundedDisorder(3), 2), windows(Tumbling(5)), TopN(1, "n", ("window_end",))],
}


class OwnLag(Lag):
    """A lag whose bound may follow from anything."""

    def lag(self, schema: Schema, place: str) -> tuple[int, int]:
        return 0, 3

    def running(self, schema: Schema, place: str) -> RunningBound:
        return RunningBound()


TIMED: dict[str, Callable[[], list[Operator]]] = {
    "heartbeat": lambda: [Punctuate(Heartbeat(Ordered(), 3, 1), 2), windows(Tumbling(5))],
    "a lag with a bound of its own": lambda: [Punctuate(OwnLag(), 2), windows(Tumbling(5))],
    "heartbeat of all groups": lambda: [
        Punctuate(PerGroup(Ordered(), ("k",), Heartbeat(Ordered(), 3, 1)), 2),
        windows(Tumbling(5)),
    ],
    "heartbeat as a watermark": lambda: [
        Punctuate(BoundedDisorder(9), 2, watermark=Heartbeat(Ordered(), 3, 1)),
        windows(Tumbling(5)),
    ],
    "early results": lambda: [
        Punctuate(BoundedDisorder(3), 2),
        WindowAggregate(Tumbling(5), TOTALS, ("k",), emit=Emit(early=AfterCount(2))),
        Finalize(),
    ],
    "guard": lambda: [Guard(5), Punctuate(BoundedDisorder(3), 2), windows(Tumbling(5))],
    "stamp": lambda: [ArrivalTime("came"), Punctuate(BoundedDisorder(3), 2)],
    "one's own": lambda: [Punctuate(BoundedDisorder(3), 2), Hold()],
}
ROWS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 6), st.sampled_from("ab"), st.integers(0, 3)), max_size=40
)


def of(operators: list[Operator]) -> Graph:
    graph = Graph("g")
    stream = graph.source("in", SCHEMA)
    for number, operator in enumerate(operators):
        stream = graph.add(f"node-{number}", operator, stream)
    graph.sink("out", stream)
    return graph


def feed(rows: list[tuple[int, int, str, int]], size: int) -> list[Page]:
    """Pages of rows that arrive some units after the row before them, some units after their time."""
    now, found = 0, []
    for gap, late, key, value in rows:
        now += gap
        found.append((now - late, key, value, now))
    parts = [found[i : i + size] for i in range(0, len(found), size)]
    return [
        Page.of(SCHEMA, {"ts": ts, "k": keys, "v": values}, arrival=list(came))
        for ts, keys, values, came in (map(list, zip(*part, strict=True)) for part in parts)
    ]


@pytest.mark.slow(keep=6)
@settings(max_examples=max(settings().max_examples // 3, 1))
@pytest.mark.parametrize("make", BY_ORDER.values(), ids=list(BY_ORDER))
@given(rows=ROWS, size=st.sampled_from([1, 3, 100]))
def test_pages_as_a_whole_have_the_results_and_late_rows_of_pages_cut_by_arrival(
    make: Callable[[], list[Operator]], rows: list[tuple[int, int, str, int]], size: int
) -> None:
    assert by_order_alone(of(make()).plan())
    pages = feed(rows, size)
    cut, whole = (
        replay(of(make()), {"in": pages}, flat_out=flat_out, check=True) for flat_out in (False, None)
    )
    first, second = (Counter(tuple(row.values()) for row in outcome.rows("out")) for outcome in (cut, whole))
    assert first == second
    assert cut.late == whole.late


@pytest.mark.parametrize("make", TIMED.values(), ids=list(TIMED))
def test_what_uses_arrival_keeps_it(make: Callable[[], list[Operator]]) -> None:
    assert not by_order_alone(of(make()).plan())


def test_two_sources_are_merged_by_arrival() -> None:
    graph = Graph("g")
    melded = graph.add("melded", Meld(2), graph.source("a", SCHEMA), graph.source("b", SCHEMA))
    graph.sink("out", melded)
    assert not by_order_alone(graph.plan())


def test_clock_and_moments_are_those_of_arrival_unless_results_do_without() -> None:
    pages = feed([(1, 0, "a", 1), (9, 0, "a", 2), (1, 0, "a", 3)], 2)
    graph = of(TIMED["heartbeat"]())
    timed, none = (replay(graph, {"in": pages}, flat_out=flat_out) for flat_out in (False, None))
    assert timed.emitted["out"].tolist() == none.emitted["out"].tolist()
