"""Inbox: the bounded queue in front of an operator; many tasks write, and one reads, a run at a time."""

from __future__ import annotations

import asyncio

from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.graphs.statistics import Statistics
from oop_engine.core.operator import Message, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise
from oop_engine.core.sizes import row_bytes
from oop_engine.runners.backlog import Backlog, Envelope, Leave
from oop_engine.runners.changes import Changes
from oop_engine.runners.dispatch import Route, Signal

__all__ = ["Inbox", "InboxRoute"]

_EACH = 1024
"""Bytes of a message, beside its content."""


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
        return not len(self._backlog)

    @property
    def idle(self) -> bool:
        """Whether nothing waits here, and nothing is being handled."""
        return not self.busy and not len(self._backlog)

    async def wait(self) -> None:
        """Wait until there is room.  Raises the error that ``fail`` was given."""
        while self.full and self._fault is None:
            self._emptied.clear()
            await self._emptied.wait()
        if self._fault is not None:
            raise self._fault

    def fail(self, error: Exception) -> None:
        """Let nobody wait any more: nothing is taken from here again, because of ``error``."""
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
        """Let the next batch be taken."""
        self.busy = False
        if not self.empty:
            self._filled.set()

    def _bytes(self, port: int, message: Message | Signal) -> int:
        if isinstance(message, Page):
            width = self._widths[port]
            return _EACH + (message.batch.nbytes if width is None else width * len(message))
        return _EACH + (message.groups.nbytes + message.below.nbytes if isinstance(message, GroupWise) else 0)


class InboxRoute(Route):
    """One edge, and the inbox at its end; there is none before a sink."""

    def __init__(
        self,
        stream: Stream,
        node: str,
        port: int,
        plan: Plan,
        statistics: Statistics,
        changes: Changes,
        check: bool,
        inbox: Inbox | None,
    ) -> None:
        super().__init__(stream, node, port, plan, statistics, changes, check)
        self.inbox = inbox
