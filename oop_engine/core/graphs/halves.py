"""A graph whose operators are split in halves: the first keeps nothing, the second merges the output of the first.

    operator                    ->  first half -> second half
    union -> operator           ->  first half on each input -> union -> second half
    union -> ... -> operator    ->  the operators between and the first half on each input -> union -> second half

Operators answer for themselves: ``Operator.halves``, ``is_union``, and ``distributes`` for those that may stand
between.  So a ``WindowAggregate`` becomes ``PartialAggregate`` and ``Consolidate``, behind ``Meld``
and some ``Filter``, ``WithColumns``, ``Project``.

The first halves run where the tuples are, so only partial aggregates have to travel, and
tuples of one group may be anywhere.  The results are the same, and so is the punctuation.

Source: thesis 6.2; compute and consolidate: Madsen, Zhou, Su, Enorm, DEBS 2016, section 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from oop_engine.core.graphs.graph import Graph, Node, Plan, Stream
from oop_engine.core.operator import Operator

__all__ = ["consolidated"]


@dataclass(frozen=True)
class _Branch:
    """A stream as it is, and the operators that are to be copied behind it."""

    stream: Stream
    chain: tuple[Node, ...]


@dataclass(frozen=True)
class _United:
    """A union that moves behind the first halves."""

    node: Node
    inputs: tuple[_Branch | _United, ...]


_Tree = _Branch | _United


def consolidated(graph: Graph, only: Collection[str] | None = None) -> Graph:
    """Return ``graph`` with every operator split that has halves; ``graph`` stays as it is.

    ``only``: the names of those that are to be split; None: all.

    Node ``x`` becomes ``x-partial`` (``x-partial-0``, ``x-partial-1``... where there are
    several) and ``x``.  A union keeps its name; operators copied to its inputs get the
    input's number.  A union, with the operators between, moves only if nothing else reads it.
    Raises ``GraphError`` if the graph is not complete, or has a node of such a name already.
    O(nodes x longest path).
    """
    plan = graph.plan()
    split = {node.name: halves for node in plan.of_kind("operator")
             if (only is None or node.name in only) and (halves := _halves(node, plan))}  # fmt: skip
    trees = {name: _before(graph, plan, plan.node(name)) for name in split}
    moved = {name for tree in trees.values() for name in _moved(tree)}
    twin = Graph(f"{graph.name} (consolidated)")
    for node in plan.nodes:
        if node.name in split:
            _split(twin, node.name, split[node.name], trees[node.name])
        elif node.name not in moved:
            _copy(twin, node)
    return twin


def _halves(node: Node, plan: Plan) -> tuple[Operator, Operator] | None:
    return plan.operator(node.name).halves(plan.inputs(node.name))


def _before(graph: Graph, plan: Plan, node: Node) -> _Tree:
    """Return where the first halves of ``node`` go."""
    nodes = {known.name: known for known in plan.nodes}
    readers = plan.consumers()

    def tree(stream: Stream, chain: tuple[Node, ...]) -> _Tree:
        before = nodes[stream.node]
        if (operator := before.operator) is not None and len(readers[graph.resolve(stream)]) == 1:
            if operator.is_union:
                return _United(before, tuple(tree(given, chain) for given in before.inputs))
            if operator.distributes:
                further = tree(before.inputs[0], (before, *chain))
                if isinstance(further, _United):
                    return further
        return _Branch(stream, chain)

    return tree(node.inputs[0], ())


def _moved(tree: _Tree) -> set[str]:
    """Return the names of the nodes that are no longer where they were."""
    if isinstance(tree, _Branch):
        return {node.name for node in tree.chain}
    return {tree.node.name}.union(*map(_moved, tree.inputs))


def _branches(tree: _Tree) -> int:
    return 1 if isinstance(tree, _Branch) else sum(map(_branches, tree.inputs))


def _copy(twin: Graph, node: Node) -> None:
    if node.schema is not None:
        twin.source(node.name, node.schema)
    elif node.operator is None:
        twin.sink(node.name, node.inputs[0])
    else:
        _added(twin, node.name, node, *node.inputs)


def _split(twin: Graph, name: str, halves: tuple[Operator, Operator], tree: _Tree) -> None:
    """Add the two halves of node ``name``, and the operators that have moved in front of them."""
    first, second = halves
    count = _branches(tree)
    suffixes = iter([""] if count == 1 else [f"-{i}" for i in range(count)])
    twin.add(name, second, _add(twin, tree, (f"{name}-partial", first), suffixes))


def _add(twin: Graph, tree: _Tree, first: tuple[str, Operator], suffixes: Iterator[str]) -> Stream:
    """Add all nodes up to the first halves of ``tree``; return their stream."""
    if isinstance(tree, _United):
        streams = [_add(twin, given, first, suffixes) for given in tree.inputs]
        return _added(twin, tree.node.name, tree.node, *streams)
    suffix, stream = next(suffixes), tree.stream
    for node in tree.chain:
        stream = _added(twin, f"{node.name}{suffix}", node, stream)
    name, operator = first
    return twin.add(f"{name}{suffix}", operator, stream)


def _added(twin: Graph, name: str, node: Node, *inputs: Stream) -> Stream:
    """Add the operator of ``node``, here called ``name``; return its stream."""
    assert node.operator is not None
    return twin.add(name, node.operator, *inputs)
