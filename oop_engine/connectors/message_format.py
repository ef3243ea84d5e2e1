"""Message formats: bytes of a source become pages and punctuation; a row that cannot be read never stops a stream.

Rows go through the same checks as those of a trace (``traces/validation.py``), so a value means the same in a file
at rest and in a stream.  ``register_message_format`` adds a format of your own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.connectors.payload import Metadata, Payload
from oop_engine.connectors.source import Unreadable
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.registry import Registry
from oop_engine.core.schema import Schema
from oop_engine.traces.format import LINE, REFUSED
from oop_engine.traces.unknown_columns import UnknownColumns
from oop_engine.traces.validation import Validation

__all__ = ["MESSAGE_FORMATS", "MessageFormat", "register_message_format", "shown"]

_NULL, _ROW = -1, -2
_NO_COLUMN = "oop_engine.none"
_SHOWN = 1000  # characters of a record that cannot be read


class MessageFormat(ABC):
    """Reads the data of one source; ``place`` names it, ``unreadable`` hears of rows that are left out.

    ``headed``: a line of column names may come before the data.  ``waits``: ``ready`` is awaited before data are read.
    ``by_lines``: it can be cut at the ends of lines, as the content of a file is; ``row_a_line``: no line has two rows.
    ``unknown``: counts columns that the schema does not have; ``messages`` adds to it.  ``remembers``: attributes that
    ``messages`` changes, such as the line of names.  ``metadata``: columns of the schema whose values come with a
    message, not in its payload; ``columns``: those of the payload.
    """

    headed = False
    waits: ClassVar[bool] = False
    header = b""
    """The line of names that holds for the next data, where one came."""
    by_lines = True
    row_a_line: ClassVar[bool] = False
    remembers: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, schema: Schema, place: str, unreadable: Unreadable, metadata: Metadata | None = None
    ) -> None:
        self.schema, self.place, self._unreadable = schema, place, unreadable
        self.metadata = dict(metadata or {})
        self.columns = pa.schema([field for field in schema.fields if field.name not in self.metadata])
        self._told: list[Payload] = []  # that are being read, where there are columns of messages
        self.unknown = UnknownColumns(schema.names)
        self._validation = Validation(Path(place), schema, schema.fields, None, self._refused, made_up=False)
        self.refusing: NDArray[np.int64] | None = None

    @property
    def next_row(self) -> int:
        """The number of the next row; ``refusing`` has those of the rows that ``unreadable`` hears of, if known."""
        return self._validation.next_row

    async def ready(self, data: Any, *, once: bool = False) -> None:  # noqa: B027 (most wait for nothing)
        """Wait until ``messages`` can read some data; called before it where the format ``waits`` for a server.

        ``once``: raise ``UnreachableError`` if the server is away, and do not wait for it.
        """

    @abstractmethod
    def messages(self, data: Any) -> Iterator[Message]:
        """Yield the messages in some data: whole lines, or a list of payloads."""

    def read(self, data: Any) -> Iterator[Message]:
        """Yield the messages in some data, with the columns of messages in their rows."""
        if not self.metadata:
            yield from self.messages(data)
        elif isinstance(data, bytes):
            yield from self._of(bytes(data), [_payload(data)])
        else:
            yield from self._of_payloads(map(_payload, data))

    def is_row(self, payload: bytes) -> bool:
        """Return whether a payload has exactly one row, whatever it is: such payloads are read together."""
        return False

    def together(self, pieces: list[Any]) -> Any | None:
        """Return several data in one, or None, as ``joined`` does: blocks of bytes with columns stay apart."""
        apart = self.metadata and any(isinstance(piece, bytes) for piece in pieces)
        return None if apart else self.joined(pieces)

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return several data in one, with the same rows and punctuation; None (the default): they are read one by one.

        So many small messages cost little.  Reading must leave nothing behind in the format.
        """
        return None

    def records(self, data: Any) -> list[Any]:
        """Return data record by record, so that one that is refused is known as it came: lines, or the items of a list.

        A format whose records may have several lines overrides this.
        """
        if isinstance(data, bytes) and self.by_lines:
            lines = data.split(b"\n")
            return [line + b"\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]
        return list(data) if isinstance(data, list | tuple) else [data]

    def _pages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Page]:
        for batch in map(self._told_too, batches) if self.metadata else batches:
            if (page := self._validation.page(batch)) is not None:
                yield page

    def _of_payloads(self, payloads: Iterable[Payload]) -> Iterator[Message]:
        """Yield the messages in payloads; those of one row each are read together."""
        for key, members in groupby(enumerate(payloads), lambda each: self._group(*each)):
            group = [payload for _, payload in members]
            if key == _NULL:
                yield from self._of_nulls(group)
            else:
                yield from self._of(group, group)

    def _group(self, number: int, payload: Payload) -> int:
        """Return a number that payloads have in common which are read together."""
        return _NULL if payload.is_null else _ROW if self.is_row(payload) else number

    def _of(self, data: Any, payloads: list[Payload]) -> Iterator[Message]:
        self._told = payloads
        yield from self.messages(data)

    def _of_nulls(self, payloads: list[Payload]) -> Iterator[Message]:
        """Yield the rows of messages that have no payload."""
        self._told = payloads
        nothing = {field.name: pa.nulls(len(payloads), field.type) for field in self.columns}
        yield from self._pages([pa.RecordBatch.from_pydict(nothing or {_NO_COLUMN: pa.nulls(len(payloads))})])

    def _told_too(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the columns of their messages; a row that has such a column itself is refused."""
        rows = batch.num_rows
        payloads, self._told = (
            (self._told * rows, self._told)
            if len(self._told) == 1
            else (self._told[:rows], self._told[rows:])
        )
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        taken = [columns.pop(name).is_valid().to_pylist() for name in self.metadata if name in columns]
        for name, kind in self.metadata.items():
            columns[name] = pa.array([payload.about.get(name) for payload in payloads], kind)
        for name, values in zip([n for n in self.metadata if n in batch.schema.names], taken, strict=True):
            if any(values):
                _refuse_rows(
                    columns, values, f"{name} is a column of the message, and the row has one, too", payloads
                )
        return pa.RecordBatch.from_pydict(columns)

    def _refused(self, row: int, rows: pa.RecordBatch, reason: str) -> None:
        self.refusing = self._validation.refusing
        try:
            self._unreadable(reason, shown(rows), rows.num_rows)
        finally:
            self.refusing = None

    def _refuse(self, reason: object, record: bytes | str) -> None:
        text = record.decode(errors="replace") if isinstance(record, bytes) else record
        self._unreadable(" ".join(str(reason).split())[:300], text.rstrip("\n")[:_SHOWN], 1)


MESSAGE_FORMATS = Registry[type[MessageFormat]]("message format")
"""All formats of messages, by name."""


def register_message_format(name: str) -> Callable[[type[MessageFormat]], type[MessageFormat]]:
    """Make a format known under ``name``: ``@register_message_format("lines")``."""

    def register(kind: type[MessageFormat]) -> type[MessageFormat]:
        return MESSAGE_FORMATS.register(name, kind, kind.__module__)

    return register


def _payload(data: bytes) -> Payload:
    return data if isinstance(data, Payload) else Payload(data, {})


def _refuse_rows(
    columns: dict[str, pa.Array], which: list[bool], reason: str, payloads: list[Payload]
) -> None:
    """Give a reason to rows that have none yet."""
    before = columns[REFUSED].to_pylist() if REFUSED in columns else [None] * len(which)
    lines = columns[LINE].to_pylist() if LINE in columns else [None] * len(which)
    for at, bad in enumerate(which):
        if bad and before[at] is None:
            before[at], lines[at] = reason, bytes(payloads[at])[:_SHOWN]
    columns |= {REFUSED: pa.array(before, pa.string()), LINE: pa.array(lines, pa.binary())}


def shown(rows: pa.RecordBatch) -> str:
    """Return the first of some rows as text: its line, or its values."""
    first = rows.slice(0, 1)
    try:
        row = first.to_pylist()[0]
    except (ArithmeticError, ValueError):  # a moment that Python has no date for
        row = {name: str(column) for name, column in zip(first.schema.names, first.columns, strict=True)}
    if set(row) <= {"line", "number"} or LINE in row:
        text = row.get("line", row.get(LINE))
    else:
        text = {name: _as_text(value) for name, value in row.items() if name != REFUSED}
    return str(_as_text(text))[:_SHOWN]


def _as_text(value: Any) -> Any:
    """Return bytes as text: cells of text files are bytes until they are read."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
