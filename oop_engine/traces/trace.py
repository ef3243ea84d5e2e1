"""Traces: files of tuples in the order of their arrival, read and written as streams."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError, TraceError, UsageError
from oop_engine.core.groups.in_python import values_of
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrays import converted
from oop_engine.system.knobs import knob
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.format import Reader, Record, plain
from oop_engine.traces.format_registry import FORMATS, format_of_file, is_format
from oop_engine.traces.formats.csv import CsvReader
from oop_engine.traces.formats.csv_cells import canonical, check_zone
from oop_engine.traces.formats.csv_sniffed import csv_hint
from oop_engine.traces.formats.json_lines import JsonReader
from oop_engine.traces.formats.parquet import ParquetReader
from oop_engine.traces.formats.partitions import partition_column, partitions, with_partitions
from oop_engine.traces.unknown_columns import UnknownColumns
from oop_engine.traces.validation import (
    Refuse,
    Validation,
    check_fields,
    check_names,
    check_texts,
    some,
    wanted,
)

__all__ = ["Trace", "open_trace"]

_CELLS = knob(__name__, "_CELLS", 1 << 24)


class Trace:
    """The messages of a file: iterate it, again if need be; each time it is read from the start.

    Pages have at most ``page_rows`` rows, and 16 million cells, and carry ``arrival``; punctuation comes where the file
    has it. With ``made_up`` False they carry none where the file has no column of arrivals. Memory is bounded by a
    page, or some blocks of text, and does not grow with the file. Up to where the iteration is, ``refused`` counts by
    reason the rows that were diverted, ``nulls`` by column those that have no value in it, and, with
    ``counts_unknown``, ``unknown`` by name those with a column that the schema does not have: JSON lines with many such
    columns take up to twice as long to read then.
    ``notes``: lines for the user: the form of CSV that was sniffed, and columns that are text because of few cells.
    """

    def __init__(
        self,
        path: Path,
        reader: Reader,
        schema: Schema,
        arrival: str | None,
        page_rows: int,
        on_refused: Refuse | None,
        declared: Collection[str] | None = None,
        constants: dict[str, pa.Array] | None = None,
    ) -> None:
        self.path = path
        self.schema = schema
        self.arrival = arrival
        self.refused: dict[str, int] = {}
        self.nulls: dict[str, int] = {}
        self.unknown: dict[str, int] = {}
        self.counts_unknown, self.made_up = False, True
        self.notes: list[str] = list(getattr(reader, "notes", ()))
        spoiled: dict[str, str] = getattr(reader, "spoiled", {})
        self.notes += [line for name, line in spoiled.items() if name not in (declared or ())]
        self._reader = reader
        self._declared = declared
        self._constants = constants or {}
        self._page_rows = page_rows
        self._on_refused = on_refused
        self._left_out: Collection[str] = ()

    def spare(self) -> set[str]:
        """Return the columns that need not be read if nothing uses them: to leave them out changes no count.

        They are columns of Parquet of the type that the schema has, and no value of them is missing.  Text that is not
        UTF-8 is not found in them then.  Reads the footer.  Of JSON lines they are lists and objects whose types were
        guessed: a row whose value has another type is no bad row where nothing reads it.
        """
        if isinstance(self._reader, JsonReader) and self._declared is not None:
            guesses = [field for field in self.schema.fields if field.name not in self._declared]
            return {field.name for field in guesses if pa.types.is_nested(field.type)}
        if not isinstance(self._reader, ParquetReader):
            return set()
        return (
            self._reader.complete(self.schema.fields)
            - {self.schema.progressing, self.arrival}
            - {*self._constants}
        )

    def narrow(self, schema: Schema) -> None:
        """Read the columns of ``schema`` alone from now on, which are some of those that the trace has."""
        self._left_out = set(self.schema.names) - set(schema.names)
        self.schema = schema

    @property
    def share(self) -> float | None:
        """The part of the file that the iteration has read, 0 to 1; None: not known (compressed, or another format)."""
        share: float | None = getattr(self._reader, "share", None)
        return share

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
        validation = Validation(
            self.path, self.schema, columns, self.arrival, on_refused, made_up=self.made_up
        )
        validation.hint = getattr(self._reader, "hint", None)
        self.refused, self.nulls = validation.refused, {}
        unknown = UnknownColumns(columns.names)
        unknown.allow(self._left_out)
        self.unknown = unknown.counts
        left_out: list[str] = []
        if self.counts_unknown and isinstance(self._reader, JsonReader):
            self._reader.other = unknown.add
        elif self.counts_unknown:
            left_out = [name for name in self._reader.fields.names if name not in unknown.known]
        page_rows = max(min(self._page_rows, _CELLS // len(columns)), 1)
        for record in self._records(plain(columns), page_rows):
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
        for name in page.schema.names:
            if missing := page.key(name).null_count:
                self.nulls[name] = self.nulls.get(name, 0) + missing

    def _records(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        values = {name: value for name, value in self._constants.items() if name in columns.names}
        if not values:
            return self._read_file(columns, page_rows)
        in_file = [field for field in columns if field.name not in values] or [
            field for field in self._reader.fields if field.name not in self._constants
        ][:1]
        records = self._read_file(pa.schema(in_file), page_rows)
        return (
            with_partitions(each, values) if isinstance(each, pa.RecordBatch) else each for each in records
        )

    def _read_file(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        if isinstance(self._reader, CsvReader) and self._declared is not None:
            return self._reader.read_guessed(columns, self._declared)
        return self._reader.read(columns, page_rows)

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
    csv: CsvFormat | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    on_refused: Refuse | None = None,
) -> Trace:
    """Return the trace in a file; only its head is read now.

    ``schema``: the columns wanted.  Without it they are those of the file (text formats: of
    the first block), ``time`` names the one that makes progress, and ``unit`` its unit if it is an
    integer; files that ``write_trace`` wrote in a binary format carry both.
    ``arrival``: the column of arrival times, never decreasing, a time like the
    progressing attribute; None: rows arrive in their order (see ``Validation``).  It becomes a
    column of the stream only if the schema has it.
    ``format``: one of ``FORMATS``; None: by the suffix of the path; behind it may be ``.gz`` or ``.zst``.
    ``csv``: how a CSV file is written (one of any suffix that no format has); the rest is sniffed (``Trace.notes``).
    ``types``: types of columns of a text format whose other types are guessed; not beside a schema.
    Folders above the file that are called ``name=value`` are columns, which it need not have: text without a schema.

    Rows that cannot be read are diverted: counted in ``Trace.refused`` and handed to
    ``on_refused``.  Raises ``TraceError`` if the file is malformed (missing,
    damaged, cut off, without a column, of types that do not fit), here or while it is
    read, and ``UsageError`` if the format is not known.
    """
    path = Path(path)
    name = _format_of(path, format, csv)
    made_from = FORMATS[name].reader
    if types and schema is not None:
        msg = "open_trace: types are those of columns whose types are guessed; a schema has them all: leave out one"
        raise UsageError(msg)
    if page_rows < 1:
        msg = f"open_trace: page_rows must be at least 1; got {page_rows}"
        raise UsageError(msg)
    if not path.is_file():
        msg = f"{path}: {'is no file' if path.exists() else 'does not exist'}: give the path of a trace"
        raise TraceError(msg)
    known = time if schema is None else schema.progressing
    times = tuple(name for name in (known, arrival) if name)
    of_folders = partitions(path)
    columns = (
        [] if schema is None else [*schema.names, *(n for n in [arrival] if n and n not in schema.names)]
    )
    columns = [name for name in columns if name not in of_folders]
    reader: Reader
    if name == "csv":
        reader = CsvReader(path, times, csv=csv, wanted=columns)
    elif made_from is JsonReader:
        typed = schema is not None and (arrival is None or arrival in schema.names) and not of_folders
        reader = JsonReader(path, times, typed=typed)
    else:
        reader = made_from(path, times)
    constants = _of_folders(path, reader, of_folders, types or {}, schema)
    if types:
        reader.fields = _typed(path, reader, types)
    check_names(path, reader.fields)
    arrival = arrival or reader.marks.arrival or None
    declared = None if schema is not None else {*times, *(types or ())}
    if schema is None:
        schema = _schema_of(path, reader, time, unit, arrival)
    check_fields(path, reader, schema, arrival)
    if isinstance(reader, CsvReader):
        check_zone(str(path), reader.csv, schema.fields)
    return Trace(path, reader, schema, arrival, page_rows, on_refused, declared, constants)


def fields_of(path: Path, csv: CsvFormat | None = None) -> pa.Schema:
    """Return the columns of a file, of a text format guessed.  Raises as ``open_trace`` does."""
    name = _format_of(path, None, csv)
    reader = CsvReader(path, csv=csv) if name == "csv" else FORMATS[name].reader(path, ())
    fields: pa.Schema = reader.fields
    return fields


def _format_of(path: Path, asked: str | None, csv: CsvFormat | None) -> str:
    """Return the name of a format: the one that is asked for, or by the suffix; ``csv`` is of CSV alone."""
    name = format_of_file(path, asked or ("csv" if csv is not None and not is_format(path) else None))
    if csv is not None and name != "csv":
        msg = (
            f"{path}: csv tells how a CSV file is written; this is {name}: leave it out, or give format='csv'"
        )
        raise UsageError(msg)
    return name


def _of_folders(
    path: Path,
    reader: Reader,
    values: Mapping[str, str | None],
    types: Mapping[str, pa.DataType],
    schema: Schema | None,
) -> dict[str, pa.Array]:
    """Add the columns of folders that the file lacks to its fields; return one value of each."""
    constants = {}
    for name, text in values.items():
        if name not in reader.fields.names:
            declared = schema is not None and name in schema.names
            kind = schema.type_of(name) if schema is not None and declared else types.get(name, pa.string())
            constants[name] = partition_column(path, name, text, kind)
            reader.fields = reader.fields.append(pa.field(name, kind))
    return constants


def _typed(path: Path, reader: Reader, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the columns of a file, some with the types that were asked for."""
    fields = reader.fields
    for name, kind in types.items():
        if not isinstance(kind, pa.DataType):
            msg = f"open_trace: types[{name!r}] must be a type of Arrow, such as pa.int64(); got {kind!r}"
            raise UsageError(msg)
        if name not in fields.names:
            hint = did_you_mean(name, fields.names) or ": name one of them"
            msg = f"{path}: no column {name!r} for types; there are {some(fields.names)}{hint}"
            raise TraceError(msg)
        if not reader.guessed and fields.field(name).type != kind:
            msg = f"{path}: column {name!r} is {fields.field(name).type}, and types of this format are no guesses; "
            msg += f"got {kind}: leave it out of types, or give a schema"
            raise TraceError(msg)
        fields = fields.set(fields.names.index(name), pa.field(name, kind))
    if reader.guessed:
        check_texts(path, fields, nested=getattr(reader, "nested", False))
    return fields


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
        hint = did_you_mean(time, reader.fields.names) or ": name one of them"
        msg = f"{path}: no column {time!r}; there are {names}{hint}"
        raise TraceError(msg)
    fields = pa.schema([f for f in plain(reader.fields) if f.name != arrival or f.name == time])
    if pa.types.is_date(fields.field(time).type):
        fields = fields.set(fields.get_field_index(time), pa.field(time, pa.timestamp("us")))
    marked = reader.marks.unit if pa.types.is_integer(fields.field(time).type) else ""
    try:
        return Schema(fields, time, unit or marked)
    except GraphError as error:
        msg = f"{path}: {_no_time(fields.field(time), reader) or error}"
        raise TraceError(msg) from error


def _no_time(column: pa.Field, reader: Reader) -> str:
    """Return why a column of another type than those of times is none, and what to do."""
    if pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type):
        return ""
    kind = "text" if pa.types.is_string(column.type) else str(column.type)
    none = f"column {column.name!r} is {kind}, and no event time"
    if pa.types.is_floating(column.type):
        return f"{none}: write whole numbers in a smaller unit, such as us, or timestamps, or name another column"
    if not reader.guessed:
        return f"{none}: cast it, or name another column"
    records = reader.read(pa.schema([column]), 1)
    texts = (one.column(0).drop_null() for one in records if isinstance(one, pa.RecordBatch))
    first = next((some for some in texts if len(some)), None)
    if first is None:
        return f"{none}, for there are no values to tell: give a schema of the columns"
    csv = reader.csv if isinstance(reader, CsvReader) else None
    moments = pa.timestamp("us")
    odd = converted(first if csv is None else canonical(first, moments, csv), moments)[1]
    [value] = values_of(first[:1] if odd is None or not odd.true_count else first.filter(odd)[:1])
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    times = ", ".join(f.name for f in reader.fields if pa.types.is_timestamp(f.type))
    way_out = f": write 2024-05-01T12:00:00Z, or name another column{times and f', such as {times}'}"
    if csv is not None:
        way_out = csv_hint(text, moments, csv) or way_out
    return (
        f"{none}: most of its first values are no whole numbers or timestamps, such as {text[:40]!r}{way_out}"
    )
