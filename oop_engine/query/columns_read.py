"""Columns read: a run takes only the columns from a file that its query reads, and joins keep no others.

Aggregates keep none, so there columns of no use may pass by.  Files are of formats that carry no punctuation, which may
be about any column.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oop_engine.core.graphs.graph import Graph, Node, Plan
from oop_engine.core.graphs.stream import Stream
from oop_engine.core.schema import Schema
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import BoundedCount, BoundedDisorder, Heartbeat, Ordered, PerGroup
from oop_engine.operators.rewrites.pruned import pruned
from oop_engine.query.feeds import files_in
from oop_engine.query.graph_of import Built
from oop_engine.traces.format_registry import format_of

__all__ = ["columns_read"]

_FORMATS = ("csv", "parquet")


def columns_read(made: Built) -> Built:
    """Return the same query whose sources over files have the columns alone that are read, and so have joins."""
    narrow = {name for name, feed in made.feeds.items() if _is_plain(feed)}
    graph = _narrowed(made.graph, narrow) if narrow else made.graph
    keeps = any(isinstance(node.operator, OAJoin) for node in graph.nodes.values())
    return Built(pruned(graph) if keeps else graph, made.feeds, made.unbounded)


def _is_plain(feed: Any) -> bool:
    """Tell whether a feed is files that have columns and no punctuation."""
    return isinstance(feed, str | Path) and all(format_of(one, None) in _FORMATS for one in files_in(feed))


def _narrowed(graph: Graph, sources: set[str]) -> Graph:
    plan = graph.plan()
    used = _used(plan)
    found = Graph(graph.name)
    for node in plan.nodes:
        inputs = [plan.input(node, port) for port in range(len(node.inputs))]
        if node.schema is not None:
            of = Stream(node.name, node.ports[0])
            found.source(node.name, _of(node.schema, used[of]) if node.name in sources else node.schema)
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


def _of(schema: Schema, used: frozenset[str]) -> Schema:
    names = [name for name in schema.names if name in used or name in (schema.progressing, schema.change)]
    return schema if names == schema.names else schema.select(names)
