"""Grids, sessions and whole groups that are folded on the bound, for aggregates that depend on the order of tuples.

Elsewhere their tuples go into partial aggregates as they come.  A state that does not commute has to have its tuples in
order of time, so they are held until a bound has passed them; in windows by arrival, in order of their numbers, which
are final at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.values.columns import Integers, spread
from oop_engine.operators.windows.capped import Capped
from oop_engine.operators.windows.folding import (
    Due,
    FinalTuples,
    Folding,
    SliceView,
    checked_many,
    checked_tie,
    checked_times,
)
from oop_engine.operators.windows.grid import Definition, Extents, Over
from oop_engine.operators.windows.session import Gap
from oop_engine.operators.windows.whole import Whole

__all__ = ["Gridded", "agreed_tie", "folded"]

_FAR = 1 << 62


def folded(definition: Definition) -> Definition:
    """Return a grid, sessions or whole groups as folded on the bound; any other definition as it is."""
    if isinstance(definition, Gap):
        return Capped(definition.gap)
    if isinstance(definition, Whole):
        return Ended()
    if isinstance(definition, Extents):
        return Since(definition) if definition.landmark else Gridded(definition)
    return definition


def agreed_tie(aggregates: Mapping[str, Aggregation], schema: Schema, place: str) -> tuple[str, ...]:
    """Return the columns by which aggregates order tuples of one time; raise ``GraphError`` if they do not agree."""
    given = {name: one.tie for name, one in aggregates.items() if not one.commutative}
    if len(set(given.values())) > 1:
        words = ", ".join(f"{name!r} {list(tie)}" for name, tie in given.items())
        msg = f"{place}: aggregates of one operator must have the same tie; got {words}: use two operators"
        raise GraphError(msg)
    return checked_tie(next(iter(given.values()), ()), schema, f"{place}: {next(iter(given), None)!r}")


@dataclass(frozen=True)
class Gridded(Folding):
    """Windows of ``extents``, of one length.  Slices are panes; a group's number is its first window still open."""

    extents: Extents

    @property
    def over(self) -> Over:  # type: ignore[override]
        """Whether the grid is over the attribute or over rows."""
        return self.extents.over

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

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        first = self.extents.wids(view.first[view.begins[:-1]])[0]
        return self._stamp(np.maximum(first, self.extents.closed_by(view.bounds)), stamp)

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return self._stamp(self.extents.closed_by(bounds), stamp)

    def _stamp(self, wids: Integers, stamp: str) -> Integers:
        return self.extents.starts(wids) if stamp == "start" else self.extents.ends(wids)


@dataclass(frozen=True)
class Since(Folding):
    """Landmark windows.  Slices are slides; those of windows that have left become one.

    The stream's number is its first window that is still open.
    """

    extents: Extents
    whole_stream: bool = True

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
class Ended(Folding):
    """Windows ``[first, last + 1)`` of whole groups.  A group has one slice."""

    def words(self) -> str:
        return "a group each, complete when it ends"

    def places(self, final: FinalTuples) -> Integers:
        return np.zeros_like(final.times)

    def due(self, view: SliceView) -> Due:
        groups, begins = np.flatnonzero(view.ended), view.begins[:-1]
        rows = begins[groups]
        return Due(groups, view.first[rows], view.last[rows] + 1, rows, rows + 1, begins, view.cut)
