"""Guessed fields: the columns of data in Python, whichever row they come in first, with the types of their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from oop_engine.core.errors import UsageError
from oop_engine.core.values.frames import typed_batches, typed_column
from oop_engine.runners.feeds.kinds import is_whole
from oop_engine.runners.feeds.rows import by_name, is_row
from oop_engine.runners.feeds.tables import fields_of_array

__all__ = ["guessed_fields"]


def guessed_fields(data: Any) -> pa.Schema:
    """Return the columns of a frame, Arrow data, columns by name, a structured array, or a list of rows.

    Raises ``UsageError`` for other data, and for a column whose values have no type in common.  O(values).
    """
    if isinstance(data, list | tuple):
        return _typed(_columns_of(data))
    if isinstance(data, Mapping):
        return _typed(data.items())
    if (names := fields_of_array(data)) is not None:
        return _typed((name, data[name]) for name in names)
    if is_whole(data):
        try:
            batches = typed_batches(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise UsageError(_untyped(error)) from error
        return batches[0].schema if batches else pa.table(data).schema
    got = f"got {type(data).__name__}: declare its columns, stream(name, types)"
    msg = f"scan takes a path, a data frame, columns or a list of rows; {got}"
    raise UsageError(msg)


def _columns_of(rows: list[Any] | tuple[Any, ...]) -> Iterable[tuple[Any, list[Any]]]:
    """Return the columns of rows; null where a row lacks one."""
    named = list[Mapping[Any, Any]]()
    for number, row in enumerate(rows, 1):
        if not is_row(row):
            forms = "a dictionary, a dataclass or a named tuple, for it names its columns"
            msg = f"scan: row {number} must be {forms}; got {row!r:.80}: or declare them, stream(name, types)"
            raise UsageError(msg)
        named.append(by_name(row))
    names = dict.fromkeys(name for row in named for name in row)
    return [(name, [row.get(name) for row in named]) for name in names]


def _typed(columns: Iterable[tuple[Any, Any]]) -> pa.Schema:
    fields = []
    for name, column in columns:
        try:
            fields.append(pa.field(str(name), typed_column(column).type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise UsageError(_untyped(error, f"column {name!r}: ")) from error
    return pa.schema(fields)


def _untyped(error: BaseException, column: str = "") -> str:
    return f"scan: {column}{error}: mend the values, or declare the columns, stream(name, types)"
