"""Stations: the operators of a graph under ``Local``, and the way of a message from one to the next.

In front of each is an inbox, a bounded queue: many tasks write, and one reads, a run at a time.

A small message for an operator that is idle is handled by the task of the operator before, which has nothing else to
do: the loop need not wake another one.  The way of such a message is a few calls a hop: where it goes was looked up
when the graph was opened, and an operator that takes pages as ``Operator`` does (``Meld``) passes them on unasked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from oop_engine.core.change import Change
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.graphs.statistics import Statistics
from oop_engine.core.operator import Message, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER, GroupWise
from oop_engine.core.sizes import row_bytes
from oop_engine.runners.backlog import Backlog, Envelope, Leave
from oop_engine.runners.changes import Changes
from oop_engine.runners.clocks import Clocks
from oop_engine.runners.dispatch import DONE, EMITTED, Result, Route, Signal, check_emission, handle
from oop_engine.runners.faults import blame, cancelling, deliver, faults, place_of, taken, wrapped
from oop_engine.system.knobs import knob
from oop_engine.system.stopwatch import wall

__all__ = ["Inbox", "LocalRoute", "Station", "Way"]

_FEW = knob(__name__, "_FEW", 64)
_SOON = knob(__name__, "_SOON", 4)
"""Rows of a page that is small; how many emissions of a message are handled at once, those behind it together."""
_EACH = knob(__name__, "_EACH", 1024)
"""Bytes of a message, beside its content."""
_LOOKS = knob(__name__, "_LOOKS", 64)
"""Messages between two looks at a state, which takes as long as a fifth of the way of a row."""
_FOR_OPERATORS = Change, Signal


class Inbox:
    """The mailbox of ``operator``: messages that it has not taken yet.

    It is full when there are ``capacity`` runs (see ``backlog``), or when there are ``capacity`` messages
    and they have ``room`` bytes.  So it never holds more than ``capacity`` messages, or, of small ones, ``room``
    bytes and a message.  ``busy``: a message of the operator is being handled, so that no other one may be.
    """

    def __init__(self, operator: Operator, leave: Leave, capacity: int, room: int) -> None:
        self._widths = [row_bytes(schema.fields) for schema in operator.schemas_in]
        self._backlog = Backlog(leave)
        self._capacity, self._room = capacity, room
        self._filled, self._emptied = asyncio.Event(), asyncio.Event()
        self._fault: Exception | None = None
        self.busy = False

    @property
    def full(self) -> bool:
        """Whether a writer has to wait."""
        backlog = self._backlog
        if backlog.envelopes < self._capacity:
            return False
        return len(backlog) >= self._capacity or backlog.nbytes >= self._room

    @property
    def empty(self) -> bool:
        """Whether nothing waits here."""
        return not self._backlog.envelopes

    @property
    def idle(self) -> bool:
        """Whether nothing waits here, and nothing is being handled."""
        return not (self.busy or self._backlog.envelopes)

    async def wait(self) -> None:
        """Wait until there is room.  Raises the error that ``fail`` was given."""
        while self.full and self._fault is None:
            self._emptied.clear()
            await self._emptied.wait()
        if self._fault is not None:
            raise self._fault

    def fail(self, error: Exception) -> None:
        """Wake all waiters: no message is taken from here again, because of ``error``."""
        self._fault = error
        self._emptied.set()

    def put(self, envelope: Envelope) -> None:
        """Add an envelope; the inbox must not be full."""
        self._backlog.add(envelope, self._bytes(envelope.port, envelope.message))
        self._filled.set()

    async def take(self) -> list[Envelope]:
        """Return the next batch, combined, to be handled until ``done``; waits until there is one."""
        while self.busy or self.empty:
            self._filled.clear()
            await self._filled.wait()
        self.busy = True
        envelopes = self._backlog.take()
        self._emptied.set()
        return envelopes

    def done(self) -> None:
        """Release the next batch."""
        self.busy = False
        if self._backlog.envelopes:
            self._filled.set()

    def _bytes(self, port: int, message: Message | Signal) -> int:
        if isinstance(message, Page):
            width = self._widths[port]
            return _EACH + (message.batch.nbytes if width is None else width * len(message))
        return _EACH + (message.groups.nbytes + message.below.nbytes if isinstance(message, GroupWise) else 0)


class Station:
    """Operator ``name``, the ``inbox`` in front of it, and where its output goes, ``routes`` by port.

    ``unseen``: the messages that it has handled, the last one at ``now``, since its state was looked at; as soon as
    they are ``most`` it is looked at again, the first time behind the first of them.  ``fed``: a page was among them.
    """

    def __init__(self, name: str, operator: Operator, inbox: Inbox) -> None:
        self.name, self.operator, self.inbox = name, operator, inbox
        self.unseen, self.most, self.now, self.fed = 0, 1, NEVER, False
        self.routes: list[list[LocalRoute]] = []
        self.passes = type(operator).on_page is Operator.on_page and not operator.makes_progress


class LocalRoute(Route):
    """One edge, and the station at its end; there is none before a sink."""

    def __init__(
        self, stream: Stream, node: str, port: int, plan: Plan, statistics: Statistics, changes: Changes, check: bool,
        station: Station | None,
    ) -> None:  # fmt: skip
        super().__init__(stream, node, port, plan, statistics, changes, check)
        self.station = station


class Way:
    """Brings messages along the routes of ``plan``; ``failed`` hears of the first error of an operator."""

    def __init__(
        self, plan: Plan, statistics: Statistics, clocks: Clocks,
        on_result: Callable[[Result], Awaitable[None] | None], failed: Callable[[BaseException], None],
    ) -> None:  # fmt: skip
        self._graph, self._statistics, self._clocks = plan.name, statistics, clocks
        self.on_result, self._failed = on_result, failed

    async def send(
        self,
        routes: list[LocalRoute],
        message: Message | Signal,
        now: int,
        born: float,
        *,
        alone: bool = False,
    ) -> None:
        """Send a message on; ``alone``: by a task that has nothing else to do, which works for idle operators."""
        if isinstance(message, Page):
            if not message.rows:
                return
            alone = alone and message.rows <= _FEW
        elif isinstance(message, _FOR_OPERATORS):
            await self._announce(routes, message, now, born)
            return
        for route in routes:
            sent, station = route.noted(message), route.station
            if station is None:
                await self._deliver(route.node, sent, now, born)
            elif alone and (inbox := station.inbox).idle:
                inbox.busy = True
                try:
                    await self.handle(station, route.port, sent, self._clocks.moment(station.name, now), born)
                except faults() as error:
                    self.blame(station, error)
                inbox.done()
            else:
                await self._put(station, Envelope(route.port, sent, now, born))

    async def handle(
        self,
        station: Station,
        port: int,
        message: Message | Signal,
        now: int,
        born: float,
        *,
        more: bool = False,
    ) -> None:
        """Handle one message, of a batch with ``more``; each emission goes out before the next one is asked for."""
        if station.passes and isinstance(message, Page):
            alone = not more and station.inbox.empty
            await self.send(station.routes[0], message, now, born, alone=alone)
            return
        operator, emissions, ports = station.operator, None, len(station.routes)
        is_page = isinstance(message, Page)
        if station.fed and not is_page:  # it may free all there is
            self.look(station, port, message)
        at_edge, busy_s, left, sent = operator.makes_progress, 0.0, 0, 0
        while True:
            began = wall()
            try:
                if emissions is None:
                    emissions = handle(operator, port, message, now)
                emission = next(emissions, DONE)
                if emission is not DONE and (
                    emission.__class__ is not tuple
                    or len(emission) != 2
                    or emission[1].__class__ not in EMITTED
                    or emission[0].__class__ is not int
                    or not 0 <= emission[0] < ports
                ):
                    check_emission(operator, emission, message)
            except faults() as error:
                blame(error, self._graph, station.name, operator, port, message)
            busy_s += wall() - began
            if emission is DONE:
                break
            out, answer = emission
            if at_edge:
                now, answer = _at_edge(operator, message, now, answer)
            elif isinstance(answer, Page):
                left += answer.rows
            sent += 1
            alone = not more and sent <= _SOON and station.inbox.empty
            await self.send(station.routes[out], answer, now, began if at_edge else born, alone=alone)
        figures = self._statistics.operators[station.name]
        figures.busy_s += busy_s
        if left > figures.burst:
            figures.burst = left
        station.now, station.unseen, station.fed = now, station.unseen + 1, is_page or station.fed
        if station.unseen >= station.most:
            self.look(station, port, message)

    def look(self, station: Station, port: int, message: Message | Signal) -> None:
        """Note the state of an operator as it is behind, or in front of, a message."""
        try:
            state = station.operator.state()
        except faults() as error:
            blame(error, self._graph, station.name, station.operator, port, message)
        station.unseen, station.most, station.fed = 0, _LOOKS, False
        self._statistics.observe(station.name, state, station.now, 0.0)

    def blame(self, station: Station, error: BaseException) -> NoReturn:
        """Raise an error of the work of an operator, which is that of every task, unless this one was cancelled."""
        if not isinstance(error, Exception):
            if cancelling():
                raise error
            failed = wrapped(place_of(self._graph, station.name, station.operator), error)
            self._failed(failed)
            raise failed from error
        self._failed(error)
        raise error

    async def _announce(
        self, routes: list[LocalRoute], message: Change | Signal, now: int, born: float
    ) -> None:
        """Send a change or a signal on: no sink hears of it, and no operator handles it at once."""
        for route in routes:
            sent: Message | Signal = message
            if isinstance(message, Change):
                if not route.takes(message):
                    continue
                sent = route.noted(message)
            if route.station is not None:
                await self._put(route.station, Envelope(route.port, sent, now, born))

    async def _put(self, station: Station, envelope: Envelope) -> None:
        if station.inbox.full:
            await station.inbox.wait()
        station.inbox.put(envelope)

    async def _deliver(self, sink: str, message: Message, now: int, born: float) -> None:
        if isinstance(message, Page) and message.late:
            message = message.settled()
        assert not isinstance(message, Change)
        result = Result(sink, message, now, wall() - born)
        if (taking := deliver(self._graph, self.on_result, result)) is not None:
            await taken(self._graph, result, taking)


def _at_edge(operator: Operator, message: Message | Signal, now: int, answer: Message) -> tuple[int, Message]:
    """Return the moment of an answer of a generator of punctuation, and the answer as the inside of the graph sees it.

    The message that it answers has the last arrival of its page, the operator that of the row it has come to.
    """
    if operator.moment is not None:
        now = operator.moment if isinstance(message, Page) else max(now, operator.moment)
    if isinstance(answer, Page) and answer.arrival is not None:
        now = int(answer.arrival[-1]) if answer.rows else now
        answer = answer.without_arrival()
    return now, answer
