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
    found = Graph(graph.name)
    for node in plan.nodes:
        inputs = [plan.input(node, port) for port in range(len(node.inputs))]
        if node.schema is not None:
            read = used[Stream(node.name, node.ports[0])]
            found.source(node.name, _of(node.schema, read, spare.get(node.name, ())))
        elif node.operator is None:
            found.sink(node.name, *inputs)
        else:
            found.add(node.name, node.operator, *inputs)
    return found


def _used(plan: Plan) -> dict[Stream, frozenset[str]]:
    """Return the columns of each stream that are read."""
    found: dict[Stream, frozenset[str]] = dict.fromkeys(plan.schemas, frozenset())
    for node in reversed(plan.nodes):
        inputs = [plan.input(node, port) for port in range(len(node.inputs))]
        schemas = tuple(plan.schema(one) for one in inputs)
        later = () if node.operator is None else tuple(found[Stream(node.name, port)] for port in node.ports)
        for one, columns in zip(inputs, _reads(node, schemas, later), strict=True):
            found[one] |= columns
    return found


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
    found: set[str] = set()
    for policy in policies:
        match policy:
            case None | Ordered() | BoundedDisorder() | BoundedCount():
                own: set[str] | None = set()
            case Heartbeat():
                own = _of_policies(policy.policy)
            case PerGroup():
                own = _of_policies(policy.policy, policy.linear)
                found |= set(policy.by)
            case _:
                own = None
        if own is None:
            return None
        found |= own
    return found


def _of(schema: Schema, used: frozenset[str], spare: Collection[str] | None) -> Schema:
    kept = used | {schema.progressing, schema.change}
    names = [name for name in schema.names if name in kept or (spare is not None and name not in spare)]
    return schema if names == schema.names else schema.select(names)
