"""Writing traces: messages go to a file as they come, which appears under its name when it is whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa

from oop_engine.core.change import Change
from oop_engine.core.errors import EngineError, TraceError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrays import converted
from oop_engine.system.whole_file import whole_file
from oop_engine.traces.compressed import compressing
from oop_engine.traces.format import Marks, Writer, plain
from oop_engine.traces.format_registry import FORMATS, format_of

__all__ = ["check_writable", "write_trace"]


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
        with whole_file(path) as file, pa.PythonFile(file, mode="w") as raw, compressing(path, raw) as sink:
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
