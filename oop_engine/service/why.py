"""Why: which input holds back the results of a graph, in sentences.

They are made of the bounds of the edges and the state of the operators, so those of a running graph and those of a
checkpoint are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.graphs.statistics import Statistics
from oop_engine.core.operator import Operator, State
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.units import Clock, instant, lasting

__all__ = [
    "Reason", "RunningGraph", "Standing", "held_back", "kept_by", "sentences", "slowest", "source_of", "standing",
    "why", "windows_of",
]  # fmt: skip

_GROUPS, _DEFINITIONS = 10, 20


class RunningGraph(Protocol):
    """A graph that runs: ``Inline``, ``Local``."""

    plan: Plan
    operators: dict[str, Operator]

    @property
    def statistics(self) -> Statistics:
        """The figures of the run so far."""
        ...


@dataclass(frozen=True)
class Standing:
    """How far a graph is, as plain values.

    ``inputs``: by node the edges that lead to it, each with the node it comes from; ``bounds``: by edge, of the whole
    stream; ``units``: by edge; ``state``: by operator (``State``); ``waits``: the output of an operator that waits;
    ``groups``: by such an operator its groups that are furthest behind, as text, each with its bound.
    ``windows``: by operator, of each definition how many windows are open (None: unknown), and the first start and the
    last end (None: unknown), in words; only in checkpoints.  ``clocks``: by edge (``Schema.clock``).
    """

    inputs: dict[str, list[tuple[str, str]]]
    bounds: dict[str, int]
    units: dict[str, str]
    state: dict[str, tuple[int, int, int, int]]
    waits: dict[str, str]
    groups: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    windows: dict[str, list[tuple[int | None, str | None, str | None]]] = field(default_factory=dict)
    clocks: dict[str, Clock] = field(default_factory=dict)

    def moment(self, edge: str, value: int) -> str:
        """Return a time of an edge as text: a moment as RFC 3339 has it."""
        return instant(value, self.units[edge], self.clocks.get(edge, "number"))


@dataclass(frozen=True)
class Reason:
    """Why ``node`` keeps something: it waits for ``holder``, a source or a node; ``way``: the edges from there."""

    node: str
    holder: str
    way: list[str]
    text: str


def standing(runs: RunningGraph) -> Standing:
    """Return how far a running graph is.  O(edges), and O(groups) where groups have bounds of their own."""
    plan, inputs = runs.plan, dict[str, list[tuple[str, str]]]()
    units, clocks = dict[str, str](), dict[str, Clock]()
    for stream, node, _ in plan.edges():
        edge = f"{_short(stream)} -> {node}"
        inputs.setdefault(node, []).append((edge, stream.node))
        schema = plan.schema(stream)
        units[edge], clocks[edge] = schema.unit, schema.clock
    operators = runs.operators.items()
    groups = {name: operator.slowest_groups(_GROUPS) for name, operator in operators}
    return Standing(
        inputs,
        {edge: edge_state.below for edge, edge_state in runs.statistics.edges.items()},
        units,
        {name: tuple(map(int, operator.state())) for name, operator in operators},  # type: ignore[misc]
        {name: operator.waits for name, operator in operators if operator.waits is not None},
        {
            name: [(_named(keys), below) for keys, below in bounds]
            for name, bounds in groups.items()
            if bounds
        },
        clocks=clocks,
    )


def windows_of(runs: RunningGraph) -> dict[str, list[tuple[int | None, str | None, str | None]]]:
    """Return the open windows of a running graph (``Standing.windows``).  O(groups)."""
    windows = {}
    for name, operator in runs.operators.items():
        if listed := operator.open_windows(_DEFINITIONS):
            moment = runs.plan.inputs(name)[0].moment
            windows[name] = [
                (
                    window.number,
                    moment(window.oldest[0]) if window.oldest else None,
                    moment(window.newest[1]) if window.newest else None,
                )
                for window in listed
            ]
    return windows


def kept_by(content: Mapping[str, Any], node: str) -> str:
    """Return in words the state of an operator, by the standing in a checkpoint; empty: none."""
    state = State(*content.get("state", {}).get(node, ()))
    if not any(state.in_use):
        return ""
    windows = [_window_words(*each) for each in content.get("windows", {}).get(node, ()) if each[0] != 0]
    return _words(state) + (f" in {', '.join(windows)}" if windows else "")


def _window_words(number: int | None, first: str | None, last: str | None) -> str:
    counted = "open windows" if number is None else f"{number:,} open window{'s' * (number != 1)}"
    since = "" if first is None else f" from {first}"
    return f"{counted}{since}{'' if last is None else f' to {last}'}"


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
    "it waits for 'west', whose bound is 40 s, 4 min 20 s behind 'east'"
    """
    return sentences(standing(runs))


def sentences(state: Standing) -> list[str]:
    """Return the sentences of ``why``."""
    return [reason.text for reason in held_back(state).values()]


def held_back(snapshot: Standing, silent: Mapping[str, float] | None = None) -> dict[str, Reason]:
    """Return by operator why it keeps something; ``silent``: by source, for how many seconds it has been so."""
    reasons = {}
    for node in snapshot.waits:
        state = State(*snapshot.state.get(node, ()))
        if any(state.in_use):
            holder, way, words = slowest(snapshot, node)
            since = (silent or {}).get(holder)
            silence = (
                "" if since is None else f"; {holder!r} has sent nothing for {lasting(round(since), 's')}"
            )
            kept = f"{node!r} ({snapshot.waits[node]}) keeps {_words(state)}"
            text = f"{kept}: {words}{_of_groups(snapshot, node)}{silence}"
            reasons[node] = Reason(node, holder, way, text)
    return reasons


def slowest(state: Standing, node: str) -> tuple[str, list[str], str]:
    """Return which source (or node) holds back ``node``, the edges on the way to it, and that in words.

    The way back from ``node`` goes along the least bounds.
    """
    ahead: tuple[int, str] | None = None
    at, below, way = node, NEVER, list[str]()
    while inputs := state.inputs.get(at):
        ranked = sorted((state.bounds.get(edge, NEVER), edge, origin) for edge, origin in inputs)
        if ranked[0][0] == NEVER < below:
            break  # the bound is made here, of tuples
        if len(ranked) > 1 and ahead is None:
            ahead = (ranked[-1][0], source_of(state, ranked[-1][2]))
        below, edge, at = ranked[0]
        way.append(edge)
    holder = source_of(state, at)
    return holder, way, _sentence(state, holder, below, way, ahead)


def _sentence(state: Standing, source: str, below: int, way: list[str], ahead: tuple[int, str] | None) -> str:
    if below == FOREVER:
        return f"{source!r} has ended, and it waits for nothing"
    if below == NEVER:
        return f"it waits for {source!r}, of which no punctuation for the whole stream has come"
    relation = ""
    if ahead is not None and ahead[0] > below:
        gap = f"{lasting(ahead[0] - below, state.units[way[-1]])} behind {ahead[1]!r}"
        relation = f"; {ahead[1]!r} has ended" if ahead[0] == FOREVER else f", {gap}"
    return f"it waits for {source!r}, whose bound is {state.moment(way[-1], below)}{relation}"


def _of_groups(state: Standing, node: str) -> str:
    """Return which group is furthest behind, if groups have bounds of their own."""
    if not (groups := state.groups.get(node)):
        return ""
    name, below = groups[0]
    edge = state.inputs[node][0][0]
    position = (
        "has no bound yet"
        if below == NEVER
        else f"is furthest behind, with results from {state.moment(edge, below)} on"
    )
    return f"; of its groups {name} {position}"


def source_of(state: Standing, node: str) -> str:
    """Return the source of a node that has one input after the other, or else the node itself."""
    at = node
    while len(inputs := state.inputs.get(at, [])) == 1:
        at = inputs[0][1]
    return at if not inputs else node


def _words(state: State) -> str:
    counts: Mapping[str, int] = {
        "tuples": state.tuples, "partial aggregates": state.partials, "groups": state.groups,
    }  # fmt: skip
    listed = [
        f"{number:,} {name[: -1 if number == 1 else None]}" for name, number in counts.items() if number
    ]
    return f"{', '.join(listed)} ({state.nbytes:,} bytes)"


def _named(keys: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in keys.items())


def _short(stream: Stream) -> str:
    return stream.node if stream.port == "out" else str(stream)
