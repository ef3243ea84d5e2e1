"""Stream log: whether a stream of NATS is the one that a position was taken from.

A stream that is deleted and made again under its name numbers its messages from 1 again; the server tells when each was
made.  One that was restored from a backup is as old as before: there the last message that was read is compared.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any
from zlib import crc32

from oop_engine.connectors.library import library
from oop_engine.connectors.source import BEGIN_AGAIN, Position
from oop_engine.core.errors import TraceError, UsageError
from oop_engine.core.values.rfc3339 import rfc3339

__all__ = ["StreamLog"]

_CLOSE_MS = 2
"""Milliseconds by which one moment may differ in two answers of the server, which are rounded."""


class StreamLog:
    """The stream that ``place`` names, as a position knows it.

    ``last``: the number of the last message that was read, or passed; None: none yet.  Raises ``UsageError`` for a
    position that is none.
    """

    def __init__(self, place: str, position: Position) -> None:
        self._place = place
        known = [position] if isinstance(position, int) else position or [None]
        if not isinstance(known, list) or not isinstance(known[0], int | None):
            msg = f"{place}: a position is the number of a message; got {position!r}"
            raise UsageError(msg)
        self.last, self._created, self._mark = [*known, None, None][:3]

    @property
    def position(self) -> Position:
        """The number of the last message, when the stream was made, and number, time and checksum of a message."""
        return [self.last, self._created, self._mark]

    def check(self, about: Any) -> None:
        """Raise ``TraceError`` if the stream was made again, or messages behind the last one may be gone."""
        self.check_made(about)
        self._check_range(about.state)

    def check_made(self, about: Any) -> None:
        """Raise ``TraceError`` if the stream was made again."""
        created = None if about.created is None else rfc3339(about.created)
        if self._created is not None and created is not None and not _is_one_moment(created, self._created):
            msg = (
                f"{self._place}: was deleted and made again since its messages were read (it was made {self._created}, "
                f"and is of {created}): messages of the earlier stream that were not read are lost: {BEGIN_AGAIN}"
            )
            raise TraceError(msg)
        self._created = self._created or created

    def _check_range(self, state: Any) -> None:
        if self.last is not None and not state.first_seq - 1 <= self.last <= state.last_seq:
            some = state.first_seq <= state.last_seq
            there = f"it has {state.first_seq:,} to {state.last_seq:,}" if some else "it is empty"
            msg = (
                f"{self._place}: message {self.last + 1:,}, the next to read, is no longer there; {there}: "
                f"keep messages for longer; {BEGIN_AGAIN}"
            )
            raise TraceError(msg)

    def note(self, message: Any) -> None:
        """Note the last message that was read."""
        about = message.metadata
        self.last = about.sequence.stream
        self._mark = [self.last, *_mark(message.subject, message.data, about.timestamp)]

    async def check_message(self, jetstream: Any, stream: str) -> None:
        """Raise ``TraceError`` if the last message that was read, where it is there, is another one now."""
        errors = library("nats.errors", "nats", "JetStream")
        problems = library("nats.js.errors", "nats", "JetStream")
        if self._mark is None:
            return
        number, *known = self._mark
        with suppress(problems.NotFoundError, errors.TimeoutError):  # removed; no right to read a message
            found = await jetstream.get_msg(stream, number)
            content, at_ms = _mark(found.subject, found.data or b"", found.time)
            if content != known[0] or abs(at_ms - known[1]) > _CLOSE_MS:
                msg = (
                    f"{self._place}: message {number:,}, the last that was read, is another one now: the stream was "
                    f"restored from a backup, and messages that were not read may be lost: {BEGIN_AGAIN}"
                )
                raise TraceError(msg)


def _is_one_moment(left: str, right: str) -> bool:
    """Tell whether two texts are one moment; positions of earlier versions have ``+00:00`` in place of ``Z``."""
    return datetime.fromisoformat(left) == datetime.fromisoformat(right)


def _mark(subject: str, data: bytes, at: Any) -> list[int]:
    return [crc32(data, crc32(subject.encode())), int(at.timestamp() * 1000)]
