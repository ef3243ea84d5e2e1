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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels import pane_rows as kernels
from oop_engine.operators.kernels.panes import Geometry
from oop_engine.operators.slicing.closed import Closed
from oop_engine.operators.slicing.components import Component, SumOverflowError
from oop_engine.operators.slicing.pane_states import PaneStates

__all__ = ["Sweep", "SweepOverflowError", "is_dense"]

Integers = NDArray[np.int64]

_SCRATCH = 1 << 20  # cells of the front
_BLOCK = 1 << 16  # groups at a time
_LONG = 4096  # panes of a window; with more the front alone would take more than all there is
_KERNEL, _ROW, _CELL, _STEP = 20_000, 10_000, 1, 40
"""Nanoseconds: of a sweep; of a row where Python goes from one to the next; of each of its cells; of a
window of one group by itself."""


def is_dense(geometry: Geometry, windows: int, closing: int, parts: Sequence[Part]) -> bool:
    """Tell whether it pays to sweep over ``windows`` windows, of which groups have at most ``closing`` in all."""
    rows = 3 * windows + geometry.length
    each = _CELL * geometry.groups + (0 if all(map(_invertible, parts)) else _ROW)
    return geometry.length <= _LONG and _KERNEL + rows * each < _STEP * closing


class SweepOverflowError(SumOverflowError):
    """A checked sum of ``column`` would wrap in window ``wid`` of the group ``at``."""

    def __init__(self, column: str | None, at: int, wid: int) -> None:
        super().__init__(column, at)
        self.wid = wid


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

    def closed(self) -> Closed:
        """Return the windows that have a tuple, by window, then group.  O((windows + panes) x groups)."""
        slots, tuples = np.empty((2, self._closing + 1), np.int64)
        found = kernels.held(
            self._geometry, self._tuples, *self._sides, self._lowest, slots, tuples, self._ends
        )
        slots, tuples = slots[:found], tuples[:found]
        wids = np.empty(found, np.int64)
        kernels.windows(self._lowest, self._ends, wids)
        states = [
            (tuples,) if columns is None else self._states(of, tuple(map(self._rows, columns)), slots)
            for of, columns in zip(self._held.components, self._held.columns, strict=True)
        ]
        return Closed(slots, wids, states, in_order=True)

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

    def _states(self, of: Component, columns: Arrays, slots: Integers) -> Arrays:
        """Return the states of all windows, for one part."""
        out = tuple(np.empty(slots.size, column.dtype) for column in columns)
        if _invertible(of.part):
            wid, slot = kernels.totals(self._geometry, *columns, self._lowest, self._ends, slots, *out)
            if slot >= 0:
                raise SweepOverflowError(of.part.column, int(slot), int(wid))
        else:
            size = max(256, min(_BLOCK, _SCRATCH // self._geometry.length))
            for start in range(0, self._groups, size):
                self._by_stacks(of, columns, slice(start, min(start + size, self._groups)), slots, out)
        return out

    def _by_stacks(self, of: Component, columns: Arrays, block: slice, slots: Integers, out: Arrays) -> None:
        step, length, low, high, _, _ = self._geometry
        stacks = _Stacks(of, columns, block, self._geometry.mask)
        behind = 0
        for w, end in enumerate(self._ends.tolist()):
            wid = self._lowest + w
            start, till = max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)
            if start < till:
                state = stacks.window(start, till)
                here = slots[behind:end]
                some = slice(*(np.searchsorted(here, [block.start, block.stop]) + behind))
                for column, values in zip(out, state, strict=True):
                    values.take(slots[some] - block.start, out=column[some], mode="clip")
            behind = end


def _invertible(part: Part) -> bool:
    """Tell whether what was added can be taken away again, to the last digit."""
    return part.kind == "count" or (part.kind == "sum" and not part.floating)


class _Stacks:
    """Windows of a block of groups by two stacks, one after the other; states are columns (groups,)."""

    def __init__(self, of: Component, columns: Arrays, block: slice, mask: int) -> None:
        self._of, self._columns, self._block, self._mask = of, columns, block, mask
        self._front: list[
            Arrays
        ] = []  # what each pane and all later ones of the front have together, backwards
        self._turn = 0  # the first pane behind the front
        self._back: Arrays | None = None
        self._done = 0  # the first pane behind the back

    def window(self, begin: int, end: int) -> Arrays:
        """Return what the panes from ``begin`` to ``end`` (exclusive) have together; both never shrink."""
        if not self._front or begin >= self._turn:
            self._make_front(begin, end)
        for pane in range(self._done, end):
            row = self._pane(pane)
            self._back = row if self._back is None else self._both(self._back, row)
        self._done = end
        front = self._front[self._turn - 1 - begin]
        return front if self._back is None else self._both(front, self._back)

    def _make_front(self, begin: int, end: int) -> None:
        self._front, self._back, self._turn, self._done = [], None, end, end
        for pane in range(end - 1, begin - 1, -1):
            row = self._pane(pane)
            self._front.append(self._both(row, self._front[-1]) if self._front else row)

    def _pane(self, pane: int) -> Arrays:
        """Return what a block of groups has in a pane: views of the ring."""
        return tuple(column[pane & self._mask, self._block] for column in self._columns)

    def _both(self, a: Arrays, b: Arrays) -> Arrays:
        part = self._of.part
        if part.kind not in ("first", "last", "moments"):
            with np.errstate(invalid="ignore", over="ignore"):  # infinities are summed as IEEE has it
                return self._of.combine(a, b)
        out = tuple(np.empty_like(column) for column in a)
        if part.kind == "moments":
            kernels.moments(a, b, out)
        else:
            kernels.edge(*a, *b, *out, part.kind == "last")
        return out
