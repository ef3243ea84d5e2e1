"""Pane windows: how the windows of a grid that close are put together from the panes in a ring.

Either group by group: the steps are planned with two stacks (``kernels/panes.py``) and taken in the columns of each
part.  Or by a sweep over all groups, where most of them have something in most panes: the row of a pane, all groups
next to each other, is combined with the next row in vector instructions; to go from group to group takes ten times
as long.

In a sweep counts and integer sums go from window to window by the panes that come in and go out, all windows in one
kernel.  For all others a window is the panes of the *front* from its start on, combined, and the panes behind the
front, the *back*, combined (two stacks).  When its start passes the front, its
panes become the new front.  So there are at most three combinations a pane and window.  The ring's own
cells are only read.

Source: van Herk 1992; Tangwongsan, Hirzel, Schneider, DEBS 2017 (two stacks).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels import pane_rows as kernels
from oop_engine.operators.kernels import panes
from oop_engine.operators.kernels.slices import UNITS
from oop_engine.operators.slicing.accumulator import Accumulator, SumOverflowError, result_of
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.panes.window_plans import TUPLES, Stacks, WindowShape
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers

__all__ = ["PaneSweep", "is_dense", "read_each", "take"]

_STEPS = 1 << 18  # of windows put together at a time: 6 MB
_WHERE = np.zeros(1, np.int64)  # panes are where they are in the ring
_SCRATCH = 1 << 20  # cells of the front and of windows
_BLOCK = 1 << 16  # groups at a time
_CELLS = 4096  # so few are swept over in less time than Python takes to look for those of a group
_LONG = 4096  # panes of a window; with more the front alone would take more than all there is
_KERNEL, _ROW, _CELL, _STEP = 20_000, 10_000, 1, 40
"""Nanoseconds: of a sweep; of a row where Python goes from one to the next; of each of its cells; of a
window of one group by itself."""
_MOST = np.maximum.reduce
_EVERY = np.logical_and.reduce


def take(
    ring: PaneRing, slots: Integers, low: Integers, stop: Integers, number: int = 0, *, forget: bool = True
) -> WindowStates:
    """Put windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]`` together, and forget them.

    A group's windows are taken in order.  ``number``: that of their definition.  ``forget``: False if they stay, in a
    ring that is ``still``.  O(panes passed), in kernels, of a still ring O(panes of windows); or by a sweep over all
    groups, where that is less.  Raises ``WindowOverflowError``.
    """
    least, most = ring.low // ring.step, (ring.high + ring.length) // ring.step
    some = np.empty((3, slots.size), np.int64)
    many, lowest, behind, closing = panes.clipped(slots, low, stop, least, most, ring.groups, some)
    slots, first, stop = some[:, :many]
    if not many:
        return _nothing(ring, number)
    windows = behind - lowest
    once = ring.exact or not ring.still  # else it may be read again, and must be the same to the last digit
    dense = once and _STEP * closing > _KERNEL and is_dense(ring.geometry, windows, closing, ring.compiled)
    if dense and not _MOST(ring.turns[0]) > ring.low:
        return _swept(ring, PaneSweep(ring, some[:, :many], lowest, behind, closing), number, forget=forget)
    in_order = many == 1 or (windows == 1 and bool(_EVERY(slots[1:] > slots[:-1])))
    found = _blocks(ring, slots, first, stop)
    if ring.still and forget:
        ring.forget_windows(slots, first, stop)
    if len(found) == 1:
        together = WindowStates(*found[0], number, None, in_order)
        return together if in_order else WindowStates.ordered([together])
    return WindowStates.ordered([WindowStates(*some, number) for some in found])


def take_all(
    ring: PaneRing, lowest: int, cut: int, number: int = 0, *, forget: bool = True
) -> WindowStates | None:
    """Put windows ``lowest`` to ``cut`` (exclusive) of all groups together by a sweep, and forget them, or not.

    None where that does not pay, or a window has more than one pane.  O(windows x groups).
    """
    lowest, behind = max(lowest, ring.low // ring.step), min(cut, (ring.high + ring.length) // ring.step)
    windows = behind - lowest
    if windows <= 0 or ring.length > 1:
        return None
    few = ring.summed and windows * ring.groups <= _CELLS
    if not (few or is_dense(ring.geometry, windows, ring.used, ring.compiled)):
        return None
    return _swept(ring, PaneSweep(ring, None, lowest, behind, ring.used), number, forget=forget)


def read_each(ring: PaneRing, slots: Integers, wids: Integers, number: int = 0) -> WindowStates:
    """Put windows ``wids[i]`` of ``slots[i]`` together, which are by number, then group, and forget nothing."""
    if ring.length == 1:
        return _read_cells(ring, slots, wids, number)
    least, most = ring.low // ring.step, (ring.high + ring.length) // ring.step
    some = np.empty((3, slots.size), np.int64)
    many, *_ = panes.clipped(slots, wids, wids + 1, least, most, ring.groups, some)
    if not many:
        return _nothing(ring, number)
    blocks = [WindowStates(*found, number) for found in _blocks(ring, *some[:, :many])]
    return (blocks[0] if len(blocks) == 1 else WindowStates.joined(blocks))._replace(in_order=True)


def _read_cells(ring: PaneRing, slots: Integers, wids: Integers, number: int) -> WindowStates:
    """Do so where windows are of one pane."""
    some = np.empty((3, slots.size), np.int64)
    slots, wids, cells = some[:, : kernels.cells_of(ring.geometry, ring.tuples, slots, wids, some)]
    tuples = ring.tuples[cells].astype(np.int64)
    states = [
        (tuples,) if columns is None else tuple(column[cells] for column in columns)
        for columns in ring.columns
    ]
    return WindowStates(slots, ring.extents.extent(wids)[1], states, number, in_order=True)


def _nothing(ring: PaneRing, number: int) -> WindowStates:
    none = np.empty(0, np.int64)
    return WindowStates(none, none, [of.empty(0) for of in ring.accumulators], number)


def _blocks(
    ring: PaneRing, slots: Integers, first: Integers, stop: Integers
) -> list[tuple[Integers, Integers, list[Arrays]]]:
    """Return the slots, ends and states of windows in blocks of groups, by group, then window.

    The panes of a still ring are read; of another one those that no later window needs are freed.
    """
    widest, there = int(_MOST(stop - first)), ring.high - ring.low + 1
    stacks = widest + 2 * min(there, (widest - 1) * ring.step + ring.length)
    each = widest * min(there, ring.length) if ring.still else stacks
    room = max(each, min(_STEPS, each * slots.size))
    steps, results = np.empty((3, room), np.int64), np.empty((2, room), np.int64)
    freed, begin, gone = np.empty(0 if ring.still else room, np.int64), 0, 0
    blocks: list[tuple[Integers, Integers, list[Arrays]]] = []
    while begin < slots.size:
        asked = slots, first, stop, begin, steps, results
        if ring.still:
            begin, made, found = panes.read(ring.geometry, ring.tuples, *asked)
        else:
            ring.turned = True
            begin, made, found, gone = panes.plan(ring.geometry, ring.tuples, ring.turns, *asked, freed)
        of, wids = results[:, :found].copy()
        states = _folded(ring, steps[:, :made], of, wids)
        if not ring.still:
            ring.used -= gone
            ring.tuples[freed[:gone]] = 0
            ring.swept = True  # states stay until the whole pane is emptied
        blocks.append((of, ring.extents.extent(wids)[1], states))
    return blocks


def is_dense(geometry: panes.Geometry, windows: int, closing: int, compiled: bool) -> bool:
    """Tell whether it pays to sweep over ``windows`` windows, of which groups have at most ``closing`` in all.

    ``compiled``: all parts are combined in compiled loops.
    """
    rows = 3 * windows + geometry.length
    least = _KERNEL + rows * _CELL * geometry.groups
    if geometry.length > _LONG or least >= _STEP * closing:
        return False
    return compiled or least + rows * _ROW < _STEP * closing


def _folded(ring: PaneRing, steps: Integers, slots: Integers, wids: Integers) -> list[Arrays]:
    """Take ``steps`` int64 (3, steps), in order, in the columns of each part; return the states of windows."""
    try:
        tuples, states = TUPLES.fold_steps((ring.tuples,), steps, slots.size), []
        for of, columns in zip(ring.accumulators, ring.columns, strict=True):
            states.append(tuples if columns is None else of.fold_steps(columns, steps, slots.size))
    except SumOverflowError as error:
        result = result_of(steps, error.at)
        raise ring.overflow(error.column, slots[result], wids[result]) from None
    return states


def _swept(ring: PaneRing, sweep: PaneSweep, number: int, *, forget: bool) -> WindowStates:
    """Close windows where no pane is in a front, so that each holds its own tuples alone."""
    try:
        of_windows, ends, states = sweep.closed(forget=forget)
    except SumOverflowError as error:
        raise ring.overflow(error.column, error.group, error.at) from None
    if forget:
        ring.used -= sweep.free()
        ring.swept = True
    return WindowStates(of_windows, ends, states, number, in_order=True)


class PaneSweep:
    """Puts windows together: ``some`` int64 (3, n), as ``kernels.panes.clipped`` writes and counts them.

    None: all that there are, each of one pane.  ``lowest``: the lowest of them, ``behind``: the first one behind all;
    ``closing``: how many there are at most.
    """

    def __init__(self, ring: PaneRing, some: Integers | None, lowest: int, behind: int, closing: int) -> None:
        self._ring, self._geometry = ring, ring.geometry
        self._tuples = ring.rows(ring.tuples)
        self._groups, self._closing = ring.groups, closing
        self._lowest, self._behind = lowest, behind
        self._ends = np.zeros(self._behind - self._lowest, np.int64)
        self._all = some is None
        if some is not None:
            self._groups = int(_MOST(some[0])) + 1
            self._sides = np.empty((2, self._groups), np.int32)  # counted from the lowest one on
            self._needed = np.empty(self._groups, np.int64)
            kernels.sides(self._geometry, *some, lowest, *self._sides, self._needed)

    def closed(self, *, forget: bool = True) -> tuple[Integers, Integers, list[Arrays]]:
        """Return slots, ends and states, by window, then group.  O((windows + panes) x groups).

        ``forget``: ``free`` follows.
        """
        slots, tuples = np.empty((2, self._closing + 1), np.int64)
        ring, out = (self._geometry, self._tuples), (self._lowest, slots, tuples, self._ends)
        of_each = () if self._all else self._sides
        found = (kernels.all_held if self._all else kernels.held)(*ring, *of_each, *out, forget)
        slots, tuples = slots[:found], tuples[:found]
        states = [
            (tuples,) if columns is None else self._states(of, tuple(map(self._ring.rows, columns)), slots)
            for of, columns in zip(self._ring.accumulators, self._ring.columns, strict=True)
        ]
        return slots, self._spread(self._ring.extents.extent(self._windows)[1]), states

    @property
    def _windows(self) -> Integers:
        return np.arange(self._lowest, self._behind)

    def _spread(self, values: Integers) -> Integers:
        """Return for each result the value of its window in ``values`` int64 (windows,)."""
        out = np.empty(self._ends[-1], np.int64)
        kernels.spread(values, self._ends, out)
        return out

    def free(self) -> int:
        """Forget the tuples that no later window needs; return how many cells they had.  O(panes x groups).

        Their states stay until the whole pane is emptied: nothing asks for them, and nothing comes there.
        """
        step, length, low, high, _, _ = self._geometry
        if length == 1:
            return int(self._ends[-1])  # forgotten as they were found
        begin = max(low, (self._lowest + 1) * step - length)
        panes = max(min(high + 1, (self._behind + 1) * step - length) - begin, 0)
        return int(kernels.free(self._tuples, self._needed, begin, panes))

    def _states(self, of: Accumulator, columns: Arrays, slots: Integers) -> Arrays:
        """Return the states of all windows, for one part."""
        if not of.invertible:
            return self._by_stacks(of, columns, slots)
        out = tuple(np.empty(slots.size, column.dtype) for column in columns)
        of.totals(self._geometry, columns, self._lowest, self._ends, slots, out)
        return out

    def _by_stacks(self, of: Accumulator, columns: Arrays, slots: Integers) -> Arrays:
        """Put all windows of a block of groups together, block after block, and take those that have a tuple."""
        (steps, closing, scratch), wids = self._plan, self._spread(self._windows)
        out = tuple(np.empty(slots.size, column.dtype) for column in columns)
        windows = closing.shape[1]
        size, first = max(256, min(_BLOCK, _SCRATCH // (scratch + windows))), closing[1, 0] if windows else 0
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
    def _plan(self) -> Stacks:
        """The steps for all windows."""
        step, length, low, high, mask, _ = self._geometry
        of = WindowShape(np.array([[step], [length], [0], [0]]), UNITS, length)
        spans = np.array([[low, high, self._lowest * step, self._behind * step]])
        return Stacks.planned(of, spans, _WHERE, mask, of.measured(spans))
