"""Windows of a number of tuples at the times of a grid: ``LastRows``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.values.columns import spread
from oop_engine.operators.windows.folding import (
    Due,
    FinalTuples,
    Folding,
    SliceView,
    checked_many,
    checked_tie,
    checked_times,
    ties,
)
from oop_engine.operators.windows.grid import Extents, instant_in, positive

__all__ = ["LastBefore", "LastRows"]

Integers = NDArray[np.int64]


@checked_arguments
@dataclass(frozen=True)
class LastRows:
    """At each time of a grid (``origin``, and ``every`` so much later) a group's last ``rows`` tuples before it.

    Extents go from the first of these tuples to the time of the grid.  A group has windows from its first tuple to
    that behind its last one; with ``lulls`` also behind that, as far as bounds go.  ``tie``: columns that order tuples
    of one time, before their arrival.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Max, WindowAggregate
    >>> schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
    >>> top = WindowAggregate(LastRows(2, every=10), {"top": Max("v")}).opened(schema)
    >>> list(top.on_page(0, Page.of(schema, {"ts": [12, 1, 4], "v": [3, 5, 9]})))
    []
    >>> (_, page), _ = top.on_punctuation(0, Linear(20))
    >>> page.to_pylist()
    [{'window_start': 1, 'window_end': 10, 'top': 9}, {'window_start': 4, 'window_end': 20, 'top': 9}]
    """

    rows: int
    every: Length
    origin: Length | datetime = 0
    lulls: bool = False
    tie: Sequence[str] = ()

    def bound(self, schema: Schema, place: str = "LastRows") -> LastBefore:
        """Return the definition in whole units of ``schema``'s progressing attribute."""
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            msg = f"{place}: rows must be a number of tuples, at least 1; got {self.rows!r}"
            raise GraphError(msg)
        every = positive(self.every, "every", schema, place)
        grid = Extents(every, every, instant_in(self.origin, "origin", schema, place))
        return LastBefore(self.rows, grid, self.lulls, checked_tie(self.tie, schema, place))


@dataclass(frozen=True)
class LastBefore(Folding):
    """A slice is a tuple; a group keeps its last ones.  Its number is the next time of the grid."""

    rows: int
    grid: Extents
    lulls: bool = False
    tie: tuple[str, ...] = ()

    @property
    def retains(self) -> str:
        return "the last rows of each key: they are in its windows until newer ones come"

    def words(self) -> str:
        return f"one tuple, the last {self.rows} of a group, {ties(self.tie)}"

    def check(self, times: Integers) -> None:
        if times.size:
            self.grid.check(int(np.minimum.reduce(times)), int(np.maximum.reduce(times)))
        checked_times(times, 0, 1)

    def places(self, final: FinalTuples) -> Integers:
        return final.ranks

    def due(self, view: SliceView) -> Due:
        first, last = (self._behind(view, rows) for rows in (view.begins[:-1], view.begins[1:] - 1))
        first_end = np.maximum(view.cut, first)
        below = self.grid.boundary(view.bounds)
        stop = np.where(view.ended, last, below if self.lulls else np.minimum(last, below))
        apart = stop.astype(float) - first_end  # not exact, but it may not fit 64 bits
        checked_many(apart // self.grid.slide + 1, first_end, self.grid.slide, "LastRows")
        number = np.where(apart < 0, 0, np.maximum((stop - first_end) // self.grid.slide + 1, 0))
        groups, nth = spread(np.zeros(number.size, np.int64), number)
        ends = first_end[groups] + nth * self.grid.slide
        high = view.row(view.first, groups, ends)
        low = np.maximum(high - self.rows, view.begins[:-1][groups])
        cut = first_end + number * self.grid.slide
        first_behind = view.row(view.first, np.arange(number.size), cut)
        keep = np.maximum(first_behind - self.rows, view.begins[:-1])
        return Due(groups, view.first[low], ends, low, high, keep, cut)

    def next_due(self, view: SliceView) -> Integers:
        if self.lulls:
            return view.cut
        return np.where(view.cut <= self._behind(view, view.begins[1:] - 1), view.cut, FOREVER)

    def _behind(self, view: SliceView, rows: Integers) -> Integers:
        """Return the times of the grid behind the tuples of some rows."""
        return self.grid.extent(self.grid.wids(view.last[rows])[0])[1]

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        return view.first[view.begins[:-1]] if stamp == "start" else view.cut

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return bounds if stamp == "start" else self.grid.ends(self.grid.closed_by(bounds))
