"""Tables: rows that are given as columns, in a mapping, a structured array of NumPy, or Arrow data of any library."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import ContractError
from oop_engine.core.groups.in_python import values_of
from oop_engine.core.page import PAGE_ROWS
from oop_engine.core.schema import Schema
from oop_engine.core.values.array_likes import objects
from oop_engine.core.values.frames import columns_of, part

__all__ = ["columns_in", "fields_of_array", "is_column", "part", "value_at"]

Columns = Mapping[Any, Any]


def columns_in(given: Any, schema: Schema, place: str) -> Iterator[dict[str, Any]]:
    """Yield the columns of ``schema`` in some data, cut to the length of a page, as they were given.

    A table of no rows may lack columns.  Raises ``ContractError`` in the name of ``place`` if a column is missing, is
    no column or of another length than the others, or if Arrow cannot read the data.
    """
    for columns in _tables(given, schema, place):
        if not (rows := _length(columns, schema, place)):
            continue
        known = {name: _sliceable(columns[name]) for name in schema.names}
        for start in range(0, rows, PAGE_ROWS):
            yield {name: part(column, start, start + PAGE_ROWS) for name, column in known.items()}


def is_column(values: Any) -> bool:
    """Return whether some values are a column: a list, a tuple, an array, a series."""
    if isinstance(values, list | tuple):
        return True
    sequence = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    return sequence and not isinstance(values, str | bytes | Mapping) and getattr(values, "ndim", 1) != 0


def value_at(column: Any, at: int) -> Any:
    """Return a value of a column, by its place."""
    cell = part(column, at, at + 1)
    return values_of(cell)[0] if isinstance(cell, pa.Array | pa.ChunkedArray) else objects(cell)[0]


def fields_of_array(given: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a structured array of NumPy; None: it is none, or one row of such."""
    return getattr(getattr(given, "dtype", None), "names", None) if getattr(given, "ndim", 0) else None


def _tables(given: Any, schema: Schema, place: str) -> Iterator[Columns]:
    if isinstance(given, Mapping):
        yield given
    elif (fields := fields_of_array(given)) is not None:
        yield {name: given[name] for name in fields}
    else:
        yield from columns_of(given, schema.names, (schema.progressing, schema.unit), place)


def _sliceable(column: Any) -> Any:
    return list(column) if isinstance(column, deque) else column


def _length(columns: Columns, schema: Schema, place: str) -> int:
    """Return how many rows there are; 0 if no column has any."""
    if all(is_column(column) and not len(column) for column in columns.values()):
        return 0
    for name in schema.names:
        if name not in columns:
            got = f"{', '.join(map(str, columns))}{did_you_mean(name, columns)}"
            msg = f"{place}: there must be a column {name!r}; got {got}"
            raise ContractError(msg)
        if not is_column(columns[name]):
            got = f"{columns[name]!r:.80} ({type(columns[name]).__name__})"
            msg = f"{place}: column {name!r} must be a list or an array, one value a row; got {got}"
            raise ContractError(msg)
    lengths = {name: len(columns[name]) for name in schema.names}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        msg = f"{place}: columns must have the same number of rows; got {got}"
        raise ContractError(msg)
    return lengths[schema.progressing]
