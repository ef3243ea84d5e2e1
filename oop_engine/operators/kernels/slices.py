"""Slices: which windows of many definitions close, and which of the slices that they share each of them has.

Starts and ends of windows are whole numbers of *units*.  Slices are units, or lie between neighbouring edges, which
come again after so many units.  How windows are put together from slices: ``sliding.py``, ``sums.py``, ``tree.py``.
"""

# Layout       shape[4, definitions]  STEP, LENGTH: in units; OFFSET: the unit before which window -1 ends; NUMBER.  The
#                                     shortest windows come first; in sums.leaving it is by NUMBER
#              grid[2, period]        UNIT_SLICE: the slice that a unit of the period is in; SLICE_UNIT: the unit that a
#                                     slice begins with.  (2, 1): slices are units
#              span: lo, hi, done, cut  LOW and HIGH, slices that there are; windows that end by slice SPAN_DONE have
#                                     left, those that end by SPAN_CUT leave
#              windows[3, room]       WINDOW_SHAPE: the definition, as its column of shape; WINDOW_END: the unit that it
#                                     ends before; WINDOW_SPAN
#              sides[2, room]         SIDE_FIRST: the first slice of a window; SIDE_STOP: the one behind its last; both
#                                     counted from the lowest slice of the span on, behind those of the spans before
# Invariant    Window w of a definition is the units [end - LENGTH, end), where end = OFFSET + (w + 1) * STEP.
#              Edges of windows are edges of slices, so a window that closes has a slice, and no other part of one.
# Tried        An operator, and an update a tuple, for each definition: W5 had .016 of the floor, and has .26.
#              slices_at by passes of NumPy: 10 to 33 ns a tuple, in one loop 2.8.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.partials import HIGH, LOW
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.system.kernel import njit

__all__ = [
    "LENGTH", "NUMBER", "OFFSET", "SIDE_FIRST", "SIDE_STOP", "SPAN_CUT", "SPAN_DONE", "STEP", "UNITS", "WINDOW_END",
    "WINDOW_SHAPE", "WINDOW_SPAN", "closing", "first_and_stop", "measure", "needed", "pick", "slice_at",
    "slices_at", "unit_of",
]  # fmt: skip

STEP, LENGTH, OFFSET, NUMBER = range(4)
UNIT_SLICE, SLICE_UNIT = range(2)
SPAN_DONE, SPAN_CUT = range(2, 4)
WINDOW_SHAPE, WINDOW_END, WINDOW_SPAN = range(3)
SIDE_FIRST, SIDE_STOP = range(2)
FOUND_NUMBER, FOUND_END, FOUND_SLOT, FOUND_AT = range(4)
NOTHING = np.iinfo(np.int64).min
OVER = np.iinfo(np.int64).max
UNITS = np.zeros((2, 1), np.int64)
"""The grid of slices that are units."""


@njit(cache=True, nogil=True)
def slice_at(grid, unit):
    """Return the slice that a unit is in."""
    # Whole periods before the unit, then the slices of its own period.
    units = grid.shape[1]
    if units == 1:
        return unit
    return unit // units * (grid[UNIT_SLICE, units - 1] + 1) + grid[UNIT_SLICE, unit % units]


@njit(cache=True, nogil=True)
def slices_at(grid, units, turns, out):
    """Write the slice of each of ``units`` int64 (n,) into ``out``; ``turns``: how often edges came again before."""
    period, each = grid.shape[1], grid[UNIT_SLICE, grid.shape[1] - 1] + 1
    for i in range(len(units)):
        out[i] = turns[i] * each + grid[UNIT_SLICE, units[i] - turns[i] * period]


@njit(cache=True, nogil=True)
def unit_of(grid, at):
    """Return the unit with which a slice begins."""
    units = grid.shape[1]
    if units == 1:
        return at
    slices = grid[UNIT_SLICE, units - 1] + 1
    return at // slices * units + grid[SLICE_UNIT, at % slices]


@njit(cache=True, nogil=True)
def first_and_stop(shape, grid, d, span):
    """Return the first window of a definition that closes, and the first one that does not."""
    lo, hi, done, cut = span
    step, length, offset = shape[STEP, d], shape[LENGTH, d], shape[OFFSET, d]
    stop = unit_of(grid, hi) + length  # the end of a window that begins with the highest slice
    if cut <= slice_at(grid, stop):
        stop = unit_of(grid, cut)
    return (unit_of(grid, max(done, lo)) - offset) // step, (stop - offset) // step


@njit(cache=True, nogil=True)
def measure(shape, grid, spans, windows):
    """Write into ``windows`` int64 (spans,) how many windows of each span close.  O(spans x definitions)."""
    for i in range(len(spans)):
        windows[i] = 0
        for d in range(shape.shape[1]):
            first, stop = first_and_stop(shape, grid, d, spans[i])
            windows[i] += max(stop - first, 0)


@njit(cache=True, nogil=True)
def closing(shape, grid, spans, windows, sides):
    """Write the windows of each span that close, by span, then definition; return how many there are.

    spans int64 (spans, 4); windows int64 (3, room), sides int64 (2, room).  O(windows + spans x definitions).
    """
    count, before = 0, 0
    for i in range(len(spans)):
        lo, slices = spans[i, LOW], spans[i, HIGH] - spans[i, LOW] + 1
        for d in range(shape.shape[1]):
            first, stop = first_and_stop(shape, grid, d, spans[i])
            for wid in range(first, stop):
                end = shape[OFFSET, d] + (wid + 1) * shape[STEP, d]
                windows[WINDOW_SHAPE, count], windows[WINDOW_END, count], windows[WINDOW_SPAN, count] = (
                    d,
                    end,
                    i,
                )
                start = slice_at(grid, end - shape[LENGTH, d])
                sides[SIDE_FIRST, count] = before + min(max(start - lo, 0), slices)
                sides[SIDE_STOP, count] = before + min(max(slice_at(grid, end) - lo, 0), slices)
                count += 1
        before += slices
    return count


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
        # Of each definition the start of the first window that ends behind the cut.
        out[i] = OVER
        if cut in (NOTHING, OVER):
            out[i] = cut
            continue
        unit = unit_of(grid, cut)
        for d in range(shape.shape[1]):
            step, length, offset = shape[STEP, d], shape[LENGTH, d], shape[OFFSET, d]
            out[i] = min(out[i], offset + ((unit - offset) // step + 1) * step - length)
        out[i] = slice_at(grid, out[i])


@njit(cache=True, nogil=True)
def pick(shape, windows, tuples, slots, picked):
    """Write of each window with tuples definition, unit behind its end, slot and place into ``picked`` int64 (4, n).

    windows as of ``closing``; tuples integers (windows, groups): how many there are; slots int64 (groups,) or of
    each span, one.  They are by end, then definition.  O(windows x groups).
    """
    ends = windows[WINDOW_END]
    # One key for both: the end, then the number of the definition.
    key, first_end, definitions = np.empty(len(ends), np.int64), ends.min(), shape[NUMBER].max() + 1
    for w in range(len(ends)):
        key[w] = (ends[w] - first_end) * definitions + shape[NUMBER, windows[WINDOW_SHAPE, w]]
    k = 0
    for w in time_order(key):  # NumPy's own takes Numba ten seconds to compile
        for j in range(tuples.shape[1]):
            if tuples[w, j]:
                picked[FOUND_NUMBER, k], picked[FOUND_END, k] = (
                    shape[NUMBER, windows[WINDOW_SHAPE, w]],
                    ends[w],
                )
                picked[FOUND_SLOT, k], picked[FOUND_AT, k] = (
                    slots[windows[WINDOW_SPAN, w] + j],
                    w * tuples.shape[1] + j,
                )
                k += 1
