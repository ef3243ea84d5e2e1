from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from oop_engine import GraphError, Operator, Schema
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.runners.inline import Inline

TS = Schema({"ts": pa.int64()}, "ts", "s")
LEN = Schema({"ts": pa.int64(), "len": pa.int32()}, "ts", "s")


class Pass(Operator):
    """One in, one out."""


class Two(Operator):
    """Two in, of one schema."""

    inputs = ("left", "right")

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        if inputs[0] != inputs[1]:
            msg = f"Two: inputs must be of one schema; got {inputs[0]} and {inputs[1]}"
            raise GraphError(msg)
        return inputs[:1]


class Fork(Operator):
    """One in, two out."""

    outputs = ("yes", "no")


class Asked(Operator):
    """One in, one out; it counts how often its schema is asked for."""

    times = 0

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        Asked.times += 1
        return inputs


def test_a_plan_asks_no_operator_again_for_its_schema() -> None:
    """Unless its node was exchanged; inputs that come later are asked for by the plan."""
    graph = Graph("asked")
    graph.sink("out", graph.add("asked", Asked(), graph.source("a", TS)))
    before = Asked.times
    assert graph.plan().schema(Stream("asked")) == TS == graph.schema(Stream("asked"))
    assert Asked.times == before
    graph.nodes["a"] = replace(graph.nodes["a"], schema=LEN)
    assert graph.plan().schema(Stream("asked")) == LEN
    assert Asked.times == before + 1


def test_a_diamond_with_several_sources_and_sinks() -> None:
    graph = Graph("diamond")
    a, b = graph.source("a", TS), graph.source("b", TS)
    fork = graph.add("fork", Fork(), a)
    left, right = graph.add("left", Pass(), fork), graph.add("right", Pass(), fork["no"])
    joined = graph.add("joined", Two(), left, right)
    both = graph.add("both", Two(), joined, b)
    graph.sink("results", both)
    graph.sink("also", left)
    plan = graph.plan()
    assert [n.name for n in plan.of_kind("source")] == ["a", "b"]
    assert [n.name for n in plan.of_kind("sink")] == ["also", "results"]
    assert plan.schema(Stream("both")) == plan.schema(both) == TS
    assert plan.consumers()[fork["no"]] == [("right", 0)]
    assert plan.consumers()[Stream("left", "out")] == [("joined", 0), ("also", 0)]
    assert (Stream("right", "out"), "joined", 1) in list(plan.edges())
    assert set(plan.open()) == {"fork", "left", "right", "joined", "both"}
    assert plan.open()["joined"].schemas_in == (TS, TS)


def test_streams_can_be_named_before_they_exist() -> None:
    graph = Graph("later")
    graph.sink("refused", "fork.no")
    graph.sink("results", "last")
    graph.add("last", Pass(), "fork")
    graph.add("fork", Fork(), "ticks")
    graph.source("ticks", TS)
    assert [node.name for node in graph.plan().nodes] == ["ticks", "fork", "refused", "last", "results"]


def test_a_graph_survives_pickling() -> None:
    graph = Graph("small")
    graph.sink("out", graph.add("pass", Pass(), graph.source("in", LEN)))
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.plan().schemas == graph.plan().schemas
    assert copy.text() == graph.text()
    Inline(copy, print)


def test_a_graph_is_drawn_in_text() -> None:
    graph = Graph("packets per minute")
    fork = graph.add("fork", Fork(), graph.source("packets", TS))
    graph.sink("counts", fork)
    graph.sink("late", fork["no"])
    assert graph.text().splitlines() == [
        "packets per minute",
        "  packets  source",
        "  fork     Fork  <- packets",
        "  counts   sink  <- fork.yes",
        "  late     sink  <- fork.no",
    ]


def unknown_input(graph: Graph) -> None:
    graph.add("pass", Pass(), "tickz")
    graph.sink("out", "pass")
    graph.plan()


def unknown_port_of_a_known_node(graph: Graph) -> None:
    graph.add("pass", Pass(), Stream("ticks", "late"))


def unknown_port_found_later(graph: Graph) -> None:
    graph.sink("out", "pass.late")
    graph.add("pass", Pass(), "ticks")
    graph.plan()


def output_of_a_sink(graph: Graph) -> None:
    graph.sink("out", "ticks")
    graph.add("pass", Pass(), "out")


def cycle(graph: Graph) -> None:
    graph.add("one", Two(), "ticks", "three")
    graph.add("two", Pass(), "one")
    graph.add("three", Pass(), "two")
    graph.sink("out", "three")
    graph.plan()


def cycle_with_itself(graph: Graph) -> None:
    graph.add("one", Two(), "ticks", "one")
    graph.sink("out", "one")
    graph.plan()


def dangling_output(graph: Graph) -> None:
    graph.sink("out", graph.add("fork", Fork(), "ticks"))
    graph.plan()


def dangling_source(graph: Graph) -> None:
    graph.source("more", TS)
    graph.sink("out", "ticks")
    graph.plan()


def duplicate(graph: Graph) -> None:
    graph.add("ticks", Pass(), "ticks")


def bad_name(graph: Graph) -> None:
    graph.sink("my sink", "ticks")


def too_many_inputs(graph: Graph) -> None:
    graph.add("pass", Pass(), "ticks", "ticks")


def too_few_inputs(graph: Graph) -> None:
    graph.add("two", Two(), "ticks")


def other_schemas(graph: Graph) -> None:
    graph.add("two", Two(), "ticks", graph.source("packets", LEN))


def other_schemas_found_later(graph: Graph) -> None:
    graph.sink("out", graph.add("two", Two(), "ticks", "packets"))
    graph.source("packets", LEN)
    graph.plan()


def no_sink(graph: Graph) -> None:
    graph.plan()


def sink_the_wrong_way_round(graph: Graph) -> None:
    graph.sink(Stream("ticks"), "out")  # type: ignore[arg-type]


def no_operator(graph: Graph) -> None:
    graph.add("fork", Fork, "ticks")  # type: ignore[arg-type]


def no_schema(graph: Graph) -> None:
    graph.source("more", TS.fields)  # type: ignore[arg-type]


def inputs_in_a_list(graph: Graph) -> None:
    graph.add("two", Two(), ["ticks", "ticks"])  # type: ignore[arg-type]


CASES: list[tuple[Callable[[Graph], None], str]] = [
    (
        sink_the_wrong_way_round,
        "graph 'toy': a name is made of letters, digits, '_' and '-'; got Stream(node='ticks', port=''): the name",
    ),
    (no_operator, "graph 'toy': 'fork' must have an operator, such as Filter('flag'); got <class"),
    (no_schema, "graph 'toy': 'more' must have a schema, Schema(columns, progressing); got ts: int64"),
    (inputs_in_a_list, "an input is a Stream, or its name, each for itself; got ['ticks', 'ticks']"),
    (unknown_input, "node 'pass': its input 'tickz' is not in graph 'toy'"),
    (unknown_port_of_a_known_node, "graph 'toy': 'ticks' has no output 'late'; it has out"),
    (unknown_port_found_later, "graph 'toy': 'pass' has no output 'late'; it has out"),
    (output_of_a_sink, "graph 'toy': 'out' has no output ''; it has none"),
    (cycle, "graph 'toy': there is a cycle through one -> two -> three -> one"),
    (cycle_with_itself, "graph 'toy': there is a cycle through one -> one"),
    (dangling_output, "graph 'toy': output 'fork.no' leads nowhere; connect it or add a sink"),
    (dangling_source, "graph 'toy': output 'more.out' leads nowhere"),
    (duplicate, "graph 'toy': there is a 'ticks' already"),
    (bad_name, "graph 'toy': a name is made of letters, digits, '_' and '-'; got 'my sink'"),
    (too_many_inputs, "node 'pass': Pass takes 1 (in) inputs; got 2"),
    (too_few_inputs, "node 'two': Two takes 2 (left, right) inputs; got 1"),
    (other_schemas, "node 'two': Two: inputs must be of one schema"),
    (other_schemas_found_later, "node 'two': Two: inputs must be of one schema"),
    (no_sink, "graph 'toy': there is no sink"),
]


@pytest.mark.parametrize(("build", "words"), CASES, ids=[build.__name__ for build, _ in CASES])
def test_a_graph_put_together_wrongly_is_refused_at_its_place(
    build: Callable[[Graph], None], words: str
) -> None:
    graph = Graph("toy")
    graph.source("ticks", TS)
    with pytest.raises(GraphError, match=f"^{re.escape(words)}"):
        build(graph)


def test_an_empty_graph_has_no_source() -> None:
    with pytest.raises(GraphError, match="graph 'toy': there is no source"):
        Graph("toy").plan()


def test_a_refused_node_leaves_the_graph_as_it_was() -> None:
    graph = Graph("toy")
    ticks, packets = graph.source("ticks", TS), graph.source("packets", LEN)
    with pytest.raises(GraphError):
        graph.add("two", Two(), ticks, packets)
    assert list(graph.nodes) == ["ticks", "packets"]
    graph.add("two", Two(), ticks, ticks)


def test_a_long_chain_is_planned_at_once() -> None:
    graph = Graph("long")
    graph.sink("out", f"n{999}")
    for i in reversed(range(1000)):
        graph.add(f"n{i}", Pass(), f"n{i - 1}" if i else "ticks")
    graph.source("ticks", TS)
    assert [n.name for n in graph.plan().nodes] == ["ticks", *(f"n{i}" for i in range(1000)), "out"]
