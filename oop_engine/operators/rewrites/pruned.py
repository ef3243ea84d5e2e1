"""A graph in which only the columns travel that are read: a ``Project`` drops the others as soon as it can.

    Punctuate  ->  Punctuate, Project    where later operators do not read all columns
    Filter     ->  Filter, Project       the same, of those that it reads itself
    Project    ->  Project               without the columns that no later operator reads

Operators answer which columns they read (``Operator.reads``), from the sinks to the sources; a sink reads all of its
stream.  Nothing is dropped in front of a generator of punctuation, for that of a source, by any of its
columns, decides which tuples are late.  Results and late tuples are the same.

Source: projection push-down, as in any relational planner.
"""

from __future__ import annotations

from oop_engine.core.graphs.graph import Graph, Node, Plan, Stream
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema
from oop_engine.operators.project import Project
from oop_engine.operators.filter import Filter
from oop_engine.operators.window_aggregate import WindowAggregate

__all__ = ["narrows", "pruned"]


def pruned(graph: Graph, stores: tuple[type[Operator], ...] = ()) -> Graph:
    """Return ``graph`` with a ``Project`` in front of each operator that would get columns of no use.

    With ``stores`` only operators of these types, which keep tuples, get one, and filters that would copy twice the
    columns that are read; a ``Project`` that only drops columns in front of window aggregates goes, for they copy none.
    The node behind ``x`` is ``x-columns``.  A graph that is pruned stays as it is; ``graph`` is left as it is.
    Raises ``GraphError`` if it is not complete, or has a node of such a name.  O(nodes).

    >>> import pyarrow as pa
    >>> from oop_engine.operators import Meld, Ordered, Punctuate
    >>> graph = Graph("per minute")
    >>> links = [graph.source(name, Schema({"ts": pa.int64(), "len": pa.int64()}, "ts", "s")) for name in "ab"]
    >>> both = graph.add("both", Meld(2), *(graph.add(f"{at.node}-edge", Punctuate(Ordered()), at) for at in links))
    >>> graph.sink("out", graph.add("times", Project(["ts"]), both))
    >>> [node.name for node in pruned(graph).plan().nodes if isinstance(node.operator, Project)]
    ['a-edge-columns', 'b-edge-columns', 'times']
    """
    return _Pruning(graph, stores).twin


def narrows(node: Node) -> list[str] | None:
    """Return the columns that a ``Project`` keeps by their names; None: the node does something else."""
    operator = node.operator
    return [*operator.columns] if isinstance(operator, Project) and _keeps_names(operator) else None


def _keeps_names(operator: Operator) -> bool:
    """Return whether an operator is a ``Project`` that keeps some columns as they are."""
    if not isinstance(operator, Project) or operator.progressing is not None:
        return False
    return all(
        isinstance(expression, str) and expression == name for name, expression in operator.columns.items()
    )


class _Pruning:
    """The graph that is made."""

    def __init__(self, graph: Graph, stores: tuple[type[Operator], ...]) -> None:
        self._plan, self.twin, self._stores = graph.plan(), Graph(graph.name), stores
        self._before = _before_generators(self._plan)
        self._kept: dict[str, Operator] = {}
        self._reads = _reads(self._plan, self._before, self._kept)
        self._skipped = _skipped(self._plan, self._before, self._kept) if stores else {}
        for node in self._plan.nodes:
            if node.name not in self._skipped:
                self._add(node)

    def _add(self, node: Node) -> None:
        streams = [self._input(node, port) for port in range(len(node.inputs))]
        if node.schema is not None:
            self.twin.source(node.name, node.schema)
        elif node.operator is None:
            self.twin.sink(node.name, *streams)
        else:
            self.twin.add(node.name, self._kept.get(node.name, node.operator), *streams)

    def _input(self, node: Node, port: int) -> Stream:
        """Return the stream of an input, with a ``Project`` behind it where some of its columns are of no use."""
        stream = self._plan.input(node, port)
        while stream.node in self._skipped:
            stream = self._skipped[stream.node]
        schema = self.twin.schema(stream)
        if node.operator is None or node.name in self._before or isinstance(node.operator, Project):
            return stream
        stays = self._reads[node.name][port] | {schema.progressing, schema.change}
        columns = [name for name in schema.names if name in stays]
        pays = self._pays(node.operator, len(columns), len(schema.names))
        return self._narrow(stream, columns) if pays else stream

    def _pays(self, operator: Operator, read: int, there: int) -> bool:
        """Return whether a ``Project`` in front of an operator is worth its pass."""
        if not self._stores or isinstance(operator, self._stores):
            return read < there
        return isinstance(operator, Filter) and 2 * read <= there

    def _narrow(self, stream: Stream, columns: list[str]) -> Stream:
        """Return the stream with ``columns`` alone: one that is there, or a new one."""
        port = "" if stream.port == self._plan.node(stream.node).ports[0] else f"-{stream.port}"
        name, number = f"{stream.node}{port}-columns", 1
        while (operator := self.twin.nodes.get(name)) is not None and narrows(operator) != columns:
            number += 1
            name = f"{stream.node}{port}-columns-{number}"
        narrow = Project(columns)
        made = Stream(name, narrow.outputs[0])
        if operator is None:
            self.twin.add(name, narrow, stream)
        return made


def _reads(
    plan: Plan, before: set[str], operators: dict[str, Operator]
) -> dict[str, tuple[frozenset[str], ...]]:
    """Return of each node the columns of its inputs that it or a later one reads.

    A ``Project`` that computes more than is read gets a narrower one in ``operators``.
    """
    read: dict[str, tuple[frozenset[str], ...]] = {}
    downstream: dict[Stream, frozenset[str]] = dict.fromkeys(plan.schemas, frozenset())
    for node in reversed(plan.nodes):
        schemas = tuple(plan.schema(plan.input(node, port)) for port in range(len(node.inputs)))
        answer = tuple(frozenset(schema.names) for schema in schemas)
        if node.operator is not None:
            later = tuple(downstream[Stream(node.name, port)] for port in node.ports)
            operator = node.operator
            if isinstance(operator, Project) and node.name not in before:
                operator = operators[node.name] = _narrowed(operator, schemas[0], later[0])
            answer = operator.reads(schemas, later)
        read[node.name] = answer
        for port, columns in enumerate(answer):
            downstream[plan.input(node, port)] |= columns
    return read


def _narrowed(operator: Project, schema: Schema, later: frozenset[str]) -> Project:
    """Return a ``Project`` without the columns that no later operator reads."""
    [out] = operator.output_schemas((schema,))
    stay = {*later, out.progressing, out.change}
    columns = {name: expression for name, expression in operator.columns.items() if name in stay}
    return operator if len(columns) == len(operator.columns) else Project(columns, operator.progressing)


def _skipped(plan: Plan, before: set[str], operators: dict[str, Operator]) -> dict[str, Stream]:
    """Return the input of each ``Project`` that only drops columns, in front of window aggregates alone."""
    readers: dict[str, list[Operator | None]] = {}
    for node in plan.nodes:
        for stream in node.inputs:
            readers.setdefault(stream.node, []).append(node.operator)
    return {
        node.name: plan.input(node, 0)
        for node in plan.nodes
        if node.name not in before
        and (operator := operators.get(node.name)) is not None
        and _keeps_names(operator)
        and all(type(reader) is WindowAggregate and not reader.changing for reader in readers[node.name])
    }


def _before_generators(plan: Plan) -> set[str]:
    """Return the generators of punctuation, and the nodes whose output leads to one."""
    names: set[str] = set()
    for node in reversed(plan.nodes):
        if node.name in names or (node.operator is not None and node.operator.makes_progress):
            names |= {node.name, *(stream.node for stream in node.inputs)}
    return names
