"""Stream log: whether a stream of NATS is the one that a position was taken from.

A stream that is deleted and made again under its name numbers its messages from 1 again; the server tells when each was
made.  One that was restored from a backup is as old as before: there the last message that was read is compared.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from zlib import crc32

from oop_engine.connectors.library import library
from oop_engine.connectors.source import BEGIN_AGAIN, Position
from oop_engine.core.errors import SetupError, TraceError, UsageError
from oop_engine.core.values.rfc3339 import rfc3339
from oop_engine.system.stopwatch import wall

__all__ = ["StreamLog"]

_LOG = logging.getLogger("oop_engine")
_TOLD_S = 60.0
"""Seconds between two lines of the log about messages that are not there."""
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
        self._lacking = 0
        self._told: float | None = None

    @property
    def position(self) -> Position:
        """The number of the last message, when the stream was made, and number, time and checksum of a message."""
        return [self.last, self._created, self._mark]

    def check(self, about: Any) -> None:
        """Raise ``TraceError`` if the stream was made again, or messages behind the last one may be gone."""
        self.check_made(about)
        self._check_range(about)

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

    def check_kind(self, about: Any) -> None:
        """Raise ``SetupError`` for a stream whose messages are deleted once they were read: none comes again."""
        kind = getattr(about.config.retention, "value", about.config.retention)
        if kind in ("workqueue", "interest"):
            msg = (
                f"{self._place}: has the retention {kind!r}, so a message is deleted once it was read, and none could "
                "be read again after a crash: make a stream with the retention 'limits' that has it as its source"
            )
            raise SetupError(msg)

    def _check_range(self, about: Any) -> None:
        state = about.state
        if (
            self.last is not None
            and self.last < state.first_seq - 1
            and (about.config.max_msgs_per_subject or 0) > 0
        ):
            return  # messages were overwritten by later ones of their subjects, which ``note`` tells
        if self.last is not None and not state.first_seq - 1 <= self.last <= state.last_seq:
            has_messages = state.first_seq <= state.last_seq
            there = f"it has {state.first_seq:,} to {state.last_seq:,}" if has_messages else "it is empty"
            msg = (
                f"{self._place}: message {self.last + 1:,}, the next to read, is no longer there; {there}: "
                f"keep messages for longer; {BEGIN_AGAIN}"
            )
            raise TraceError(msg)

    def note(self, messages: Sequence[Any], *, all_subjects: bool) -> None:
        """Note the last of some messages that were read, and tell of those that are not there, if all would be read."""
        numbers = [message.metadata.sequence.stream for message in messages]
        before = numbers[0] - 1 if self.last is None else self.last
        if all_subjects:
            self._tell_lacking(numbers[-1] - before - len(numbers), numbers[-1])
        message = messages[-1]
        about = message.metadata
        self.last = about.sequence.stream
        self._mark = [self.last, *_mark(message.subject, message.data, about.timestamp)]

    def skip_to(self, last: int, *, all_subjects: bool) -> None:
        """Pass messages up to a number, none of which is there, or is of the subject that is read."""
        if all_subjects and self.last is not None:
            self._tell_lacking(last - self.last, last + 1)
        self.last = last

    def _tell_lacking(self, count: int, before: int) -> None:
        """Log that messages were not there, once a minute at most."""
        self._lacking += count
        if self._lacking and (self._told is None or wall() - self._told >= _TOLD_S):
            words = "%s: %d messages before %d were deleted, or overwritten by later ones of their subject, unread"
            _LOG.warning(words, self._place, self._lacking, before)
            self._told, self._lacking = wall(), 0

    async def check_message(self, jetstream: Any, stream: str) -> None:
        """Raise ``TraceError`` if the last message that was read, where it is there, is another one now."""
        errors = library("nats.errors", "nats", "JetStream")
        problems = library("nats.js.errors", "nats", "JetStream")
        if self._mark is None:
            return
        number, *known = self._mark
        with suppress(problems.NotFoundError, errors.TimeoutError):  # removed; no right to read a message
            message = await jetstream.get_msg(stream, number)
            content, at_ms = _mark(message.subject, message.data or b"", message.time)
            if content != known[0] or abs(at_ms - known[1]) > _CLOSE_MS:
                msg = (
                    f"{self._place}: message {number:,}, the last that was read, is another one now: the stream was "
                    f"restored from a backup, and messages that were not read may be lost: {BEGIN_AGAIN}"
                )
                raise TraceError(msg)


def _is_one_moment(left: str, right: str) -> bool:
    """Return whether two texts are one moment; positions of earlier versions have ``+00:00`` in place of ``Z``."""
    return datetime.fromisoformat(left) == datetime.fromisoformat(right)


def _mark(subject: str, data: bytes, at: Any) -> list[int]:
    return [crc32(data, crc32(subject.encode())), int(at.timestamp() * 1000)]
