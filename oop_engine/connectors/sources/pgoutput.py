"""pgoutput: the messages of Postgres's logical replication, from bytes to rows as JSON.

Bytes that are no UTF-8 (of a database in ``SQL_ASCII``) stay as they are, so that their row is refused.

Source: the PostgreSQL documentation, "Logical Replication Message Formats" (protocol version 1).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct

from oop_engine.connectors.sources.pgoutput_values import NoTextError, PostgresTypes, Reader, quoted

__all__ = ["Decoder", "OtherTransactionError"]

_LOG = logging.getLogger("oop_engine")
_LETTERS = {"I": b"c", "U": b"u", "D": b"d"}
_UNAVAILABLE = b'"__debezium_unavailable_value"'
_OPERATIONS = {"I": "insert", "U": "update", "D": "delete"}
_BEGIN, _COMMIT = Struct(">q"), Struct(">xqq")
_TABLE, _SIZE, _COUNT = Struct(">i"), Struct(">i"), Struct(">h")
_COLUMN = Struct(">ii")
_NULL, _TEXT, _UNCHANGED = b"ntu"
_ADDED = ("_table", "_operation")

Cells = dict[int, bytes | None]
"""Values of a row as JSON, by the number of their column; None: it was not sent, for it has not changed."""


class OtherTransactionError(Exception):
    """The log does not have the changes that were read before."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: its name and type, and whether it is of the key that old rows are sent by."""

    name: str
    kind: int
    in_key: bool

    @property
    def label(self) -> bytes:
        """Its name, as an object of JSON has it."""
        return quoted(self.name.encode(errors="surrogateescape")) + b": "


@dataclass(frozen=True)
class Relation:
    """A table: its name, its columns, their names as JSON has them, and how their values are read."""

    name: str
    columns: list[TableColumn]
    labels: list[bytes]
    readers: list[Reader]

    def ending(self, operation: str) -> bytes:
        """Return the columns that are added to each row, and the end of it."""
        return b'"_table": %b, "_operation": "%b"}' % (quoted(self.name.encode()), operation.encode())


@dataclass
class Decoder:
    """Collects rows in ``rows``, each an object of JSON.

    ``wanted``: whether an operation (insert, update, delete, truncate) is read.  ``needed``: the names of columns
    without which a row is refused; None: all.  ``refused`` is called with the reason and the row.  ``commit``: the
    place where the transaction commits that is read now; 0: none is.  ``changes``: how many of it were taken.
    ``envelopes``: rows are envelopes of Debezium, with the row before a change where it is sent as a whole.
    ``types``: of the server and of the schema.
    ``named``: the columns of the schema; ``lacking``: tables that lack some of them, which are logged once.
    ``tables``: the numbers of tables by name, replaced where another one is found.
    ``end``: behind it, once it has ended.  ``skipped``: commit and number of changes that were read before.
    """

    wanted: Container[str]
    needed: Container[str] | None
    refused: Callable[[str, bytes], None]
    skipped: tuple[int, int] = (0, 0)
    envelopes: bool = False
    named: Sequence[str] = ()
    lacking: set[str] = field(default_factory=set)
    tables: Mapping[str, int] = field(default_factory=dict)
    types: PostgresTypes = field(default_factory=PostgresTypes)
    commit: int = 0
    changes: int = 0
    end: int = 0
    rows: list[bytes] = field(default_factory=list)
    _relations: dict[int, Relation] = field(default_factory=dict)

    def take(self, data: bytes) -> None:
        """Take a message of the log."""
        kind = chr(data[0])
        if kind in _OPERATIONS:
            self.changes += 1
            if self.changes > (self.skipped[1] if self.commit == self.skipped[0] else 0):
                self._change(kind, data)
        elif kind == "B":
            self._begin(_BEGIN.unpack_from(data, 1)[0])
        elif kind == "C":
            self._commit(_COMMIT.unpack_from(data, 1)[1])
        elif kind == "R":
            self._relate(data)
        elif kind == "T" and "delete" in self.wanted:
            self._truncate(data)

    def taken(self) -> list[bytes]:
        """Return the rows since the last call."""
        rows, self.rows = self.rows, []
        return rows

    def _begin(self, commit: int) -> None:
        self.commit, self.changes, self.end = commit, 0, 0
        if 0 < self.skipped[0] < commit:
            raise OtherTransactionError

    def _commit(self, end: int) -> None:
        if self.skipped[0] == self.commit and self.changes < self.skipped[1]:
            raise OtherTransactionError
        self.skipped, self.commit, self.changes, self.end = (0, 0), 0, 0, end

    def _relate(self, data: bytes) -> None:
        (number,) = _TABLE.unpack_from(data, 1)
        space, at = _name(data, 5)
        name, at = _name(data, at)
        (count,) = _COUNT.unpack_from(data, at + 1)
        at += 3
        columns = list[TableColumn]()
        for _ in range(count):
            in_key = bool(data[at] & 1)
            column, at = _name(data, at + 1)
            kind, _ = _COLUMN.unpack_from(data, at)
            columns.append(TableColumn(column, kind, in_key))
            at += 8
        readers = [self.types.reader(each.kind, each.name) for each in columns]
        full = name if space == "public" else f"{space}.{name}"
        relation = Relation(full, columns, [each.label for each in columns], readers)
        if number in self._relations:
            self._tell_changed(self._relations[number], relation)
        else:
            self._tell_not_sent(relation)
        self._relations[number] = relation
        if not (self.commit == self.skipped[0] and self.changes < self.skipped[1]):
            self._note_table(relation, number)

    def _note_table(self, table: Relation, number: int) -> None:
        """Note the number of a table, and tell where another one had its name: no deletion of its rows is sent."""
        before = self.tables.get(table.name)
        if before == number:
            return
        self.tables = {**self.tables, table.name: number}
        if before is None:
            return
        reason = (
            f"table {table.name} was dropped and made again, or another one has its name now: the rows of the earlier "
            "one are gone, and none of them is sent"
        )
        _LOG.warning("%s; rows written before it was in the publication do not come", reason)
        if "delete" in self.wanted:
            self.refused(reason, b"{" + table.ending("drop"))

    def _tell_not_sent(self, table: Relation) -> None:
        """Log columns of the schema that a table has not, or does not send: all of its rows lack them."""
        there = {column.name for column in table.columns}
        missing = [name for name in self.named if name not in there and name not in _ADDED]
        if missing and table.name not in self.lacking:
            self.lacking.add(table.name)
            words = (
                "table %s: sends no column %s, null in its rows: is it generated, or not in the publication?"
            )
            _LOG.warning(words, table.name, ", ".join(map(repr, missing)))

    def _tell_changed(self, before: Relation, now: Relation) -> None:
        """Log columns that a table has no more: they are null from now on."""
        names = {column.name for column in now.columns}
        lost = [column.name for column in before.columns if column.name not in names]
        if read := [name for name in lost if self.needed is None or name in self.needed]:
            words = "table %s: has no column %s any more, which is null from now on"
            _LOG.warning(words, now.name, ", ".join(map(repr, read)))

    def _change(self, kind: str, data: bytes) -> None:
        relation, operation = self._relations[_TABLE.unpack_from(data, 1)[0]], _OPERATIONS[kind]
        if operation not in self.wanted:
            return
        try:
            self._take_row(relation, kind, data)
        except NoTextError as error:
            self.refused(str(error), b"{" + relation.ending(operation))

    def _take_row(self, relation: Relation, kind: str, data: bytes) -> None:
        operation = _OPERATIONS[kind]
        part, at = chr(data[5]), 6
        before: Cells = {}
        if part in "KO":
            before, at = _cells(relation, data, at)
            if part == "K":  # the other columns are sent as null, whatever they are
                before = {n: cell for n, cell in before.items() if relation.columns[n].in_key}
        cells = before
        if kind != "D":
            cells, _ = _cells(relation, data, at if part == "N" else at + 1)
        if self.envelopes:
            self._add_envelope(
                relation, kind, before if part == "O" else None, None if kind == "D" else cells
            )
        else:
            self._add(relation, operation, before, cells)

    def _add_envelope(self, relation: Relation, kind: str, before: Cells | None, after: Cells | None) -> None:
        """Add the envelope of a change; a long value that has not changed is that of the row before."""
        known = before or {}
        space, _, table = relation.name.rpartition(".")
        source = b'{"schema": %b, "table": %b}' % (
            quoted((space or "public").encode()),
            quoted(table.encode()),
        )
        parts = {b"before": before, b"after": after}
        rows = [
            b'"%b": %b, ' % (name, b"null" if cells is None else self._object(relation, cells, known))
            for name, cells in parts.items()
        ]
        self.rows.append(b"{" + b"".join(rows) + b'"source": %b, "op": "%b"}' % (source, _LETTERS[kind]))

    def _object(self, relation: Relation, cells: Cells, known: Cells) -> bytes:
        values = ((number, known.get(number) if cell is None else cell) for number, cell in cells.items())
        members = [
            relation.labels[number] + (_UNAVAILABLE if cell is None else cell) for number, cell in values
        ]
        return b"{" + b", ".join(members) + b"}"

    def _add(self, relation: Relation, operation: str, before: Cells, cells: Cells) -> None:
        """Add a row, or refuse it: an unchanged value is that of the old row, where that is sent."""
        pieces, lost = list[bytes](), list[str]()
        for number, cell in cells.items():
            value = before.get(number) if cell is None else cell
            name = relation.columns[number].name
            if value is not None and name not in _ADDED:
                pieces.append(relation.labels[number] + value)
            elif value is None and (self.needed is None or name in self.needed):
                lost.append(name)
        row = b"{" + b"".join(piece + b", " for piece in pieces) + relation.ending(operation)
        if not lost:
            self.rows.append(row)
            return
        reason = (
            f"column {lost[0]!r} of table {relation.name} was not sent, as this update has not changed it: "
            f"ALTER TABLE {relation.name} REPLICA IDENTITY FULL"
        )
        self.refused(reason, row)

    def _truncate(self, data: bytes) -> None:
        (count,) = _TABLE.unpack_from(data, 1)
        for place in range(count):
            relation = self._relations[_TABLE.unpack_from(data, 6 + 4 * place)[0]]
            if self.envelopes:
                space, _, table = relation.name.rpartition(".")
                names = quoted((space or "public").encode()), quoted(table.encode())
                self.rows.append(b'{"op": "t", "source": {"schema": %b, "table": %b}}' % names)
                continue
            reason = f"table {relation.name} was truncated: its rows are gone, and none of them is sent"
            self.refused(reason, b"{" + relation.ending("truncate"))


def _cells(relation: Relation, data: bytes, at: int) -> tuple[Cells, int]:
    """Return the values of a row that begins at a byte, and where it ends."""
    cells: Cells = {}
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    for number in range(count):
        how = data[at]
        at += 1
        if how == _TEXT:
            (size,) = _SIZE.unpack_from(data, at)
            at += 4 + size
            cells[number] = relation.readers[number](data[at - size : at])
        else:
            cells[number] = None if how == _UNCHANGED else b"null"
    return cells, at


def _name(data: bytes, at: int) -> tuple[str, int]:
    """Return a text that ends with a zero, and the byte behind that."""
    end = data.index(b"\0", at)
    return data[at:end].decode(errors="surrogateescape"), end + 1
