"""Window plans: the steps that put windows together from slices in a ring, taken for groups side by side.

``by_stacks`` plans them from the slices alone, each time that windows close (lazy).  ``SliceTree`` keeps slices
combined by twos, by fours, and so on (eager), for few windows of very many slices: a window costs two nodes a level,
and so does a slice that changed, where stacks go through all slices of a window.  A node may be of slices that no
window has together.  If its integer sum does not fit 64 bits that tells nothing of windows, so then slices are read one
by one.

Source: van Herk 1992; Tangwongsan, Hirzel, Schneider, Wu, VLDB 2015 (FlatFAT).
"""

from __future__ import annotations

import numpy as np

from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.monoids import STEP_A
from oop_engine.operators.kernels.sliding import ALONE, over_ranges
from oop_engine.operators.kernels.tree import climb, descend
from oop_engine.operators.slicing.accumulators import accumulator
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.values.columns import Integers, bytes_of

__all__ = ["TUPLES", "SliceTree", "by_stacks"]

TUPLES = accumulator(Part("count"))
"""Keeps how many tuples there are in a cell."""

_COUNTED = np.empty((3, 0), np.int64)  # no room: steps are counted


def by_stacks(sides: Integers, first: int = 0, room: int = 0) -> tuple[Integers, int]:
    """Return the steps of ``fold_rows`` for windows, ranges ``sides`` int64 (2, windows) of rows, and rows of scratch.

    Windows come best by their ends; window ``w`` is result ``w``.
    Row ``r`` is row ``(first + r) % room`` of a ring; ``room`` 0: it is row ``r``.
    """
    low, high = sides
    steps = np.empty((3, over_ranges(low, high, -1, 0, _COUNTED)), np.int64)
    over_ranges(low, high, -1, 0, steps)
    if room:
        rows = steps[STEP_A:]
        inside = (rows < 0) & (rows != ALONE)
        rows[inside] = ~((~rows[inside] + first) % room)
    return steps, int((high - low).max(initial=0)) + 1


class SliceTree:
    """The nodes above the slices of ``ring``; a window has ``longest`` of them at most.

    A slice that tuples come into makes the nodes above it stale; these are combined anew when windows are read.  The
    nodes take as much memory as the ring.
    """

    def __init__(self, ring: PaneRing, longest: int) -> None:
        self._ring, self._longest = ring, longest
        self.clear()

    def clear(self) -> None:
        """Forget the nodes: they are made anew when they are read."""
        self._nodes: list[Arrays] = []
        self._of: Arrays = ()
        self._stale = np.empty(0, np.bool_)
        self._low, self._high = 0, -1

    @property
    def nbytes(self) -> int:
        return self._stale.nbytes + bytes_of(self._nodes)

    def touch(self, slices: Integers) -> None:
        """Learn that tuples came into slices.  O(tuples)."""
        if self._stale.size:
            self._stale[slices & (self._stale.size - 1)] = True

    def planned(self, sides: Integers, lowest: int) -> tuple[Integers, list[Arrays]]:
        """Return the same for slices as they are now, ``sides`` being counted from ``lowest`` on.

        The scratch are the nodes: those of numbers of tuples, then those of each part.
        """
        ring = self._ring
        held = [(ring.tuples,), *(state or () for state in ring.columns)]
        of = tuple(column for state in held for column in state)
        if len(of) != len(self._of) or any(one is not other for one, other in zip(of, self._of, strict=True)):
            self._of, self._stale = of, np.ones(ring.room, np.bool_)
            self._nodes = [tuple(np.empty_like(ring.rows(column)) for column in state) for state in held]
        self._note_reach()
        stale = np.flatnonzero(self._stale)
        self._stale[stale] = False
        top = 1 << (min(self._longest, ring.room).bit_length() - 1)
        steps = np.empty((3, (stale.size + 2 * sides.shape[1]) * (top.bit_length() + 2)), np.int64)
        used = climb(stale, ring.room, top, steps)
        used = descend(sides, lowest, ring.room, top, steps, used)
        return np.ascontiguousarray(steps[:, :used]), self._nodes

    def _note_reach(self) -> None:
        """Learn which slices have come into the ring."""
        ring = self._ring
        for begin, stop in (
            (ring.low, min(ring.high + 1, self._low)),
            (max(ring.low, self._high + 1), ring.high + 1),
        ):
            if begin < stop:
                self._stale[np.arange(begin, min(stop, begin + ring.room)) & (ring.room - 1)] = True
        self._low, self._high = ring.low, ring.high
