"""The in-order twin of a graph: the same query, as an in-order architecture would run it.

    Punctuate        ->  Sort                 the same policy and granularity
    Meld             ->  Merge
    OAJoin           ->  OPOBJoin, OPIBJoin   by ``join``
    WindowAggregate  ->  BufferingAggregate
    SlicedAggregate  ->  BufferingAggregate   for each definition, then Project, which names it, and Merge
    all others       ->  themselves           they keep the order of what they get

What is late in one is late in the other, so exact plans give equal results (thesis ch. 8,
where the two architectures are compared on one plan).
"""

from __future__ import annotations

from typing import Literal

import pyarrow.compute as pc

from oop_engine.errors import GraphError
from oop_engine.graph import Graph, Node, Stream
from oop_engine.operator import Operator
from operators.aggregate import Aggregate
from operators.bucket import Bucket
from operators.in_order.buffering_aggregate import BufferingAggregate
from operators.in_order.merge import Merge
from operators.in_order.opib_join import OPIBJoin
from operators.in_order.opob_join import OPOBJoin
from operators.in_order.sort import Sort
from operators.late import Late, Slack
from operators.meld import Meld
from operators.oa_join import OAJoin
from operators.project import Project
from operators.punctuate import Punctuate
from operators.sliced_aggregate import SlicedAggregate
from operators.window_aggregate import WindowAggregate

__all__ = ["in_order"]

_JOINS: dict[str, type[OPOBJoin] | type[OPIBJoin]] = {"output": OPOBJoin, "input": OPIBJoin}


def in_order(
    graph: Graph, *, join: Literal["output", "input"] = "output", slack: Slack = Slack.CONSISTENT
) -> Graph:
    """Return the in-order twin of ``graph``; the graph itself is left as it is.

    ``join``: which side of a join is buffered to keep its output sorted.  ``slack``: whether a
    late tuple is dropped from all of its windows (consistent) or only from those that have
    closed (generous); the latter needs each ``Sort`` to lead to one ``BufferingAggregate``.
    Raises ``GraphError`` for what has no in-order twin.  O(nodes).
    """
    twin = Graph(f"{graph.name} (in order)")
    for node in graph.plan().nodes:
        if node.schema is not None:
            twin.source(node.name, node.schema)
        elif node.operator is None:
            twin.sink(node.name, node.inputs[0])
        else:
            _add(twin, graph, node, node.operator, join, slack)
    return twin


def _add(twin: Graph, graph: Graph, node: Node, operator: Operator, join: str, slack: Slack) -> None:
    inputs = list(node.inputs)
    if isinstance(operator, WindowAggregate | SlicedAggregate) and slack is Slack.GENEROUS:
        inputs.append(_edge_before(graph, node)["late"])
    if isinstance(operator, SlicedAggregate):
        names = [f"{node.name}_{number + 1}" for number in range(len(operator.windows))]
        named = [
            _add_definition(twin, name, operator, window, inputs, slack)
            for name, window in zip(names, operator.windows, strict=True)
        ]
        twin.add(node.name, Merge(len(named)), *named)
    else:
        twin.add(node.name, _twin(node.name, operator, join, slack), *inputs)


def _add_definition(
    twin: Graph, name: str, of: SlicedAggregate, window: str, inputs: list[Stream], slack: Slack
) -> Stream:
    """Add what the definition ``window`` gives, in rows like those of all definitions."""
    late = slack is Slack.GENEROUS
    alone = BufferingAggregate(of.windows[window], of.aggregates, of.by, stamp=of.stamp, late=late)
    columns = [*of.by, "window", "window_start", "window_end", *of.aggregates]
    row = Project({column: pc.scalar(window) if column == "window" else column for column in columns})
    return twin.add(f"{name}_named", row, twin.add(name, alone, *inputs))


def _twin(name: str, operator: Operator, join: str, slack: Slack) -> Operator:
    match operator:
        case Punctuate(late=Late.DIVERT | Late.RAISE):
            msg = (
                f"node {name!r}: in order, late tuples are dropped or go to open windows; got {operator.late}"
            )
            raise GraphError(msg)
        case Punctuate():
            return Sort(operator.policy, operator.granularity, slack)
        case Meld():
            return Merge(len(operator.inputs))
        case OAJoin():
            terms = operator.terms
            return _JOINS[join](terms.keys, terms.band, terms.residual, terms.suffix)
        case WindowAggregate():
            return BufferingAggregate(
                operator.windows, operator.aggregates, operator.by,
                empty=operator.empty, stamp=operator.stamp, late=slack is Slack.GENEROUS,
            )  # fmt: skip
        case Bucket() | Aggregate():
            msg = f"node {name!r}: {type(operator).__name__} has no in-order twin; use WindowAggregate for the two"
            raise GraphError(msg)
        case _:
            return operator


def _edge_before(graph: Graph, node: Node) -> Stream:
    """Return the one Punctuate that leads to ``node`` through operators with a single input."""
    stream = node.inputs[0]
    while len((before := graph.nodes[stream.node]).inputs) == 1:
        if isinstance(before.operator, Punctuate):
            return Stream(before.name)
        stream = before.inputs[0]
    msg = f"node {node.name!r}: generous slack needs one stream from a Punctuate to it; {stream.node!r} is in between"
    raise GraphError(msg)
