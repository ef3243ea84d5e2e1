"""Generous slack: late tuples take the way of all others, and join the extents that are still open."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Graph, GraphError, Linear, Operator, Page, Schema, replay
from oop_engine.operators.aggregates import Count
from oop_engine.operators.distinct import Distinct
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.filter import Filter
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.late import Slack
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.project import Project
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.split import Split
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Sliding, Tumbling, Windows
from oop_engine.operators.with_columns import WithColumns
from oop_engine.testing import END, Driver, multiset

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
Row = tuple[int, int]


def page(rows: list[Row], arrival: list[int] | None = None) -> Page:
    return Page.of(SCHEMA, {"ts": [ts for ts, _ in rows], "n": [n for _, n in rows]}, arrival)


def generous(rows: list[Row], range_: int, slide: int, slack: int, least: int = 0) -> list[dict[str, Any]]:
    """Return the windows of the rows with such an ``n``, but for rows that came when the window had closed."""
    found: dict[int, int] = {}
    below = None
    for ts, n in rows:
        for end in range((ts // slide + 1) * slide, ts + range_ + 1, slide):
            if n >= least and (below is None or end > below):
                found[end] = found.get(end, 0) + 1
        below = ts - slack if below is None else max(below, ts - slack)
    return [{"window_start": end - range_, "window_end": end, "rows": count} for end, count in found.items()]


ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), max_size=20)


def windowed(windows: Windows, slack: int, granularity: int | None, *between: Operator) -> Graph:
    graph = Graph("windowed")
    stream = graph.add("edge", Punctuate(BoundedDisorder(slack), granularity), graph.source("in", SCHEMA))
    for number, operator in enumerate(between):
        stream = graph.add(f"o{number}", operator, stream)
    graph.sink("out", graph.add("count", WindowAggregate(windows, {"rows": Count()}), stream))
    return graph


def fed(graph: Graph, rows: list[Row], size: int) -> list[dict[str, Any]]:
    pages = [page(rows[i : i + size], [*range(len(rows))][i : i + size]) for i in range(0, len(rows), size)]
    outcome = replay(in_order(graph, slack=Slack.GENEROUS), {"in": pages}, check=True)
    return outcome.results["out"].to_pylist()


@settings(max_examples=30)
@given(ROWS, st.integers(1, 20), st.integers(0, 9), st.sampled_from([(10, 5), (7, 3), (4, 4)]))
def test_a_late_tuple_is_in_the_windows_that_are_open_by_then(
    rows: list[Row], size: int, slack: int, windows: tuple[int, int]
) -> None:
    for granularity in (None, 1):
        found = fed(windowed(Sliding(*windows), slack, granularity), rows, size)
        assert multiset(found) == multiset(generous(rows, *windows, slack))


@settings(max_examples=40)
@given(ROWS, st.integers(1, 20), st.sampled_from([None, 1, 10]))
def test_late_tuples_take_the_way_of_all_others(rows: list[Row], size: int, granularity: int | None) -> None:
    plain = windowed(Sliding(10, 5), 3, granularity)
    ways = [Filter(pc.field("n") > 1), Split({"much": pc.field("n") > 1}, rest="rest")]
    between = windowed(
        Sliding(10, 5), 3, granularity, WithColumns({"n": pc.field("n") * 2}), Project(["ts", "n"])
    )
    assert fed(between, rows, size) == fed(plain, rows, size)
    selected = fed(windowed(Sliding(10, 5), 3, granularity, ways[0]), rows, size)
    split = Graph("split")
    edge = split.add("edge", Punctuate(BoundedDisorder(3), granularity), split.source("in", SCHEMA))
    ports = split.add("ports", ways[1], edge)
    split.sink("out", split.add("count", WindowAggregate(Sliding(10, 5), {"rows": Count()}), ports["much"]))
    split.sink("rest", ports["rest"])
    assert fed(split, rows, size) == selected
    if granularity != 10:
        assert multiset(selected) == multiset(generous(rows, 10, 5, 3, least=2))


def test_what_keeps_tuples_cannot_be_on_the_way_of_late_ones() -> None:
    with pytest.raises(GraphError, match=r"node 'count': generous slack .*; o0 \(Distinct\) is in between"):
        in_order(windowed(Tumbling(100), 0, 1, Distinct()), slack=Slack.GENEROUS)
    with pytest.raises(GraphError, match=r"o0 \(Meld\) is in between"):
        in_order(windowed(Tumbling(100), 0, 1, Meld(1)), slack=Slack.GENEROUS)


def test_a_window_that_was_promised_away_does_not_come_again() -> None:
    driver = Driver(BufferingAggregate(Sliding(10, 5), {"n": Count()}, late=True), SCHEMA, SCHEMA)
    driver.feed(0, page([(1, 0)]))
    driver.feed(0, Linear(20))
    driver.feed(1, page([(13, 0), (17, 0)]))
    driver.move()
    driver.feed(0, END)
    assert [(row["window_end"], row["n"]) for row in driver.rows()] == [(5, 1), (10, 1), (25, 1)]
    assert driver.operator.counts() == {"late_for_some": 2, "late_for_all": 1}


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=12),
    st.sampled_from([Sliding(10, 5), Sliding(3, 7), Landmark(10)]),
    st.booleans(),
)
def test_no_straggler_contradicts_a_promise(
    events: list[tuple[int, bool]], windows: Windows, empty: bool
) -> None:
    graph = Graph("late")
    operator = BufferingAggregate(
        windows, {"n": Count()}, empty=empty and isinstance(windows, Sliding), late=True
    )
    both = [graph.source(name, SCHEMA) for name in ("in", "late")]
    graph.sink("out", graph.add("count", operator, *both))
    feeds: dict[str, list[Any]] = {"in": [], "late": []}
    reached = 0
    for at, (ts, promise) in enumerate(events):
        feeds["late" if ts < reached else "in"].append(
            Linear(ts) if promise and ts >= reached else page([(ts, 0)], [at])
        )
        reached = max(reached, ts)
    ends = replay(graph, feeds, check=True).results["out"].column("window_end").to_pylist()
    assert ends == sorted(set(ends))
