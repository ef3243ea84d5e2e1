"""Parquet: columns, compressed; carries no punctuation."""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oop_engine.core.errors import TraceError
from oop_engine.core.punctuation import Punctuation
from oop_engine.system.knobs import knob
from oop_engine.traces.compressed import seekable
from oop_engine.traces.format import LINE, REFUSED, Marks, Record, readable

__all__ = ["ParquetReader", "ParquetWriter"]

_BUFFER = knob(__name__, "_BUFFER", 1 << 20)
_GROUP_ROWS = knob(__name__, "_GROUP_ROWS", 1 << 17)
_OPTIONS: dict[str, Any] = {"buffer_size": _BUFFER, "pre_buffer": False}
_INT96: dict[str, Any] = {"coerce_int96_timestamp_unit": "us"}
"""Nanoseconds since 1970, as which Arrow reads them else, end in 2262, and INT96 does not."""
_CODE_BYTES = knob(__name__, "_CODE_BYTES", 4)
"""Bytes a value that texts take in a file, at most, to be read as codes: more of them are no dictionary."""
_TEXT = pa.string()
_ARROW = b"ARROW:schema"
_STORED_OTHERWISE = {pa.time32("s"): pa.time32("ms"), pa.date64(): pa.date32()}
_INTERVAL = struct.Struct("<III")
"""Months, days and milliseconds, which Arrow reads as twelve bytes."""
_MOST_MICROSECONDS = (2**63 - 1) // 1000 - 1


class ParquetReader:
    """Row groups are read through a buffer of 1 MB a column, never whole."""

    guessed: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    crowded: ClassVar[bool] = False

    def __init__(self, path: Path, times: tuple[str, ...] = ()) -> None:
        self._path = path
        self.share: float | None = None
        with readable(path), seekable(path) as source, pq.ParquetFile(source, **_INT96) as file:
            self.marks = Marks.of(file.schema_arrow)
            self._written = _written_as(file)
            self._written |= dict.fromkeys(_columns_of(file, "INTERVAL"), pa.month_day_nano_interval())
            self._int96 = _columns_of(file, "INT96")
            self.fields = _with_types(file.schema_arrow.remove_metadata(), self._written)

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield the rows, at most ``page_rows`` at a time; raises ``TraceError`` unless the footer has their number."""
        fine = [name for name in columns.names if name in self._int96]
        with (
            readable(self._path),
            seekable(self._path) as source,
            pq.ParquetFile(
                source, **_OPTIONS, **_INT96, read_dictionary=self._in_codes(columns, page_rows)
            ) as file,
        ):
            rows, nanoseconds = 0, self._nanoseconds(fine, page_rows)
            for batch in file.iter_batches(page_rows, columns=columns.names, use_threads=False):
                rows += batch.num_rows
                self.share = rows / max(file.metadata.num_rows, 1)
                batch_read = self._as_written(batch.select(columns.names))
                yield _checked(batch_read, columns, next(nanoseconds)) if fine else batch_read
            if rows != file.metadata.num_rows:
                msg = f"must have {file.metadata.num_rows:,} rows, by its footer; got {rows:,}"
                raise ValueError(msg)

    def complete(self, columns: pa.Schema) -> set[str]:
        """Return those of ``columns`` that are stored in their type, no value of which is missing; reads the footer."""
        alike = {
            f.name
            for f in columns
            if f.name in self.fields.names and self.fields.field(f.name).type == f.type
        }
        names = alike - self._int96 - self._written.keys()
        with readable(self._path), seekable(self._path) as source, pq.ParquetFile(source) as file:
            for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
                chunks = map(group.column, range(group.num_columns))
                names &= {chunk.path_in_schema for chunk in chunks if _has_all_values(chunk)}
        return names

    def _in_codes(self, columns: pa.Schema, page_rows: int) -> list[str]:
        """Return the columns of text that are stored as codes, of few bytes a value: they are read as codes.

        Pages end with a row group then, so none are where row groups are smaller than pages.
        """
        texts = {f.name for f in columns if f.type == _TEXT} & {
            f.name for f in self.fields if f.type == _TEXT
        }
        if not texts:
            return []
        with readable(self._path), seekable(self._path) as source, pq.ParquetFile(source) as file:
            if file.metadata.num_rows < page_rows * (file.metadata.num_row_groups - 1):
                return []
            for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
                chunks = map(group.column, range(group.num_columns))
                texts &= {chunk.path_in_schema for chunk in chunks if _has_few_texts(chunk)}
        return sorted(texts)

    def _nanoseconds(self, names: list[str], page_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield columns of INT96 again, with nanoseconds."""
        with seekable(self._path) as source, pq.ParquetFile(source, **_OPTIONS) as file:
            yield from file.iter_batches(page_rows, columns=names, use_threads=False)

    def _as_written(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return columns in types that were given to the writer and that Parquet has not, and intervals as such."""
        if not self._written.keys() & set(batch.schema.names):
            return batch
        fields = _with_types(batch.schema, self._written)
        return pa.RecordBatch.from_arrays(
            [_as_type(c, f.type) for c, f in zip(batch.columns, fields, strict=True)], schema=fields
        )


class ParquetWriter:
    """Rows are gathered into row groups of at least 131,072."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None:
        self._fields = marks.on(fields)
        try:
            self._writer = pq.ParquetWriter(sink, self._fields)
        except pa.ArrowNotImplementedError:
            _require_stored(fields)
            raise
        self._held: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._held.append(batch.replace_schema_metadata(self._fields.metadata))
        self._rows += batch.num_rows
        if self._rows >= _GROUP_ROWS:
            self._flush()

    def punctuation(self, punctuation: Punctuation) -> None:
        """Refuse: Parquet has rows only."""
        msg = "parquet carries no punctuation: write arrow, jsonl or msgpack, or leave the punctuation out"
        raise TraceError(msg)

    def close(self) -> None:
        """Finish the file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held))
            self._held, self._rows = [], 0


def _has_all_values(column: pq.ColumnChunkMetaData) -> bool:
    """Return whether statistics count no value that is missing."""
    known = column.statistics
    return known is not None and known.has_null_count and known.null_count == 0


def _has_few_texts(column: pq.ColumnChunkMetaData) -> bool:
    """Return whether a dictionary has the texts: where it has grown too large, writers go on without one."""
    return bool(
        column.has_dictionary_page and column.total_uncompressed_size <= _CODE_BYTES * column.num_values
    )


def _require_stored(fields: pa.Schema) -> None:
    """Raise ``TraceError`` if a column is of a type that Parquet has not."""
    for field in fields:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowException as error:
            msg = f"parquet: column {field.name!r}: {field.type} has no form in Parquet: use arrow, msgpack"
            raise TraceError(msg) from error


def _written_as(file: pq.ParquetFile) -> dict[str, pa.DataType]:
    """Return the types of columns that were given to the writer and that Parquet stores as others."""
    packed = (file.metadata.metadata or {}).get(_ARROW)
    if packed is None:
        return {}
    given, stored = pa.ipc.read_schema(pa.py_buffer(b64decode(packed))), file.schema_arrow
    kinds = {f.name: f.type for f in given if f.type in _STORED_OTHERWISE}
    return {name: kind for name, kind in kinds.items() if stored.field(name).type == _STORED_OTHERWISE[kind]}


def _columns_of(file: pq.ParquetFile, kind: str) -> set[str]:
    """Return the columns of a physical or a converted type of Parquet."""
    columns = (file.schema.column(i) for i in range(len(file.schema)))
    return {c.path for c in columns if kind in (c.physical_type, c.converted_type) and "." not in c.path}


def _as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_interval(kind):
        return column.cast(kind)
    spans = [each and _INTERVAL.unpack(each) for each in column.to_pylist()]
    return pa.array(
        [span and pa.MonthDayNano([span[0], span[1], span[2] * 1_000_000]) for span in spans], kind
    )


def _with_types(fields: pa.Schema, kinds: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema([f.with_type(kinds.get(f.name, f.type)) for f in fields])


def _checked(batch: pa.RecordBatch, columns: pa.Schema, fine: pa.RecordBatch) -> pa.RecordBatch:
    """Return the times of INT96 in the unit that is wanted; rows whose times it does not hold are refused.

    ``fine``: the same columns in nanoseconds, which wrap around beyond their range.
    """
    cells = dict(zip(batch.schema.names, batch.columns, strict=True))
    reasons = pa.nulls(batch.num_rows, pa.string())
    for name, wrapped in zip(fine.schema.names, fine.columns, strict=True):
        cell, kind = cells[name], columns.field(name).type
        whole = pc.multiply(cell.cast(pa.int64()), 1000)
        rest = pc.subtract(wrapped.cast(pa.int64()), whole)  # digits finer than microseconds
        inside = pc.less_equal(pc.abs(cell.cast(pa.int64())), _MOST_MICROSECONDS)
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            cells[name], bad, why = wrapped, pc.invert(inside), "no timestamp of ns"
        else:
            bad, why = pc.and_(inside, pc.not_equal(rest, 0)), "finer than us: declare timestamp[ns]"
        if pc.any(bad).as_py():
            texts = pc.if_else(inside, wrapped.cast(pa.string()), cell.cast(pa.string()))
            reason = pc.binary_join_element_wise(f"{name}: ", texts, f" is {why}", "")
            reasons = pc.if_else(pc.and_(bad.fill_null(False), reasons.is_null()), reason, reasons)
    if reasons.null_count < len(reasons):
        cells |= {REFUSED: reasons, LINE: reasons.cast(pa.binary())}
    return pa.RecordBatch.from_pydict(cells)
