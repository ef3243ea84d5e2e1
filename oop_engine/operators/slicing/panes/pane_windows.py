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

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels import pane_rows as kernels
from oop_engine.operators.kernels import panes
from oop_engine.operators.slicing.accumulator import Accumulator, SumOverflowError, result_of
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.panes.window_plans import TUPLES, by_stacks
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers
from oop_engine.system.knobs import knob

__all__ = ["PaneSweep", "is_dense", "of_cells", "read_all", "read_each", "take", "take_all"]

_STEPS = knob(__name__, "_STEPS", 1 << 15)  # of windows put together at a time: 2 MB
_PART = knob(__name__, "_PART", 1 << 15)  # results, about, that a sweep puts together before they leave
_NONE = np.empty(0, np.int64)
_SCRATCH = knob(__name__, "_SCRATCH", 1 << 20)  # cells of the front and of windows
_BLOCK = knob(__name__, "_BLOCK", 1 << 16)  # groups at a time
_CELLS = knob(
    __name__, "_CELLS", 4096
)  # so few are swept over in less time than Python takes to look for those of a group
_LONG = knob(
    __name__, "_LONG", 4096
)  # panes of a window; with more the front alone would take more than all there is
_KERNEL = knob(__name__, "_KERNEL", 20_000)
_ROW = knob(__name__, "_ROW", 10_000)
_LINE = knob(__name__, "_LINE", 80)
_CELL = 1
_STEP = knob(__name__, "_STEP", 40)
"""Nanoseconds: of a sweep; of a row where Python goes from one to the next, and where a kernel does; of each of its
cells; of a window of one group by itself.  So fewer than seven groups are not swept over."""
_COUNT = np.dtype(
    np.int32
)  # do for the tuples of a window that is swept, where 16 bits do for those of a pane
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
    dense = (
        _STEP * closing > _KERNEL
        and _exact(ring)
        and is_dense(ring.geometry, windows, closing, ring.compiled)
    )
    if dense and not _in_fronts(ring):
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
    ring: PaneRing, lowest: int, cut: int, alive: int, number: int = 0
) -> Iterable[WindowStates] | None:
    """Put windows ``lowest`` to ``cut`` (exclusive) of all groups, ``alive`` of them, together by a sweep; forget them.

    They come in parts, in order, each put together when it is asked for.  None where that does not pay.
    O((windows + panes) x groups).  Raises ``WindowOverflowError``.
    """
    pane = (lowest + 1) * ring.step - 1
    one = cut - lowest == ring.length == 1 and ring.low <= pane <= ring.high
    if one and ring.summed and ring.groups <= _CELLS and not _in_fronts(ring):
        return [_take_row(ring, lowest, pane, number)]
    reach = _all_between(ring, lowest, cut, alive)
    return None if reach is None else _in_parts(ring, PaneSweep(ring, None, *reach), number)


def _take_row(ring: PaneRing, wid: int, pane: int, number: int) -> WindowStates:
    """Take out a window that is one pane, of few groups: a fifth of the time of a sweep, as rows come one by one."""
    begin = pane % ring.room * ring.groups
    row = ring.tuples[begin : begin + ring.groups]
    (slots,) = row.nonzero()
    ends, counts = np.empty(slots.size, np.int64), row[slots].astype(np.int64)
    ends.fill(ring.extents.origin + (wid + 1) * ring.extents.slide)
    states = _in_cells(ring, slots + begin, counts, ring.columns)
    row.fill(0)
    ring.used, ring.swept = ring.used - slots.size, True
    return WindowStates(slots, ends, states, number, in_order=True)


def read_all(ring: PaneRing, lowest: int, cut: int, alive: int, number: int = 0) -> WindowStates | None:
    """Do so, and forget nothing, in a ring that is ``still``."""
    if (reach := _all_between(ring, lowest, cut, alive)) is None:
        return None
    return _swept(ring, PaneSweep(ring, None, *reach), number, forget=False)


def _all_between(ring: PaneRing, lowest: int, cut: int, alive: int) -> tuple[int, int, int] | None:
    """Return the first of such windows, the one behind all, and how many there are at most, where a sweep pays."""
    lowest, behind = max(lowest, ring.low // ring.step), min(cut, (ring.high + ring.length) // ring.step)
    windows = behind - lowest
    if windows <= 0 or not _exact(ring) or _in_fronts(ring):
        return None
    closing = min(windows * alive, ring.used * -(-ring.length // ring.step))
    few = ring.summed and ring.length == 1 and windows * ring.groups <= _CELLS
    if not (few or is_dense(ring.geometry, windows, closing, ring.compiled)):
        return None
    return lowest, behind, closing


def _exact(ring: PaneRing) -> bool:
    """Tell whether a sweep may put windows together: one that may be read again must be the same to the last digit."""
    return ring.exact or not ring.still


def _in_fronts(ring: PaneRing) -> bool:
    """Tell whether some panes may be in fronts, which hold more than their own tuples."""
    return ring.turned and bool(_MOST(ring.turns[panes.TURN]) > ring.low)


def _in_parts(ring: PaneRing, sweep: PaneSweep, number: int) -> Iterator[WindowStates]:
    with _overflowing(ring):
        while sweep.left:
            yield WindowStates(*sweep.part(), number, in_order=True)
    ring.used -= sweep.free()
    ring.swept = True


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
    some = some[:, : kernels.cells_of(ring.geometry, ring.tuples, slots, wids, some)]
    return of_cells(ring, some, number, ring.tuples, ring.columns)


def of_cells(
    ring: PaneRing, some: Integers, number: int, tuples: NDArray[Any], columns: Sequence[Arrays | None]
) -> WindowStates:
    """Return windows of one pane, in order: ``some`` int64 (3, n) are groups, windows, and their cells in columns."""
    slots, wids, cells = some
    states = _in_cells(ring, cells, tuples[cells].astype(np.int64), columns)
    return WindowStates(slots, ring.extents.extent(wids)[1], states, number, in_order=True)


def _in_cells(
    ring: PaneRing, cells: Integers, counts: Integers, columns: Sequence[Arrays | None]
) -> list[Arrays]:
    """Return the states in some cells, which may be narrow; ``counts``: how many tuples they have."""
    states = list[Arrays]()
    for of, column in zip(ring.accumulators, columns, strict=True):
        if column is None:
            states.append((counts,))
        else:
            pairs = zip(column, of.identity, strict=True)
            states.append(
                tuple([values.take(cells).astype(value.dtype, copy=False) for values, value in pairs])
            )
    return states


def _nothing(ring: PaneRing, number: int) -> WindowStates:
    none = np.empty(0, np.int64)
    return WindowStates(none, none, [of.empty(0) for of in ring.accumulators], number)


def _blocks(
    ring: PaneRing, slots: Integers, first: Integers, stop: Integers
) -> list[tuple[Integers, Integers, list[Arrays]]]:
    """Return the slots, ends and states of windows in blocks of groups, by group, then window.

    The panes of a still ring are read; of another one those that no later window needs are freed.
    """
    if not ring.stacked:
        ring.stack()
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
    least = _KERNEL + rows * (_LINE + _CELL * geometry.groups)
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
    with _overflowing(ring):
        of_windows, ends, states = sweep.closed(forget=forget)
    if forget:
        ring.used -= sweep.free()
        ring.swept = True
    return WindowStates(of_windows, ends, states, number, in_order=True)


@contextmanager
def _overflowing(ring: PaneRing) -> Iterator[None]:
    """Say of which window a sum is that does not fit."""
    try:
        yield
    except SumOverflowError as error:
        raise ring.overflow(error.column, error.group, error.at) from None


class PaneSweep:
    """Puts windows together: ``some`` int64 (3, n), as ``kernels.panes.clipped`` writes and counts them.

    None: those of all groups.  ``lowest``: the lowest of them, ``behind``: the first one behind all; ``closing``: how
    many there are at most, or about.
    """

    def __init__(self, ring: PaneRing, some: Integers | None, lowest: int, behind: int, closing: int) -> None:
        self._ring, self._geometry = ring, ring.geometry
        self._tuples = ring.rows(ring.tuples)
        self._groups, self._closing = ring.groups, closing
        self._lowest, self._behind = lowest, behind
        self._sides, self._needed = np.empty((2, 0), np.int32), _NONE
        if some is not None:
            self._groups = int(_MOST(some[panes.RANGE_SLOT])) + 1
            self._sides = np.empty((2, self._groups), np.int32)  # counted from the lowest one on
            self._needed = np.empty(self._groups, np.int64)
            kernels.sides(self._geometry, *some, lowest, *self._sides, self._needed)
        self._whole = some is None
        self._next, self._found = (
            lowest,
            0,
        )  # which windows have been put together, and how many results there were
        slides = ring.length > 1
        self._counted = np.zeros(self._groups, max(self._tuples.dtype, _COUNT))
        self._reach = np.array([ring.low, ring.low])  # the panes that are counted
        self._accumulators = [ring.as_kept(i) for i in range(len(ring.accumulators))]
        self._running = [
            of.running(self._groups, ring.low) if slides and of.invertible and columns is not None else None
            for of, columns in zip(self._accumulators, ring.columns, strict=True)
        ]

    @property
    def left(self) -> bool:
        """Whether there are windows that have not been put together."""
        return self._next < self._behind

    def closed(self, *, forget: bool = True) -> tuple[Integers, Integers, list[Arrays]]:
        """Return slots, ends and states, by window, then group.  O((windows + panes) x groups).

        ``forget``: ``free`` follows.
        """
        return self._taken(self._closing, forget=forget)

    def part(self) -> tuple[Integers, Integers, list[Arrays]]:
        """Return the same of the windows that are next: of some, where that takes no more time than of all."""
        ring, room = self._ring, self._closing // max(self._closing // _PART, 1)
        if ring.length > 1 and not all(of.invertible for of in ring.accumulators):
            room = (
                self._behind - self._lowest
            ) * self._groups  # each part would go through all panes of a window
        return self._taken(room, forget=True)

    def _taken(self, room: int, *, forget: bool) -> tuple[Integers, Integers, list[Arrays]]:
        """Return the slots, ends and states of windows until there are ``room`` results."""
        begin, room = self._next, min(room, (self._behind - self._next) * self._groups) + self._groups + 1
        slots, ends = np.empty(room, np.int64), np.empty(self._behind - begin, np.int64)
        tuples = np.empty(room if None in self._ring.columns else 0, self._counted.dtype)
        ring, at = (self._geometry, self._tuples), (self._lowest, begin - self._lowest)
        counted = self._counted, self._reach
        found, many = kernels.held(*ring, self._sides, at, counted, slots, tuples, ends, forget)
        self._next, self._found = begin + many, self._found + found
        slots, windows, numbers = slots[:found], _Windows(begin, ends[:many]), tuples[:found].astype(np.int64)
        of_windows = windows.spread(self._ring.extents.extent(windows.numbers)[1])
        if self._ring.length == 1:
            return slots, of_windows, self._in_cells(slots, numbers, windows)
        states = [
            (numbers,)
            if columns is None
            else self._states(i, tuple(map(self._ring.rows, columns)), slots, windows)
            for i, columns in enumerate(self._ring.columns)
        ]
        return slots, of_windows, states

    def _in_cells(self, slots: Integers, numbers: Integers, windows: _Windows) -> list[Arrays]:
        """Return the states of windows of one pane, which are in cells as they are."""
        ring = self._ring
        if not ring.own:
            return _in_cells(ring, _NONE, numbers, ring.columns)
        panes = (windows.numbers + 1) * ring.step - 1
        cells = windows.spread(panes % ring.room * ring.groups)
        cells += slots
        return _in_cells(ring, cells, numbers, ring.columns)

    def free(self) -> int:
        """Forget the tuples that no later window needs; return how many cells they had.  O(panes x groups).

        Their states stay until the whole pane is emptied: nothing asks for them, and nothing comes there.
        """
        step, length, low, high, *_ = self._geometry
        if length == 1:
            return self._found  # forgotten as they were found
        begin = max(low, (self._lowest + 1) * step - length)
        panes = max(min(high + 1, (self._behind + 1) * step - length) - begin, 0)
        if self._whole:
            return int(kernels.empty(self._geometry, self._tuples, begin, panes))
        return int(kernels.free(self._geometry, self._tuples, self._needed, begin, panes))

    def _states(self, i: int, columns: Arrays, slots: Integers, windows: _Windows) -> Arrays:
        """Return the states of windows, for the part ``i``."""
        of, running = self._accumulators[i], self._running[i]
        if running is None:
            return self._by_stacks(of, columns, slots, windows)
        out = tuple(np.empty(slots.size, value.dtype) for value in of.identity)
        kept = columns[: len(out)]
        of.totals(self._geometry, kept, windows.first, windows.ends, slots, running, out)
        rest = self._ring.accumulators[i].identity[len(out) :]
        return *out, *(np.zeros(slots.size, value.dtype) for value in rest)

    def _by_stacks(self, of: Accumulator, columns: Arrays, slots: Integers, part: _Windows) -> Arrays:
        """Put all windows of a block of groups together, block after block, and take those that have a tuple."""
        step, length, low, high, last, _, first = self._geometry
        ends = (part.numbers + 1) * step
        steps, scratch = by_stacks(np.clip([ends - length, ends], low, high + 1) - low, first, last + 1)
        out, wids = (
            tuple(np.empty(slots.size, value.dtype) for value in of.identity),
            part.spread(part.numbers),
        )
        size, rows = max(256, min(_BLOCK, _SCRATCH // (length + 1 + ends.size))), (scratch, ends.size)
        for begin in range(0, self._groups, size):
            wide = min(size, self._groups - begin)
            some = slice(None) if wide == self._groups else (slots >= begin) & (slots < begin + wide)
            at = (wids[some] - part.first) * wide + slots[some] - begin
            for column, found in zip(out, of.fold_rows(columns, begin, wide, rows, steps), strict=True):
                column[some] = found.ravel().take(at)
        return out


class _Windows(NamedTuple):
    """Windows from the ``first`` on; results of each are behind those of the one before, up to ``ends`` (exclusive)."""

    first: int
    ends: Integers

    @property
    def numbers(self) -> Integers:
        return np.arange(self.first, self.first + self.ends.size)

    def spread(self, values: Integers) -> Integers:
        """Return for each result the value of its window in ``values`` int64 (windows,)."""
        out = np.empty(self.ends[-1], np.int64)
        if self.ends.size == 1:
            out.fill(values[0])
        else:
            kernels.spread(values, self.ends, out)
        return out
