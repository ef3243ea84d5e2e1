"""A graph of two halves gives what the graph gave, and moves what it may, no more."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import GraphError, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.graphs.halves import consolidated
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.filter import Filter
from oop_engine.operators.levels.partial_aggregate import PartialAggregate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.project import Project
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Sliding, Tumbling, TupleBased
from oop_engine.testing import multiset
from tests.laws.test_random_graphs import graphs, results

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64()}, "ts", "s")


def melded(sources: int = 2) -> Graph:
    """Sources, each with its edge, melded: what there is in front of most aggregates."""
    graph = Graph("test")
    edges = [graph.add(f"edge{i}", Punctuate(BoundedDisorder(5)), graph.source(f"source{i}", SCHEMA))
             for i in range(sources)]  # fmt: skip
    graph.add("meld", Meld(sources), *edges)
    return graph


def drawn(graph: Graph) -> list[str]:
    """Return the graph's lines, without the parameters."""
    return [" ".join(line.replace("<- ", "").split()) for line in graph.text().splitlines()[1:]]


def inputs(graph: Graph) -> dict[str, list[str]]:
    return {node.name: [stream.node for stream in node.inputs] for node in graph.plan().nodes}


def test_a_window_aggregate_becomes_two_halves():
    graph = melded(1)
    graph.add("narrow", Project(["ts", "k"], progressing="ts"), "meld")
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}, ("k",)), "narrow"))
    twin = consolidated(graph)
    assert inputs(twin) == inputs(graph) | {"count-partial": ["narrow"], "count": ["count-partial"]}
    assert twin.plan().schema(twin.nodes["out"].inputs[0]) == graph.plan().schema(
        graph.nodes["out"].inputs[0]
    )
    assert "count WindowAggregate(Tumbling(10); n=Count(); by k) narrow" in drawn(graph)
    assert drawn(twin)[-3:] == [
        "count-partial PartialAggregate(Tumbling(10); n=Count(); by k) narrow",
        "count Consolidate(Tumbling(10); n=Count(); by k) count-partial",
        "out sink count",
    ]
    assert pickle.loads(pickle.dumps(twin)).text() == twin.text()


def test_a_meld_moves_behind_the_first_halves_and_so_does_what_is_between():
    graph = melded(2)
    graph.add(
        "more", Meld(2), "meld", graph.add("edge2", Punctuate(BoundedDisorder(5)), graph.source("s2", SCHEMA))
    )
    graph.add("some", Filter(pc.field("n") > 0), "more")
    graph.add("narrow", Project(["ts", "n"]), "some")
    graph.sink("out", graph.add("sum", WindowAggregate(Sliding(20, 10), {"s": Sum("n")}), "narrow"))
    assert inputs(consolidated(graph)) == {
        "source0": [], "source1": [], "s2": [], "edge0": ["source0"], "edge1": ["source1"], "edge2": ["s2"],
        "some-0": ["edge0"], "some-1": ["edge1"], "some-2": ["edge2"],
        "narrow-0": ["some-0"], "narrow-1": ["some-1"], "narrow-2": ["some-2"],
        "sum-partial-0": ["narrow-0"], "sum-partial-1": ["narrow-1"], "sum-partial-2": ["narrow-2"],
        "meld": ["sum-partial-0", "sum-partial-1"], "more": ["meld", "sum-partial-2"],
        "sum": ["more"], "out": ["sum"],
    }  # fmt: skip


def test_what_others_read_stays_where_it_is():
    graph = melded(2)
    graph.add("some", Filter(pc.field("n") > 0), "meld")
    graph.sink("raw", "meld")
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), "some"))
    found = inputs(consolidated(graph))
    assert found == inputs(graph) | {"count-partial": ["some"], "count": ["count-partial"]}


def test_an_aggregate_of_an_aggregate_is_split_twice():
    graph = melded(2)
    first = graph.add("first", WindowAggregate(Tumbling(10), {"c": Count()}, ("k",)), "meld")
    graph.sink("out", graph.add("second", WindowAggregate(Tumbling(20), {"s": Sum("c")}), first))
    found = inputs(consolidated(graph))
    assert found["meld"] == ["first-partial-0", "first-partial-1"]
    assert found["second-partial"] == ["first"]


@pytest.mark.parametrize("windows", [TupleBased(5, 5), Landmark(10)])
def test_what_cannot_be_split_stays(windows):
    graph = melded(2)
    graph.sink("out", graph.add("count", WindowAggregate(windows, {"n": Count()}), "meld"))
    assert inputs(consolidated(graph)) == inputs(graph)
    with pytest.raises(
        GraphError, match=r"PartialAggregate: windows must .*: use WindowAggregate, or a Sliding"
    ):
        PartialAggregate(windows, {"n": Count()}).output_schemas((SCHEMA,))


def test_a_name_that_is_taken_is_said():
    graph = melded(1)
    graph.add("count-partial", Filter(pc.field("n") > 0), "meld")
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), "count-partial"))
    with pytest.raises(GraphError, match="there is a 'count-partial' already"):
        consolidated(graph)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(1, 13))
def test_random_graphs_in_two_halves_give_the_same(built, cut):
    expected = [multiset(told.rows) for told in built.told]
    assert results(built, consolidated(built.graph), on="inline", cut=cut) == expected
