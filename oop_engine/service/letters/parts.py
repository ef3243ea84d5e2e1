"""Parts: data that came together are read so many records at a time, and the event loop runs in between.

A record costs a microsecond, and one that is refused a thousand times as much, since those around it are read again:
parts are small while records are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.service.letters.record_reader import Piece, RecordReader
from oop_engine.system.knobs import knob

__all__ = ["Parts", "records_in"]

_PART = knob(__name__, "_PART", 4096)
"""The most records of a part: some milliseconds."""
_REFUSED_PART = knob(__name__, "_REFUSED_PART", 8)
"""Records of a part behind one in which some were refused; the next ones are twice as large each."""
_LINE = knob(__name__, "_LINE", 64)
"""Bytes of data that count as a record."""


class Parts:
    """Reads pieces by ``reader`` in parts."""

    def __init__(self, reader: RecordReader) -> None:
        self._reader, self._most = reader, _PART

    def messages(self, pieces: list[Piece]) -> Iterator[list[Message]]:
        """Yield the messages in some pieces, part by part; between two parts the loop may run."""
        small: list[Piece] = []
        records = 0
        for piece in pieces:
            size = records_in(piece[0])
            if small and records + size > self._most:
                yield self._sized(self._reader.messages(small))
                small, records = [], 0
            if size > self._most and (listed := self._reader.listed(piece)):
                yield from self._in_parts(listed, piece)
            else:
                small.append(piece)
                records += size
        if small:
            yield self._sized(self._reader.messages(small))

    def is_long(self, pieces: list[Piece]) -> bool:
        """Return whether a piece is one message of more records than a part has: it is read as a whole."""
        return any(type(data) is bytes and records_in(data) > _PART for data, _, _ in pieces)

    def _in_parts(self, listed: list[Any], piece: Piece) -> Iterator[list[Message]]:
        at = 0
        while at < len(listed):
            part = listed[at : at + self._most]
            yield self._sized(self._reader.messages_of(part, at, piece))
            at += len(part)

    def _sized(self, messages: list[Message]) -> list[Message]:
        """Return the messages of a part, whose refused records decide how large the next is."""
        refused, self._reader.refused = self._reader.refused, 0
        self._most = min(_REFUSED_PART, _PART) if refused else min(2 * self._most, _PART)
        return messages


def records_in(data: Any) -> int:
    """Return about how many records there are in some data."""
    if isinstance(data, bytes):
        return len(data) // _LINE + 1
    return len(data) if isinstance(data, list | tuple | Page) else 1
