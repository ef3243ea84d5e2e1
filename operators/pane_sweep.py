"""The sweep: windows of many groups put together at once, pane after pane.

Where most groups have something in most panes, the row of a pane, all groups next to each other, is combined
with the next row in vector instructions; going from group to group takes ten times as long.

Counts and integer sums go from window to window by what comes in and what goes out.  For all others a
window is what the panes of the *front* from its start on have together, and what the panes behind the front,
the *back*, have together (two stacks).  When its start passes the front, its panes become the new
front.  So there are at most three combinations a pane and window.  The ring's own cells are only read.

Source: van Herk 1992; Tangwongsan, Hirzel, Schneider, DEBS 2017 (two stacks).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from operators.aggregates import Arrays, Part
from operators.closed import Closed, joined
from operators.components import SumOverflowError
from operators.kernels import pane_rows as kernels
from operators.kernels.panes import Geometry

__all__ = ["Row", "Sweep", "SweepOverflowError", "is_dense"]

Integers = NDArray[np.int64]

_SCRATCH = 1 << 20  # cells of the front
_BLOCK = 1 << 16  # groups at a time
_LONG = 4096  # panes of a window; with more the front alone would take more than all there is
_ROW, _CELL, _STEP = 10_000, 1, 40  # nanoseconds: of a row, of each of its cells; of a window of one group


def is_dense(geometry: Geometry, windows: int, closing: int) -> bool:
    """Tell whether it pays to sweep over ``windows`` windows, of which groups have at most ``closing`` in all."""
    rows = 3 * windows + geometry.length
    return geometry.length <= _LONG and rows * (_ROW + _CELL * geometry.groups) < _STEP * closing


class Row(NamedTuple):
    """What the groups of a block have together: ``held`` integers (slots,), and columns of each part, (slots,)."""

    held: NDArray[np.integer]
    states: list[Arrays]


class SweepOverflowError(SumOverflowError):
    """A checked sum of ``column`` would wrap in window ``wid`` of the group ``at``."""

    def __init__(self, column: str | None, at: int, wid: int) -> None:
        super().__init__(column, at)
        self.wid = wid


class Sweep:
    """Closes windows ``first[g]`` to ``stop[g]`` (exclusive), int64 (groups,), of each group ``g`` of a ring."""

    def __init__(
        self, parts: Sequence[Part], columns: Sequence[Arrays], present: NDArray[np.uint8],
        geometry: Geometry, first: Integers, stop: Integers,
    ) -> None:  # fmt: skip
        self._parts = parts
        self._geometry = geometry
        room = geometry.mask + 1
        self._present = present.reshape(room, geometry.groups)
        self._columns = [tuple(c.reshape(room + 1, -1) for c in state) for state in columns]
        self._first, self._stop = first, stop
        some = first < stop
        self._lowest, self._highest = int(first[some].min()), int(stop[some].max())

    def closed(self) -> Closed:
        """Return the windows that have a tuple.  O((windows + panes) x groups)."""
        size = max(256, min(_BLOCK, _SCRATCH // self._geometry.length))
        groups = int(np.flatnonzero(self._first < self._stop)[-1]) + 1
        return joined([self._block(slice(at, min(at + size, groups))) for at in range(0, groups, size)])

    def free(self) -> int:
        """Empty the cells that no later window needs; return how many.  O(panes x groups)."""
        step, length, low, high, _, _ = self._geometry
        needed = np.where(self._first < self._stop, (self._stop + 1) * step - length, low)
        begin = max(low, (self._lowest + 1) * step - length)
        panes = min(high + 1, (self._highest + 1) * step - length) - begin
        return int(kernels.free(self._present, needed, begin, max(panes, 0)))

    def _block(self, block: slice) -> Closed:
        step, length, low, high, _, _ = self._geometry
        first, stop = self._first[block], self._stop[block]
        room = int(np.maximum(stop - first, 0).sum())
        slots, wids = np.empty(room + first.size + 1, np.int64), np.empty(room, np.int64)
        states = [tuple(np.empty(room, column.dtype) for column in state) for state in self._columns]
        windows = self._windows(block)
        found = 0
        for wid in range(self._lowest, self._highest) if room else ():
            begin, end = max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)
            if begin >= end:
                continue
            row = windows.row(begin, end, wid)
            till = found + kernels.pick(row.held, first, stop, wid, slots[found:])
            wids[found:till] = wid
            for state, columns in zip(states, row.states, strict=True):
                for column, values in zip(state, columns, strict=True):
                    values.take(slots[found:till], out=column[found:till], mode="clip")
            found = till
        taken = [tuple(column[:found] for column in state) for state in states]
        return Closed(slots[:found] + block.start, wids[:found], taken)

    def _windows(self, block: slice) -> _Windows:
        if self._geometry.length == 1:
            return _Panes(self, block)
        return (_Running if all(map(_invertible, self._parts)) else _Stacks)(self, block)

    def pane(self, pane: int, block: slice) -> Row:
        """Return what a block of groups has in a pane: views of the ring."""
        at = pane & self._geometry.mask
        states = [tuple([column[at, block] for column in state]) for state in self._columns]
        return Row(self._present[at, block], states)

    def both(self, one: Row, other: Row, block: slice, wid: int) -> Row:
        """Return what two rows have together.  Raises ``SweepOverflowError``."""
        states = []
        for part, a, b in zip(self._parts, one.states, other.states, strict=True):
            out = tuple(np.empty_like(column) for column in a)
            columns = (*a, one.held, *b, other.held, *out)
            if part.kind in ("min", "max"):
                kernels.extreme(*columns, part.kind == "max")
            elif part.kind in ("first", "last"):
                kernels.edge(*columns, part.kind == "last")
            elif part.kind == "moments":
                kernels.moments(a, one.held, b, other.held, out)
            elif part.kind == "count" or part.floating:
                kernels.add(*columns)
            elif (slot := int(kernels.add_checked(*columns))) >= 0:
                raise SweepOverflowError(part.column, block.start + slot, wid)
            states.append(out)
        return Row(one.held | other.held, states)

    def moved(self, total: Row, pane: Row, sign: int, block: slice, wid: int) -> None:
        """Add a pane to ``total``, or take it away.  Raises ``SweepOverflowError``."""
        (np.add if sign > 0 else np.subtract)(total.held, pane.held, out=total.held)
        for part, (column,), (more,) in zip(self._parts, total.states, pane.states, strict=True):
            if (slot := int(kernels.move(column, more, pane.held, sign))) >= 0:
                raise SweepOverflowError(part.column, block.start + slot, wid)


def _invertible(part: Part) -> bool:
    """Tell whether what was added can be taken away again, to the last digit."""
    return part.kind == "count" or (part.kind == "sum" and not part.floating)


class _Windows(Protocol):
    """Windows of a block of groups, one after the other."""

    def row(self, begin: int, end: int, wid: int) -> Row:
        """Return what the panes from ``begin`` to ``end`` (exclusive) have together; both never shrink."""
        ...


class _Panes:
    """Windows that are panes."""

    def __init__(self, sweep: Sweep, block: slice) -> None:
        self._sweep, self._block = sweep, block

    def row(self, begin: int, end: int, wid: int) -> Row:
        return self._sweep.pane(begin, self._block)


class _Running:
    """Windows by what comes in and what goes out."""

    def __init__(self, sweep: Sweep, block: slice) -> None:
        self._sweep, self._block = sweep, block
        self._begin = self._end = 0
        self._total: Row | None = None

    def row(self, begin: int, end: int, wid: int) -> Row:
        if self._total is None:
            slots = self._block.stop - self._block.start
            states = [tuple(np.zeros(slots, np.int64) for _ in state) for state in self._pane(begin).states]
            self._total, self._begin, self._end = Row(np.zeros(slots, np.int32), states), begin, begin
        for pane in range(self._begin, min(begin, self._end)):
            self._sweep.moved(self._total, self._pane(pane), -1, self._block, wid)
        for pane in range(max(begin, self._end), end):
            self._sweep.moved(self._total, self._pane(pane), 1, self._block, wid)
        self._begin, self._end = begin, end
        return self._total

    def _pane(self, pane: int) -> Row:
        return self._sweep.pane(pane, self._block)


class _Stacks:
    """Windows by two stacks."""

    def __init__(self, sweep: Sweep, block: slice) -> None:
        self._sweep, self._block = sweep, block
        self._front: list[Row] = []  # what each pane and all later ones of the front have together, backwards
        self._turn = 0  # the first pane behind the front
        self._back: Row | None = None
        self._done = 0  # the first pane behind the back

    def row(self, begin: int, end: int, wid: int) -> Row:
        if not self._front or begin >= self._turn:
            self._make_front(begin, end, wid)
        for pane in range(self._done, end):
            row = self._sweep.pane(pane, self._block)
            self._back = row if self._back is None else self._both(self._back, row, wid)
        self._done = end
        front = self._front[self._turn - 1 - begin]
        return front if self._back is None else self._both(front, self._back, wid)

    def _make_front(self, begin: int, end: int, wid: int) -> None:
        self._front, self._back, self._turn, self._done = [], None, end, end
        for pane in range(end - 1, begin - 1, -1):
            row = self._sweep.pane(pane, self._block)
            self._front.append(self._both(row, self._front[-1], wid) if self._front else row)

    def _both(self, one: Row, other: Row, wid: int) -> Row:
        return self._sweep.both(one, other, self._block, wid)
