"""Kept rows: which windows of a ring tuples have changed, by its panes before they came.

The rows of some panes are copied, and compared when the tuples have come: where a group has another number of tuples
in a pane, its window has changed.  That is O(panes x groups) in vector instructions, and of few panes sooner than to
look for the tuples that go into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels import pane_rows as kernels
from oop_engine.operators.kernels.panes import Geometry
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers

__all__ = ["KeptRows"]


class KeptRows:
    """Copies of the panes of windows ``first`` to ``stop`` (exclusive), which are of one pane, in a ring."""

    def __init__(self, ring: PaneRing, first: int, stop: int, number: int) -> None:
        self._ring, self._first, self._number = ring, first, number
        panes = ((np.arange(first, stop) + 1) * ring.step - 1) & (ring.room - 1)
        self._tuples = ring.rows(ring.tuples)[panes]
        self._columns = [
            None if columns is None else tuple(ring.rows(column)[panes] for column in columns)
            for columns in ring.columns
        ]
        rows = max(stop - first, 0)
        self._geometry = Geometry(1, 1, 0, rows - 1, (1 << rows.bit_length()) - 1, ring.groups)

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
        slots, wids, cells = kernels.changed(
            ring.geometry, ring.tuples, self._tuples, self._first, lowest, cut
        )
        return self._windows(slots, wids, cells, ring.tuples, ring.columns)

    def before(self, windows: WindowStates) -> WindowStates:
        """Return those of some windows that had tuples, as they were."""
        wids = (windows.ends - self._ring.extents.origin) // self._ring.extents.slide - 1
        some = np.empty((3, wids.size), np.int64)
        found = kernels.cells_of(
            self._geometry, self._tuples.ravel(), windows.slots, wids - self._first, some
        )
        slots, wids, cells = some[:, :found]
        return self._windows(slots, wids + self._first, cells, self._tuples, self._columns)

    def _windows(
        self, slots: Integers, wids: Integers, cells: Integers, tuples: NDArray[Any],
        columns: Sequence[Arrays | None],
    ) -> WindowStates:  # fmt: skip
        """Return windows by their cells."""
        counts = tuples.ravel()[cells].astype(np.int64)
        states = [
            (counts,) if of is None else tuple(column.ravel()[cells] for column in of) for of in columns
        ]
        ends = self._ring.extents.extent(wids)[1]
        return WindowStates(slots, ends, states, self._number, in_order=True)
