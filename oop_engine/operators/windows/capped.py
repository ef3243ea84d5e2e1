"""Sessions that end ``most`` behind their first tuple at the latest, in whole units.

A session that is cut begins the next one at the first tuple behind the cut, so all cuts depend on the first tuple of
the group: windows follow from tuples in order, and are folded on the bound (``windows/folding.py``).  A slice is a
session; its place is the rank of its first tuple.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import shift
from oop_engine.operators.kernels.runs import capped
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView, checked_times
from oop_engine.operators.windows.grid import LONGEST

__all__ = ["Capped"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Capped(Folding):
    """Windows ``[first, min(last + gap, first + most))``."""

    gap: int
    most: int = LONGEST

    def words(self) -> str:
        most = "" if self.most == LONGEST else f", {self.most} long at most"
        return f"tuples at most {self.gap} apart{most}"

    def check(self, times: Integers) -> None:
        checked_times(times, 0, self.gap + self.most)

    def places(self, final: FinalTuples) -> Integers:
        places = np.empty_like(final.times)
        groups = final.opened, final.since, final.until
        capped(final.starts, final.times, final.ranks, *groups, self.gap, self.most, places)
        return places

    def due(self, view: SliceView) -> Due:
        groups, bounds = view.groups, view.bounds[view.groups]
        complete = (view.last + self.gap < bounds) | (view.first + self.most <= bounds)
        complete[:-1] |= groups[1:] == groups[:-1]  # the next one has begun
        (rows,) = complete.nonzero()
        keep = view.begins[1:] - ~complete[view.begins[1:] - 1]
        return Due(groups[rows], view.first[rows], self._ends(view)[rows], rows, rows + 1, keep, view.cut)

    def next_due(self, view: SliceView) -> Integers:
        last = view.begins[1:] - 1
        return np.minimum(view.last[last] + self.gap + 1, view.first[last] + self.most)

    def _ends(self, view: SliceView) -> Integers:
        return np.minimum(view.last + self.gap, view.first + self.most)

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        return view.first[view.begins[:-1]] if stamp == "start" else self._ends(view)[view.begins[:-1]]

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return bounds if stamp == "start" else shift(bounds, min(self.gap, self.most))
