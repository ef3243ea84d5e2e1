"""In Python: rows and values of Arrow as Python's, also those that Python has no value for.

No ``datetime`` has nanoseconds, and none is beyond the year 9999.  Where a column has such a moment, its moments of
nanoseconds are texts, as they are written into a file, durations and far moments integers in their own unit.  Where
pandas is installed, Arrow makes a ``Timestamp`` or ``Timedelta`` of nanoseconds instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from typing import Any

import pyarrow as pa

from oop_engine.core.values.rfc3339 import rfc3339, rfc3339_of

__all__ = ["as_json", "counted", "rows_of", "values_of"]


def rows_of(data: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Return rows as dictionaries; O(rows x columns).

    >>> rows_of(pa.table({"n": [1, 2]}))
    [{'n': 1}, {'n': 2}]
    """
    try:
        rows: list[dict[str, Any]] = data.to_pylist()
    except (ArithmeticError, ValueError):
        columns = [values_of(column) for column in data.columns]
        return [dict(zip(data.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    return rows


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; O(rows).

    >>> values_of(pa.array([2**60, None], pa.timestamp("s")))
    [1152921504606846976, None]
    """
    try:
        values: list[Any] = column.to_pylist()
    except (ArithmeticError, ValueError):
        values = column.cast(_replaced(column.type, _legible)).to_pylist()
        if "timestamp[ns" in str(column.type):
            values = [_with_t(value, column.type) for value in values]
    return values


def _with_t(value: Any, kind: pa.DataType) -> Any:
    """Return a value of ``_legible`` types with its moments of nanoseconds, cast to texts, as RFC 3339 has them."""
    types = pa.types
    if value is None or not types.is_nested(kind):
        return rfc3339_of(value) if types.is_timestamp(kind) and isinstance(value, str) else value
    if types.is_struct(kind):
        return {field.name: _with_t(value[field.name], field.type) for field in kind}
    if types.is_map(kind):
        return [(_with_t(key, kind.key_type), _with_t(item, kind.item_type)) for key, item in value]
    return [_with_t(item, kind.value_type) for item in value]


def as_json(row: Any) -> str:
    """Return a row as a line of JSON: moments as RFC 3339 has them, NaN and infinity as texts, as in a trace.

    >>> as_json({"v": [0.5, float("nan")]})
    '{"v": [0.5, "nan"]}'
    """
    try:
        return json.dumps(row, default=rfc3339, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(row), default=rfc3339)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def counted(column: pa.Array) -> pa.Array:
    """Return a nested column with integers for the moments and durations in it, if some have nanoseconds.

    >>> counted(pa.array([{"at": 7}], pa.struct({"at": pa.time64("ns")}))).to_pylist()
    [{'at': 7}]
    """
    return column.cast(_replaced(column.type, _integer)) if _has_nanoseconds(column.type) else column


def _legible(kind: pa.DataType) -> pa.DataType:
    finest = not pa.types.is_date(kind) and not pa.types.is_interval(kind) and kind.unit == "ns"
    return pa.string() if finest and not pa.types.is_duration(kind) else _integer(kind)


def _integer(kind: pa.DataType) -> pa.DataType:
    return kind if pa.types.is_interval(kind) else pa.int32() if kind.bit_width == 32 else pa.int64()


def _replaced(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with others in the place of its moments and durations, dictionaries decoded."""
    types = pa.types
    if types.is_temporal(kind):
        return leaf(kind)
    if types.is_dictionary(kind):
        return _replaced(kind.value_type, leaf)
    if types.is_struct(kind):
        return pa.struct([field.with_type(_replaced(field.type, leaf)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_replaced(kind.key_type, leaf), _replaced(kind.item_type, leaf))
    if types.is_fixed_size_list(kind):
        return pa.list_(_replaced(kind.value_type, leaf), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        made = pa.list_ if types.is_list(kind) else pa.large_list
        return made(_replaced(kind.value_type, leaf))
    return kind


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pa.types.is_temporal(kind):
        return "[ns" in str(kind)
    if pa.types.is_dictionary(kind):
        return _has_nanoseconds(kind.value_type)
    return any(_has_nanoseconds(kind.field(place).type) for place in range(kind.num_fields))
