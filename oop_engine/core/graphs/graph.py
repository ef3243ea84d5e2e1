"""Graph: named streams and operators as plain data; a runner executes it.

A graph is built line by line, and each line is checked as soon as its inputs are known::

    graph = Graph("packets per minute")
    packets = graph.source("packets", schema)
    ordered = graph.add("progress", Punctuate(BoundedDisorder("5 s")), packets)
    counted = graph.add("count", WindowAggregate(Tumbling("1 min"), {"n": Count()}), ordered)
    graph.sink("counts", counted)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError
from oop_engine.core.graphs.acceptance import check_accepts, check_given, opened, output_schemas
from oop_engine.core.graphs.html import table_html
from oop_engine.core.graphs.node import Node
from oop_engine.core.graphs.plain import nodes_of_plain, plain_nodes
from oop_engine.core.graphs.stream import Stream
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema

__all__ = ["Graph", "Node", "Plan", "Stream"]


@dataclass
class Graph:
    """Operators and how they are connected.  Nothing runs, so a graph can be pickled.

    ``source``, ``add`` and ``sink`` are the only ways to connect things.  An input is the
    ``Stream`` that an earlier call returned, or its name as text (``"meld"``,
    ``"progress.late"``), which may come later; then the check waits for ``plan``.
    """

    name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    _schemas: dict[Stream, Schema] = field(default_factory=dict, repr=False)
    _checked: dict[str, Node] = field(default_factory=dict, repr=False, compare=False)

    def source(self, name: str, schema: Schema) -> Stream:
        """Add a source of ``schema``."""
        return self._put(Node(name, "source", schema=schema))

    def add(self, name: str, operator: Operator, *inputs: Stream | str) -> Stream:
        """Add ``operator``, fed by ``inputs`` in the order of its input ports.

        Returns its first output; ``stream.late`` is its output ``late``, ``stream["late"]`` too.  Raises ``GraphError``
        if the name is taken or the inputs do not fit.
        """
        return self._put(Node(name, "operator", tuple(map(_stream, inputs)), operator))

    def sink(self, name: str, stream: Stream | str) -> None:
        """Emit the tuples of ``stream`` as results, under ``name``."""
        self._put(Node(name, "sink", (_stream(stream),)))

    def _repr_html_(self) -> str:
        """Return the nodes as a table, for a notebook."""
        plan = self.plan()
        rows = [
            {
                "node": node.name,
                "operator": node.kind if node.operator is None else node.operator.describe(),
                "reads": ", ".join(map(str, node.inputs)),
            }
            for node in plan.nodes
        ]
        return table_html(f"Graph {self.name}", ["node", "operator", "reads"], rows)

    def plan(self) -> Plan:
        """Check the whole graph and return it ready to run.

        Raises ``GraphError`` for unknown inputs, cycles, ports that lead nowhere, a graph
        without a source or a sink, and whatever the operators object to.
        """
        self._check_names()
        order = self._in_order()
        schemas: dict[Stream, Schema] = {}
        for node in order:
            schemas.update(self._known_outputs(node, schemas) or self._outputs(node, schemas))
        self._check_ends()
        return Plan(self.name, order, schemas)

    def plain(self) -> dict[str, Any]:
        """Return the graph as plain data, for JSON: nodes, inputs, schemas, operators with their arguments.

        Raises ``GraphError``, with node and parameter, for functions, and for operators of your own without
        ``@checked_arguments``.  O(nodes).
        """
        return {"graph": self.name, "nodes": plain_nodes(self.name, self.nodes.values())}

    @classmethod
    def of_plain(
        cls, data: Mapping[str, Any], kinds: Mapping[str, type[Any]] = MappingProxyType({})
    ) -> Graph:
        """Return the graph of which ``plain`` made ``data``; ``kinds``: your own operators by name.

        Nothing but public classes and ``kinds`` is made, so data may come from anywhere.  Raises ``GraphError`` for
        other data, and as ``source``, ``add`` and ``sink`` do.

        >>> import pyarrow as pa
        >>> from oop_engine.operators import BoundedDisorder, Punctuate
        >>> graph = Graph("example")
        >>> log = graph.source("log", Schema({"ts": pa.int64()}, "ts", "s"))
        >>> graph.sink("out", graph.add("progress", Punctuate(BoundedDisorder("5 s")), log))
        >>> again = Graph.of_plain(graph.plain())
        >>> again.plain() == graph.plain()
        True
        """
        nodes = list(nodes_of_plain(data, kinds))
        graph = cls(str(data["graph"]))
        for name, kind, inputs, own in nodes:
            graph._put(Node(name, kind, inputs, *((own, None) if kind == "operator" else (None, own))))
        return graph

    def schema(self, stream: Stream) -> Schema:
        """Return the schema of a stream whose node, and all before it, have been added; O(1)."""
        return self._schemas[self.resolve(stream)]

    def resolve(self, stream: Stream) -> Stream:
        """Return ``stream`` with its port named (the first, where none was given)."""
        ports = self.nodes[stream.node].ports
        port = stream.port or (ports[0] if ports else "")
        if port not in ports:
            has = f"it has {', '.join(ports) or 'none'}{did_you_mean(port, ports)}"
            msg = f"graph {self.name!r}: {stream.node!r} has no output {port!r}; {has}"
            raise GraphError(msg)
        return Stream(stream.node, port)

    def text(self) -> str:
        """Return a drawing of the graph in text, a line a node, inputs behind the arrow."""
        plan = self.plan()
        width = max(len(node.name) for node in plan.nodes)
        lines = [f"{self.name}"]
        for node in plan.nodes:
            sources = ", ".join(str(s) if s.port not in ("", "out") else s.node for s in node.inputs)
            lines.append(f"  {node.name:<{width}}  {node.describe()}{f'  <- {sources}' if sources else ''}")
        return "\n".join(lines)

    def _put(self, node: Node) -> Stream:
        check_given(f"graph {self.name!r}", node.name, node.kind, node.operator or node.schema)
        if node.name in self.nodes:
            msg = f"graph {self.name!r}: there is a {node.name!r} already"
            raise GraphError(msg)
        if len(node.inputs) != len(node.input_ports):
            want = f"{len(node.input_ports)} ({', '.join(node.input_ports)})"
            msg = f"node {node.name!r}: {node.describe()} takes {want} inputs; got {len(node.inputs)}"
            raise GraphError(msg)
        if all(s.node in self.nodes for s in node.inputs):
            node = Node(
                node.name, node.kind, tuple(map(self.resolve, node.inputs)), node.operator, node.schema
            )
        if all(s in self._schemas for s in node.inputs):
            self._schemas.update(self._outputs(node, self._schemas))
            self._checked[node.name] = node
        self.nodes[node.name] = node
        return Stream(node.name, node.ports[0] if node.ports else "", node.ports)

    def _known_outputs(self, node: Node, schemas: dict[Stream, Schema]) -> dict[Stream, Schema] | None:
        """Return the outputs found when the node was added, if it and the schemas of its inputs are still the same."""
        if self._checked.get(node.name) is not node:
            return None
        if any(schemas[s] is not self._schemas.get(s) for s in node.inputs):
            return None
        return {stream: self._schemas[stream] for port in node.ports if (stream := Stream(node.name, port))}

    def _outputs(self, node: Node, schemas: dict[Stream, Schema]) -> dict[Stream, Schema]:
        if node.schema is not None:
            return {Stream(node.name, "out"): node.schema}
        if node.operator is None:
            return {}
        inputs = tuple(schemas[self.resolve(s)] for s in node.inputs)
        before = ((stream.node, self.nodes[stream.node].operator) for stream in node.inputs)
        check_accepts(node.name, node.operator, inputs, before)
        outputs = output_schemas(node.name, node.operator, inputs)
        return {Stream(node.name, port): schema for port, schema in zip(node.ports, outputs, strict=True)}

    def _check_names(self) -> None:
        for node in self.nodes.values():
            for stream in node.inputs:
                if stream.node not in self.nodes:
                    there = f"there are {', '.join(self.nodes)}{did_you_mean(stream.node, self.nodes)}"
                    msg = f"node {node.name!r}: its input {str(stream)!r} is not in graph {self.name!r}; {there}"
                    raise GraphError(msg)
                self.resolve(stream)

    def _in_order(self) -> list[Node]:
        """Sort topologically, keeping the order of building where it is free.  O(edges x longest path)."""
        done: dict[str, Node] = {}
        waiting = dict(self.nodes)
        while waiting:
            ready = [n for n in waiting.values() if all(s.node in done for s in n.inputs)]
            if not ready:
                msg = f"graph {self.name!r}: there is a cycle through {' -> '.join(self._cycle(waiting))}"
                raise GraphError(msg)
            for node in ready:
                done[node.name] = waiting.pop(node.name)
        return list(done.values())

    def _cycle(self, waiting: dict[str, Node]) -> list[str]:
        path = [next(iter(waiting))]
        while path[-1] not in path[:-1]:
            path.append(next(s.node for s in waiting[path[-1]].inputs if s.node in waiting))
        return path[path.index(path[-1]) :][::-1]

    def _check_ends(self) -> None:
        kinds = {node.kind for node in self.nodes.values()}
        for kind in ("source", "sink"):
            if kind not in kinds:
                msg = f"graph {self.name!r}: there is no {kind}"
                raise GraphError(msg)
        used = {self.resolve(s) for node in self.nodes.values() for s in node.inputs}
        for node in self.nodes.values():
            for port in node.ports:
                if Stream(node.name, port) not in used:
                    msg = f"graph {self.name!r}: output '{node.name}.{port}' leads nowhere; connect it or add a sink"
                    raise GraphError(msg)


@dataclass(frozen=True)
class Plan:
    """A checked graph: nodes in topological order, and the schema of every stream."""

    name: str
    nodes: list[Node]
    schemas: dict[Stream, Schema]

    def schema(self, stream: Stream) -> Schema:
        """Return the schema of a stream (its port may be left out)."""
        return self.schemas[self._full(stream)]

    def node(self, name: str) -> Node:
        """Return a node by its name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    def operator(self, name: str) -> Operator:
        """Return the description of the operator of a node."""
        operator = self.node(name).operator
        assert operator is not None, name
        return operator

    def input(self, node: Node, port: int) -> Stream:
        """Return the stream that feeds an input port of a node, its port named."""
        return self._full(node.inputs[port])

    def inputs(self, name: str) -> tuple[Schema, ...]:
        """Return the schemas of the inputs of a node, by port."""
        return tuple(map(self.schema, self.node(name).inputs))

    def of_kind(self, kind: str) -> list[Node]:
        """Return the sources, the operators or the sinks."""
        return [node for node in self.nodes if node.kind == kind]

    def edges(self) -> Iterator[tuple[Stream, str, int]]:
        """Yield every edge: from a stream, to a node, at the number of its input port."""
        for node in self.nodes:
            for port, stream in enumerate(node.inputs):
                yield self._full(stream), node.name, port

    def consumers(self) -> dict[Stream, list[tuple[str, int]]]:
        """Return where each stream goes."""
        consumers: dict[Stream, list[tuple[str, int]]] = {stream: [] for stream in self.schemas}
        for stream, node, port in self.edges():
            consumers[stream].append((node, port))
        return consumers

    def open(self) -> dict[str, Operator]:
        """Return fresh, opened operators by name."""
        return {
            node.name: opened(self.name, node.name, node.operator, tuple(map(self.schema, node.inputs)))
            for node in self.nodes
            if node.operator is not None
        }

    def _full(self, stream: Stream) -> Stream:
        if stream.port:
            return stream
        return Stream(stream.node, self.node(stream.node).ports[0])


def _stream(text: object) -> Stream:
    if isinstance(text, Stream):
        return text
    if not isinstance(text, str):
        msg = f"an input is a Stream, or its name, each for itself; got {text!r}"
        raise GraphError(msg)
    node, _, port = text.partition(".")
    return Stream(node, port)
