"""Validation: records of a file, of any format, become pages and punctuation of the schema.

Rows that cannot be read are diverted and counted; an unsound column or punctuation is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import TraceError
from oop_engine.core.groups.in_python import values_of
from oop_engine.core.late.coded_page import CodedPage
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER, Punctuation
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS
from oop_engine.core.values.arrays import converted, without_views
from oop_engine.core.values.arrow_data import check_arrival_zone
from oop_engine.core.values.kinds import converts, reads_nested_texts, reads_texts, way_out, zone_hint
from oop_engine.traces.format import LINE, LINE_NUMBER, REFUSED, Reader, readable
from oop_engine.traces.punctuation_records import fit_punctuation

__all__ = [
    "MOST_TIME",
    "Refuse",
    "Validation",
    "check_fields",
    "check_names",
    "check_texts",
    "check_types",
    "some",
    "wanted",
]

Refuse = Callable[[int, pa.RecordBatch, str], None]
"""Called with the number of a row, rows refused for one reason (the first of which it is), and the reason."""

Hint = Callable[[str, pa.DataType], str]
"""Returns the way out for a text that cannot be read as a type, in words to be added; "": there is none."""

MOST_TIME = 2**62
"""Times and arrivals are from ``-MOST_TIME`` to below ``MOST_TIME``: so no difference of two leaves 64 bits."""

_AS_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
_MOST_REASONS = 50
"""Reasons with a value are this many at most: a column of garbage must not fill the memory."""
_TEXT, _CODES = pa.string(), pa.dictionary(pa.int32(), pa.string())


def wanted(fields: pa.Schema, schema: Schema, arrival: str | None) -> pa.Schema:
    """Return the columns to read from a file of ``fields``: the schema's, and that of arrival."""
    if arrival is None or arrival in schema.names:
        return schema.fields
    kind = fields.field(arrival).type if arrival in fields.names else pa.null()
    known = pa.types.is_timestamp(kind) or pa.types.is_integer(kind)
    return schema.fields.append(pa.field(arrival, kind if known else schema.type_of(schema.progressing)))


def check_names(path: Path, fields: pa.Schema) -> None:
    """Raise ``TraceError`` unless all columns of the file have names of their own, and types with names."""
    with readable(path):
        names = list(fields.names)
        for kind in fields.types:
            _check_names_in(kind)
    known = set(names)
    if len(known) < len(names):
        twice = next(name for name in known if names.count(name) > 1)
        msg = f"{path}: column names must differ; got {twice!r} twice: rename one"
        raise TraceError(msg)
    if taken := known & {REFUSED, LINE, LINE_NUMBER}:
        msg = f"{path}: a column cannot be called {taken.pop()!r}: rename it"
        raise TraceError(msg)


def _check_names_in(kind: pa.DataType) -> None:
    """Read all names in a type: of time zones and inner fields; raises ``ValueError`` where one is no text."""
    if pa.types.is_timestamp(kind):
        str(kind.tz)
    elif pa.types.is_dictionary(kind):
        _check_names_in(kind.value_type)
    elif pa.types.is_nested(kind):
        for i in range(kind.num_fields):
            str(kind.field(i).name)
            _check_names_in(kind.field(i).type)


def check_fields(path: Path, reader: Reader, schema: Schema, arrival: str | None) -> None:
    """Raise ``TraceError`` if the file cannot give these columns, by their names and types."""
    given = reader.fields
    there = set(given.names)
    times = [schema.progressing, *([] if arrival is None else [arrival])]
    needed = [*times, *([] if reader.sparse else schema.names)]
    for name in [] if reader.sparse and not len(given) else needed:
        if name not in there:
            raise _lacks(path, name, given)
    _check_unit(path, reader, schema, arrival)
    columns = wanted(given, schema, arrival)
    if reader.guessed:
        check_texts(path, columns, nested=getattr(reader, "nested", False))
    else:
        check_types(path, given, columns)
    if arrival is not None:
        _check_arrival(path, schema, columns.field(arrival))


def check_types(path: Path, given: pa.Schema, columns: pa.Schema) -> None:
    """Raise ``TraceError`` unless ``given`` has all ``columns``, of types whose values can become theirs."""
    there = set(given.names)
    for field in columns:
        if field.name not in there:
            raise _lacks(path, field.name, given)
        if not converts(kind := given.field(field.name).type, field.type):
            msg = (
                f"{path}: column {field.name!r} must be {field.type}; got {kind}: {way_out(kind, field.type)}"
            )
            raise TraceError(msg)


def check_texts(path: Path, columns: pa.Schema, *, nested: bool = False) -> None:
    """Raise ``TraceError`` unless values of all ``columns`` can be read from texts; ``nested``: also within others."""
    reads = reads_nested_texts if nested else reads_texts
    for field in columns:
        if not reads(field.type):
            msg = f"{path}: column {field.name!r}: {field.type} has no text form: use arrow, or leave the column out"
            raise TraceError(msg)


def _lacks(path: Path, name: str, given: pa.Schema) -> TraceError:
    hint = did_you_mean(name, given.names) or ": name one of them"
    return TraceError(f"{path}: no column {name!r}; there are {some(given.names)}{hint}")


def _check_unit(path: Path, reader: Reader, schema: Schema, arrival: str | None) -> None:
    """Raise ``TraceError`` where the metadata has another unit for integer times than the schema."""
    marks = reader.marks
    mine = {(marks.time, schema.progressing), (marks.arrival, arrival)}
    for name in [there for there, here in mine if there and there == here]:
        if marks.unit not in ("", schema.unit) and pa.types.is_integer(reader.fields.field(name).type):
            msg = (
                f"{path}: column {name!r} must be in {schema.unit!r}; got {marks.unit!r}, by the metadata of the file: "
                f"declare the schema with unit={marks.unit!r}, or write the file again"
            )
            raise TraceError(msg)


def _check_arrival(path: Path, schema: Schema, arrival: pa.Field) -> None:
    time = schema.type_of(schema.progressing)
    if pa.types.is_timestamp(arrival.type):
        check_arrival_zone(arrival.type, time, f"{path}: arrival column {arrival.name!r}", TraceError)
        if schema.unit in TIME_UNITS:
            return
    elif pa.types.is_integer(arrival.type) and pa.types.is_integer(time):
        return
    msg = (
        f"{path}: arrival column {arrival.name!r} must be a time as {schema.progressing!r} is ({time}, unit "
        f"{schema.unit}); got {arrival.type}: name another column, or none for the order of rows"
    )
    raise TraceError(msg)


class Validation:
    """Makes pages of the rows of one file, in order; ``refused`` counts rejected rows by reason.

    A row is refused if the reader could not parse it, if its progressing value or arrival is null or beyond
    ``MOST_TIME``, or if a value cannot be cast to its column's type; text must be UTF-8. Arrival is the column
    ``arrival``, in the unit of the progressing attribute (finer ones are rounded down), or, with None, the running
    maximum of the progressing attribute: the earliest that the order of rows allows, if no tuple arrives before its
    time. With None and ``made_up=False`` pages carry no arrivals. ``refusing``: the numbers of the rows with which
    ``on_refused`` is called now; ``hint``: returns the option that reads a text which is refused, if there is one.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        columns: pa.Schema,
        arrival: str | None,
        on_refused: Refuse | None,
        *,
        made_up: bool = True,
    ) -> None:
        self.refused: dict[str, int] = {}
        self._path = path
        self._schema = schema
        self._columns = columns
        self._arrival, self._arrives = arrival, arrival is not None or made_up
        self._on_refused = on_refused
        times = [schema.progressing, *([] if arrival is None else [arrival])]
        self._fields = [columns.field(n) for n in dict.fromkeys([*times, *columns.names])]
        self._coded = {name for name in schema.names if schema.type_of(name) == _TEXT} - {*times}
        self._required = {*times, *(f.name for f in columns if not f.nullable)}
        self._most = {name: _most(columns.field(name).type, schema.unit) for name in times}
        self._row = 1
        self._now = NEVER
        self.refusing = np.zeros(0, np.int64)
        self.hint: Hint | None = None
        self._hints = dict[tuple[str, pa.DataType], str]()
        self._texts = dict[str, pa.Array | None]()  # dictionaries that are sound, by column

    @property
    def next_row(self) -> int:
        """The number of the next row, from 1."""
        return self._row

    def punctuation(self, punctuation: Punctuation) -> Punctuation:
        """Return a punctuation, its groups in the types of the schema; raises ``TraceError`` if they do not fit."""
        with readable(self._path):
            return fit_punctuation(punctuation, self._columns)

    def page(self, rows: pa.RecordBatch) -> Page | None:
        """Return a page of the rows that can be read, or None if there are none.

        Raises ``TraceError`` if a column is not sound, or an arrival is before the last one.
        """
        with readable(self._path):
            columns, good = self._read(rows)
        names = self._schema.names
        coded = any(pa.types.is_dictionary(columns[name].type) for name in self._coded)
        batch = pa.RecordBatch.from_arrays(
            [columns[name] for name in names],
            **({"names": names} if coded else {"schema": self._schema.fields}),
        )
        first, self._row = self._row, self._row + rows.num_rows
        numbers = np.arange(first, self._row) if good.all() else first + np.flatnonzero(good)
        if len(numbers) < rows.num_rows:
            columns = {name: column.filter(pa.array(good)) for name, column in columns.items()}
            batch = batch.filter(pa.array(good))
        if not len(numbers):
            return None
        page = CodedPage(self._schema, batch) if coded else Page(self._schema, batch)
        if self._arrives:
            page.arrival = self._arrivals(page, columns, numbers)
        return page

    def _read(self, rows: pa.RecordBatch) -> tuple[dict[str, pa.Array], NDArray[np.bool_]]:
        columns: dict[str, pa.Array] = {}
        good = np.ones(rows.num_rows, np.bool_)
        if rows.schema.get_field_index(REFUSED) >= 0:
            rows = self._refuse_lines(rows, good)
        cells = {
            name: self._in_codes(name, column) if name in self._coded else _sound(column)
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        }
        rows = pa.RecordBatch.from_pydict(cells)
        for field in self._fields:
            column, bad = cells[field.name], None
            if not pa.types.is_dictionary(column.type):
                column, bad = converted(column, field.type)
            columns[field.name] = column
            if bad is not None:
                self._refuse_values(rows, field, good, _mask(bad))
            if column.null_count and field.name in self._required:
                null = _mask(column.is_null())
                self._refuse(rows, f"{field.name} is null", good & null)
                good &= ~null
            if field.name in self._most and (far := _far(column, self._most[field.name])) is not None:
                self._refuse(rows, f"{field.name} is beyond ±2^62 {self._schema.unit}", good & far)
                good &= ~far
        return columns, good

    def _in_codes(self, name: str, column: pa.Array) -> pa.Array:
        """Return a column as ``_coded`` does; texts that are those of the page before are not checked again."""
        if column.type != _CODES:
            return _sound(column)
        texts, known = column.dictionary, self._texts.get(name)
        if known is not None and _equal(known, texts) and _fit(column.indices, len(texts)):
            return column
        coded = _coded(column)
        self._texts[name] = texts if coded is column and not texts.null_count else None
        return coded

    def _refuse_lines(self, rows: pa.RecordBatch, good: NDArray[np.bool_]) -> pa.RecordBatch:
        """Refuse rows that the reader could not parse; return the columns without the two that mark them."""
        marks = {"line": LINE, "number": LINE_NUMBER}
        there = {name: mark for name, mark in marks.items() if mark in rows.schema.names}
        reasons, lines = rows.column(REFUSED), rows.select([*there.values()]).rename_columns([*there])
        for reason in reasons.unique().drop_null():
            which = _mask(pc.equal(reasons, reason).fill_null(False))
            self._refuse(lines, reason.as_py(), which)
            good &= ~which
        return rows.drop_columns([REFUSED, *there.values()])

    def _refuse_values(
        self, rows: pa.RecordBatch, field: pa.Field, good: NDArray[np.bool_], bad: NDArray[np.bool_]
    ) -> None:
        """Refuse the rows that are ``good`` so far and ``bad`` now; the rest stay ``good``."""
        fresh = good & bad
        good &= ~bad
        column = rows.column(field.name)
        if pa.types.is_nested(column.type):  # which Arrow cannot compare
            self._refuse(rows, f"{field.name}: cannot read its values as {field.type}", fresh)
            return
        for value in column.filter(pa.array(fresh)).unique()[:_MOST_REASONS]:
            reason = (
                f"{field.name}: cannot read {_shown(value)} as {field.type}{self._hint(value, field.type)}"
            )
            if reason in self.refused or len(self.refused) < _MOST_REASONS:
                same = _mask(pc.equal(column, value).fill_null(False))
                self._refuse(rows, reason, fresh & same)
                fresh &= ~same
        self._refuse(rows, f"{field.name}: cannot read other values as {field.type}", fresh)

    def _hint(self, value: pa.Scalar, kind: pa.DataType) -> str:
        raw = value.as_py()
        text = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
        if not isinstance(text, str):
            return ""
        if zone := zone_hint(text, kind):
            return zone
        if self.hint is None:
            return ""
        key = (text, kind)
        if key not in self._hints and len(self._hints) < _MOST_REASONS:
            self._hints[key] = self.hint(text, kind)
        return self._hints.get(key, "")

    def _refuse(self, rows: pa.RecordBatch, reason: str, which: NDArray[np.bool_]) -> None:
        numbers = np.flatnonzero(which)
        if not len(numbers):
            return
        self.refused[reason] = self.refused.get(reason, 0) + len(numbers)
        if self._on_refused is not None:
            self.refusing = self._row + numbers
            self._on_refused(int(self.refusing[0]), _plain(rows.take(pa.array(numbers))), reason)

    def _arrivals(
        self, page: Page, columns: dict[str, pa.Array], numbers: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        if self._arrival is None:
            arrival = np.maximum(np.maximum.accumulate(page.times), self._now)
        else:
            arrival = _in_unit(columns[self._arrival], self._schema.unit)
            self._check_order(arrival, numbers)
        self._now = int(arrival[-1])
        return arrival

    def _check_order(self, arrival: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        before = np.concatenate([[self._now], arrival[:-1]])
        back = np.flatnonzero(arrival < before)
        if len(back):
            at, unit = back[0], self._schema.unit
            msg = (
                f"{self._path}: row {numbers[at]}: arrival {self._arrival!r} must not go back; "
                f"got {arrival[at]} {unit} after {before[at]} {unit}: "
                f"sort the trace by {self._arrival!r}, or take the order of rows"
            )
            raise TraceError(msg)


def some(names: list[str], most: int = 20) -> str:
    """Return names for a message: a wide file must not fill the screen."""
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _coded(column: pa.Array) -> pa.Array:
    """Return a column as ``_sound`` does, but one of codes without nulls among their texts as it is.

    Where a text of its dictionary is no UTF-8 it is texts, for only these tell which rows have it.
    """
    if column.dictionary.null_count:
        return _sound(column)
    try:
        column.validate(full=True)  # of its texts and its codes
    except pa.ArrowInvalid:
        if not _fit(column.indices, len(column.dictionary)):
            raise
        return _sound(column.dictionary_decode())
    return column


def _equal(sound: pa.Array, texts: pa.Array) -> bool:
    """Return whether texts equal those of another column; without nulls, from their first to their last offset.

    Of a hostile file the offsets may lead anywhere, so both ends are checked first, in O(1).
    """
    try:
        texts.validate()
    except pa.ArrowInvalid:
        return False
    return bool(sound.equals(texts))


def _fit(codes: pa.Array, texts: int) -> bool:
    """Return whether all codes that are not null are below ``texts``."""
    ends = pc.min_max(codes).as_py()
    return ends["min"] is None or bool(0 <= ends["min"] <= ends["max"] < texts)


def _plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without dictionaries."""
    columns = (c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in rows.columns)
    return pa.RecordBatch.from_arrays([*columns], names=rows.schema.names)


def _sound(column: pa.Array) -> pa.Array:
    """Return a column that is valid for its type; text that is not all UTF-8 as bytes.

    Raises ``ArrowInvalid`` if its offsets or lengths are wrong.
    """
    if pa.types.is_dictionary(column.type):
        column.validate(full=True)
        column = without_views(column).dictionary_decode()
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        as_bytes = _AS_BYTES.get(column.type)
        if as_bytes is None:
            raise
        column = column.cast(as_bytes)
        column.validate(full=True)
    return without_views(column)


def _most(kind: pa.DataType, unit: str) -> int:
    """Return the bound of a time of this type that is to be turned into ``unit``."""
    if not pa.types.is_timestamp(kind):
        return MOST_TIME
    there, here = TIME_UNITS[kind.unit], TIME_UNITS[unit]
    return MOST_TIME // (here // there) if here >= there else min(MOST_TIME * (there // here), 2**63 - 1)


def _far(times: pa.Array, most: int) -> NDArray[np.bool_] | None:
    """Return which times are not from ``-most`` to below ``most``; None: all are."""
    values = times.view(pa.int64()) if pa.types.is_timestamp(times.type) else times
    ends = pc.min_max(values).as_py()
    if ends["min"] is None or (ends["min"] >= -most and ends["max"] < most):
        return None
    far = pc.greater_equal(values, pa.scalar(most, values.type))
    if ends["min"] < -most:
        far = pc.or_(far, pc.less(values, pa.scalar(-most, values.type)))
    return _mask(far.fill_null(False))


def _in_unit(column: pa.Array, unit: str) -> NDArray[np.int64]:
    """Return times in ``unit``, int64 (rows,); timestamps are rounded down."""
    values: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    if not pa.types.is_timestamp(column.type) or column.type.unit == unit:
        return values
    there, here = TIME_UNITS[column.type.unit], TIME_UNITS[unit]
    if here <= there:
        return values // (there // here)
    values = pc.multiply_checked(pa.array(values), here // there).to_numpy()
    return values


def _shown(value: pa.Scalar) -> str:
    shown = values_of(pa.array([value], value.type))[0]
    return repr(shown.decode(errors="replace") if isinstance(shown, bytes) else shown)[:60]


def _mask(array: pa.Array) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = array.to_numpy(zero_copy_only=False)
    return mask
