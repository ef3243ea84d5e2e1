"""Aggregates in order that are divided in front of a union."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema
from oop_engine.aggregates import Median
from oop_engine.operators import (
    Avg,
    BoundedDisorder,
    Count,
    Max,
    Meld,
    Ordered,
    Punctuate,
    Session,
    Sliding,
    Tumbling,
    WindowAggregate,
)
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.levels.consolidate import Consolidate
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.runners.outcome import Outcome
from oop_engine.runners.replay import replay

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
TWO = {"n": Count(), "mean": Avg("v"), "most": Max("v")}


def united(aggregate: WindowAggregate, *, twice: bool = False) -> Graph:
    graph = Graph("two links")
    links = [
        graph.add(f"{name}-edge", Punctuate(policy, 1), graph.source(name, SCHEMA))
        for name, policy in (("fast", BoundedDisorder(9)), ("slow", Ordered()))
    ]
    both = graph.add("both", Meld(2), *links)
    graph.sink("out", graph.add("sum", aggregate, both))
    if twice:
        graph.sink("all", both)
    return graph


def feeds() -> dict[str, list[Page]]:
    """A fast link of 2000 tuples in 200 s, which are up to 9 s out of order, and one that comes 60 s later."""
    draw = np.random.default_rng(1)
    ts = np.sort(draw.integers(0, 200, 2000)) - draw.integers(0, 9, 2000)
    fast = {"ts": ts, "k": ts % 3, "v": draw.integers(0, 99, ts.size)}
    slow = {"ts": np.arange(0, 200, 7), "k": np.arange(29) % 3, "v": np.arange(29)}
    arrivals = np.maximum.accumulate(ts), slow["ts"] + 60
    return {
        name: [Page.of(SCHEMA, columns, arrival=arrival)]
        for name, columns, arrival in zip(("fast", "slow"), (fast, slow), arrivals, strict=True)
    }


def outcomes(graph: Graph) -> list[Outcome]:
    plans = [graph, in_order(graph, windows="reduce"), in_order(graph, windows="early")]
    return [replay(plan, feeds(), check=True) for plan in plans]


def merged_late(graph: Graph) -> bool:
    return not any(isinstance(n.operator, Consolidate) for n in in_order(graph, windows="early").plan().nodes)


@pytest.mark.parametrize("windows", [Tumbling(10), Sliding(20, 10), Sliding(25, 10), Sliding(5, 10)])
@pytest.mark.parametrize("stamp", ["end", "start"])
def test_results_and_their_moments_are_those_of_the_plan_out_of_order(windows, stamp) -> None:
    free, _, early = outcomes(united(WindowAggregate(windows, TWO, stamp=stamp)))
    assert free.results["out"].num_rows > 0
    assert early.results["out"].equals(free.results["out"])
    assert early.emitted["out"].tolist() == free.emitted["out"].tolist()


def test_the_merge_buffers_rows_of_panes() -> None:
    graph = united(WindowAggregate(Tumbling(10), {"n": Count()}))
    _, late, early = outcomes(graph)
    peaks = [one.statistics.operators["both"].peak.tuples for one in (late, early)]
    assert peaks[0] > 500
    assert peaks[1] <= 8  # of 60 s, in panes of 10 s


@pytest.mark.parametrize(
    "aggregate",
    [
        WindowAggregate(Tumbling(10), TWO, by=("k",)),
        WindowAggregate({"a": Tumbling(10), "b": Tumbling(7)}, TWO),
        WindowAggregate(Session(5), TWO),
        WindowAggregate(Tumbling(10), {"middle": Median("v")}),
    ],
)
def test_other_aggregates_stay_behind_the_merge(aggregate: WindowAggregate) -> None:
    assert merged_late(united(aggregate))


def test_a_union_that_others_read_stays_in_front() -> None:
    graph = united(WindowAggregate(Tumbling(10), TWO), twice=True)
    assert merged_late(graph)
    assert any(isinstance(node.operator, Merge) for node in in_order(graph, windows="early").plan().nodes)
