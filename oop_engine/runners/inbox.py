"""Inbox: the bounded queue in front of an operator; many tasks write, and one reads, a run at a time."""

from __future__ import annotations

import asyncio

from oop_engine.core.operator import Message, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise
from oop_engine.core.sizes import row_bytes
from oop_engine.runners.backlog import Backlog, Leave, Letter
from oop_engine.runners.dispatch import Signal

__all__ = ["Inbox"]

_EACH = 1024
"""Bytes of a message, beside what is in it."""


class Inbox:
    """What ``operator`` has not taken yet.

    It is full when there are ``capacity`` runs (see ``backlog``), or when there are ``capacity`` messages
    and they have ``room`` bytes.  So it never holds more than ``capacity`` messages, or, of small ones, ``room``
    bytes and a message.
    """

    def __init__(self, operator: Operator, leave: Leave, capacity: int, room: int) -> None:
        self._widths = [row_bytes(schema.fields) for schema in operator.schemas_in]
        self._backlog = Backlog(leave)
        self._capacity, self._room = capacity, room
        self._filled, self._emptied = asyncio.Event(), asyncio.Event()
        self._fault: Exception | None = None

    @property
    def full(self) -> bool:
        """Whether a writer has to wait."""
        backlog = self._backlog
        if backlog.letters < self._capacity:
            return False
        return len(backlog) >= self._capacity or backlog.nbytes >= self._room

    @property
    def empty(self) -> bool:
        """Whether nothing waits here."""
        return not len(self._backlog)

    async def wait(self) -> None:
        """Wait until there is room.  Raises what ``fail`` was told."""
        while self.full and self._fault is None:
            self._emptied.clear()
            await self._emptied.wait()
        if self._fault is not None:
            raise self._fault

    def fail(self, error: Exception) -> None:
        """Let nobody wait any more: nothing is taken from here again, because of ``error``."""
        self._fault = error
        self._emptied.set()

    def put(self, letter: Letter) -> None:
        """Add a letter; the inbox must not be full."""
        self._backlog.add(letter, self._bytes(letter.port, letter.message))
        self._filled.set()

    async def take(self) -> list[Letter]:
        """Return what is next, put together; waits until there is something."""
        while self.empty:
            self._filled.clear()
            await self._filled.wait()
        letters = self._backlog.take()
        self._emptied.set()
        return letters

    def _bytes(self, port: int, message: Message | Signal) -> int:
        if isinstance(message, Page):
            width = self._widths[port]
            return _EACH + (message.batch.nbytes if width is None else width * len(message))
        return _EACH + (message.groups.nbytes + message.below.nbytes if isinstance(message, GroupWise) else 0)
