"""Answers: the results of a plan set against the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import UsageError
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.lab.equal_values import alike, as_codes, equal_values
from oop_engine.lab.scenario import COMPLETE_AT

__all__ = ["Match", "as_table", "check_columns", "check_keys", "int64_of", "missing_and_wrong"]


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
    """Results set against the truth: found by their keys, equal in the other columns.

    Where keys do not identify the rows of the truth, whole rows are found, each as often as it is there.  ``right`` and
    ``known``, bool (results,): the result is that of the truth, and there is one of its keys; ``complete_at``, int64
    (results,), when its last tuple was there.
    """

    def __init__(self, table: pa.Table, truth: pa.Table, keys: tuple[str, ...]) -> None:
        self.complete_at = np.zeros(table.num_rows, np.int64)
        identified = _identify(truth, keys)
        rows = self._by_keys(table, truth, keys) if identified else self._by_rows(table, truth)
        if rows.size and COMPLETE_AT in truth.schema.names:
            self.complete_at[self.known] = int64_of(truth.column(COMPLETE_AT))[rows]

    def _by_keys(self, table: pa.Table, truth: pa.Table, keys: tuple[str, ...]) -> NDArray[np.int64]:
        """Set rows against each other by their keys; return the row of the truth for each that is known."""
        columns = [alike(_array(table, name), _array(truth, name)) for name in keys]
        index = GroupIndex([column.type for _, column in columns])
        row_of = np.zeros(truth.num_rows, np.int64)
        row_of[index.encode([column for _, column in columns], truth.num_rows)] = np.arange(truth.num_rows)
        slots = index.find([column for column, _ in columns], table.num_rows)
        self.known = slots >= 0
        known = slots[self.known]
        rows = row_of[known] if len(index) else np.empty(0, np.int64)
        equal = np.ones(rows.size, np.bool_)
        for name in set(truth.schema.names) - {*keys, COMPLETE_AT}:
            equal &= equal_values(
                _array(table, name).filter(pa.array(self.known)), _array(truth, name).take(pa.array(rows))
            )
        self.right = np.zeros(table.num_rows, np.bool_)
        self.right[self.known] = equal
        self.missing = len(index) - np.unique(known).size
        self.wrong = table.num_rows - np.unique(known[equal]).size  # a result that comes twice is wrong once
        return rows

    def _by_rows(self, table: pa.Table, truth: pa.Table) -> NDArray[np.int64]:
        """Set whole rows against each other, as often as each is there."""
        names = [name for name in truth.schema.names if name != COMPLETE_AT]
        columns = [as_codes(_array(table, name), _array(truth, name)) for name in names]
        index = GroupIndex([column.type for _, column in columns])
        of_truth = index.encode([column for _, column in columns], truth.num_rows)
        slots = index.find([column for column, _ in columns], table.num_rows)
        self.known = self.right = slots >= 0
        wanted = np.bincount(of_truth, minlength=len(index))
        counts = np.bincount(slots[self.known], minlength=len(index))
        self.missing = int(np.maximum(wanted - counts, 0).sum())
        self.wrong = int(np.maximum(counts - wanted, 0).sum()) + int(np.count_nonzero(~self.known))
        row_of = np.zeros(len(index), np.int64)
        row_of[of_truth] = np.arange(truth.num_rows)
        rows: NDArray[np.int64] = row_of[slots[self.known]]
        return rows


def check_keys(scenario: str, results: pa.Schema, keys: tuple[str, ...]) -> None:
    """Raise ``UsageError`` if keys of a scenario are no columns of its results."""
    if unknown := [name for name in keys if name not in results.names]:
        msg = f"scenario {scenario!r}: its keys must be columns of the results, {', '.join(results.names)}"
        msg += f"; got {', '.join(unknown)}"
        raise UsageError(msg)


def check_columns(scenario: str, results: pa.Schema, truth: pa.Table) -> None:
    """Raise ``UsageError`` unless the truth of a scenario has the columns of its results: others are not compared."""
    if lacking := [name for name in results.names if name not in truth.schema.names]:
        msg = f"scenario {scenario!r}: its truth lacks the columns {', '.join(lacking)} of the results: add them"
        raise UsageError(msg)
    if more := [name for name in truth.schema.names if name not in (*results.names, COMPLETE_AT)]:
        msg = f"scenario {scenario!r}: its truth has the columns {', '.join(more)}, which the results lack: drop them"
        raise UsageError(msg)


def _identify(truth: pa.Table, keys: tuple[str, ...]) -> bool:
    """Return whether no two rows of the truth have the same keys."""
    index = GroupIndex([truth.schema.field(name).type for name in keys])
    index.encode([_array(truth, name) for name in keys], truth.num_rows)
    return bool(len(index) == truth.num_rows)


def _array(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name).combine_chunks()
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)


def int64_of(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a column of integers, dates or times as int64, without nulls.  O(rows)."""
    integers: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return integers
