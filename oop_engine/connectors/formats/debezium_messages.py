"""Debezium messages: changes of a table, as rows of a revision stream.

An envelope has the row before and after a change: an insert adds a row, an update retracts the row before and adds
that after, a delete retracts the row before.  Source: the Debezium documentation, "Data change events".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from oop_engine.connectors.formats.debezium_values import (
    UNAVAILABLE,
    Named,
    debezium_leaf,
    named_fields,
    with_name,
)
from oop_engine.connectors.message_format import MessageFormat, register_message_format
from oop_engine.core.operator import Message
from oop_engine.core.values.declared_values import MisfitError, nested_column
from oop_engine.traces.format import LINE, REFUSED
from oop_engine.traces.formats.json_rows import object_of

__all__ = ["Changed", "DebeziumMessages", "EnvelopeError", "changes_of"]

_OPERATIONS = {"c": "insert", "r": "snapshot", "u": "update", "d": "delete"}
_IDENTITY = "let the server send whole rows: ALTER TABLE ... REPLICA IDENTITY FULL"
_SHOWN = 1000
_KEYS = {"op", "before", "after", "source"}
_NO_ROW = ({"ts_ms"}, {"ts_ms", "ts_us", "ts_ns"}, {"status", "id"}, {"ddl"}, {"message", "op"})
"""Keys of messages that have no row: heartbeats, marks of transactions, changes of schemas, messages of the log."""


class EnvelopeError(ValueError):
    """The reason why a message cannot be read."""


class Changed(NamedTuple):
    """A row that is added (``sign`` is 1) or retracted (-1); ``named``: the types that its message names."""

    sign: int
    row: Mapping[str, Any]
    named: Named
    table: str | None
    operation: str


def changes_of(message: Any, *, revisions: bool) -> list[Changed]:
    """Return the rows of a message that was parsed; ``revisions``: whether rows may be retracted.

    Raises ``EnvelopeError`` if it is no envelope, or lacks a row.

    >>> [(each.sign, each.row) for each in changes_of({"op": "d", "before": {"n": 1}, "after": None}, revisions=True)]
    [(-1, {'n': 1})]
    """
    schema = None
    if isinstance(message, Mapping) and "payload" in message and {*message} <= {"schema", "payload"}:
        schema, message = message.get("schema"), message["payload"]
    if message is None:
        return []
    if not isinstance(message, Mapping):
        msg = "the message is no JSON object"
        raise EnvelopeError(msg)
    operation = message.get("op")
    if operation == "m" or (operation is None and _has_no_row({*message})):
        return []
    table = _table(message.get("source"))
    if operation == "t":
        msg = f"table {table} was truncated: its rows are gone, and none of them is sent"
        raise EnvelopeError(msg)
    if operation not in _OPERATIONS:
        msg = f"no envelope of Debezium: op must be one of c, r, u, d, t, m; got {operation!r}: read rows as jsonl"
        raise EnvelopeError(msg)
    if operation in "ud" and not revisions:
        msg = f"an {'update' if operation == 'u' else 'deletion'} takes a row back: declare Schema(..., change=COLUMN)"
        raise EnvelopeError(msg)
    changes = []
    for sign, part in ((-1, "before"), (1, "after")):
        if part == ("after" if operation == "d" else "before" if operation in "cr" else ""):
            continue
        if not isinstance(row := message.get(part), Mapping):
            msg = f"{_OPERATIONS[operation]} of table {table} has no row {part} it: {_IDENTITY}"
            raise EnvelopeError(msg)
        changes.append(Changed(sign, row, named_fields(schema, part), table, _OPERATIONS[operation]))
    return changes


def _has_no_row(keys: set[str]) -> bool:
    return not _KEYS & keys and any(marks <= keys for marks in _NO_ROW)


def _table(source: Any) -> str | None:
    if not isinstance(source, Mapping) or source.get("table") is None:
        return None
    space = source.get("schema")
    return str(source["table"]) if space in (None, "public") else f"{space}.{source['table']}"


@register_message_format("debezium")
class DebeziumMessages(MessageFormat):
    """Envelopes of Debezium in JSON, with a schema part or without; columns are those of the row.

    The schema has a column of changes (``Schema(change=)``), else updates and deletions are refused.  It may have
    ``_table`` and ``_operation``.  Tombstones, heartbeats and marks of transactions have no row; a truncated table is
    refused.  An update is read as a whole or not at all.
    """

    by_lines = True

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return a list of all payloads."""
        return list(chain.from_iterable(map(_payloads, pieces)))

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield the rows of envelopes."""
        rows, reasons, lines = list[Changed | None](), list[str | None](), list[bytes]()
        ends = list[int]()
        for payload in self._split(data):
            changes, reason = self._changes(payload)
            rows += changes
            if reason is not None:
                rows.append(None)
            reasons += [reason] * (len(rows) - len(reasons))
            lines += [payload[:_SHOWN]] * (len(rows) - len(lines))
            ends.append(len(rows))
        if rows:
            yield from self._pages([self._batch(rows, reasons, lines, ends)])

    def _split(self, data: Any) -> list[bytes]:
        return _payloads(data)

    def _changes(self, payload: bytes) -> tuple[list[Changed], str | None]:
        if not payload.strip() or payload.strip() == b"null":  # a tombstone
            return [], None
        content = self._parsed(payload)
        if isinstance(content, str):
            return [], content
        try:
            return changes_of(content, revisions=self.schema.change is not None), None
        except EnvelopeError as error:
            return [], str(error)

    def _parsed(self, payload: bytes) -> Any:
        """Return the object in a payload, or the reason why there is none."""
        return object_of(payload)

    def _batch(
        self, rows: list[Changed | None], reasons: list[str | None], lines: list[bytes], ends: list[int]
    ) -> pa.RecordBatch:
        columns: dict[str, pa.Array] = {}
        for each in rows:
            for name in () if each is None else each.row:
                self.unknown.add(name, 1)
        self._whole(rows, reasons)
        for field in self.columns:
            columns[field.name] = self._column(field, rows, reasons)
            if field.name == self.schema.progressing or not field.nullable:
                for at, null in enumerate(columns[field.name].is_null().to_pylist()):
                    if null:
                        reasons[at] = reasons[at] or f"{field.name} is null"
        start = 0
        for end in ends:  # an update goes in as a whole
            if any(reasons[start:end]):
                reasons[start:end] = [next(why for why in reasons[start:end] if why)] * (end - start)
            start = end
        if any(reasons):
            shown = [line if why else None for line, why in zip(lines, reasons, strict=True)]
            columns |= {REFUSED: pa.array(reasons, pa.string()), LINE: pa.array(shown, pa.binary())}
        return pa.RecordBatch.from_pydict(columns)

    def _whole(self, rows: list[Changed | None], reasons: list[str | None]) -> None:
        """Give the rows after an update the long values that were not sent again, from the rows before."""
        for at, each in enumerate(rows):
            lost = [] if each is None else [n for n in self.columns.names if _is_unavailable(each.row.get(n))]
            before = (
                rows[at - 1]
                if at and each is not None and each.operation == "update" and each.sign > 0
                else None
            )
            for name in lost:
                assert each is not None
                value = UNAVAILABLE if before is None else before.row.get(name, UNAVAILABLE)
                if _is_unavailable(value):
                    reason = f"{name} of table {each.table} was not sent, as it has not changed: {_IDENTITY}"
                    reasons[at] = reasons[at] or reason
                each = rows[at] = each._replace(
                    row={**each.row, name: None if _is_unavailable(value) else value}
                )

    def _column(self, field: pa.Field, rows: list[Changed | None], reasons: list[str | None]) -> pa.Array:
        name = field.name
        if name == self.schema.change:
            return pa.array([0 if each is None else each.sign for each in rows], pa.int8())
        cells = list[Any]()
        for at, each in enumerate(rows):
            try:
                cells.append(None if each is None else _cell(each, name))
            except MisfitError as error:
                cells.append(None)
                reasons[at] = reasons[at] or str(error)
        return nested_column(cells, field, lambda path: self.unknown.add(path, 1), debezium_leaf, reasons)


def _cell(each: Changed, name: str) -> Any:
    if name in ("_table", "_operation") and name not in each.row:
        return each.table if name == "_table" else each.operation
    return with_name(each.row.get(name), each.named.get(name), name)


def _is_unavailable(value: Any) -> bool:
    return value in (UNAVAILABLE, _UNAVAILABLE_BYTES) or value in ([UNAVAILABLE], _UNAVAILABLE_BYTES.encode())


_UNAVAILABLE_BYTES = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="


def _payloads(data: Any) -> list[bytes]:
    if isinstance(data, bytes):
        return [line for line in data.split(b"\n") if line.strip()]
    return list(data)
