"""Kept rows: which windows of a ring tuples have changed, by its panes before they came.

The rows of some panes are copied, and compared when the tuples have come: where a group has another number of tuples
in a pane, its window has changed.  That is O(panes x groups) in vector instructions, and of few panes sooner than to
look for the tuples that go into them.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from oop_engine.operators.kernels import pane_rows as kernels
from oop_engine.operators.kernels.panes import Geometry
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.panes.pane_windows import of_cells
from oop_engine.operators.slicing.window_states import WindowStates

__all__ = ["KeptRows"]


class KeptRows:
    """Copies of the panes of windows ``first`` to ``stop`` (exclusive), which are of one pane, in a ring."""

    def __init__(self, ring: PaneRing, first: int, stop: int, number: int) -> None:
        self._ring, self._first, self._number = ring, first, number
        panes = ((np.arange(first, stop) + 1) * ring.step - 1) % ring.room
        self._tuples = ring.rows(ring.tuples)[panes]
        self._columns = [
            None if columns is None else tuple(ring.rows(column)[panes] for column in columns)
            for columns in ring.columns
        ]
        rows = max(stop - first, 0)
        self._geometry = Geometry(1, 1, 0, rows - 1, max(rows - 1, 0), ring.groups, 0)

    @classmethod
    def of(cls, ring: PaneRing, lowest: int, cut: int, most: int, number: int) -> Self | None:
        """Return those of windows from ``lowest`` to ``cut`` (exclusive), as far as there are some.

        None: windows have several panes, or there are more than ``most`` cells.
        """
        first = max(lowest, -(-(ring.low + 1) // ring.step) - 1)
        stop = max(min(cut, (ring.high + 1) // ring.step), first)
        if ring.length > 1 or (stop - first) * ring.groups > most:
            return None
        return cls(ring, first, stop, number)

    def changed(self, lowest: int, cut: int) -> WindowStates:
        """Return the windows from ``lowest`` to ``cut`` (exclusive) that have changed since."""
        ring = self._ring
        some = kernels.changed(ring.geometry, ring.tuples, self._tuples, self._first, lowest, cut)
        return of_cells(ring, some, self._number, ring.tuples, ring.columns)

    def before(self, windows: WindowStates) -> WindowStates:
        """Return those of some windows that had tuples, as they were."""
        wids = (windows.ends - self._ring.extents.origin) // self._ring.extents.slide - 1
        some = np.empty((3, wids.size), np.int64)
        found = kernels.cells_of(
            self._geometry, self._tuples.ravel(), windows.slots, wids - self._first, some
        )
        some = some[:, :found]
        some[1] += self._first
        columns = [of and tuple(column.ravel() for column in of) for of in self._columns]
        return of_cells(self._ring, some, self._number, self._tuples.ravel(), columns)
