"""Parts that every runner shares: the handler for a message, and the result for a sink."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from reprlib import repr as _shortened
from typing import Any, NamedTuple, Protocol

import numpy as np

from oop_engine.core.change import Change
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.core.fitted import check_bound, fitted
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.graphs.leading import leading_to_changing
from oop_engine.core.graphs.statistics import EdgeStatistics, OperatorStatistics, Statistics
from oop_engine.core.operator import Emission, Message, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.schema import Schema
from oop_engine.runners.changes import Changes
from oop_engine.system.knobs import knob

__all__ = [
    "DONE",
    "EMITTED",
    "Foresight",
    "Result",
    "Route",
    "Signal",
    "Watch",
    "check_emission",
    "handle",
    "not_open",
    "statistics_of",
]

_ROWS = knob(__name__, "_ROWS", 1 << 15)
_MESSAGES = knob(__name__, "_MESSAGES", 1 << 13)
"""The most tuples, and messages, that are made ahead together."""
Tell = Callable[[int, Sequence[Page]], None]
"""Takes an output port and the pages that will leave there."""

_NAMING_COLUMNS = frozenset({GroupWise, Joint, Watermark})


class Signal(Enum):
    """Signals that travel beside messages."""

    END = "nothing more comes on this port"
    TICK = "the arrival clock has moved"


class Result(NamedTuple):
    """A message that reached a sink.

    ``now``: the virtual time of that; ``waited_s``: wall seconds since the punctuation (or
    page) that released it left the generator of punctuation.
    """

    sink: str
    message: Page | Punctuation
    now: int
    waited_s: float


class Watch(Protocol):
    """Somebody who looks on as a graph runs, and changes nothing."""

    def passed(self, stream: Stream, node: str, message: Message, now: int) -> None:
        """Record that a message of ``stream`` goes to ``node`` at the virtual time ``now``."""

    def kept(self, now: int, state: State) -> None:
        """Record the state of the whole graph after an event."""


class Route:
    """An edge as its graph runs: from a stream to input ``port`` of ``node``."""

    def __init__(
        self, stream: Stream, node: str, port: int, plan: Plan, statistics: Statistics, changes: Changes, check: bool
    ) -> None:  # fmt: skip
        self.stream, self.node, self.port = stream, node, port
        self.reached = changes.reached(stream, node)
        self._name, self._schema = _edge_name(stream, node), plan.schema(stream)
        self._place = f"graph {plan.name!r}, {plan.node(stream.node).kind} {stream.node!r}"
        self._seen = self._schema  # of the last page: mostly that of the next one
        self.count = statistics.edges[self._name]
        self.contract = EdgeContract(self._name) if check else None
        leading = leading_to_changing(plan)
        self._elsewhere = {name for name, before in leading.items() if node not in before}

    def takes(self, message: Message) -> bool:
        """Return whether a message goes this way: a change does where its operator is, or if no plan here has it."""
        return not isinstance(message, Change) or message.operator not in self._elsewhere

    def noted(self, message: Message) -> Message:
        """Return a message in the types of the edge; count it, and check it against the bounds."""
        if isinstance(message, Page) and message.schema is not self._seen:
            self._schema.check_page(message.schema, self._place)
            self._seen = message.schema
        elif message.__class__ is Linear:
            if message.below.__class__ is not int or not NEVER <= message.below <= FOREVER:
                check_bound(self._place, message.below)
        elif message.__class__ in _NAMING_COLUMNS:
            message = fitted(message, self._schema, self._place)
        self.count.count(message)
        if self.contract is not None:
            self.contract.check(message)
        if self.reached is not None:
            self.reached.note(message)
        if message.__class__ is Change and message.operator == self.node:
            message = replace(message, operator="")
        return message


def handle(operator: Operator, port: int, message: Message | Signal, now: int) -> Iterator[Emission]:
    """Return the emissions of ``operator`` for a message; runners ask for the next one, or ``DONE``."""
    if message.__class__ is Linear:
        made = operator.on_punctuation(port, message)
    elif isinstance(message, Page):
        made = operator.on_page(port, message)
    elif isinstance(message, Change):
        made = operator.on_change(port, message)
    elif not isinstance(message, Signal):
        made = operator.on_punctuation(port, message)
    else:
        made = operator.on_end(port) if message is Signal.END else operator.on_clock(now)
    try:
        return iter(made)
    except TypeError:
        raise _no_iterable(message, made) from None


def _no_iterable(message: Message | Signal, made: object) -> ContractError:
    """Return the error for a method that returned neither a generator nor another iterable."""
    wanted = "a generator, or another iterable, of (output port, Page or punctuation)"
    way_out = "yield each of them, and `yield from ()` where there is none"
    if isinstance(made, Coroutine):
        made.close()  # nobody waits for it
    if isinstance(made, Coroutine | AsyncIterator):
        way_out = (
            "def, not async def: an operator does no I/O; a source, a sink or the receiver of results may"
        )
    got = f"{_short(made)} ({type(made).__name__})"
    return ContractError(f"{_method(message)} must return {wanted}; got {got}: {way_out}")


def _method(message: Message | Signal) -> str:
    """Return the name of the method that is given a message."""
    match message:
        case Page():
            return "on_page"
        case Change():
            return "on_change"
        case Signal():
            return "on_end" if message is Signal.END else "on_clock"
    return "on_punctuation"


DONE: Any = object()
"""Stands behind the last emission; None would be a mistake of the operator."""
EMITTED: set[type] = {Page, Linear, GroupWise, Joint, Watermark, Change}
"""Classes of messages that an operator may emit; subclasses are added once they were seen."""


def check_emission(operator: Operator, emission: object, message: Message | Signal) -> None:
    """Raise ``ContractError`` unless ``emission``, yielded for ``message``, is an output port and a message for it.

    A runner asks only where ``emission`` is not as nearly all emissions are, so that it costs nothing.
    """
    form, method = "yield (output port, Page or punctuation)", _method(message)
    if not isinstance(emission, tuple) or len(emission) != 2:
        got = f"{_short(emission)} ({type(emission).__name__})"
        msg = f"{method} must yield a port and a message; got {got}: {form}"
        raise ContractError(msg)
    port, sent = emission
    many = len(operator.outputs)
    if isinstance(port, bool) or not isinstance(port, int | np.integer) or not 0 <= port < many:
        there = f"{', '.join(operator.outputs)}, {'0 alone' if many == 1 else f'0 to {many - 1}'}"
        msg = f"{method}: an output port is the number of one of {there}; got {_short(port)}: {form}"
        raise ContractError(msg)
    if not isinstance(sent, Page | Linear | GroupWise | Joint | Watermark | Change):
        got = f"{_short(sent)} ({type(sent).__name__})"
        way_out = "yield Page(self.schemas_out[port], batch)"
        msg = f"{method}: a message is a Page or a punctuation; got {got}: {way_out}"
        raise ContractError(msg)
    EMITTED.add(type(sent))


class _Made(NamedTuple):
    emission: Any
    moment: int | None
    state: State


class Foresight:
    """The ``emissions`` of a generator of punctuation for a page, made ahead of their moments.

    It cuts the page where its bound grows, and nothing that happens meanwhile changes how.  So some thousand are made
    together, and operators behind it that want that (``Operator.foresees``) learn which pages come.
    ``moment`` and ``state``: those of the generator behind the last emission taken, as if it were made then.
    """

    def __init__(self, operator: Operator, emissions: Iterator[Emission], tell: Tell) -> None:
        self._operator, self._emissions, self._tell = operator, emissions, tell
        self._ports = range(len(operator.outputs))
        self._made: deque[_Made] = deque()
        self.moment, self.state = operator.moment, operator.state()

    def __iter__(self) -> Iterator[Emission]:
        return self

    def __next__(self) -> Any:
        if not self._made:
            self._make()
        emission, self.moment, self.state = self._made.popleft()
        if emission is DONE:
            raise StopIteration
        if isinstance(emission, Exception):
            raise emission
        return emission

    def _make(self) -> None:
        """Make the next emissions, and tell of their pages."""
        pages: dict[int, list[Page]] = {}
        rows, emission = 0, self._next()
        while True:
            self._made.append(_Made(emission, self._operator.moment, self._operator.state()))
            if not isinstance(emission, tuple) or len(emission) != 2 or emission[0] not in self._ports:
                break  # the end, or a mistake, which is raised in its turn
            port, message = emission
            if isinstance(message, Page) and message.rows:
                pages.setdefault(port, []).append(message)
                rows += message.rows
            if rows >= _ROWS or len(self._made) >= _MESSAGES:
                break
            emission = self._next()
        for port, coming in pages.items():
            self._tell(port, coming)

    def _next(self) -> Any:
        """Return the next emission, or the error that came instead, which is raised in its place; ``DONE``: the end."""
        try:
            return next(self._emissions, DONE)
        except Exception as error:
            return error


def statistics_of(plan: Plan) -> Statistics:
    """Return the statistics of a graph in which nothing has passed yet."""
    return Statistics(
        edges={_edge_name(stream, node): EdgeStatistics() for stream, node, _ in plan.edges()},
        operators={node.name: OperatorStatistics() for node in plan.of_kind("operator")},
    )


def edge_schemas(plan: Plan) -> dict[str, Schema]:
    """Return the schema of each edge, by the names that statistics have."""
    return {_edge_name(stream, node): plan.schema(stream) for stream, node, _ in plan.edges()}


def not_open(graph: str, source: str, sources: Collection[str]) -> UsageError:
    """Return the error of who speaks as a source that has ended, or is none of ``sources``."""
    if source in sources:
        return UsageError(f"graph {graph!r}: source {source!r} has ended; nothing can follow")
    return UsageError(
        f"graph {graph!r} has no source {source!r}; it has {', '.join(sources)}{did_you_mean(source, sources)}"
    )


def _short(value: object) -> str:
    return " ".join(_shortened(value).split())


def _edge_name(stream: Stream, node: str) -> str:
    return f"{stream if stream.port != 'out' else stream.node} -> {node}"
