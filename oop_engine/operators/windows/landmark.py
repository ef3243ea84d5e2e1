"""Landmark windows: all since an origin (thesis 5.1.2); and grids that are folded on the bound."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.values.columns import spread
from oop_engine.operators.windows.folding import (
    Due,
    FinalTuples,
    Folding,
    SliceView,
    checked_many,
    checked_times,
)
from oop_engine.operators.windows.grid import Extents, Over, instant_in, positive

__all__ = ["Gridded", "Landmark", "Since"]

Integers = NDArray[np.int64]
_FAR = 1 << 62


@checked_arguments
@dataclass(frozen=True)
class Landmark:
    """Every ``slide``, all since ``origin``: window ``w`` covers ``[origin, origin + (w+1)*slide)``.

    ``origin``: in the attribute's unit, or a ``datetime`` (without a zone: UTC) where it is a timestamp.
    Tuples before it are in no window.  A stream has windows up to that of its
    largest position; a group is in all of them from its first tuple's on, for what came
    before counts as well.

    ``lulls``: windows without a later tuple leave too, as soon as a bound passes their end, so that the bound of the
    results goes on while the stream is silent.  Results then follow the punctuation; its end adds none.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Count, WindowAggregate
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> count = WindowAggregate(Landmark(10, lulls=True), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [3]})))
    []
    >>> (_, page), bound = count.on_punctuation(0, Linear(30))
    >>> page.batch.to_pydict()["window_end"], bound
    ([10, 20, 30], (0, Linear(below=40)))
    """

    slide: Length
    origin: Length | datetime = 0
    lulls: bool = False

    def bound(self, schema: Schema, place: str = "Landmark") -> Extents:
        slide = positive(self.slide, "slide", schema, place)
        return Extents(None, slide, instant_in(self.origin, "origin", schema, place), lulls=self.lulls)


@dataclass(frozen=True)
class Since(Folding):
    """Landmark windows, folded on the bound.  Slices are slides; those of windows that have left become one.

    The stream's number is its first window that is still open.
    """

    extents: Extents
    whole_stream: bool = True

    @property
    def retains(self) -> str:
        return "an aggregate of each key: landmark windows contain it until the stream ends"

    def words(self) -> str:
        return "slides since the origin, those of windows that have left together"

    def check(self, times: Integers) -> None:
        checked_times(times, _FAR, _FAR)

    def places(self, final: FinalTuples) -> Integers:
        first, last = self.extents.wids(final.times)
        return np.where(last >= first, first, -1)

    def due(self, view: SliceView) -> Due:
        gone, end = self._open(view), view.places[view.begins[1:] - 1] + 1
        closed = self.extents.closed_by(view.bounds)
        stop = np.where(view.ended, end, closed if self.extents.lulls else np.minimum(end, closed))
        many = np.maximum(stop - gone, 0)
        checked_many(many, gone * self.extents.slide + self.extents.origin, self.extents.slide, "Landmark")
        groups, wids = spread(gone, many)
        starts, ends = self.extents.extent(wids)
        cut, everyone = np.maximum(gone, stop), np.arange(many.size)
        high, join = view.row(view.places, groups, wids + 1), view.row(view.places, everyone, cut)
        low = view.begins[:-1]
        return Due(groups, starts, ends, low[groups], high, low, cut, join=join)

    def _open(self, view: SliceView) -> Integers:
        return np.maximum(view.cut, view.places[view.begins[:-1]])

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        return self.extents.ends(self._open(view))

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return self.extents.ends(self.extents.closed_by(bounds))


@dataclass(frozen=True)
class Gridded(Folding):
    """Windows of ``extents``, of one length.  Slices are panes; a group's number is its first window still open."""

    extents: Extents

    @property
    def over(self) -> Over:  # type: ignore[override]
        """Whether the grid is over the attribute or over rows."""
        return self.extents.over

    @property
    def retains(self) -> str:
        return self.extents.retains

    def words(self) -> str:
        return "panes of a grid"

    def check(self, times: Integers) -> None:
        checked_times(times, _FAR, _FAR)
        if times.size:
            self.extents.check(int(times.min()), int(times.max()))

    def places(self, final: FinalTuples) -> Integers:
        first, last = self.extents.wids(final.times)
        return np.where(last >= first, self.extents.pane_starts(final.times) + _FAR, -1)

    def due(self, view: SliceView) -> Due:
        cut = self.extents.closed_by(view.bounds)
        groups, of = view.groups, np.arange(view.places.size)
        first, last = self.extents.wids(view.first)
        there = np.where(of > view.begins[groups], last[of - 1] + 1, first)  # by the slice before
        low = np.maximum(np.maximum(first, there), view.cut[groups])
        stop = np.minimum(last + 1, cut[groups])
        many = np.where(stop > low, stop - low, 0)  # of a group without a bound it would not fit
        rows, wids = spread(low, many)
        starts, ends = self.extents.extent(wids)
        groups = groups[rows]
        low, high = view.row(view.first, groups, starts), view.row(view.first, groups, ends)
        everyone = np.arange(view.begins.size - 1)
        keep = view.row(view.first, everyone, self.extents.starts(cut))
        return Due(groups, starts, ends, low, high, keep, np.maximum(view.cut, cut))

    def next_due(self, view: SliceView) -> Integers:
        return self.least_open(view, "end")

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        first = self.extents.wids(view.first[view.begins[:-1]])[0]
        return self._stamp(np.maximum(first, view.cut), stamp)

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return self._stamp(self.extents.closed_by(bounds), stamp)

    def _stamp(self, wids: Integers, stamp: str) -> Integers:
        return self.extents.starts(wids) if stamp == "start" else self.extents.ends(wids)
