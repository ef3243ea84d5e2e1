"""The in-order twin of a graph: the same query, as an in-order architecture would run it.

    Punctuate        ->  Sort                 the same policy and granularity; itself where the source is sorted
    Meld             ->  Merge
    OAJoin           ->  OPOBJoin, OPIBJoin   by ``join``
    Project          ->  itself; of names alone, behind a buffer: the buffer keeps these columns, and it is left out
    WindowAggregate  ->  BufferingAggregate   of grids; windows that merge (sessions) are in order where tuples are;
                         those folded on the bound are themselves, and a Sort behind them
                         of several definitions: one for each, then Project, which names it, and Merge
                         without ``emit``: in order there is no answer before the final one
    Meld, WindowAggregate  ->  LowLevelAggregate, Merge, Consolidate   by ``windows="early"``, without groups
    MultiJoin        ->  itself, and a Sort behind it
    all others       ->  their ``Operator.twin``, or themselves if they keep order (``Operator.keeps_order``)

Both are pruned by one rule (``pruned``).  The same tuples are late in both, so exact plans give equal results (thesis
ch. 8, where the two architectures are compared on one plan).
"""

from __future__ import annotations

from itertools import repeat
from typing import Any, Literal, NamedTuple

import pyarrow.compute as pc

from oop_engine.core.errors import GraphError
from oop_engine.core.graphs.graph import Graph, Node, Plan, Stream
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregate import Aggregate
from oop_engine.operators.bucket import Bucket
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.in_order.opib_join import OPIBJoin
from oop_engine.operators.in_order.opob_join import OPOBJoin
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.meld import Meld
from oop_engine.operators.multi_way_join import MultiJoin
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.late import Late, Slack
from oop_engine.operators.policies.policies import Ordered, Upstream
from oop_engine.operators.project import Project
from oop_engine.operators.rewrites.early_halves import aggregated_early
from oop_engine.operators.rewrites.pruned import narrows, pruned
from oop_engine.operators.filter import Filter
from oop_engine.operators.slicing.tagger import bind
from oop_engine.operators.split import Goes, Split
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Definition, Over, is_folded, is_grid

__all__ = ["Windowing", "in_order"]

Join = Literal["output", "input"]
Windowing = Literal["buffer", "reduce", "early"]


def in_order(
    graph: Graph, *, join: Join = "output", slack: Slack = Slack.CONSISTENT, windows: Windowing = "buffer",
    sorted_sources: bool = False,
) -> Graph:  # fmt: skip
    """Return the in-order twin of ``graph``, as a competent engineer would write it; the graph is left as it is.

    Only the columns that are read travel (``pruned``), and buffers keep no others; a ``Project`` that would do no more
    is left out.  ``join``: which side of a join is buffered to keep its output sorted.  ``windows``: ``"buffer"`` keeps
    the tuples of open windows, as in-order engines do; ``"reduce"`` keeps their partial aggregates, which is the best
    that is known for any aggregate: behind a ``Sort`` or a ``Merge`` it is then that of ``graph``.  ``"early"`` also
    aggregates in front of a ``Merge`` where that is sound: each input of a union that an aggregate without groups
    alone reads, over panes of one grid, so the ``Merge`` buffers a row for each pane.  ``sorted_sources``:
    behind a ``Punctuate(Ordered())`` nothing is sorted; a source that is not in order raises ``ContractError``
    then, while a ``Sort`` would put tuples that are not late in order.  ``slack``: whether a
    late tuple is dropped from all of its windows (consistent) or only from those that have
    closed (generous); the latter needs each ``Sort`` to lead to a ``BufferingAggregate``, with nothing between them
    that keeps tuples: late ones go through copies of it, side by side with the others.
    Raises ``GraphError`` for an operator that has no in-order twin and does not keep order.
    O(nodes).
    """
    twin, plan = Graph(f"{graph.name} (in order)"), pruned(graph).plan()
    how, moved = _How(join, slack, windows, sorted_sources), dict[Stream, Stream]()
    early = aggregated_early(plan) if windows == "early" and slack is Slack.CONSISTENT else {}
    unions = {halves.union for halves in early.values()}
    for node in plan.nodes:
        inputs = [
            moved.get(stream, stream) for stream in map(plan.input, repeat(node), range(len(node.inputs)))
        ]
        if node.schema is not None:
            twin.source(node.name, node.schema)
        elif node.operator is None:
            twin.sink(node.name, inputs[0])
        elif node.name in unions:
            continue
        elif node.name in early:
            early[node.name].add(twin, node.name, moved)
        elif narrows(node) is not None and narrows(node) == _buffered(plan, node.inputs[0].node, how):
            moved[Stream(node.name, node.ports[0])] = inputs[0]
        else:
            _add(twin, plan, node, node.operator, inputs, how)
    return twin


class _How(NamedTuple):
    """How joins, late tuples and windows are treated."""

    join: Join
    slack: Slack
    windows: Windowing
    sorted_sources: bool

    def leaves(self, operator: Operator | None) -> bool:
        """Return whether an operator stays as it is: a generator behind a source that is sorted."""
        return self.sorted_sources and isinstance(operator, Punctuate) and operator.policy == Ordered()


def _buffered(plan: Plan, name: str, how: _How) -> list[str] | None:
    """Return the columns that the buffer of a node has to keep, where ``Project``s behind it drop the others."""
    node = plan.node(name)
    of_join = isinstance(node.operator, OAJoin) and how.join == "output"
    if how.leaves(node.operator) or not (of_join or isinstance(node.operator, Punctuate | MultiJoin)):
        return None
    stream = Stream(name, node.ports[0])
    narrowed = [narrows(plan.node(consumer)) for at, consumer, _ in plan.edges() if at == stream]
    columns = {column for each in narrowed if each is not None for column in each}
    return (
        [column for column in plan.schema(stream).names if column in columns]
        if None not in narrowed and narrowed
        else None
    )


def _add(twin: Graph, plan: Plan, node: Node, operator: Operator, inputs: list[Stream], how: _How) -> None:
    slack = how.slack
    if isinstance(operator, WindowAggregate) and operator.emit is not None:
        operator, inputs = _once(operator), inputs[:1]
    if operator.changing:
        msg = (
            f"node {node.name!r}: windows that change while the query runs have no twin in order: leave changing out, "
            "or run the graph as it is"
        )
        raise GraphError(msg)
    if isinstance(operator, WindowAggregate) and slack is Slack.GENEROUS:
        inputs.append(_late(twin, plan, node.inputs[0], node))
    if isinstance(operator, WindowAggregate) and operator.named:
        names = [f"{node.name}_{number + 1}" for number in range(len(operator.windows))]
        named = [
            _add_definition(twin, plan, name, operator, window, inputs, how)
            for name, window in zip(names, operator.windows, strict=True)
        ]
        twin.add(node.name, Merge(len(named)), *named)
    elif isinstance(operator, WindowAggregate):
        _add_windows(twin, node.name, operator, inputs, plan.schema(node.inputs[0]), how)
    elif isinstance(operator, MultiJoin):
        _add_sorted(twin, node.name, operator, inputs, _buffered(plan, node.name, how))
    else:
        twin.add(node.name, _twin(plan, node.name, how), *inputs)


def _once(aggregate: WindowAggregate) -> WindowAggregate:
    """Return the operator that emits final results alone."""
    return WindowAggregate(
        aggregate.windows,
        aggregate.aggregates,
        aggregate.by,
        stamp=aggregate.stamp,
        assembly=aggregate.assembly,
    )


def _add_definition(
    twin: Graph,
    plan: Plan,
    name: str,
    aggregate: WindowAggregate,
    window: str,
    inputs: list[Stream],
    how: _How,
) -> Stream:
    """Add the results of the definition ``window``, in rows like those of all definitions."""
    schema = plan.schema(inputs[0])
    single = WindowAggregate(
        aggregate.windows[window],
        aggregate.aggregates,
        aggregate.by,
        empty=aggregate.empty,
        stamp=aggregate.stamp,
    )
    alone = _add_windows(twin, name, single, inputs, schema, how)
    [results] = aggregate.output_schemas((schema,))
    row = Project({column: pc.scalar(window) if column == "window" else column for column in results.names})
    return twin.add(f"{name}_named", row, alone)


def _add_windows(
    twin: Graph, name: str, aggregate: WindowAggregate, inputs: list[Stream], schema: Schema, how: _How
) -> Stream:
    """Add the operators that aggregate windows in order.

    Windows that are folded on the bound leave group by group at the end, and those that merge by their ends, so their
    results are sorted again, of the latter where they progress by their starts.
    """
    alone, definition = _windows(name, aggregate, schema, how), _bound(aggregate, schema)
    by_start = aggregate.stamp == "start" and not is_grid(definition)
    if is_folded(definition) or by_start:
        return _add_sorted(twin, name, alone, inputs)
    return twin.add(name, alone, *inputs)


def _add_sorted(
    twin: Graph, name: str, operator: Operator, inputs: list[Stream], columns: list[str] | None = None
) -> Stream:
    return twin.add(name, Sort(Upstream(), columns=columns), twin.add(f"{name}_unsorted", operator, *inputs))


def _twin(plan: Plan, name: str, how: _How) -> Operator:
    operator = plan.operator(name)
    match operator:
        case Punctuate(late=Late.DIVERT | Late.RAISE):
            msg = (
                f"node {name!r}: in order, late tuples are dropped or go to open windows; got {operator.late}"
            )
            raise GraphError(msg)
        case Punctuate() if how.leaves(operator):
            return operator
        case Punctuate():
            return Sort(operator.policy, operator.granularity, how.slack, columns=_buffered(plan, name, how))
        case Meld():
            return Merge(len(operator.inputs))
        case OAJoin():
            terms = operator.terms
            options: Any = {"residual": terms.residual, "suffix": terms.suffix, "how": terms.how}
            if how.join == "input":
                return OPIBJoin(terms.keys, terms.band, **options)
            return OPOBJoin(terms.keys, terms.band, **options, columns=_buffered(plan, name, how))
        case Bucket() | Aggregate():
            msg = f"node {name!r}: {type(operator).__name__} has no in-order twin; use WindowAggregate for the two"
            raise GraphError(msg)
    if (own := operator.twin(plan.inputs(name))) is not None:
        return own
    if operator.keeps_order(plan.inputs(name)):
        return operator
    msg = (
        f"node {name!r}: {operator.describe()} has no in-order twin: sorted input must leave sorted, "
        f"and {type(operator).__name__}.keeps_order() is False: return True there, or another operator "
        "from twin(), or run the graph as it is"
    )
    raise GraphError(msg)


def _windows(name: str, aggregate: WindowAggregate, schema: Schema, how: _How) -> Operator:
    """Return the operator that aggregates windows in order.

    Sessions of a sorted input leave in order, and there is nothing that a buffer would be needed for.
    Windows that leave in a
    lull follow from punctuation, which a buffer does not wait for.
    """
    generous = how.slack is Slack.GENEROUS
    definition = _bound(aggregate, schema)
    if definition.over is not Over.ATTRIBUTE or definition.numbered:
        msg = (
            f"node {name!r}: {aggregate.windows} has no in-order twin: in order, tuples arrive in another order, and "
            "have other numbers: number them by time (order='time', of='rank'), or run the graph as it is"
        )
        raise GraphError(msg)
    if aggregate.empty and aggregate.by:
        msg = (
            f"node {name!r}: empty=True with by={list(aggregate.by)} has no in-order twin: a gap of one group is known "
            "when later windows of others have left: leave empty out, or run the graph as it is"
        )
        raise GraphError(msg)
    if is_grid(definition) and not definition.lulls and how.windows == "buffer":
        return BufferingAggregate(
            aggregate.windows,
            aggregate.aggregates,
            aggregate.by,
            empty=aggregate.empty,
            stamp=aggregate.stamp,
            late=generous,
        )
    if generous:
        needs = "windows on a grid" if how.windows == "buffer" else "windows='buffer'"
        msg = f"node {name!r}: generous slack needs {needs}; got {aggregate.windows}: use consistent slack"
        raise GraphError(msg)
    return aggregate


def _bound(aggregate: WindowAggregate, schema: Schema) -> Definition:
    return bind(aggregate.windows, schema, aggregate.by, "in_order", aggregate.aggregates.values())


def _late(twin: Graph, plan: Plan, stream: Stream, to: Node) -> Stream:
    """Return the late tuples of a stream: they go from the Sort through copies of the operators between.

    Each copy is of an operator that keeps nothing, so it treats them like the others.
    """
    before = plan.node(stream.node)
    operator = before.operator
    if isinstance(operator, Punctuate):
        return Stream(before.name)["late"]
    alone = len(before.inputs) == 1 and not (operator and operator.is_union)
    if operator is None or not alone or operator.partition_keys(plan.inputs(before.name)) is not None:
        kind = "a source" if operator is None else type(operator).__name__
        msg = (
            f"node {to.name!r}: generous slack needs one Punctuate before it, and between them only "
            f"Filter, Split, WithColumns, Project; {before.name} ({kind}) is in between: use consistent slack"
        )
        raise GraphError(msg)
    name = f"{before.name}_late"
    if isinstance(operator, Split):
        name, operator = f"{before.name}_{stream.port}_late", Filter(Goes(operator, stream.port))
    if name not in twin.nodes:
        twin.add(name, operator, _late(twin, plan, before.inputs[0], to))
    return Stream(name)
