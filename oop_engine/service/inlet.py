"""Inlet: one source of a service, read into the graph."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from contextlib import aclosing
from typing import Any

import numpy as np

from oop_engine.connectors.message_format import MESSAGE_FORMATS
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.connectors.sources.generated import Generated
from oop_engine.core.errors import UsageError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.schema import Schema
from oop_engine.runners.local import Local
from oop_engine.service.dead_letters import DeadLetters
from oop_engine.service.gate import Gate

__all__ = ["Inlet"]


class Inlet:
    """Source ``name`` of a graph; ``given``: a ``LiveSource``, or an asynchronous iterable.

    ``position``: behind the last data that went in; ``ended``: nothing more comes; ``tuples``: how many came.
    Raises ``UsageError`` if it is none, or its format is not known.
    """

    def __init__(self, name: str, given: Any, schema: Schema, dead: DeadLetters) -> None:
        if isinstance(given, AsyncIterable) and not isinstance(given, LiveSource):
            given = Generated(given)
        if not isinstance(given, LiveSource):
            msg = f"source {name!r}: must be a LiveSource or an asynchronous iterable; got {type(given).__name__}"
            raise UsageError(msg)
        if given.format not in MESSAGE_FORMATS:
            msg = f"source {name!r}: unknown message format {given.format!r}: use one of {', '.join(MESSAGE_FORMATS)}"
            raise UsageError(msg)
        self.name, self.source = name, given
        self.position: Position = None
        self.ended = False
        self.tuples = 0
        self._dead = dead
        given.unreadable = unreadable = dead.of(name)
        self._format = MESSAGE_FORMATS[given.format](schema, f"source {name!r}", unreadable)
        self._last = NEVER

    async def read(
        self, local: Local, gate: Gate, clock: Callable[[], int] | None, took: Callable[[], Any]
    ) -> None:
        """Push all that comes; data go in as a whole, with their position, or not at all.

        ``clock`` shows arrivals (None: nobody needs them); ``took`` is awaited inside of the gate after each piece.
        """
        if self._format.headed and self.position is not None:
            list(self._format.messages(self.source.headed()))
        async with aclosing(self.source.read(self.position)) as pieces:  # type: ignore[type-var]
            async for data, position in pieces:
                async with gate.inside():
                    self._dead.at(self.name, self.position)
                    for message in self._format.messages(data):
                        await local.push(self.name, self._arrived(message, clock))
                    self.position = position
                    await took()
        async with gate.inside():
            await local.end(self.name)
            self.ended = True

    def _arrived(self, message: Message, clock: Callable[[], int] | None) -> Message:
        """Return a page with the moment of its arrival, which never goes back."""
        if not isinstance(message, Page):
            return message
        self.tuples += len(message)
        if clock is None:
            return message.without_arrival()
        self._last = max(self._last, clock())
        return Page(message.schema, message.batch, np.full(len(message), self._last, np.int64))
