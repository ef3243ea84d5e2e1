"""Slices: how windows of many definitions are put together from the slices they share.

Windows are taken by their ends, those whose lengths are within a factor of two together.  From a *turn* on, an end of
a window, the front goes back, slice by slice, as far as windows begin, and the back goes on as far as windows end.
A window with the turn inside is what the front and the back have together; one that begins behind it makes its
own end the next turn.  So there are at most four combinations a slice, for all definitions of like lengths, and one a
window.

A step is (to, a, b): what rows ``a`` and ``b`` have together goes to row ``to``, or if that is negative into result
``~to``.  Rows below 0 are slices, ``~row`` of the ring, others are scratch; if ``b`` is ``ALONE`` row ``a`` is taken as
it is.

Starts and ends of windows are whole numbers of *units*.  Slices are units, or lie between neighbouring edges, which
come again after so many units: then ``grid`` int64 (2, units) has of each unit the slice it is in, and of each slice
the unit it begins with; (2, 1) where slices are units.

Source: van Herk 1992; Tangwongsan, Hirzel, Schneider, DEBS 2017 (two stacks).
"""

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.partials import NO_WINDOW
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.system.kernel import njit

__all__ = [
    "ALONE",
    "UNITS",
    "closing",
    "first_and_stop",
    "measure",
    "needed",
    "pick",
    "plan",
    "reopen",
    "reopen_some",
    "slice_at",
    "slices_at",
    "unit_of",
]

NOTHING = np.iinfo(np.int64).min
ALONE = NOTHING
OVER = np.iinfo(np.int64).max
UNITS = np.zeros((2, 1), np.int64)
"""The grid of slices that are units."""


@njit(cache=True, nogil=True)
def slice_at(grid, unit):
    """Return the slice that a unit is in."""
    units = grid.shape[1]
    if units == 1:
        return unit
    return unit // units * (grid[0, units - 1] + 1) + grid[0, unit % units]


@njit(cache=True, nogil=True)
def slices_at(grid, units, turns, out):
    """Write the slice of each of ``units`` int64 (n,) into ``out``; ``turns``: how often edges came again before."""
    period, each = grid.shape[1], grid[0, grid.shape[1] - 1] + 1
    for i in range(len(units)):
        out[i] = turns[i] * each + grid[0, units[i] - turns[i] * period]


@njit(cache=True, nogil=True)
def unit_of(grid, at):
    """Return the unit with which a slice begins."""
    units = grid.shape[1]
    if units == 1:
        return at
    slices = grid[0, units - 1] + 1
    return at // slices * units + grid[1, at % slices]


@njit(cache=True, nogil=True)
def first_and_stop(shape, grid, d, span):
    """Return the first window of a definition that closes, and the first one that does not."""
    lo, hi, done, cut = span
    step, length, offset = shape[0, d], shape[1, d], shape[2, d]
    stop = unit_of(grid, hi) + length  # the end of a window that begins with the highest slice
    if cut <= slice_at(grid, stop):
        stop = unit_of(grid, cut)
    return (unit_of(grid, max(done, lo)) - offset) // step, (stop - offset) // step


@njit(cache=True, nogil=True)
def closing(shape, grid, span, windows, sides):
    """Write the windows of a span that close; return how many there are.

    windows int64 (3, room) as of ``plan``, of span 0; sides int64 (2, room): their first slice and the one behind, as
    numbers of slices from the lowest one there is on, up to behind the highest.  O(windows + definitions).
    """
    found, lo, slices = 0, span[0], span[1] - span[0] + 1
    for d in range(shape.shape[1]):
        first, stop = first_and_stop(shape, grid, d, span)
        for wid in range(first, stop):
            end = shape[2, d] + (wid + 1) * shape[0, d]
            windows[0, found], windows[1, found], windows[2, found] = d, wid, 0
            sides[0, found] = min(max(slice_at(grid, end - shape[1, d]) - lo, 0), slices)
            sides[1, found] = min(max(slice_at(grid, end) - lo, 0), slices)
            found += 1
    return found


@njit(cache=True, nogil=True)
def measure(shape, grid, spans, longest, room):
    """Write into ``room`` int64 (2, spans) how many windows of each span close, and how many steps it takes at most.

    shape int64 (4, definitions) as in ``Slicing``; spans int64 (spans, 4): lowest and highest slice there is,
    the cut up to which windows have left, and the one up to which they leave.  ``longest``: slices of a window at most.
    """
    for i in range(len(spans)):
        slices, windows, steps, d = spans[i, 1] - spans[i, 0] + 1, 0, 0, np.int64(0)
        units = unit_of(grid, spans[i, 1] + 1) - unit_of(grid, spans[i, 0])
        while d < shape.shape[1]:
            shortest, most, some = shape[1, d], shape[1, d], 0
            while d < shape.shape[1] and shape[1, d] < 2 * shortest:
                first, stop = first_and_stop(shape, grid, d, spans[i])
                some += max(stop - first, 0)
                most = min(shape[1, d], longest)
                d += 1
            if some:
                steps += some + slices + min(some, units // shortest + 2) * min(most, slices)
            windows += some
        room[0, i], room[1, i] = windows, steps


@njit(cache=True, nogil=True)
def _alike(shape, grid, span, begin, stop, ring, place, steps, windows, ends):
    """Write the steps for definitions ``begin`` to ``stop``, of like lengths; return ``place`` behind them.

    Slice ``s`` is row ``(s + shift) & mask`` of the ring, ``ring`` being shift and mask.
    """
    lo, hi, _, _ = span
    shift, mask = ring
    used, found = place
    turn = low = back = lo - 1
    while True:
        d = begin
        for other in range(begin + 1, stop):
            if ends[0, other] < ends[0, d]:
                d = other
        if ends[0, d] == OVER:
            return used, found
        start = max(slice_at(grid, ends[0, d] - shape[1, d]), lo)
        end = min(slice_at(grid, ends[0, d]), hi + 1)
        if turn < lo or start >= turn:
            turn, low, back = end, end - 1, end
        while (
            low > start
        ):  # row k of the scratch: the front from k slices before the turn on; row 0: the back
            above = ~((low + shift) & mask) if low == turn - 1 else turn - low
            low -= 1
            steps[0, used], steps[1, used], steps[2, used] = turn - low, ~((low + shift) & mask), above
            used += 1
        while back < end:
            if back > turn:
                steps[0, used], steps[2, used] = 0, ~((back + shift) & mask)
                steps[1, used] = ~((turn + shift) & mask) if back == turn + 1 else 0
                used += 1
            back += 1
        steps[0, used], steps[2, used] = ~found, ALONE
        steps[1, used] = ~((start + shift) & mask) if start == turn - 1 else turn - start
        if back > turn:
            steps[2, used] = ~((turn + shift) & mask) if back == turn + 1 else 0
        windows[0, found], windows[1, found] = d, (ends[0, d] - shape[2, d]) // shape[0, d] - 1
        used, found = used + 1, found + 1
        ends[0, d] = ends[0, d] + shape[0, d] if ends[0, d] < ends[1, d] else OVER


@njit(cache=True, nogil=True)
def needed(shape, grid, cuts, out):
    """Write the first slice of any window that ends behind ``cuts`` int64 (n,) into ``out``; sentinels stay.

    O(definitions) for each cut that is not the one before.
    """
    for i in range(len(cuts)):
        cut = cuts[i]
        if i > 0 and cut == cuts[i - 1]:
            out[i] = out[i - 1]
            continue
        out[i] = OVER
        if cut in (NOTHING, OVER):
            out[i] = cut
            continue
        unit = unit_of(grid, cut)
        for d in range(shape.shape[1]):
            step, length, offset = shape[0, d], shape[1, d], shape[2, d]
            out[i] = min(out[i], offset + ((unit - offset) // step + 1) * step - length)
        out[i] = slice_at(grid, out[i])


@njit(cache=True, nogil=True)
def reopen(spans, done, slots, low):
    """Note that of ``slots`` int64 (n,) no slice below ``low`` int64 (n,) is needed any more.

    spans int64 (groups, 2): lowest and highest slice, ``NO_WINDOW`` and the least integer if there is none; done
    int64 (groups,): the cut of each, of no meaning where there is no slice.  Returns how many groups have slices, and
    the lowest of those.  O(groups).
    """
    for i in range(len(slots)):
        slot = slots[i]
        if spans[slot, 1] < low[i]:
            spans[slot, 0], spans[slot, 1], done[slot] = NO_WINDOW, NOTHING, NOTHING
        else:
            spans[slot, 0] = max(spans[slot, 0], low[i])
    alive, lowest = 0, NO_WINDOW
    for slot in range(len(spans)):
        alive += spans[slot, 0] != NO_WINDOW
        lowest = min(lowest, spans[slot, 0])
    return alive, lowest


@njit(cache=True, nogil=True)
def reopen_some(spans, done, slots, low):
    """Do so without a look at other groups; return how many of these have no slice any more.  O(slots)."""
    over = 0
    for i in range(len(slots)):
        slot = slots[i]
        if spans[slot, 1] < low[i]:
            over += spans[slot, 0] != NO_WINDOW
            spans[slot, 0], spans[slot, 1], done[slot] = NO_WINDOW, NOTHING, NOTHING
        else:
            spans[slot, 0] = max(spans[slot, 0], low[i])
    return over


@njit(cache=True, nogil=True)
def pick(shape, windows, tuples, slots, found):
    """Write of each window with tuples definition, unit behind its end, slot and place into ``found`` int64 (4, n).

    windows as of ``plan``; tuples integers (windows, groups): how many there are; slots int64 (groups,) or of
    each span, one.  They are by end, then definition.  O(windows x groups).
    """
    key = np.empty(windows.shape[1], np.int64)
    for w in range(windows.shape[1]):
        d = windows[0, w]
        key[w] = shape[2, d] + (windows[1, w] + 1) * shape[0, d]
    ends = key.copy()
    least, definitions = key.min(), shape[3].max() + 1
    for w in range(windows.shape[1]):
        key[w] = (key[w] - least) * definitions + shape[3, windows[0, w]]
    k = 0
    for w in time_order(key):  # NumPy's own takes Numba ten seconds to compile
        for j in range(tuples.shape[1]):
            if tuples[w, j]:
                found[0, k], found[1, k] = shape[3, windows[0, w]], ends[w]
                found[2, k], found[3, k] = slots[windows[2, w] + j], w * tuples.shape[1] + j
                k += 1


@njit(cache=True, nogil=True)
def plan(shape, grid, spans, shifts, mask, steps, windows, ends):
    """Write down how the windows of each span come about; return how many steps and windows there are.

    spans as in ``measure``; shifts int64 (spans,), mask: where slices are in the ring.  steps int64 (3, room);
    windows int64 (3, room): definition (its place in ``shape``), number, and span.  ends int64 (2, definitions):
    scratch.  O(steps + windows x definitions).
    """
    used, found = np.int64(0), np.int64(0)
    for i in range(len(spans)):
        for d in range(shape.shape[1]):
            first, stop = first_and_stop(shape, grid, d, spans[i])
            ends[0, d] = shape[2, d] + (first + 1) * shape[0, d] if first < stop else OVER
            ends[1, d] = shape[2, d] + stop * shape[0, d]
        begin = np.int64(0)
        while begin < shape.shape[1]:
            stop, before = begin + 1, found
            while stop < shape.shape[1] and shape[1, stop] < 2 * shape[1, begin]:
                stop += 1
            place = used, found
            ring = shifts[i], mask
            used, found = _alike(shape, grid, spans[i], begin, stop, ring, place, steps, windows, ends)
            windows[2, before:found] = i
            begin = stop
    return used, found
