"""Rows: the values of a row of Python, whatever kind of object it is, in the order of the columns of a schema.

A row is a dictionary or another mapping, a dataclass, a named tuple, an object of attrs, a row of a structured array,
or a plain tuple or list of as many values as there are columns, in their order.

One rule for names, at every door: a column that a row lacks is null in it, and a name that is no column is left out.  A
row that lacks a column *and* has a name that is no column is bad, for a name is likely misspelt; so is a row without
the progressing attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.schema import Schema
from oop_engine.runners.feeds.still import still

__all__ = ["BadRowError", "RowReader", "by_name", "is_row"]

Reads = Callable[[Any], Sequence[Any]]


class BadRowError(Exception):
    """A row that has not the columns of the schema; its text is the reason."""


class RowReader:
    """Reads rows of ``schema``; ``on_others`` is called with the names in a row that are no columns.

    ``in_columns`` reads a mapping that has all columns, and raises ``KeyError`` otherwise.  ``of_class`` reads objects
    of the classes that were found to have all columns, and no other, as attributes.  ``changes``: values of its columns
    may change behind it, so they are copied.

    >>> import pyarrow as pa
    >>> reader = RowReader(Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s"))
    >>> reader.values({"host": "a", "ts": 3, "more": 1}), reader.values({"ts": 4}), reader.values((5, "b"))
    ((3, 'a'), (4, None), (5, 'b'))
    """

    def __init__(self, schema: Schema, on_others: Callable[[Iterable[object]], None] | None = None) -> None:
        self.schema, self._on_others = schema, on_others
        self._names = schema.names
        self._width = len(self._names)
        self.changes = any(pa.types.is_nested(field.type) for field in schema.fields)
        self.in_columns = self._all_of(itemgetter(*self._names))
        self.of_class: dict[type, Reads] = {}
        self._reads: dict[type, Reads] = {tuple: self._in_order, list: self._in_order, dict: self._by_name}

    def values(self, row: Any) -> Sequence[Any]:
        """Return the values of a row in the order of the columns, which later changes of the row do not change.

        Raises ``BadRowError`` with the reason if it has not the columns of the schema, or is no row.
        """
        kind = row.__class__
        if kind is dict and len(row) == self._width:
            try:
                return self.in_columns(row)
            except KeyError:
                return self._by_name(row)
        reads = self._reads.get(kind)
        if reads is None:
            self._reads[kind] = reads = self._reader_of(row)
        return reads(row)

    def _all_of(self, getter: Callable[[Any], Any]) -> Reads:
        """Return a function that reads the values of a row; lists in it are copied, for the row may be used again."""
        values: Reads = getter if self._width > 1 else lambda row: (getter(row),)
        return (lambda row: still(tuple(values(row)))) if self.changes else values

    def _reader_of(self, row: Any) -> Reads:
        """Return the function for all rows of the class of this one."""
        if isinstance(row, Mapping):
            return self._by_name
        if set(_field_names(row) or ()) == set(self._names):
            self.of_class[type(row)] = reads = self._all_of(attrgetter(*self._names))
            return reads
        if is_row(row):
            return lambda row: self._by_name(by_name(row))
        if isinstance(row, Sequence) and not isinstance(row, str | bytes):
            return self._in_order
        forms = "a dictionary, a dataclass, a named tuple, or a tuple of values"
        msg = f"a row must be {forms}; got {row!r:.80} ({type(row).__name__})"
        raise BadRowError(msg)

    def _in_order(self, row: Sequence[Any]) -> Sequence[Any]:
        if len(row) != self._width:
            msg = f"must have {self._width} values ({', '.join(self._names)}); got {len(row)}"
            raise BadRowError(msg)
        values = tuple(row)  # a list may be used again for the next row
        return still(values) if self.changes else values

    def _by_name(self, row: Mapping[Any, Any]) -> Sequence[Any]:
        """Return the values of a row that may lack columns, or have others."""
        if others := [name for name in row if name not in self._names]:
            self._note(others)
        lacks = [name for name in self._names if name not in row]
        if lacks and others:
            raise BadRowError(_misspelt(lacks, others))
        if self.schema.progressing in lacks:
            msg = f"{self.schema.progressing} is null"
            raise BadRowError(msg)
        return self._in_order([*map(row.get, self._names)]) if lacks else self.in_columns(row)

    def _note(self, others: list[object]) -> None:
        if self._on_others is not None:
            self._on_others(others)


def by_name(row: Any) -> Mapping[Any, Any]:
    """Return the values of a row that names them (``is_row``), by name."""
    if isinstance(row, Mapping):
        return row
    if (names := _field_names(row)) is not None:
        return {name: getattr(row, name) for name in names}
    if (names := _names_in_dtype(row)) is not None:
        return {name: row[name] for name in names}
    if hasattr(row, "asDict"):  # a row of Spark
        values: Mapping[Any, Any] = row.asDict()
        return values
    return {name: row[name] for name in row.keys()}  # noqa: SIM118  (a row of sqlite3)


def is_row(given: Any) -> bool:
    """Return whether an object is a row by names: a mapping, a dataclass, a named tuple, a row of a database."""
    if isinstance(given, Mapping) or _field_names(given) is not None or hasattr(given, "asDict"):
        return True
    if _names_in_dtype(given) is not None:
        return True
    return callable(getattr(given, "keys", None)) and hasattr(given, "__getitem__")


def _misspelt(lacks: list[str], others: list[object]) -> str:
    """Return the reason to refuse a row without some columns and with other names."""
    for other in others:
        if hint := did_you_mean(other, lacks):
            return f"there is no column {other!r}{hint}"
    return f"there is no column {others[0]!r}, and the row has no {lacks[0]!r}: give None where there is no value"


def _names_in_dtype(row: Any) -> Sequence[str] | None:
    """Return the names in one row of a structured array of NumPy; None: it is none."""
    return None if getattr(row, "ndim", 1) else getattr(getattr(row, "dtype", None), "names", None)


def _field_names(row: Any) -> Sequence[str] | None:
    """Return the names of the fields of a dataclass, a named tuple, an object of attrs; None: it is none of these."""
    kind = type(row)
    if isinstance(row, tuple):
        return getattr(kind, "_fields", None)
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    if (attributes := getattr(kind, "__attrs_attrs__", None)) is not None:
        return [attribute.name for attribute in attributes]
    return None
