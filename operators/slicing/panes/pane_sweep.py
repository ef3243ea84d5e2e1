"""The sweep: windows of many groups put together at once, pane after pane.

Where most groups have something in most panes, the row of a pane, all groups next to each other, is combined
with the next row in vector instructions; going from group to group takes ten times as long.

Counts and integer sums go from window to window by what comes in and what goes out, all windows in one
kernel.  For all others a window is what the panes of the *front* from its start on have together, and what
the panes behind the front, the *back*, have together (two stacks).  When its start passes the front, its
panes become the new front.  So there are at most three combinations a pane and window.  The ring's own
cells are only read.

Source: van Herk 1992; Tangwongsan, Hirzel, Schneider, DEBS 2017 (two stacks).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels import pane_rows as kernels
from oop_engine.operators.kernels.panes import Geometry
from oop_engine.operators.kernels.slices import measure, plan
from oop_engine.operators.slicing.accumulators import Accumulator, SumOverflowError, is_compiled
from oop_engine.operators.slicing.panes.pane_states import PaneStates

__all__ = ["Sweep", "is_dense"]

Integers = NDArray[np.int64]

_WHERE = np.zeros(1, np.int64)  # panes are where they are in the ring
_SCRATCH = 1 << 20  # cells of the front and of windows
_BLOCK = 1 << 16  # groups at a time
_LONG = 4096  # panes of a window; with more the front alone would take more than all there is
_KERNEL, _ROW, _CELL, _STEP = 20_000, 10_000, 1, 40
"""Nanoseconds: of a sweep; of a row where Python goes from one to the next; of each of its cells; of a
window of one group by itself."""


def is_dense(geometry: Geometry, windows: int, closing: int, parts: Sequence[Part]) -> bool:
    """Tell whether it pays to sweep over ``windows`` windows, of which groups have at most ``closing`` in all."""
    rows = 3 * windows + geometry.length
    least = _KERNEL + rows * _CELL * geometry.groups
    if geometry.length > _LONG or least >= _STEP * closing:
        return False
    return is_compiled(parts) or least + rows * _ROW < _STEP * closing


class Sweep:
    """Closes windows ``first[i]`` to ``stop[i]`` (exclusive) of groups ``slots[i]`` of a ring, all int64 (n,)."""

    def __init__(
        self, states: PaneStates, geometry: Geometry, slots: Integers, first: Integers, stop: Integers
    ) -> None:
        self._held, self._geometry = states, geometry
        self._tuples = self._rows(states.tuples)
        self._slots, self._stop = slots, stop
        self._groups = int(slots.max()) + 1
        self._lowest = int(first.min())
        self._ends = np.zeros(int(stop.max()) - self._lowest, np.int64)
        self._sides = np.zeros((2, self._groups), np.int32)  # counted from the lowest one on
        self._sides[0, slots], self._sides[1, slots] = first - self._lowest, stop - self._lowest
        self._closing = int((stop - first).sum())

    def closed(self) -> tuple[Integers, Integers, list[Arrays]]:
        """Return slots, windows and states, by window, then group.  O((windows + panes) x groups)."""
        slots, tuples = np.empty((2, self._closing + 1), np.int64)
        found = kernels.held(
            self._geometry, self._tuples, *self._sides, self._lowest, slots, tuples, self._ends
        )
        slots, tuples = slots[:found], tuples[:found]
        wids = np.empty(found, np.int64)
        kernels.windows(self._lowest, self._ends, wids)
        states = [
            (tuples,) if columns is None else self._states(of, tuple(map(self._rows, columns)), slots, wids)
            for of, columns in zip(self._held.accumulators, self._held.columns, strict=True)
        ]
        return slots, wids, states

    def free(self) -> int:
        """Forget the tuples that no later window needs; return how many cells they had.  O(panes x groups).

        Their states stay until the whole pane is emptied: nothing asks for them, and nothing comes there.
        """
        step, length, low, high, _, _ = self._geometry
        needed = np.full(self._groups, low)
        needed[self._slots] = (self._stop + 1) * step - length
        begin = max(low, (self._lowest + 1) * step - length)
        panes = max(min(high + 1, int(needed.max())) - begin, 0)
        return int(kernels.free(self._tuples, needed, begin, panes))

    def _rows(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a row a pane, of all groups."""
        room = self._geometry.mask + 1
        return column.reshape(room + 1, -1)[:room]

    def _states(self, of: Accumulator, columns: Arrays, slots: Integers, wids: Integers) -> Arrays:
        """Return the states of all windows, for one part."""
        if not of.invertible:
            return self._by_stacks(of, columns, slots, wids)
        out = tuple(np.empty(slots.size, column.dtype) for column in columns)
        wid, slot = kernels.totals(self._geometry, *columns, self._lowest, self._ends, slots, *out)
        if slot >= 0:
            raise SumOverflowError(of.part.column, int(wid), int(slot))
        return out

    def _by_stacks(self, of: Accumulator, columns: Arrays, slots: Integers, wids: Integers) -> Arrays:
        """Put all windows of a block of groups together, block after block, and take those that have a tuple."""
        steps, first, windows = self._plan
        out = tuple(np.empty(slots.size, column.dtype) for column in columns)
        scratch = min(self._geometry.length, steps.shape[1]) + 1
        size = max(256, min(_BLOCK, _SCRATCH // (scratch + windows)))
        for begin in range(0, self._groups, size):
            wide = min(size, self._groups - begin)
            some = slice(None) if wide == self._groups else (slots >= begin) & (slots < begin + wide)
            at = (wids[some] - first) * wide + slots[some] - begin
            for column, found in zip(
                out, of.fold_rows(columns, begin, wide, (scratch, windows), steps), strict=True
            ):
                column[some] = found.ravel().take(at)
        return out

    @cached_property
    def _plan(self) -> tuple[Integers, int, int]:
        """The steps for all windows, which is the first one that has panes, and how many have."""
        step, length, low, high, mask, _ = self._geometry
        shape, behind = np.array([[step], [length], [0], [0]]), self._lowest + self._ends.size
        spans = np.array([[low, high, self._lowest * step, behind * step]])
        room, scratch = np.empty((2, 1), np.int64), np.empty((2, 1), np.int64)
        measure(shape, spans, room)
        most, steps = room[:, 0].tolist()
        made, windows = np.empty((3, steps), np.int64), np.empty((3, most), np.int64)
        used, found = plan(shape, spans, _WHERE, mask, made, windows, scratch)
        return made[:, :used], int(windows[1, 0]) if found else 0, found
