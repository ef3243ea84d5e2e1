"""Splitting: aggregates that one place would have to work on alone, in halves that scale.

A window aggregate without ``by`` has to see every tuple, so one task would get them all.  Split
(``core/graphs/halves.py``), its first half goes wherever the tuples are, in the source chain of their source or
in all subtasks before it; only its partial aggregates are brought together.

An aggregate with ``by`` is divided by that, which is good as long as no key group has much more than
others.  To be balanced it is split too; the first half then runs in shards (``shards``).  And where a page has far
fewer groups than tuples (``sampled``) its first half goes to the source chain: less is shuffled.

Source: compute and consolidate: Madsen, Zhou, Su, Enorm, DEBS 2016, sections 4 and 5.1 (split).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from oop_engine.core.errors import GraphError
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.core.graphs.halves import consolidated
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema
from oop_engine.spark.plan.cut import cut
from oop_engine.spark.plan.fusion import Score
from oop_engine.spark.plan.pieces import Cut

__all__ = ["Columns", "pieces_of", "scaled", "splittable"]

Columns = dict[str, tuple[str, ...]]
"""By which columns the tuples of a node find their shard."""


def pieces_of(
    graph: Graph,
    groups: int = 1,
    score: Score = "components",
    rates: Mapping[Stream, int] | None = None,
    unordered: Collection[str] = (),
    *,
    split: bool = True,
    balance: bool = False,
    shards: int = 1,
    halves: Collection[str] = (),
) -> Cut:
    """Return ``graph`` as it is split and cut up to run; see ``scaled``."""
    twin, in_shards = scaled(graph, unordered, split=split, balance=balance, halves=halves)
    return cut(
        twin,
        groups=groups,
        score=score,
        rates=rates,
        unordered=unordered,
        shards=shards,
        in_shards=in_shards,
    )


def scaled(
    graph: Graph,
    unordered: Collection[str] = (),
    *,
    split: bool = True,
    balance: bool = False,
    halves: Collection[str] = (),
) -> tuple[Graph, Columns]:
    """Return ``graph`` so that it scales, and the nodes that are to run in shards.

    ``split``: split aggregates that would stay whole behind a shuffle.  ``balance``: split those with
    ``by`` whose tuples all come from source chains, and have their first halves run in shards.
    ``halves``: those with ``by`` that are split in any case.  ``unordered``: sources without a source chain
    (see ``stages.cut``).
    A graph that needs order is returned as it is, and so is one where there is nothing to do.
    """
    plan = graph.plan()
    if any(plan.operator(node.name).needs_order for node in plan.of_kind("operator")):
        return graph, {}
    whole = list(_staying_whole(graph, unordered)) if split else []
    in_shards = dict(_beside_sources(graph, unordered)) if balance else {}
    columns = {half: by for halves in in_shards.values() for half, by in halves.items()}
    wanted = list(dict.fromkeys([*whole, *in_shards, *halves]))
    return (_split(graph, wanted) if wanted else graph), columns


def _staying_whole(graph: Graph, unordered: Collection[str]) -> Iterator[str]:
    """Yield the aggregates behind a shuffle that nothing divides."""
    pieces = cut(graph, groups=2, unordered=unordered)
    for component in pieces.components:
        for name in component.nodes if component.groups == 1 else ():
            whole = pieces.plan.operator(name).partition_keys(pieces.plan.inputs(name)) == []
            if whole and _first_halves(graph, name):
                yield name


def splittable(graph: Graph, unordered: Collection[str] = ()) -> Iterator[str]:
    """Yield the aggregates with ``by`` whose first halves can be in source chains; none of a graph in order."""
    plan = graph.plan()
    if not any(plan.operator(node.name).needs_order for node in plan.of_kind("operator")):
        yield from (name for name, _ in _beside_sources(graph, unordered))


def _beside_sources(graph: Graph, unordered: Collection[str]) -> Iterator[tuple[str, Columns]]:
    """Yield each aggregate with ``by`` whose first halves can be next to source chains, and the columns of those."""
    for node in graph.plan().of_kind("operator"):
        halves = _first_halves(graph, node.name)
        if halves and all(halves.values()):
            twin = cut(_split(graph, [node.name]), groups=2, unordered=unordered)
            if halves.keys() <= {name for chain in twin.chains for name in chain.nodes}:
                yield node.name, halves


def _first_halves(graph: Graph, name: str) -> Columns:
    """Return the names of the first halves of an aggregate, and their grouping columns; none if it cannot be split."""
    plan = graph.plan()
    inputs = plan.inputs(name)
    halves = plan.operator(name).halves(inputs)
    if halves is None:
        return {}
    try:
        twin = _split(graph, [name])
    except GraphError:  # the names are taken
        return {}
    return dict.fromkeys(_feeding(twin, name), _grouping(*halves, inputs))


def _feeding(twin: Graph, name: str) -> Iterator[str]:
    """Yield the nodes that feed the second half ``name``, with or without unions between."""
    for stream in twin.nodes[name].inputs:
        before = twin.nodes[stream.node]
        if before.operator is not None and before.operator.is_union:
            yield from _feeding(twin, before.name)
        else:
            yield before.name


def _grouping(first: Operator, second: Operator, inputs: tuple[Schema, ...]) -> tuple[str, ...]:
    """Return the columns in front of ``first`` that divide ``second``."""
    keys = second.partition_keys(first.output_schemas(inputs)) or []
    return tuple(own for (column,) in keys if (own := first.lineage(column, inputs)[0]) is not None)


def _split(graph: Graph, names: Collection[str]) -> Graph:
    return Graph(graph.name, consolidated(graph, only=names).nodes)
