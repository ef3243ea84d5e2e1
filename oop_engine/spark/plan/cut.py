"""Stages: a graph cut up for Spark.

The operators of one source alone, up to the first that can be divided, are its *source chain*: it runs
where the source is read, tuple after tuple in order of arrival.  Everything behind is fused into
components (``fusion``), each with a number of key groups.  A component is at the level behind all
that feed it, and a level is one shuffle and one stateful operator of Spark: all its components are in it.

    source -> chain --+-- level 1: component, component --+-- level 2: component -- sinks
    source -> chain --+                                   |
                      +-----------------------------------+   (records for later levels pass by)

Operators that are to be balanced are in components of their own, at level 0, between source chains and level 1:
they run in *shards*, which keep nothing, so that their tuples may go elsewhere in the next micro-batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from oop_engine.core.errors import GraphError
from oop_engine.core.graphs.graph import Graph, Plan, Stream
from oop_engine.core.operator import Operator
from oop_engine.spark.plan.fusion import Division, Nodes, Score, division, fused, repeats
from oop_engine.spark.plan.pieces import SHARDS, Component, Cut, Edge, SourceChain

__all__ = ["cut"]


def cut(
    graph: Graph,
    *,
    groups: int = 8,
    score: Score = "components",
    rates: Mapping[Stream, int] | None = None,
    unordered: Collection[str] = (),
    shards: int = 1,
    in_shards: Mapping[str, tuple[str, ...]] | None = None,
) -> Cut:
    """Cut ``graph`` up; components that can be divided get ``groups`` key groups.

    ``unordered``: sources that cannot be read in order of arrival in one place, so that all
    of their operators are in components.  ``score`` and ``rates``: see ``fusion``.  ``in_shards``: operators
    behind source chains that keep nothing of tuples and are to run in ``shards``, and by which columns these are found.
    Raises ``GraphError`` for graphs that cannot run on Spark: an operator that keeps state and cannot be saved,
    or one that wants the arrival clock and is not at the source chain of a source.
    """
    return _Cutter(graph.plan(), groups, score, rates or {}, unordered, shards, in_shards or {}).cut()


@dataclass
class _Cutter:
    plan: Plan
    groups: int
    score: Score
    rates: Mapping[Stream, int]
    unordered: Collection[str]
    shards: int
    in_shards: Mapping[str, tuple[str, ...]]
    edges: list[Edge] = field(default_factory=list)

    def cut(self) -> Cut:
        every = self._check_operators()
        chains = [self._chain(node.name) for node in self.plan.of_kind("source")]
        for component in self.components:
            self._add_inlets(component)
        for node in self.plan.of_kind("sink"):
            stream = self._full(node.inputs[0])
            self.edges.append(Edge(len(self.edges), stream, self.plan.schema(stream), None, node.name))
        components = [self._component(number) for number in range(len(self.components))]
        finished = [self._with_outlets(chain) for chain in chains]
        return Cut(self.plan, tuple(finished), tuple(components), tuple(self.edges), every)

    @cached_property
    def source_of(self) -> dict[str, str]:
        """The source of each node that is in a source chain."""
        source_of = {n.name: n.name for n in self.plan.of_kind("source")}
        for node in self.plan.of_kind("operator"):
            sources = {source_of.get(s.node, "") for s in node.inputs}
            keys = self.plan.operator(node.name).partition_keys(self.plan.inputs(node.name))
            alone = len(sources) == 1 and not sources & {"", *self.unordered} and not keys
            if alone and node.name not in self.in_shards:
                source_of[node.name] = sources.pop()
        return source_of

    @cached_property
    def without_order(self) -> set[str]:
        """The nodes whose tuples have no order of arrival, and no generator of punctuation in front."""
        unordered = set(self.unordered)
        for node in self.plan.of_kind("operator"):
            makes = self.plan.operator(node.name).makes_progress
            if not makes and not unordered.isdisjoint(stream.node for stream in node.inputs):
                unordered.add(node.name)
        return unordered

    @cached_property
    def components(self) -> list[Nodes]:
        apart = self.source_of.keys() | self.in_shards.keys()
        remaining = [n.name for n in self.plan.of_kind("operator") if n.name not in apart]
        shards = [frozenset([name]) for name in self.in_shards]
        return [*shards, *fused(self.plan, remaining, self.score, self.rates)]

    @cached_property
    def divisions(self) -> list[Division]:
        shards = [Division(True, tuple({(n, 0): c} for c in by)) for n, by in self.in_shards.items()]
        others = self.components[len(shards) :]
        return [*shards, *(division(self.plan, nodes) or Division(anyhow=False) for nodes in others)]

    @cached_property
    def component_of(self) -> dict[str, int]:
        return {name: number for number, nodes in enumerate(self.components) for name in nodes}

    @cached_property
    def levels(self) -> list[int]:
        levels = [SHARDS] * len(self.components)
        for _ in self.components:  # as often as the longest path at most
            for number, nodes in list(enumerate(self.components))[len(self.in_shards) :]:
                before = [self.component_of.get(s.node, -1) for n in nodes for s in self.plan.node(n).inputs]
                levels[number] = 1 + max((levels[b] for b in before if b not in (-1, number)), default=0)
        return levels

    def _subtasks(self, number: int) -> int:
        if number < len(self.in_shards):
            return self.shards
        how = self.divisions[number]
        return self.groups if how.anyhow or how.keys else 1

    def _check_operators(self) -> int | None:
        ticking = []
        for name, operator in self.plan.open().items():
            if operator.clock_every:
                ticking.append(operator.clock_every)
                if name not in self.source_of:
                    msg = (
                        f"node {name!r}: {operator.describe()} wants the arrival clock, which on Spark is known "
                        f"where a source is read: put it between a source and the first union, join or group-by"
                    )
                    raise GraphError(msg)
            saved = type(operator).save is not Operator.save
            if not saved and operator.partition_keys(operator.schemas_in) is not None:
                msg = (
                    f"node {name!r}: {type(operator).__name__} keeps state and cannot be saved, which Spark has to do "
                    f"after every micro-batch: give it save() and load(), or partition_keys() None if it keeps nothing"
                )
                raise GraphError(msg)
        return min(ticking, default=None)

    def _chain(self, source: str) -> SourceChain:
        nodes = tuple(n for n, s in self.source_of.items() if s == source and n != source)
        return SourceChain(source, nodes, Graph(f"{self.plan.name}: source chain of {source}"), {})

    def _add_inlets(self, nodes: Nodes) -> None:
        """Add an edge for each stream that comes in; one for all its uses with the same keys."""
        number = self.component_of[next(iter(nodes))]
        keys = self.divisions[number].keys
        known: set[tuple[Stream, tuple[str, ...]]] = set()
        for name in self._in_order(nodes):
            for port, given in enumerate(self.plan.node(name).inputs):
                stream = self._full(given)
                if stream.node in nodes:
                    continue
                columns = tuple(key[name, port] for key in keys if (name, port) in key)
                if (stream, columns) not in known:
                    known.add((stream, columns))
                    self.edges.append(self._edge(stream, number, columns))

    def _edge(self, stream: Stream, number: int, columns: tuple[str, ...]) -> Edge:
        before = self.component_of.get(stream.node)
        channels, owner = 1, None
        if before is not None and (channels := self._subtasks(before)) > 1:
            how = self.divisions[before]
            owner = repeats(self.plan, self.components[before], stream, how.keys) if how.keys else None
        schema = self.plan.schema(stream)
        unordered = stream.node in self.without_order
        return Edge(len(self.edges), stream, schema, number, "", columns, channels, owner, unordered)

    def _component(self, number: int) -> Component:
        nodes = self.components[number]
        inlets = [e for e in self.edges if e.component == number]
        how = self.divisions[number]
        graph = Graph(f"{self.plan.name}: {' + '.join(self._in_order(nodes))}")
        for edge in inlets:
            graph.source(edge.name, edge.schema)
        for name in self._in_order(nodes):
            ports = range(len(self.plan.node(name).inputs))
            inputs = [self._inside(number, name, port) for port in ports]
            graph.add(name, self.plan.operator(name), *inputs)
        outlets = self._outlets(graph, nodes)
        return Component(
            number=number,
            nodes=self._in_order(nodes),
            level=self.levels[number],
            groups=self._subtasks(number),
            attributes=tuple(next(iter(key.values())) for key in how.keys),
            anyhow=how.anyhow,
            ordered=any(self.plan.operator(n).needs_order for n in nodes),
            inlets=tuple(e.number for e in inlets),
            graph=graph,
            outlets=outlets,
        )

    def _inside(self, number: int, name: str, port: int) -> Stream:
        """Return the stream into a port, in the graph of the component."""
        stream, keys = self._full(self.plan.node(name).inputs[port]), self.divisions[number].keys
        if stream.node in self.components[number]:
            return stream
        columns = tuple(key[name, port] for key in keys if (name, port) in key)
        edge = next(e for e in self.edges if (e.component, e.stream, e.keys) == (number, stream, columns))
        return Stream(edge.name, "out")

    def _with_outlets(self, chain: SourceChain) -> SourceChain:
        source = self.plan.node(chain.source)
        assert source.schema is not None
        chain.graph.source(chain.source, source.schema)
        for name in chain.nodes:
            chain.graph.add(name, self.plan.operator(name), *self.plan.node(name).inputs)
        return SourceChain(
            chain.source,
            chain.nodes,
            chain.graph,
            self._outlets(chain.graph, frozenset([chain.source, *chain.nodes])),
        )

    def _outlets(self, graph: Graph, nodes: Nodes) -> dict[str, tuple[int, ...]]:
        """Give ``graph`` a sink for each stream that leaves ``nodes``; return where those lead."""
        outlets: dict[str, tuple[int, ...]] = {}
        for stream in self.plan.schemas:
            to = tuple(e.number for e in self.edges if e.stream == stream) if stream.node in nodes else ()
            if to:
                sink = f"out-{len(outlets)}"
                graph.sink(sink, stream)
                outlets[sink] = to
        return outlets

    def _in_order(self, nodes: Nodes) -> tuple[str, ...]:
        return tuple(node.name for node in self.plan.nodes if node.name in nodes)

    def _full(self, stream: Stream) -> Stream:
        return next(
            known
            for known in self.plan.schemas
            if known.node == stream.node and stream.port in ("", known.port)
        )
