"""A graph whose window aggregates are split in two: a half that keeps nothing, and a half that merges.

    WindowAggregate             ->  PartialAggregate -> Consolidate
    Meld -> WindowAggregate     ->  PartialAggregate on each input -> Meld -> Consolidate
    Meld -> Select, Apply, Project -> WindowAggregate
                                ->  these and PartialAggregate on each input, and so on

The first halves run where the tuples are, so only partial aggregates have to travel, and
tuples of one group may be anywhere.  The results are the same, and so are the promises.

Source: thesis 6.2; compute and consolidate: Madsen, Zhou, Su, Enorm, DEBS 2016, section 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from oop_engine.core.errors import GraphError
from oop_engine.core.graph import Graph, Node, Plan, Stream
from oop_engine.core.operator import Operator
from oop_engine.operators.apply import Apply
from oop_engine.operators.consolidate import Consolidate
from oop_engine.operators.meld import Meld
from oop_engine.operators.partial_aggregate import PartialAggregate
from oop_engine.operators.project import Project
from oop_engine.operators.select import Select
from oop_engine.operators.window_aggregate import WindowAggregate

__all__ = ["consolidated"]


@dataclass(frozen=True)
class _Branch:
    """A stream as it is, and the operators that are to be copied behind it."""

    stream: Stream
    chain: tuple[Node, ...]


@dataclass(frozen=True)
class _Melded:
    """A ``Meld`` that moves behind the first halves."""

    node: Node
    inputs: tuple[_Branch | _Melded, ...]


_Tree = _Branch | _Melded


def consolidated(graph: Graph, only: Collection[str] | None = None) -> Graph:
    """Return ``graph`` with every ``WindowAggregate`` split that can be; ``graph`` stays as it is.

    ``only``: the names of those that are to be split; None: all.

    Node ``x`` becomes ``x-partial`` (``x-partial-0``, ``x-partial-1``... where there are
    several) and ``x``.  A ``Meld`` keeps its name; operators copied to its inputs get the
    input's number.  A ``Meld``, and what is between, moves only if nothing else reads it.
    Windows on the order of arrival and landmark windows are not split.  Raises
    ``GraphError`` if the graph is not complete, or has a node of such a name already.
    O(nodes x longest path).
    """
    plan = graph.plan()
    wanted = [node for node in plan.nodes if only is None or node.name in only]
    trees = {node.name: _before(graph, plan, node) for node in wanted if _can_be_split(node, plan)}
    moved = {name for tree in trees.values() for name in _moved(tree)}
    twin = Graph(f"{graph.name} (consolidated)")
    for node in plan.nodes:
        if node.name in trees:
            _split(twin, plan, node, trees[node.name])
        elif node.name not in moved:
            _copy(twin, node)
    return twin


def _can_be_split(node: Node, plan: Plan) -> bool:
    if not isinstance(node.operator, WindowAggregate):
        return False
    try:
        _first_half(node.operator).output_schemas((plan.schema(node.inputs[0]),))
    except GraphError:
        return False
    return True


def _first_half(whole: WindowAggregate) -> PartialAggregate:
    return PartialAggregate(whole.windows, whole.aggregates, whole.by)


def _before(graph: Graph, plan: Plan, node: Node) -> _Tree:
    """Return where the first halves of ``node`` go."""
    nodes = {known.name: known for known in plan.nodes}
    readers = plan.consumers()

    def tree(stream: Stream, chain: tuple[Node, ...]) -> _Tree:
        before = nodes[stream.node]
        if len(readers[graph.resolve(stream)]) == 1:
            if isinstance(before.operator, Meld):
                return _Melded(before, tuple(tree(given, chain) for given in before.inputs))
            if _is_row_by_row(before.operator):
                further = tree(before.inputs[0], (before, *chain))
                if isinstance(further, _Melded):
                    return further
        return _Branch(stream, chain)

    return tree(node.inputs[0], ())


def _is_row_by_row(operator: Operator | None) -> bool:
    """Tell whether an operator says the same of several streams as of their union."""
    moves_progress = isinstance(operator, Project) and operator.progressing is not None
    return isinstance(operator, Select | Apply | Project) and not moves_progress


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
        twin.add(node.name, node.operator, *node.inputs)


def _split(twin: Graph, plan: Plan, node: Node, tree: _Tree) -> None:
    """Add the two halves of ``node``, and what has moved in front of them."""
    whole = node.operator
    assert isinstance(whole, WindowAggregate)
    count = _branches(tree)
    suffixes = iter([""] if count == 1 else [f"-{i}" for i in range(count)])
    partial = _add(twin, tree, (f"{node.name}-partial", _first_half(whole)), suffixes)
    second = Consolidate(
        whole.windows, whole.aggregates, whole.by,
        tuples=plan.schema(node.inputs[0]), empty=whole.empty, stamp=whole.stamp,
    )  # fmt: skip
    twin.add(node.name, second, partial)


def _add(twin: Graph, tree: _Tree, first: tuple[str, PartialAggregate], suffixes: Iterator[str]) -> Stream:
    """Add all that leads to the partial aggregates of ``tree``; return their stream."""
    if isinstance(tree, _Melded):
        streams = [_add(twin, given, first, suffixes) for given in tree.inputs]
        return twin.add(tree.node.name, Meld(len(streams)), *streams)
    suffix, stream = next(suffixes), tree.stream
    for node in tree.chain:
        assert node.operator is not None
        stream = twin.add(f"{node.name}{suffix}", node.operator, stream)
    name, operator = first
    return twin.add(f"{name}{suffix}", operator, stream)
