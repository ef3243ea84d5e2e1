"""Joined tuples, of which the columns are copied that somebody reads.

To copy columns is most of the work of a match, and an aggregate behind a join may read the time alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.matches import Matches
from oop_engine.operators.joining.taking import taken_column, taken_values

__all__ = ["LateColumns", "LatePage", "late_pairs"]

Ints = NDArray[np.int64]


class LateColumns:
    """Columns of ``schema``; ``make`` makes the one at a place, when it is first asked for."""

    def __init__(self, schema: Schema, make: Callable[[int], pa.Array]) -> None:
        self._schema, self._make = schema, make
        self._made: dict[int, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        """Return one column."""
        return self._at(self._schema.names.index(name))

    def batch(self) -> pa.RecordBatch:
        """Return all columns."""
        columns = [self._at(place) for place in range(len(self._schema.fields))]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema.fields)

    def _at(self, place: int) -> pa.Array:
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]


class LatePage(Page):
    """``rows`` rows of ``schema``, without an arrival.

    ``make`` returns the column at a place of the schema, and ``make_times`` the progressing attribute, int64 (rows,).
    They are called when that is asked for, so they must not depend on a state that changes.  ``column`` makes one
    column, and ``batch`` all of them.

    >>> import pyarrow as pa
    >>> schema = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
    >>> page = LatePage(schema, 2, lambda place: pa.array([place, 7]), lambda: np.array([0, 7]))
    >>> page.times, page.column("n").to_pylist(), page.batch.num_rows
    (array([0, 7]), [1, 7], 2)
    """

    __slots__ = ("_make_times",)
    late: ClassVar = True

    def __init__(
        self,
        schema: Schema,
        rows: int,
        make: Callable[[int], pa.Array],
        make_times: Callable[[], Ints],
    ) -> None:
        self.schema, self.arrival, self._times, self._reach, self._made = schema, None, None, None, {}
        self.columns, self.rows, self._make_times = LateColumns(schema, make), rows, make_times

    def __getattr__(self, name: str) -> Any:
        """Make the columns when they are first asked for; from then on they are an attribute as of any page.

        And nothing is kept that they were made of: of a few rows that is a hundred times as much.
        """
        if name == "batch":
            self._times, self.batch = self.times, self.columns.batch()
            self.columns = self.batch
            del self._make_times
            return self.batch
        if name == "_progressing":
            self._progressing = self.column(self.schema.progressing)
            return self._progressing
        raise AttributeError(name)

    def __reduce__(self) -> Any:
        return Page, (self.schema, self.batch)

    @property
    def times(self) -> Ints:
        """The progressing attribute, int64 (rows,)."""
        if self._times is None:
            self._times = self._make_times()
        return self._times

    def settled(self) -> Page:
        """Return a page of the same rows that holds its columns, and nothing that they were to be made of."""
        return Page(self.schema, self.batch)


def late_pairs(schema: Schema, side: int, page: Page, matches: Matches) -> LatePage:
    """Return the joined tuples of the ``matches`` of a page of ``side``: left columns, then right ones.

    A full join's have the earlier time before them.  Pages and the batches of runs do not change, so it does not matter
    when a column is copied.
    """
    pairs = _Pairs(schema, side, page, matches)
    return LatePage(schema, len(matches.probes), pairs.column, pairs.times)


class _Pairs:
    """The pairs of one page, of which nothing is copied before it is asked for."""

    __slots__ = ("_full", "_matches", "_page", "_schema", "_side", "_width")

    def __init__(self, schema: Schema, side: int, page: Page, matches: Matches) -> None:
        self._schema, self._side, self._page, self._matches = schema, side, page, matches
        widths = [page.batch.num_columns, matches.found[0][0].batch.num_columns]
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
        of = int(place >= self._width)
        place -= of * self._width
        if of == self._side:
            return taken_column(self._page.batch.column(place), self._matches.probes)
        parts = [taken_column(batch.column(place), at) for batch, at in self._matches.rows()]
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def _own_times(self) -> Ints:
        times: Ints = taken_values(self._page.times.view(np.uint64), self._matches.probes).view(np.int64)
        return times
