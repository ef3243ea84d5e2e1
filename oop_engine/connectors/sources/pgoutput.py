"""pgoutput: the messages of Postgres's logical replication, from bytes to rows.

Source: the PostgreSQL documentation, "Logical Replication Message Formats" (protocol version 1).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Decoder", "lsn_of", "text_of_lsn"]

_INTEGERS, _FLOATS, _BOOL = {20, 21, 23, 26}, {700, 701}, 16
_OPERATIONS = {"I": "insert", "U": "update", "D": "delete"}


def lsn_of(text: str) -> int:
    """Return a place in the log as a number.

    >>> lsn_of("1/A"), text_of_lsn(4294967306)
    (4294967306, '1/A')
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def text_of_lsn(lsn: int) -> str:
    """Return a place in the log as Postgres writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


@dataclass(frozen=True)
class Relation:
    """A table: its name, and the names and types of its columns."""

    name: str
    columns: list[tuple[str, int]]


@dataclass
class Decoder:
    """Collects the rows of a transaction; ``take`` returns them with its end, when that has come.

    ``wanted``: whether an operation (insert, update, delete) on a table is read.  ``within``: a transaction has begun,
    and its end has not come.
    """

    wanted: Callable[[str, str], bool]
    within: bool = False
    _relations: dict[int, Relation] = field(default_factory=dict)
    _rows: list[dict[str, Any]] = field(default_factory=list)

    def take(self, data: bytes) -> tuple[list[dict[str, Any]], int] | None:
        """Take a message; return the rows of a transaction and the place behind it, at its end."""
        kind, at = chr(data[0]), _Cursor(data, 1)
        if kind == "B":
            self._rows, self.within = [], True
        elif kind == "R":
            self._relate(at)
        elif kind in _OPERATIONS:
            self._change(kind, at)
        elif kind == "C":
            at.skip(1 + 8)
            rows, self._rows, self.within = self._rows, [], False
            return rows, at.number("q")
        return None

    def _relate(self, at: _Cursor) -> None:
        number, space, name = at.number("i"), at.text(), at.text()
        at.skip(1)
        columns = []
        for _ in range(at.number("h")):
            at.skip(1)
            column, kind = at.text(), at.number("i")
            at.skip(4)
            columns.append((column, kind))
        self._relations[number] = Relation(name if space == "public" else f"{space}.{name}", columns)

    def _change(self, kind: str, at: _Cursor) -> None:
        relation = self._relations[at.number("i")]
        row: dict[str, Any] = {}
        part = at.letter()
        if kind == "U" and part in "KO":
            row = self._tuple(relation, at)  # the old row: columns that were not sent again are as they were
            part = at.letter()
        row |= self._tuple(relation, at)
        operation = _OPERATIONS[kind]
        if self.wanted(relation.name, operation):
            self._rows.append({**row, "_table": relation.name, "_operation": operation})

    def _tuple(self, relation: Relation, at: _Cursor) -> dict[str, Any]:
        row: dict[str, Any] = {}
        count = at.number("h")
        for name, kind in relation.columns[:count]:
            how = at.letter()
            if how == "n":
                row[name] = None
            elif how == "t":
                row[name] = _value(at.bytes(at.number("i")).decode(), kind)
        return row


class _Cursor:
    """Reads one message from its beginning to its end."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def skip(self, count: int) -> None:
        self._at += count

    def bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def letter(self) -> str:
        return self.bytes(1).decode()

    def number(self, kind: str) -> int:
        return int(struct.unpack(f">{kind}", self.bytes(struct.calcsize(f">{kind}")))[0])

    def text(self) -> str:
        end = self._data.index(b"\0", self._at)
        found = self._data[self._at : end].decode()
        self._at = end + 1
        return found


def _value(text: str, kind: int) -> Any:
    """Return a value as JSON has it; those of other types stay texts."""
    if kind in _INTEGERS:
        return int(text)
    if kind in _FLOATS:
        number = float(text)
        return number if abs(number) < float("inf") else None
    return text == "t" if kind == _BOOL else text
