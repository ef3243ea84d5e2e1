"""Traces: files of tuples in the order of their arrival, read and written as streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa

from oop_engine.core.change import Change
from oop_engine.core.errors import EngineError, GraphError, TraceError, UsageError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrays import converted
from oop_engine.system.close_names import did_you_mean
from oop_engine.system.whole_file import whole_file
from oop_engine.traces.format import Marks, Reader, Writer, plain
from oop_engine.traces.format_registry import FORMATS, format_of
from oop_engine.traces.formats.json_lines import JsonReader
from oop_engine.traces.unknown_columns import UnknownColumns
from oop_engine.traces.validation import Refuse, Validation, check_fields, check_names, some, wanted

__all__ = ["Trace", "check_writable", "open_trace", "write_trace"]

_CELLS = 1 << 24


class Trace:
    """The messages of a file: iterate it, again if need be; each time it is read from the start.

    Pages have at most ``page_rows`` rows, and 16 million cells, and carry ``arrival``; punctuation comes where the
    file has it.  Memory is bounded by a page, or some blocks of text, and does not grow with the file.
    Up to where the iteration is, ``refused`` counts by reason the rows that were diverted, ``nulls`` by column those
    that have no value in it, and, with ``counts_unknown``, ``unknown`` by name those with a column that the schema does
    not have: JSON lines with many such columns take up to twice as long to read then.
    """

    def __init__(
        self,
        path: Path,
        reader: Reader,
        schema: Schema,
        arrival: str | None,
        page_rows: int,
        on_refused: Refuse | None,
    ) -> None:
        self.path = path
        self.schema = schema
        self.arrival = arrival
        self.refused: dict[str, int] = {}
        self.nulls: dict[str, int] = {}
        self.unknown: dict[str, int] = {}
        self.counts_unknown = False
        self._reader = reader
        self._page_rows = page_rows
        self._on_refused = on_refused

    def __iter__(self) -> Iterator[Message]:
        return self._read(self._on_refused)

    def read(self, on_refused: Refuse) -> Iterator[Message]:
        """Yield the messages, as an iteration does; ``on_refused`` is called, too, where rows are refused."""
        own = self._on_refused

        def both(number: int, rows: pa.RecordBatch, reason: str) -> None:
            if own is not None:
                own(number, rows, reason)
            on_refused(number, rows, reason)

        return self._read(both)

    def _read(self, on_refused: Refuse | None) -> Iterator[Message]:
        columns = wanted(self._reader.fields, self.schema, self.arrival)
        validation = Validation(self.path, self.schema, columns, self.arrival, on_refused)
        self.refused, self.nulls = validation.refused, {}
        unknown = UnknownColumns(columns.names)
        self.unknown = unknown.counts
        left_out: list[str] = []
        if self.counts_unknown and isinstance(self._reader, JsonReader):
            self._reader.other = unknown.add
        elif self.counts_unknown:
            left_out = [name for name in self._reader.fields.names if name not in unknown.known]
        page_rows = max(min(self._page_rows, _CELLS // len(columns)), 1)
        for record in self._reader.read(plain(columns), page_rows):
            if not isinstance(record, pa.RecordBatch):
                yield validation.punctuation(record)
                continue
            for name in left_out:
                unknown.add(name, record.num_rows)
            for start in range(0, record.num_rows, page_rows):
                page = validation.page(record.slice(start, page_rows))
                if page is not None:
                    self._count_nulls(page)
                    yield page

    def _count_nulls(self, page: Page) -> None:
        for name, column in zip(page.schema.names, page.batch.columns, strict=True):
            if column.null_count:
                self.nulls[name] = self.nulls.get(name, 0) + column.null_count

    def pages(self) -> Iterator[Page]:
        """Yield the pages only."""
        return (message for message in self if isinstance(message, Page))


def open_trace(
    path: str | Path,
    schema: Schema | None = None,
    *,
    time: str | None = None,
    unit: str | None = None,
    arrival: str | None = None,
    page_rows: int = 65_536,
    format: str | None = None,
    on_refused: Refuse | None = None,
) -> Trace:
    """Return the trace in a file; only its head is read now.

    ``schema``: the columns wanted.  Without it they are those of the file (text formats: of
    the first block), ``time`` names the one that makes progress, and ``unit`` its unit if it is an
    integer; files that ``write_trace`` wrote in a binary format carry both.
    ``arrival``: the column of arrival times, never decreasing, a time like the
    progressing attribute; None: rows arrive in their order (see ``Validation``).  It becomes a
    column of the stream only if the schema has it.
    ``format``: one of ``FORMATS``; None: by the suffix of the path.

    Rows that cannot be read are diverted: counted in ``Trace.refused`` and handed to
    ``on_refused``.  Raises ``TraceError`` if the file is malformed (missing,
    damaged, cut off, without a column, of types that do not fit), here or while it is
    read, and ``UsageError`` if the format is not known.
    """
    path = Path(path)
    made_from = FORMATS[format_of(path, format)].reader
    if page_rows < 1:
        msg = f"open_trace: page_rows must be at least 1; got {page_rows}"
        raise UsageError(msg)
    if not path.is_file():
        msg = f"{path}: {'is no file' if path.exists() else 'does not exist'}: give the path of a trace"
        raise TraceError(msg)
    known = time if schema is None else schema.progressing
    reader: Reader = made_from(path, tuple(name for name in (known, arrival) if name))
    check_names(path, reader.fields)
    arrival = arrival or reader.marks.arrival or None
    if schema is None:
        schema = _schema_of(path, reader, time, unit, arrival)
    check_fields(path, reader, schema, arrival)
    return Trace(path, reader, schema, arrival=arrival, page_rows=page_rows, on_refused=on_refused)


def check_writable(path: str | Path, schema: Schema, *, format: str | None = None) -> None:
    """Raise ``TraceError`` if the format of ``path`` cannot hold the columns of ``schema``; nothing is written."""
    made_from = FORMATS[format_of(path, format)].writer
    made_from(
        pa.BufferOutputStream(), plain(schema.fields), Marks(schema.progressing, schema.unit, "")
    ).close()


def write_trace(
    path: str | Path,
    schema: Schema,
    messages: Iterable[Message],
    *,
    arrival_column: str | None = "arrival",
    format: str | None = None,
) -> int:
    """Write messages to a file as they come; return the number of rows.

    Arrival, if the pages carry it, goes into ``arrival_column`` (None: it is left out), of
    the type of the progressing attribute.  The file appears under its name when it is
    whole: on any error, or Ctrl-C, the file before stays.  Raises ``TraceError`` if
    the format cannot hold the columns or the punctuation.
    """
    path = Path(path)
    made_from = FORMATS[format_of(path, format)].writer
    messages = iter(messages)
    head, arrives = _until_page(messages)
    column = arrival_column if arrives else None
    fields = _stored_fields(path, schema, column)
    try:
        with whole_file(path) as file, pa.PythonFile(file, mode="w") as sink:
            writer = made_from(sink, fields, Marks(schema.progressing, schema.unit, column or ""))
            try:
                rows = _write_all(path, writer, fields, column, chain(head, messages))
            finally:
                writer.close()
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, EngineError):
            raise
        msg = f"{path}: cannot be written ({error}): check the folder and the space left"
        raise TraceError(msg) from error
    return rows


def _schema_of(path: Path, reader: Reader, time: str | None, unit: str | None, arrival: str | None) -> Schema:
    """Return the schema a file suggests: all its columns but that of arrival."""
    names = some(reader.fields.names)
    if reader.crowded:
        msg = (
            f"{path}: has more than {len(reader.fields):,} different keys, and each would be a column ({names}): "
            f"give a schema of those wanted"
        )
        raise TraceError(msg)
    time = time or reader.marks.time
    if not time:
        msg = f"{path}: which column makes progress? Give time='...', one of {names}"
        raise TraceError(msg)
    if not reader.fields.names:
        msg = f"{path}: has no rows, so no columns: give a schema of those wanted"
        raise TraceError(msg)
    if time not in reader.fields.names:
        hint = did_you_mean(time, reader.fields.names) or "name one of them"
        msg = f"{path}: no column {time!r}; there are {names}: {hint}"
        raise TraceError(msg)
    fields = pa.schema([f for f in plain(reader.fields) if f.name != arrival or f.name == time])
    marked = reader.marks.unit if pa.types.is_integer(fields.field(time).type) else ""
    try:
        return Schema(fields, time, unit or marked)
    except GraphError as error:
        way_out = _way_out(fields.field(time).type, reader)
        msg = f"{path}: {str(error).removesuffix(': cast it before') if way_out else error}{way_out}"
        raise TraceError(msg) from error


def _way_out(kind: pa.DataType, reader: Reader) -> str:
    """Return how a column of ``kind`` can become the time, if it cannot be as it is."""
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return ""
    if not reader.guessed:
        return ": cast it, or name another column"
    if not any(len(record) for record in reader.read(reader.fields, 1) if isinstance(record, pa.RecordBatch)):
        return ", for there are no values to tell: give a schema of the columns"
    wanted = "whole numbers or timestamps such as 2024-05-01T12:00:00Z"
    return f", for most of its first values are no {wanted}: write them so, or name another column"


def _until_page(messages: Iterator[Message]) -> tuple[list[Message], bool]:
    """Return the messages up to the first page, and whether it carries arrival."""
    head = []
    for message in messages:
        head.append(message)
        if isinstance(message, Page):
            return head, message.arrival is not None
    return head, False


def _stored_fields(path: Path, schema: Schema, column: str | None) -> pa.Schema:
    fields = plain(schema.fields)
    if column is None:
        return fields
    if column in fields.names:
        msg = f"{path}: there is a column {column!r} already: give another arrival_column, or None"
        raise TraceError(msg)
    return fields.append(pa.field(column, schema.type_of(schema.progressing)))


def _write_all(
    path: Path, writer: Writer, fields: pa.Schema, column: str | None, messages: Iterable[Message]
) -> int:
    rows = 0
    for message in messages:
        if isinstance(message, Change):
            msg = f"{path}: a trace has tuples and punctuation; got {message}: give changes to the runner"
            raise TraceError(msg)
        if not isinstance(message, Page):
            writer.punctuation(message)
        elif column is not None and message.arrival is None:
            msg = f"{path}: every page must carry arrival as the first did; none from row {rows + 1}"
            raise TraceError(msg)
        elif len(message):
            writer.write(_stored(message, fields, column))
            rows += len(message)
    return rows


def _stored(page: Page, fields: pa.Schema, column: str | None) -> pa.RecordBatch:
    columns = [converted(page.column(f.name), f.type)[0] for f in fields if f.name != column]
    if column is not None:
        columns.append(pa.array(page.arrival).cast(fields.field(column).type))
    return pa.RecordBatch.from_arrays(columns, schema=fields)
