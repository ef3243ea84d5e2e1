"""Why: which input holds back the results of a graph, in sentences.

They are made of the bounds of the edges and the state of the operators, so those of a running graph and those of a
checkpoint are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.graphs.statistics import Statistics
from oop_engine.core.operator import Operator, State
from oop_engine.core.punctuation import FOREVER, NEVER

__all__ = ["RunningGraph", "Standing", "sentences", "standing", "why"]


class RunningGraph(Protocol):
    """A graph that runs: ``Inline``, ``Local``."""

    plan: Plan
    operators: dict[str, Operator]
    statistics: Statistics


@dataclass(frozen=True)
class Standing:
    """How far a graph is, as plain values.

    ``inputs``: by node the edges that lead to it, each with the node it comes from; ``bounds``: by edge, of the whole
    stream; ``units``: by edge; ``state``: by operator (``State``); ``waits``: the output of an operator that waits.
    """

    inputs: dict[str, list[tuple[str, str]]]
    bounds: dict[str, int]
    units: dict[str, str]
    state: dict[str, tuple[int, int, int, int]]
    waits: dict[str, str]


def standing(runs: RunningGraph) -> Standing:
    """Return how far a running graph is.  O(edges)."""
    plan, inputs, units = runs.plan, dict[str, list[tuple[str, str]]](), dict[str, str]()
    for stream, node, _ in plan.edges():
        edge = f"{_short(stream)} -> {node}"
        inputs.setdefault(node, []).append((edge, stream.node))
        units[edge] = plan.schema(stream).unit
    return Standing(
        inputs,
        {edge: found.below for edge, found in runs.statistics.edges.items()},
        units,
        {name: tuple(operator.state()) for name, operator in runs.operators.items()},  # type: ignore[misc]
        {name: operator.waits for name, operator in runs.operators.items() if operator.waits is not None},
    )


def why(runs: RunningGraph) -> list[str]:
    """Return a sentence for each operator that keeps something until punctuation comes: which input it waits for.

    ``runs``: an ``Inline`` or ``Local``, between two messages.

    >>> import pyarrow as pa
    >>> from oop_engine import Graph, Linear, Page, Schema
    >>> from oop_engine.operators import Count, Meld, Tumbling, WindowAggregate
    >>> from oop_engine.runners.inline import Inline
    >>> schema, graph = Schema({"ts": pa.int64()}, "ts", "s"), Graph("requests")
    >>> both = graph.add("both", Meld(2), graph.source("east", schema), graph.source("west", schema))
    >>> graph.sink("out", graph.add("per-minute", WindowAggregate(Tumbling("1 min"), {"n": Count()}), both))
    >>> inline = Inline(graph, lambda result: None)
    >>> inline.push("east", Page.of(schema, {"ts": [5, 50, 70]}))
    >>> for source, below in (("east", 300), ("west", 40)):
    ...     inline.push(source, Linear(below))
    >>> inline.drain()
    >>> why(inline)[0].partition(": ")[2]
    "it waits for 'west', whose bound is 40 s, 260 s behind 'east'"
    """
    return sentences(standing(runs))


def sentences(found: Standing) -> list[str]:
    """Return the sentences of ``why``."""
    lines = []
    for node in found.waits:
        state = State(*found.state.get(node, ()))
        if any(state.in_use):
            lines.append(f"{node!r} ({found.waits[node]}) keeps {_words(state)}: {_slowest(found, node)}")
    return lines


def _slowest(found: Standing, node: str) -> str:
    """Return which input has the least bound: the way back from ``node`` goes along the least bounds."""
    ahead: tuple[int, str] | None = None
    at, below, unit = node, NEVER, ""
    while inputs := found.inputs.get(at):
        ranked = sorted((found.bounds.get(edge, NEVER), edge, origin) for edge, origin in inputs)
        if ranked[0][0] == NEVER < below:
            break  # the bound is made here, of tuples
        if len(ranked) > 1 and ahead is None:
            ahead = (ranked[-1][0], _source(found, ranked[-1][2]))
        below, edge, at = ranked[0]
        unit = found.units.get(edge, "")
    return _sentence(_source(found, at), below, unit, ahead)


def _sentence(source: str, below: int, unit: str, ahead: tuple[int, str] | None) -> str:
    if below == FOREVER:
        return f"{source!r} has ended, and it waits for nothing"
    if below == NEVER:
        return f"it waits for {source!r}, of which no punctuation for the whole stream has come"
    behind = ""
    if ahead is not None and ahead[0] > below:
        gap = f"{ahead[0] - below:,} {unit} behind {ahead[1]!r}"
        behind = f"; {ahead[1]!r} has ended" if ahead[0] == FOREVER else f", {gap}"
    return f"it waits for {source!r}, whose bound is {below:,} {unit}{behind}"


def _source(found: Standing, node: str) -> str:
    """Return the source of a node that has one input after the other, or else the node itself."""
    at = node
    while len(inputs := found.inputs.get(at, [])) == 1:
        at = inputs[0][1]
    return at if not inputs else node


def _words(state: State) -> str:
    counts: Mapping[str, int] = {
        "tuples": state.tuples, "partial aggregates": state.partials, "groups": state.groups,
    }  # fmt: skip
    listed = [f"{number:,} {name}" for name, number in counts.items() if number]
    return f"{', '.join(listed)} ({state.nbytes:,} bytes)"


def _short(stream: Stream) -> str:
    return stream.node if stream.port == "out" else str(stream)
