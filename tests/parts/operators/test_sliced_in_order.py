"""The in-order twin of WindowAggregate: an operator for each definition, merged."""

from __future__ import annotations

import pyarrow as pa
import pytest

from oop_engine import Graph, GraphError, Page, Schema
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.finalize import Finalize
from oop_engine.operators.policies.late import Slack
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.triggers import AfterCount, Emit
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Global, Session, Sliding, Tumbling, TupleBased, Windows
from oop_engine.runners.replay import replay
from oop_engine.testing import multiset

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
TIMES = [3, 1, 8, 12, 9, 25, 21, 44, 40, 41]


def query(stamp) -> Graph:
    graph = Graph("many windows")
    tuples = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("tuples", SCHEMA))
    windows: dict[str, Windows] = {"tens": Tumbling(10), "overlapping": Sliding(15, 5)}
    asked = {"n": Count(), "s": Sum("v")}
    graph.sink("out", graph.add("sliced", WindowAggregate(windows, asked, ("k",), stamp=stamp), tuples))
    return graph


def results(graph: Graph) -> pa.Table:
    columns = {"ts": TIMES, "k": ["a", "b"] * 5, "v": range(10)}
    return replay(graph, {"tuples": [Page.of(SCHEMA, columns, list(range(10)))]}, on="inline").results["out"]


@pytest.mark.parametrize("slack", Slack)
@pytest.mark.parametrize("stamp", ["start", "end"])
def test_the_twin_gives_the_same_rows_in_order(stamp, slack):
    graph = query(stamp)
    twin = results(in_order(graph, slack=slack))
    assert multiset(twin.to_pylist()) == multiset(results(graph).to_pylist())
    stamps = twin.column(f"window_{stamp}").to_pylist()
    assert stamps == sorted(stamps)


@pytest.mark.parametrize(
    "windows", [Session(3), Global(), {"tens": Tumbling(10), "sessions": Session(3)}], ids=str
)
def test_windows_that_merge_leave_in_order_of_their_starts(windows) -> None:
    graph = Graph("starts")
    tuples = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("tuples", SCHEMA))
    count = WindowAggregate(windows, {"n": Count(), "s": Sum("v")}, ("k",), stamp="start")
    graph.sink("out", graph.add("count", count, tuples))
    columns = {"ts": [0, 1, 3, 6, 9, 20], "k": ["a", "b", "a", "a", "a", "b"], "v": range(6)}
    found, twin = (
        replay(each, {"tuples": [Page.of(SCHEMA, columns)]}).results["out"]
        for each in (graph, in_order(graph))
    )
    assert multiset(twin.to_pylist()) == multiset(found.to_pylist())
    starts = twin.column("window_start").to_pylist()
    assert starts == sorted(starts)


@pytest.mark.parametrize(
    "windows", [{"tens": Tumbling(10), "sessions": Session(3)}, Session(3)], ids=["named", "one"]
)
def test_versions_leave_once_in_order(windows) -> None:
    graph = Graph("versions")
    edge = Punctuate(BoundedDisorder(5), watermark=BoundedDisorder(1))
    versions = WindowAggregate(
        windows, {"n": Count(), "s": Sum("v")}, ("k",), emit=Emit(early=AfterCount(1), info=True)
    )
    counted = graph.add("count", versions, graph.add("edge", edge, graph.source("tuples", SCHEMA)))
    names = ["k", "window_start", "window_end", "n", "s", *(["window"] if isinstance(windows, dict) else [])]
    graph.sink("out", graph.add("final", Finalize(), counted))
    found, alone = (results(each).select(names) for each in (graph, in_order(graph)))
    assert multiset(alone.to_pylist()) == multiset(found.to_pylist())


@pytest.mark.parametrize(
    ("windows", "empty", "message"),
    [
        (
            TupleBased(3, 3),
            False,
            r"^node 'count': TupleBased.* has no in-order twin: .*or run the graph as it is",
        ),
        (
            Tumbling(10),
            True,
            r"^node 'count': empty=True with by=\['k'\] has no in-order twin: .*leave empty out",
        ),
    ],
)
def test_a_window_without_a_twin_is_refused_by_the_name_of_its_node(windows, empty, message) -> None:
    graph = Graph("no twin")
    count = WindowAggregate(windows, {"n": Count()}, ("k",), empty=empty)
    graph.sink("out", graph.add("count", count, graph.source("tuples", SCHEMA)))
    with pytest.raises(GraphError, match=message):
        in_order(graph)
