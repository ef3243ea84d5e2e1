"""Payloads: the rows of a page as messages, in the formats in which sources read them.

jsonl      an object a row
csv        cells a row, in the order of the columns, without a line of names
msgpack    a map a row; instants are timestamps of msgpack, other times are texts
arrow      an Arrow IPC stream a page
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.csv

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError
from oop_engine.core.groups.in_python import as_json, rows_of, values_of
from oop_engine.core.page import Page
from oop_engine.core.registry import Registry
from oop_engine.core.values.kinds import reads_nested_texts, reads_texts
from oop_engine.core.values.rfc3339 import for_texts, rfc3339
from oop_engine.traces.format import Marks, is_textual, plain, require_textual
from oop_engine.traces.formats.json_lines import JsonWriter

__all__ = ["PAYLOADS", "check_payloads", "payloads_of", "row_as_json"]

_TEXTS = ("jsonl", "csv")
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def payloads_of(page: Page, format: str) -> list[bytes]:
    """Return the rows of a page as messages.  O(rows)."""
    fields = plain(page.schema.fields)
    return PAYLOADS[format](page.batch.cast(fields) if fields != page.batch.schema else page.batch)


def row_as_json(pages: Sequence[Page], number: int) -> str:
    """Return a row of some pages as JSON, as a source reads it; bytes, which JSON has not, as Python writes them."""
    for page in pages:
        if number < len(page):
            break
        number -= len(page)
    row = page.slice(number, number + 1)
    if any(map(_has_bytes, page.schema.fields.types)):
        return json.dumps(row.to_pylist()[0], default=str)
    return payloads_of(row, "jsonl")[0].decode()


def _json(rows: pa.RecordBatch) -> list[bytes]:
    if not all(map(is_textual, rows.schema.types)):
        return [as_json(row).encode() for row in rows_of(rows)]
    sink = pa.BufferOutputStream()
    JsonWriter(sink, rows.schema, Marks()).write(rows)
    return bytes(sink.getvalue()).splitlines()


def _csv(rows: pa.RecordBatch) -> list[bytes]:
    require_textual(rows.schema, "csv")
    options = pyarrow.csv.WriteOptions(include_header=False)
    payloads, rows = [], for_texts(rows)
    for at in range(rows.num_rows):  # one by one: a cell may have line feeds
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(rows.slice(at, 1), sink, options)
        payloads.append(bytes(sink.getvalue()))
    return payloads


def _msgpack(rows: pa.RecordBatch) -> list[bytes]:
    names, columns = rows.schema.names, [_values(column) for column in rows.columns]
    return [
        msgpack.packb(dict(zip(names, row, strict=True)), default=rfc3339)
        for row in zip(*columns, strict=True)
    ]


def _arrow(rows: pa.RecordBatch) -> list[bytes]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return [bytes(sink.getvalue())]


PAYLOADS = Registry[Callable[[pa.RecordBatch], list[bytes]]]("format of results")
"""Functions that make messages of rows, by the name of the format."""
for _name, _made in (("jsonl", _json), ("csv", _csv), ("msgpack", _msgpack), ("arrow", _arrow)):
    PAYLOADS.register(_name, _made, __name__)


def _values(column: pa.Array) -> list[Any]:
    """Return the values as msgpack has them."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz:
        scale, moment = _NANOSECONDS[kind.unit], msgpack.Timestamp.from_unix_nano
        return [None if v is None else moment(v * scale) for v in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_temporal(kind) and is_textual(kind):
        return list(column.cast(pa.string()).to_pylist())
    return values_of(column)


def check_payloads(place: str, format: str, fields: pa.Schema | None = None, *, keyed: bool = False) -> None:
    """Raise ``GraphError`` in the name of ``place`` if there is no such format, or its messages can have no ``key``.

    So do ``fields`` that the messages cannot have: bytes in JSON, bytes and nested values in CSV.
    """
    if format not in PAYLOADS:
        msg = f"{place}: format must be one of {', '.join(PAYLOADS)}; got {format!r}{did_you_mean(format, PAYLOADS)}"
        raise GraphError(msg)
    for field in fields if fields is not None and format in (*_TEXTS, "msgpack") else ():
        if format in _TEXTS and _has_bytes(field.type):
            msg = (
                f"{place}: column {field.name!r} is {field.type}, which {format} cannot hold: give format 'msgpack' or "
                "'arrow', or make it text (base64) in the graph"
            )
            raise GraphError(msg)
    for field in fields if fields is not None and format in (*_TEXTS, "msgpack") else ():
        if not (reads_texts if format == "csv" else reads_nested_texts)(field.type):
            msg = (
                f"{place}: column {field.name!r} is {field.type}, which no source reads from {format}: give format "
                "'arrow', or cast it in the graph (a length of time to int64)"
            )
            raise GraphError(msg)
    if keyed and format == "arrow":
        msg = f"{place}: a message of format 'arrow' has many rows, so it can have no key: leave out the key"
        raise GraphError(msg)


def _has_bytes(kind: pa.DataType) -> bool:
    """Return whether values of a type have bytes, also nested ones."""
    binary = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    if any(test(kind) for test in binary):
        return True
    if pa.types.is_dictionary(kind):
        return _has_bytes(kind.value_type)
    return any(_has_bytes(kind.field(number).type) for number in range(kind.num_fields))
