"""Joined tuples whose columns are copied when they are read.

To copy columns is most of the work of a match, and an aggregate behind a join may read the time alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.late.late_page import LatePage
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.matches import Matches
from oop_engine.operators.joining.run import Rows
from oop_engine.operators.joining.taking import taken_column, taken_values

__all__ = ["late_pairs"]

Ints = NDArray[np.int64]


def late_pairs(schema: Schema, side: int, page: Page, matches: Matches) -> LatePage:
    """Return the joined tuples of the ``matches`` of a page of ``side``: left columns, then right ones.

    A full join's have the earlier time before them.  Pages and the batches of runs do not change, so it does not matter
    when a column is copied.
    """
    pairs = _Pairs(schema, side, page, matches)
    return LatePage(schema, len(matches.probes), pairs.column, pairs.times)


class _Pairs:
    """The pairs of one page; a column is copied when it is read first."""

    __slots__ = ("_full", "_matches", "_page", "_schema", "_side", "_stored", "_width")

    def __init__(self, schema: Schema, side: int, page: Page, matches: Matches) -> None:
        self._schema, self._side, self._page, self._matches = schema, side, page, matches
        self._stored: list[tuple[pa.RecordBatch, Rows]] = []  # of the matches, once a column of them is read
        widths = [page.batch.num_columns, matches.by_run[0][0].batch.num_columns]
        self._full = len(schema.fields) - sum(widths)
        self._width = widths[side]  # of the left columns

    def times(self) -> Ints:
        """Return the progressing attribute, int64 (rows,)."""
        if self._full:
            return np.minimum(self._own_times(), self._matches.times())
        return self._own_times() if self._side == 0 else self._matches.times()

    def column(self, place: int) -> pa.Array:
        """Return the column at a place of the schema."""
        if place < self._full:
            return pa.array(self.times()).cast(self._schema.fields.field(0).type)
        place -= self._full
        side = int(place >= self._width)
        place -= side * self._width
        if side == self._side:
            return taken_column(self._page.batch.column(place), self._matches.probes)
        self._stored = self._stored or self._matches.rows()
        parts = [taken_column(batch.column(place), at) for batch, at in self._stored]
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def _own_times(self) -> Ints:
        times: Ints = taken_values(self._page.times.view(np.uint64), self._matches.probes).view(np.int64)
        return times
