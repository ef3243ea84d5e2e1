from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import NEVER, Linear, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.graphs.statistics import EdgeStatistics, OperatorStatistics, Sample, Statistics
from oop_engine.extend import State
from oop_engine.operators import Count, Tumbling, WindowAggregate
from oop_engine.runners.replay import replay


def statistics(*names: str) -> Statistics:
    return Statistics(operators={name: OperatorStatistics() for name in names})


def test_edges_count_messages_and_tuples() -> None:
    edge = EdgeStatistics()
    schema = Schema({"ts": pa.int64()}, "ts", "s")
    for message in (Page.of(schema, {"ts": [1, 2]}), Linear(3), Page.of(schema, {"ts": [3]})):
        edge.count(message)
    assert edge == EdgeStatistics(pages=2, tuples=3, punctuations=1, below=3)


def test_the_state_of_the_graph_is_the_sum_and_peaks_are_kept() -> None:
    found = statistics("a", "b")
    found.observe("a", State(tuples=5, nbytes=50), 1, 0.5)
    found.observe("b", State(tuples=1, partials=2, nbytes=30), 2, 0.25)
    found.observe("a", State(tuples=2, nbytes=20), 3, 0.5)
    assert found.state == State(tuples=3, partials=2, nbytes=50)
    assert found.peak == State(tuples=6, partials=2, nbytes=80)
    assert found.operators["a"].peak == State(tuples=5, nbytes=50)
    assert found.operators["a"].busy_s == 1.0
    assert [(s.now, s.state.nbytes) for s in found.series] == [(1, 50), (2, 80), (3, 50)]


def test_counts_are_summed_by_name() -> None:
    found = statistics("a", "b", "c")
    found.operators["a"].counts = {"late": 2}
    found.operators["b"].counts = {"late": 3, "far": 1}
    assert (found.count("late"), found.count("far"), found.count("other")) == (5, 1, 0)
    assert (found.late.total, found.late.by_operator) == (5, {"a": 2, "b": 3})
    assert str(found.late) == "2 tuples were late at 'a'; 3 tuples were late at 'b'"


@pytest.mark.parametrize("samples", [1999, 2000, 2001, 2002, 4003, 9999])
def test_a_long_series_is_thinned_and_keeps_its_peaks(samples: int) -> None:
    for peak in (0, samples // 2, samples - 2, samples - 1):
        found = statistics("a")
        for now in range(samples):
            found.observe("a", State(nbytes=1_000_000 if now == peak else 1 + now % 2), now, 0.0)
        assert len(found.series) <= 2001
        assert max(s.state.nbytes for s in found.series) == 1_000_000
        assert [s.now for s in found.series] == sorted({s.now for s in found.series})
        at = next(s.now for s in found.series if s.state.nbytes == 1_000_000)
        assert abs(at - peak) <= samples // 500


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30))
def test_a_short_series_has_the_peak_of_each_moment(steps: list[tuple[int, int]]) -> None:
    found, now = statistics("a"), 0
    most: dict[int, int] = {}
    held = 0
    for later, nbytes in steps:
        now += later
        found.observe("a", State(nbytes=nbytes), now, 0.0)
        if nbytes != held:
            held = nbytes
            most[now] = max(most.get(now, 0), nbytes)
    assert found.series == [Sample(moment, State(nbytes=n)) for moment, n in most.items()]


def test_before_the_first_arrival_there_is_no_moment_to_sample() -> None:
    found = statistics("a")
    found.observe("a", State(nbytes=9), NEVER, 0.0)
    for now in range(5000):
        found.observe("a", State(nbytes=now % 7), now, 0.0)
    assert found.peak == State(nbytes=9)
    assert len(found.series) > 500
    assert 0 <= found.series[0].now < 7


@pytest.mark.parametrize("on", ["inline", "local"])
def test_the_burst_of_an_operator_is_the_most_rows_that_left_for_one_message(
    on: Literal["inline", "local"],
) -> None:
    schema = Schema({"ts": pa.int64()}, "ts", "s")
    graph = Graph("bursts")
    few = WindowAggregate({"one": Tumbling(1), "two": Tumbling(2)}, {"n": Count()})
    graph.sink("out", graph.add("few", few, graph.source("in", schema)))
    feed = [Page.of(schema, {"ts": [0, 1, 2, 3]}), Linear(4), Page.of(schema, {"ts": [4]})]
    outcome = replay(graph, {"in": feed}, on=on)
    assert outcome.statistics.operators["few"].burst == 6
