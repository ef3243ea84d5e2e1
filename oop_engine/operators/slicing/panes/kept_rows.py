"""Kept rows: which windows of a ring tuples have changed, by its panes before they came.

The rows of some panes are copied, and compared when the tuples have come: where a group has another number of tuples
in a pane, its window has changed.  That is O(panes x groups) in vector instructions, and of few panes sooner than to
look for the tuples that go into them.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels import pane_rows as kernels
from oop_engine.operators.kernels.panes import Geometry
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.panes.pane_windows import of_cells
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers

__all__ = ["KeptRows"]


class KeptRows:
    """Copies of the panes of windows ``first`` to ``stop`` (exclusive), which are of one pane, in a ring."""

    def __init__(self, ring: PaneRing, first: int, stop: int, number: int) -> None:
        self._ring, self._first, self._number = ring, first, number
        panes = np.arange((first + 1) * ring.step - 1, stop * ring.step, ring.step) % ring.room
        self._tuples = ring.rows(ring.tuples).take(panes, 0)
        self._columns = [
            None if columns is None else tuple(ring.rows(column).take(panes, 0).ravel() for column in columns)
            for columns in ring.columns
        ]

    @classmethod
    def of(cls, ring: PaneRing, lowest: int, cut: int, most: int, number: int) -> Self | None:
        """Return those of windows from ``lowest`` to ``cut`` (exclusive), as far as there are some.

        None: windows have several panes, or there are more than ``most`` cells.
        """
        if ring.length > 1:
            return None
        first, stop = _of_one_pane(ring, lowest, cut)
        return None if (stop - first) * ring.groups > most else cls(ring, first, stop, number)

    def changes(self, lowest: int, cut: int) -> tuple[WindowStates, Integers]:
        """Return the windows from ``lowest`` to ``cut`` (exclusive) that have changed since.

        First those that had tuples, as they were, then all as they are now; and where among all the first ones are.
        """
        ring = self._ring
        first, stop = _of_one_pane(ring, lowest, cut)
        rows = np.empty((9, (stop - first) * ring.groups + 1), np.int64)
        before, after = rows[:5], rows[5:]
        had, many = kernels.changed(
            ring.geometry, ring.tuples, self._tuples, self._first, first, stop, before, after
        )
        slots, wids, cells, counts = np.concatenate(
            [before[: kernels.CELL_AMONG, :had], after[:, :many]], axis=1
        )
        was, now, states = cells[:had], cells[had:], list[Arrays]()
        for of, kept, columns in zip(ring.accumulators, self._columns, ring.columns, strict=True):
            if columns is None:
                states.append((counts,))
                continue
            kept = (self._tuples.ravel(),) if kept is None else kept  # values are counted apart from now on
            both = zip(kept, columns, of.identity, strict=True)
            states.append(
                tuple(np.concatenate([a[was], b[now]]).astype(kind.dtype, copy=False) for a, b, kind in both)
            )
        among = before[kernels.CELL_AMONG, :had]
        return WindowStates(slots, ring.extents.extent(wids)[1], states, self._number), among

    def before(self, windows: WindowStates) -> WindowStates:
        """Return those of some windows that had tuples, as they were."""
        wids = (windows.ends - self._ring.extents.origin) // self._ring.extents.slide - 1
        some, last = np.empty((3, wids.size), np.int64), len(self._tuples) - 1
        rows = Geometry(1, 1, 0, last, max(last, 0), self._tuples.shape[1], 0)
        tuples = self._tuples.ravel()
        some = some[:, : kernels.cells_of(rows, tuples, windows.slots, wids - self._first, some)]
        some[kernels.CELL_WINDOW] += self._first
        return of_cells(self._ring, some, self._number, tuples, self._columns)


def _of_one_pane(ring: PaneRing, lowest: int, cut: int) -> tuple[int, int]:
    """Return from which to which (exclusive) of some windows there are panes in a ring."""
    behind = (ring.high + 1) // ring.step
    first = min(max(lowest, ring.low // ring.step), behind)
    return first, max(min(cut, behind), first)
