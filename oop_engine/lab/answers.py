"""Answers: the results of a plan set against the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import UsageError
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.groups.in_python import values_of
from oop_engine.lab.scenario import COMPLETE_AT

__all__ = ["Match", "as_table", "int64_of", "missing_and_wrong"]

_CLOSE = 1e-9  # sums of floats depend on the order of addition in the last digits


def as_table(data: Any, fields: pa.Schema) -> pa.Table:
    """Return rows as a table: Arrow data, a frame, a dictionary of columns, or rows as dictionaries.

    Columns of rows and of dictionaries get the types that they have in ``fields``.  Raises ``UsageError`` for anything
    else, and for values that are not of these types.

    >>> as_table([{"n": 1}, {"n": 2}], pa.schema([("n", pa.int8())])).schema.types
    [DataType(int8)]
    """
    try:
        if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            batch = hasattr(data, "__arrow_c_array__")
            return pa.Table.from_batches([pa.record_batch(data)]) if batch else pa.table(data)
        columns = (
            dict(data) if isinstance(data, Mapping) else pa.Table.from_pylist([*map(dict, data)]).to_pydict()
        )
        kinds = {field.name: field.type for field in fields}
        return pa.table({name: pa.array(values, kinds.get(name)) for name, values in columns.items()})
    except (pa.ArrowException, TypeError, ValueError) as error:
        wanted = "a table, a data frame, a dictionary of columns or a list of dictionaries"
        msg = f"truth of a scenario: must be {wanted}; got a {type(data).__name__}: {error}"
        raise UsageError(msg) from error


def missing_and_wrong(table: pa.Table, truth: pa.Table, keys: tuple[str, ...]) -> tuple[int, int]:
    """Return how many rows of ``truth`` are not in ``table``, and how many of ``table`` should not be.

    Rows are found by ``keys``; floats may differ in the last digits.
    """
    match = Match(table, truth, keys)
    return match.missing, match.wrong


class Match:
    """Results set against the truth: found by their keys, equal in the other columns."""

    def __init__(self, table: pa.Table, truth: pa.Table, keys: tuple[str, ...]) -> None:
        index = GroupIndex([truth.schema.field(name).type for name in keys])
        true_slots = index.encode([_array(truth, name) for name in keys], truth.num_rows)
        row_of = np.zeros(len(index), np.int64)
        row_of[true_slots] = np.arange(truth.num_rows)
        slots = index.find([_array(table, name) for name in keys], table.num_rows)
        self.known = slots >= 0
        known = slots[self.known]
        rows = row_of[known] if len(index) else np.empty(0, np.int64)
        right = np.ones(rows.size, np.bool_)
        for name in set(truth.schema.names) - {*keys, COMPLETE_AT}:
            right &= _equal(
                _array(table, name).filter(pa.array(self.known)), _array(truth, name).take(pa.array(rows))
            )
        self.missing = len(index) - np.unique(known).size
        self.wrong = table.num_rows - np.unique(known[right]).size  # a result that comes twice is wrong once
        self.complete_at = np.zeros(table.num_rows, np.int64)
        if rows.size and COMPLETE_AT in truth.schema.names:
            self.complete_at[self.known] = int64_of(truth.column(COMPLETE_AT))[rows]


def _array(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name).combine_chunks()
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)


def _equal(one: pa.Array, other: pa.Array) -> NDArray[np.bool_]:
    if pa.types.is_struct(one.type):
        inside = [_equal(*sides) for sides in zip(one.flatten(), other.flatten(), strict=True)]
        alike = np.equal(*(side.is_null().to_numpy(zero_copy_only=False) for side in (one, other)))
        both: NDArray[np.bool_] = np.logical_and.reduce([alike, *inside])
        return both
    if pa.types.is_list(one.type):
        pairs = zip(values_of(one), values_of(other), strict=True)
        return np.fromiter((a == b for a, b in pairs), np.bool_, len(one))
    if pa.types.is_floating(one.type) or pa.types.is_floating(other.type):
        a, b = (c.cast(pa.float64()).to_numpy(zero_copy_only=False) for c in (one, other))
        close: NDArray[np.bool_] = np.isclose(a, b, rtol=_CLOSE, atol=_CLOSE, equal_nan=True)
        return close
    same = pc.fill_null(pc.equal(one, other.cast(one.type)), False)
    both_null = pc.and_(one.is_null(), other.is_null())
    found: NDArray[np.bool_] = pc.or_(same, both_null).to_numpy(zero_copy_only=False)
    return found


def int64_of(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a column of integers, dates or times as int64, without nulls.  O(rows)."""
    found: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return found
