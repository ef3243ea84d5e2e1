"""Page: the unit of data, an immutable batch of tuples in columns.

A Python call costs tens of nanoseconds and a queue hop a microsecond: per page that is
nothing, per tuple it is everything.  NiagaraST shipped tuples in pages too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import ContractError
from oop_engine.core.graphs.html import table_html
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.late.packing import CODES
from oop_engine.core.schema import Schema
from oop_engine.core.sizes import copied, owned, value_bytes
from oop_engine.core.values.arrow_data import arrivals, no_rows
from oop_engine.core.values.column import column as column_of
from oop_engine.core.values.frames import columns_of, part
from oop_engine.core.values.kinds import plain_type
from oop_engine.system.knobs import knob

__all__ = ["PAGE_ROWS", "Page", "concat", "pages"]

_INT64 = pa.int64()
PAGE_ROWS = knob(__name__, "PAGE_ROWS", 1 << 16)
_SHOWN = 20  # rows in a notebook


class Page:
    """``batch``: the columns, exactly those of ``schema``.

    ``arrival`` (int64, one per row, never decreasing) is the moment each tuple reached the
    system, in the unit of the progressing attribute.  Only pages on their way from a trace
    to a generator carry it: time is a message, not a property of the operators inside.
    Raises ``ContractError`` if the columns are not the schema's or a time is null.
    ``times``: the progressing attribute, int64 (rows,), read-only where the type allows a view, made when somebody asks
    for it, with ``ContractError`` if a value is beyond int64.  ``rows``: how many there are; ``column(name)``: one
    column, without the others where they are made when they are read (``late``).  ``reach``: times of the rows
    with their least and greatest, as far as somebody has looked (``reach_of``).  Slices share memory; nothing is ever
    written into a page.

    >>> import pyarrow as pa
    >>> page = Page.of(Schema({"ts": pa.int64()}, "ts", "s"), {"ts": [3, 1, 2]})
    >>> page.times
    array([3, 1, 2])
    """

    __slots__ = ("_made", "_progressing", "arrival", "batch", "columns", "reach", "rows", "schema", "times")
    times: NDArray[np.int64]
    late: ClassVar[bool] = False
    """True: its columns are made when they are read; ``settled`` makes them all."""
    whole: ClassVar[bool] = False
    """True: no column has a null, that much is known without a look."""

    def __init__(
        self,
        schema: Schema,
        batch: pa.RecordBatch,
        arrival: NDArray[np.int64] | None = None,
        *,
        _progressing: pa.Array | None = None,  # of ``of``, which has made the columns by the schema
    ) -> None:
        progressing = _progressing
        if progressing is None:
            if batch.schema is not schema.fields and not batch.schema.equals(schema.fields):
                batch = _made_plain(schema, batch)
            progressing = batch.column(schema.progressing)
        self._progressing = progressing
        if progressing.null_count:
            msg = f"page: {schema.progressing!r} must not be null; refuse such rows at the source"
            raise ContractError(msg)
        if arrival is not None:
            if arrival.dtype != np.int64:
                arrival = arrivals(arrival, schema.unit)
            if len(arrival) != batch.num_rows:
                msg = f"page: one arrival a row; got {len(arrival)} for {batch.num_rows} rows"
                raise ContractError(msg)
        self.schema = schema
        self.batch = batch
        self.columns = batch
        self.rows: int = batch.num_rows
        self.arrival = arrival
        self.reach: tuple[NDArray[np.int64], int, int] | None = None
        self._made: dict[str, pa.Array] = {}

    @classmethod
    def of(
        cls,
        schema: Schema,
        columns: Mapping[str, Any],
        arrival: Sequence[int] | NDArray[np.int64] | None = None,
    ) -> Page:
        """Make a page from Python lists, arrays of NumPy, pandas, Polars or Arrow, in the schema's types.

        A value goes in as it is, in another width or unit if that changes nothing (``docs/values.md`` has the rule).
        ``arrival``: integers in the schema's unit, or times, which are rounded down to it.  Raises ``ContractError``
        for a column that is missing, or has a value that its type has not, or a null where its field is not nullable.
        """
        arrays, times = [], None
        for name, kind, nullable, place in schema.columns:
            if name not in columns:
                msg = f"page: there must be a column {name!r}; got {', '.join(map(str, columns)) or 'none'}"
                msg += did_you_mean(name, columns)
                raise ContractError(msg)
            arrays.append(column := column_of(columns[name], kind, place))
            if not nullable and column.null_count:
                msg = (
                    f"{place} must not be null, for its field is not nullable: refuse such rows at the source"
                )
                raise ContractError(msg)
            times = column if name == schema.progressing else times
        try:
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema.fields)
        except ValueError as error:
            rows = ", ".join(
                f"{name} {len(column)}" for name, column in zip(schema.names, arrays, strict=True)
            )
            msg = f"page: columns must have the same number of rows; got {rows}"
            raise ContractError(msg) from error
        known = (
            None if arrival is None else arrivals(arrival, schema.unit, schema.type_of(schema.progressing))
        )
        return cls(schema, batch, known, _progressing=times)

    @classmethod
    def from_arrow(cls, schema: Schema, data: Any, *, arrival: str | None = None) -> Page:
        """Make one page of a data frame, table, record batch or relation: whatever gives Arrow data.

        Columns are found by their names and cast; others are left out.  ``arrival`` names the column of
        arrivals.  Raises ``ContractError`` as ``of`` does.  O(bytes).

        >>> import pyarrow as pa
        >>> table = pa.table({"ts": [3, 1], "more": ["a", "b"]})
        >>> Page.from_arrow(Schema({"ts": pa.int64()}, "ts", "s"), table).times
        array([3, 1])
        """
        return concat(schema, list(pages(schema, data, arrival=arrival)))

    @classmethod
    def empty(cls, schema: Schema) -> Page:
        """Return the page of no rows."""
        return cls(schema, no_rows(schema.fields))

    def __len__(self) -> int:
        return self.rows

    if not TYPE_CHECKING:  # else any attribute would do

        def __getattr__(self, name: str) -> Any:
            """Make the times when they are first read; from then on they are an attribute."""
            if name != "times":
                return object.__getattribute__(self, name)  # raises AttributeError, with a name that is near
            try:
                # Asking the batch for a column, a cast, a view in Arrow: each is felt in pages of a few rows.
                column = self._progressing
                whole = column if self.schema.times_are_int64 else column.cast(_INT64)
                self.times = whole.to_numpy(zero_copy_only=True).view(np.int64)
            except pa.ArrowInvalid as error:
                msg = f"page: {self.schema.progressing!r} must be below 2**63: {error}"
                raise ContractError(msg) from error
            return self.times

    def reach_of(self, times: NDArray[np.int64]) -> tuple[int, int]:
        """Return the least and the greatest of some ``times`` of the rows, mostly its own; it remembers the last.

        There must be some.  O(rows), and O(1) for who asks next.
        """
        known = self.reach
        if known is None or known[0] is not times:
            self.reach = known = times, int(np.minimum.reduce(times)), int(np.maximum.reduce(times))
        return known[1:]

    def column(self, name: str) -> pa.Array:
        """Return one column, which Arrow makes once."""
        if name not in self._made:
            self._made[name] = self.columns.column(name)
        return self._made[name]

    def key(self, name: str) -> pa.Array:
        """Return one column for a table of keys: texts may be codes, in a dictionary (``late/coded_page.py``)."""
        return self.column(name)

    def numbers(self, name: str) -> NDArray[Any] | None:
        """Return a column of int32, int64, float64 or instants (their integers), read-only; None: others, or nulls."""
        column = self.columns.column(name)
        if column.null_count or not (column.type.id in CODES or pa.types.is_timestamp(column.type)):
            return None
        numbers: NDArray[Any] = column.to_numpy()
        return numbers.view(np.int64) if numbers.dtype.kind == "M" else numbers

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, by their types (a slice counts its own rows only)."""
        return sum(map(value_bytes, self.batch.columns))

    @property
    def held_bytes(self) -> int:
        """Bytes that the page keeps alive: a slice, all that it was cut from.  O(columns)."""
        return int(self.batch.get_total_buffer_size())

    def copied(self) -> Page:
        """Return the same rows in memory of their own."""
        return Page(self.schema, copied(self.batch), self.arrival)

    def owned(self) -> Page:
        """Return the page for one who keeps it: copied where it is a slice, see ``sizes.owned``."""
        batch = owned(self.batch)
        return self if batch is self.batch else Page(self.schema, batch, self.arrival)

    def slice(self, start: int, stop: int) -> Page:
        """Return rows ``start`` to ``stop`` (exclusive), without copying."""
        arrival = None if self.arrival is None else self.arrival[start:stop]
        page = self._checked(self.batch.slice(start, stop - start), arrival)
        page._progressing = self._progressing.slice(start, stop - start)
        page.times = self.times[start:stop]
        return page

    def filter(self, mask: NDArray[np.bool_]) -> Page:
        """Return the rows where ``mask`` is true, in order."""
        arrival = None if self.arrival is None else self.arrival[mask]
        return Page(self.schema, self.batch.filter(pa.array(mask)), arrival)

    def take(self, rows: NDArray[np.int64]) -> Page:
        """Return the rows of the given numbers, in that order."""
        arrival = None if self.arrival is None else self.arrival[rows]
        return Page(self.schema, self.batch.take(pa.array(rows)), arrival)

    def with_batch(self, schema: Schema, batch: pa.RecordBatch) -> Page:
        """Return other columns for the same rows (arrival stays)."""
        return Page(schema, batch, self.arrival)

    def without_arrival(self) -> Page:
        """Return the page as the inside of the graph sees it."""
        if self.arrival is None:
            return self
        page = self._checked(self.batch, None)
        page._progressing, page.times, page.reach = self._progressing, self.times, self.reach
        return page

    def settled(self) -> Page:
        """Return a page of the same rows that has its columns, whoever made this one."""
        return self

    def _checked(self, batch: pa.RecordBatch, arrival: NDArray[np.int64] | None) -> Page:
        """Return a page of rows of this one: to check them again is felt in pages of a few rows."""
        page = Page.__new__(Page)
        page.schema, page.batch, page.arrival = self.schema, batch, arrival
        page.columns, page.rows, page.reach, page._made = batch, batch.num_rows, None, {}
        return page

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries (for tests and small results); moments as ``in_python.py`` has them."""
        return rows_of(self.batch)

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        """Hand the columns over to whoever takes Arrow data (pandas, Polars, DuckDB), without copying."""
        return self.batch.__arrow_c_array__(requested_schema)

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for a notebook."""
        return table_html(repr(self), self.schema.names, self.slice(0, min(len(self), _SHOWN)).to_pylist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Page) and self.schema == other.schema and self.batch.equals(other.batch)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Page({len(self)} rows of {', '.join(self.schema.names)})"


def concat(schema: Schema, pages: Sequence[Page]) -> Page:
    """Return one page with the rows of all ``pages``; arrival stays if all have it."""
    if not pages:
        return Page.empty(schema)
    if len(pages) == 1:
        return pages[0]
    try:
        batch = pa.concat_batches([p.batch for p in pages])
    except pa.ArrowInvalid as error:
        msg = f"page: {len(pages)} pages do not fit into one: {error}: make smaller ones, or use large_string"
        raise ContractError(msg) from error
    known = [p.arrival for p in pages if p.arrival is not None]
    return Page(schema, batch, np.concatenate(known) if len(known) == len(pages) else None)


def pages(schema: Schema, data: Any, *, arrival: str | None = None, rows: int = PAGE_ROWS) -> Iterator[Page]:
    """Yield pages of at most ``rows`` of whatever gives Arrow data, as ``Page.from_arrow`` makes them.

    A stream (a reader, a relation) is read as it is asked for, so memory is bounded by one batch.
    """
    names = [*schema.names, *([] if arrival is None else [arrival])]
    for columns in columns_of(data, names, (schema.progressing, schema.unit), "page"):
        if arrival is not None and arrival not in columns:
            msg = f"page: there must be a column {arrival!r} of arrivals; got {', '.join(map(str, columns))}"
            msg += did_you_mean(arrival, columns)
            raise ContractError(msg)
        there, length = [name for name in names if name in columns], len(next(iter(columns.values()), ()))
        for start in range(0, length, rows):
            stop = start + rows
            taken = {
                name: columns[name] if length <= rows else part(columns[name], start, stop) for name in there
            }
            yield Page.of(schema, taken, None if arrival is None else taken[arrival])


def _made_plain(schema: Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return columns of other types than the schema's, if these are their plain forms (``plain``)."""
    fields = pa.schema([field.with_type(plain_type(field.type)) for field in batch.schema])
    if not fields.equals(schema.fields):
        msg = f"page: columns must be {schema.fields.to_string()!r}; got {batch.schema.to_string()!r}"
        raise ContractError(msg)
    columns = zip(batch.columns, fields, strict=True)
    arrays = [column_of(column, field.type, f"page: {field.name!r}") for column, field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.fields)
