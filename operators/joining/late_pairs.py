"""Many joined tuples, of which the columns are copied that somebody reads.

To copy columns is most of the work of a match, and an aggregate behind a join may read the time alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
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
        self.schema, self.arrival, self._times = schema, None, None
        self.columns, self.rows, self._make_times = LateColumns(schema, make), rows, make_times

    def __getattr__(self, name: str) -> Any:
        """Make the columns when they are first asked for; from then on they are an attribute as of any page."""
        if name == "batch":
            self.batch = self.columns.batch()
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
    own, probes = page.batch, matches.probes
    stored = matches.found[0][0].batch
    widths = [of.num_columns for of in ((own, stored) if side == 0 else (stored, own))]
    full = len(schema.fields) - sum(widths)
    indices = cache(lambda: pa.array(probes))
    rows = cache(matches.rows)

    @cache
    def own_times() -> Ints:
        times: Ints = taken_values(page.times.view(np.uint64), probes).view(np.int64)
        return times

    def times() -> Ints:
        if full:
            return np.minimum(own_times(), matches.times())
        return own_times() if side == 0 else matches.times()

    def column(place: int) -> pa.Array:
        if place < full:
            return pa.array(times()).cast(schema.fields.field(0).type)
        place -= full
        of = int(place >= widths[0])
        place -= of * widths[0]
        if of == side:
            return taken_column(own.column(place), probes, indices())
        parts = [taken_column(batch.column(place), at, pa.array(at)) for batch, at in rows()]
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    return LatePage(schema, len(probes), column, times)
