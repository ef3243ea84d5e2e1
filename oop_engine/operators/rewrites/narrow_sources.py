"""Sources without the columns that nothing reads: so a reader leaves them in their file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from oop_engine.core.graphs.graph import Graph, Node, Plan
from oop_engine.core.graphs.stream import Stream
from oop_engine.core.schema import Schema
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import BoundedCount, BoundedDisorder, Heartbeat, Ordered, PerGroup

__all__ = ["narrow_sources"]


def narrow_sources(graph: Graph, spare: Mapping[str, Collection[str] | None]) -> Graph:
    """Return ``graph`` with sources that lack the columns of ``spare`` that no operator and no sink reads.

    ``spare``: by source the columns that it may lack; None: any.  The time and the column of changes always stay.
    ``graph`` is left as it is.  Raises ``GraphError`` if a graph of such sources is none.  O(nodes).
    """
    plan = graph.plan()
    used = _used(plan)
    narrowed = Graph(graph.name)
    for node in plan.nodes:
        inputs = [plan.input(node, port) for port in range(len(node.inputs))]
        if node.schema is not None:
            read = used[Stream(node.name, node.ports[0])]
            narrowed.source(node.name, _of(node.schema, read, spare.get(node.name, ())))
        elif node.operator is None:
            narrowed.sink(node.name, *inputs)
        else:
            narrowed.add(node.name, node.operator, *inputs)
    return narrowed


def _used(plan: Plan) -> dict[Stream, frozenset[str]]:
    """Return the columns of each stream that are read."""
    used: dict[Stream, frozenset[str]] = dict.fromkeys(plan.schemas, frozenset())
    for node in reversed(plan.nodes):
        inputs = [plan.input(node, port) for port in range(len(node.inputs))]
        schemas = tuple(plan.schema(stream) for stream in inputs)
        later = () if node.operator is None else tuple(used[Stream(node.name, port)] for port in node.ports)
        for stream, columns in zip(inputs, _reads(node, schemas, later), strict=True):
            used[stream] |= columns
    return used


def _reads(
    node: Node, schemas: tuple[Schema, ...], later: tuple[frozenset[str], ...]
) -> tuple[frozenset[str], ...]:
    operator = node.operator
    if operator is None:
        return tuple(frozenset(schema.names) for schema in schemas)
    own = _of_policies(operator.policy, operator.watermark) if isinstance(operator, Punctuate) else None
    return operator.reads(schemas, later) if own is None else (frozenset(own).union(*later),)


def _of_policies(*policies: Any) -> set[str] | None:
    """Return the columns that policies of the library read beside the event time; None: others may read any."""
    columns: set[str] = set()
    for policy in policies:
        match policy:
            case None | Ordered() | BoundedDisorder() | BoundedCount():
                own: set[str] | None = set()
            case Heartbeat():
                own = _of_policies(policy.policy)
            case PerGroup():
                own = _of_policies(policy.policy, policy.linear)
                columns |= set(policy.by)
            case _:
                own = None
        if own is None:
            return None
        columns |= own
    return columns


def _of(schema: Schema, used: frozenset[str], spare: Collection[str] | None) -> Schema:
    needed = used | {schema.progressing, schema.change}
    names = [name for name in schema.names if name in needed or (spare is not None and name not in spare)]
    return schema if names == schema.names else schema.select(names)
