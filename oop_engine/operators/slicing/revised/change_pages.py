"""Change pages: rows that correct others, in pages as ``emit`` asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import comparable
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import column_of
from oop_engine.operators.triggers import Emit
from oop_engine.operators.values.columns import Integers

__all__ = ["TIMINGS", "ChangePages", "equal_rows", "taken"]

TIMINGS = ["early", "on_time", "late", "final"]
Mask = NDArray[np.bool_]
_CHANGES, _CHANGE = np.array([-1, 1], np.int8), pa.int8()


class ChangePages:
    """Pages of the schema ``out``, of results whose last columns, ``aggregated`` many, are the aggregates."""

    def __init__(self, emit: Emit, out: Schema, aggregated: int) -> None:
        self._emit, self._out, self._aggregated = emit, out, aggregated
        self._progressing = out.names.index(out.progressing)

    def first(self, columns: list[pa.Array], timing: int) -> Page:
        """Return a page of the first versions of windows."""
        many, none = len(columns[0]), np.empty(0, np.int64)
        info = (np.zeros(many, np.int64), np.full(many, timing)) if self._emit.info else ()
        return self.page(columns, 0, lambda: _replaced(columns, none, None), *info)

    def page(
        self, columns: list[pa.Array], gone: int, before: Callable[[], list[pa.Array]], *info: Integers
    ) -> Page:
        """Return a page of changes: the first rows, ``gone`` many, are taken back, the others are put out.

        ``before``: makes the rows that these others replace, null where they replace none.  ``info``: versions and
        timings of all rows, if they are asked for.
        """
        changes, rows = list[pa.Array](), len(columns[0])
        if self._emit.mode == "retracting":
            changes = [column_of(_CHANGES.repeat([gone, rows - gone]), _CHANGE)]
        elif gone:
            columns, info = [column[gone:] for column in columns], tuple(one[gone:] for one in info)
        if self._emit.mode == "discarding":
            columns = [*columns[: -self._aggregated], *self._differences(columns, before())]
        if self._emit.info:
            versions, timings = info
            timing = pa.DictionaryArray.from_arrays(pa.array(timings.astype(np.int8)), pa.array(TIMINGS))
            columns = [*columns, pa.array(versions.astype(np.int32)), timing]
        batch = pa.RecordBatch.from_arrays([*columns, *changes], schema=self._out.fields)
        return Page(self._out, batch, _progressing=columns[self._progressing])

    def _differences(self, columns: list[pa.Array], before: list[pa.Array]) -> Iterator[pa.Array]:
        for now, last in zip(columns[-self._aggregated :], before[-self._aggregated :], strict=True):
            yield pc.subtract(now.fill_null(0), last.fill_null(0))

    def corrected(self, columns: list[pa.Array], at: Integers, *, differ: bool) -> Page | None:
        """Return a page of the changes of windows; None: there is none.

        The first rows are out; those behind are the windows as they are now, the ``at[i]``-th the one of row ``i``; of
        all others there is no version yet.  ``differ``: no result is the same as it was.
        """
        gone, rows, given, leaves = at.size, len(columns[0]), columns, None
        results = columns[-self._aggregated :]
        same = np.zeros(gone, np.bool_)
        if not differ:
            same = equal_rows([one[:gone] for one in results], [one[gone:] for one in results], at)
        if same.any():
            leaves = np.ones(rows, np.bool_)
            leaves[:gone], leaves[gone + at[same]] = ~same, False
            places = pa.array(np.flatnonzero(leaves))
            columns, gone = [column.take(places) for column in columns], int(np.count_nonzero(~same))
        return self.page(columns, gone, lambda: _replaced(given, at, leaves)) if len(columns[0]) else None


def _replaced(columns: list[pa.Array], at: Integers, leaves: Mask | None) -> list[pa.Array]:
    """Return the rows that rows which leave (None: all) have replaced, null where they replace none."""
    place = np.full(len(columns[0]) - at.size, -1)
    place[at] = np.arange(at.size)
    place = place if leaves is None else place[leaves[at.size :]]
    return [column.take(pa.array(place, mask=place < 0)) for column in columns]


def equal_rows(columns: Sequence[pa.Array], others: Sequence[pa.Array], at: Integers | None = None) -> Mask:
    """Tell which rows are the same as the ``at[i]``-th of others, bool (rows,); None: as the one in their place."""
    equal: Mask = np.logical_and.reduce([_equal(*pair, at) for pair in zip(columns, others, strict=True)])
    return equal


def _equal(column: pa.Array, other: pa.Array, at: Integers | None) -> Mask:
    """Tell which values are the same: null is null, NaN is NaN."""
    nulls = column.null_count or other.null_count
    if pa.types.is_integer(column.type) and not nulls:
        values = other.to_numpy()
        equal: Mask = column.to_numpy() == (values if at is None else values[at])
        return equal
    other = other if at is None else other.take(pa.array(at))
    column, other = comparable(column), comparable(other)
    found = pc.equal(column, other)
    if nulls:
        found = pc.or_(found.fill_null(False), pc.and_(column.is_null(), other.is_null()))
    same: Mask = found.to_numpy(zero_copy_only=False)
    return same


def taken(rows: pa.RecordBatch, places: Integers) -> pa.RecordBatch:
    """Return rows by their places, null where that is -1."""
    return rows.take(pa.array(places, mask=places < 0))
