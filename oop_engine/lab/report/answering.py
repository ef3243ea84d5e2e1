"""Answering: when a graph emits, the state that it stores, and which tuples are late, in a few lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oop_engine.core.graphs.graph import Node, Plan
from oop_engine.core.units import lasting
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.joining.bands import AsOf
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.late import Late
from oop_engine.operators.policies.policies import BoundedDisorder, Ordered
from oop_engine.operators.top_n import TopN
from oop_engine.operators.window_aggregate import WindowAggregate

__all__ = ["answering"]

Contract = Callable[[Any], dict[str, str]]
_LATE = {
    Late.DROP: "dropped and counted; late=Late.DIVERT emits them to a stream of their own",
    Late.DIVERT: "emitted to the stream 'late'",
    Late.RAISE: "an error, which ends the run",
}


def answering(plan: Plan, contract: Contract) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return titles, and below each the nodes with a sentence; ``contract``: that of an operator, by headings.

    >>> import pyarrow as pa
    >>> from oop_engine import Graph, Schema
    >>> from oop_engine.operators import Count, Tumbling
    >>> graph = Graph("counts")
    >>> log = graph.source("log", Schema({"ts": pa.int64()}, "ts", "s"))
    >>> edge = graph.add("edge", Punctuate(BoundedDisorder("5 s")), log)
    >>> graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    >>> for title, lines in answering(graph.plan(), lambda _: {}):
    ...     print(title, lines[0][1][:66], sep=": ")
    when results are emitted: a row of each window once the bound of 'edge' passes its end
    stored until then: a partial aggregate of each open window
    late tuples: a ts more than 5 s below the largest so far: dropped and counted;
    """
    edges = [node for node in plan.nodes if isinstance(node.operator, Punctuate)]
    others = [node for node in plan.nodes if node.operator is not None and node not in edges]
    sections = [
        (
            "when results are emitted",
            [(node.name, _when(plan, node, contract)) for node in others],
        ),
        (
            "stored until then",
            [(node.name, _state(node, contract)) for node in others],
        ),
        ("stored until its key ends", [(node.name, _retained(plan, node)) for node in (*edges, *others)]),
        ("late tuples", [(node.name, _late(plan, node)) for node in edges]),
    ]
    known = [(title, [(name, words) for name, words in lines if words]) for title, lines in sections]
    return [(title, lines) for title, lines in known if lines]


def _when(plan: Plan, node: Node, contract: Contract) -> str:
    operator = node.operator
    if isinstance(operator, WindowAggregate):
        early = f", and early by {operator.emit!r}" if operator.emit is not None else ""
        return f"a row of {_each(operator)} once the bound of {_edges(plan, node)} passes its end{early}"
    if isinstance(operator, OAJoin):
        return _when_joined(plan, node, operator)
    if isinstance(operator, TopN) and operator.timed:
        return f"the first records of each event time once the bound of {_edges(plan, node)} passes it"
    sections = contract(operator)
    return _first(sections.get("Pass") or sections.get("About", ""))


def _when_joined(plan: Plan, node: Node, made: OAJoin) -> str:
    edges = _edges(plan, node)
    if isinstance(made.terms.band, AsOf):
        return f"each left record with its match once the bounds of {edges} show that no later match comes"
    pair = "as soon as the later of its two records has come"
    alone = f"once the bounds of {edges} show that no match comes"
    match made.terms.kind.name:
        case "inner":
            return f"each pair, {pair}"
        case "semi":
            return f"each left record that has a match, {pair}"
        case "anti":
            return f"each left record without a match, {alone}"
    return f"each pair, {pair}, and a record without a match {alone}"


def _state(node: Node, contract: Contract) -> str:
    if isinstance(node.operator, WindowAggregate):
        return f"a partial aggregate of {_each(node.operator, open_=True)}"
    return _first(contract(node.operator).get("Keep", ""))


def _retained(plan: Plan, node: Node) -> str:
    assert node.operator is not None
    return node.operator.retains(tuple(plan.inputs(node.name))) or ""


def _each(operator: WindowAggregate, *, open_: bool = False) -> str:
    window = "each open window" if open_ else "each window"
    return f"{window} and {', '.join(operator.by)}" if operator.by else window


def _edges(plan: Plan, node: Node) -> str:
    """Return the edges before a node that make progress."""
    wanted, names = {node.name}, list[str]()
    for each in reversed(plan.nodes):
        if each.name in wanted:
            if isinstance(each.operator, Punctuate):
                names.insert(0, repr(each.name))
            else:
                wanted |= {stream.node for stream in each.inputs}
    return " and ".join(names) or "its input"


def _late(plan: Plan, node: Node) -> str:
    operator, [schema] = node.operator, plan.inputs(node.name)
    assert isinstance(operator, Punctuate)
    time, policy = schema.progressing, operator.policy
    if isinstance(policy, Ordered):
        bound = f"a {time} below the largest so far"
    elif isinstance(policy, BoundedDisorder):
        bound = f"a {time} more than {_length(policy.slack, schema.unit)} below the largest so far"
    else:
        bound = f"a {time} below the bound of {policy!r}"
    return f"{bound}: {_LATE[operator.late]}"


def _length(slack: Any, unit: str) -> str:
    return lasting(slack, unit) if isinstance(slack, int) else str(slack)


def _first(paragraph: str) -> str:
    """Return the first sentence of a paragraph, in one line."""
    text = " ".join(paragraph.split())
    return text.split(". ")[0].rstrip(".")
