"""Slices: how windows of many definitions are put together from the slices they share.

Windows are taken by their ends, those whose lengths are within a factor of two together.  From a *turn* on, an end of
a window, the front goes back, slice by slice, as far as windows begin, and the back goes on as far as windows end.
A window with the turn inside is what the front and the back have together; one that begins behind it makes its
own end the next turn.  So there are at most four combinations a slice, for all definitions of like lengths, and one a
window.

Starts and ends of windows are whole numbers of *units*.  Slices are units, or lie between neighbouring edges, which
come again after so many units.

Source: van Herk 1992; Tangwongsan, Hirzel, Schneider, DEBS 2017 (two stacks).
"""

# Layout       shape[4, definitions]  STEP, LENGTH: in units; OFFSET: the unit before which window -1 ends; NUMBER.  The
#                                     shortest windows come first; in slice_plans.leaving it is by NUMBER
#              grid[2, period]        UNIT_SLICE: the slice that a unit of the period is in; SLICE_UNIT: the unit that a
#                                     slice begins with.  (2, 1): slices are units
#              span: lo, hi, done, cut  LOW and HIGH, slices that there are; windows that end by slice SPAN_DONE have
#                                     left, those that end by SPAN_CUT leave
#              windows[3, room]       WINDOW_SHAPE: the definition, as its column of shape; WINDOW_NUMBER; WINDOW_SPAN
#              sides[2, room]         SIDE_FIRST: the first slice of a window; SIDE_STOP: the one behind its last
#              ends[2, definitions]   ENDS_NEXT: the end of the next window, OVER: none; ENDS_LAST: that of the last one
#              spans[groups, 2]       LOW and HIGH slice of each group (partials.py)
#              steps, rows of them    monoids.py: slice s is ~((s + shift) & mask), scratch is above
# Invariant    Window w of a definition is the units [end - LENGTH, end), where end = OFFSET + (w + 1) * STEP.
#              In `_alike`, scratch row k is slices [turn - k, turn) together, for k from 2 to turn - low, and row 0 is
#              slices [turn, back) together, if these are two at least; one slice alone is read from the ring itself.
# Not obvious  Windows of like lengths only: beside windows of an hour, those of a second would turn every second, and
#              each front would go back as far as an hour.
#              A window that begins behind the turn has its own end as the next turn: its slices are the new front.
#              The next end is looked for among all definitions of like lengths: O(definitions) a window.
# Tried        An operator, and an update a tuple, for each definition: W5 had .016 of the floor, and has .26.
#              slices_at by passes of NumPy: 10 to 33 ns a tuple, in one loop 2.8.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.monoids import STEP_A, STEP_B, STEP_TO
from oop_engine.operators.kernels.partials import HIGH, LOW, NO_WINDOW, settle
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.system.kernel import njit

__all__ = [
    "ALONE", "LENGTH", "NUMBER", "OFFSET", "SIDE_FIRST", "SIDE_STOP", "SPAN_CUT", "SPAN_DONE", "STEP",
    "UNITS", "WINDOW_NUMBER", "WINDOW_SHAPE", "WINDOW_SPAN", "closing", "first_and_stop", "measure", "needed",
    "pick", "plan", "reopen", "slice_at", "slices_at", "unit_of",
]  # fmt: skip

STEP, LENGTH, OFFSET, NUMBER = range(4)
UNIT_SLICE, SLICE_UNIT = range(2)
SPAN_DONE, SPAN_CUT = range(2, 4)
WINDOW_SHAPE, WINDOW_NUMBER, WINDOW_SPAN = range(3)
SIDE_FIRST, SIDE_STOP = range(2)
ENDS_NEXT, ENDS_LAST = range(2)
ROOM_WINDOWS, ROOM_STEPS = range(2)
FOUND_NUMBER, FOUND_END, FOUND_SLOT, FOUND_AT = range(4)
NOTHING = np.iinfo(np.int64).min
ALONE = NOTHING
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
def closing(shape, grid, span, windows, sides):
    """Write the windows of a span that close; return how many there are.

    windows int64 (3, room) as of ``plan``, of span 0; sides int64 (2, room): their first slice and the one behind, as
    numbers of slices from the lowest one there is on, up to behind the highest.  O(windows + definitions).
    """
    found, lo, slices = 0, span[LOW], span[HIGH] - span[LOW] + 1
    for d in range(shape.shape[1]):
        first, stop = first_and_stop(shape, grid, d, span)
        for wid in range(first, stop):
            end = shape[OFFSET, d] + (wid + 1) * shape[STEP, d]
            windows[WINDOW_SHAPE, found], windows[WINDOW_NUMBER, found], windows[WINDOW_SPAN, found] = (
                d,
                wid,
                0,
            )
            sides[SIDE_FIRST, found] = min(max(slice_at(grid, end - shape[LENGTH, d]) - lo, 0), slices)
            sides[SIDE_STOP, found] = min(max(slice_at(grid, end) - lo, 0), slices)
            found += 1
    return found


@njit(cache=True, nogil=True)
def measure(shape, grid, spans, longest, room):
    """Write into ``room`` int64 (2, spans) how many windows of each span close, and how many steps it takes at most.

    shape int64 (4, definitions) as in ``Slicing``; spans int64 (spans, 4): lowest and highest slice there is,
    the cut up to which windows have left, and the one up to which they leave.  ``longest``: slices of a window at most.
    """
    for i in range(len(spans)):
        slices, windows, steps, d = spans[i, HIGH] - spans[i, LOW] + 1, 0, 0, np.int64(0)
        units = unit_of(grid, spans[i, HIGH] + 1) - unit_of(grid, spans[i, LOW])
        while d < shape.shape[1]:
            # Definitions of like lengths, which have fronts and a back in common.
            shortest, most, like = shape[LENGTH, d], shape[LENGTH, d], 0
            while d < shape.shape[1] and shape[LENGTH, d] < 2 * shortest:
                first, stop = first_and_stop(shape, grid, d, spans[i])
                like += max(stop - first, 0)
                most = min(shape[LENGTH, d], longest)
                d += 1
            # A step a window, and one a slice for the back; a front for each turn, of as many slices as a window has.
            # Turns are as far from each other as the shortest window is long.
            if like:
                steps += like + slices + min(like, units // shortest + 2) * min(most, slices)
            windows += like
        room[ROOM_WINDOWS, i], room[ROOM_STEPS, i] = windows, steps


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
        # The definition whose next window ends first.
        d = begin
        for other in range(begin + 1, stop):
            if ends[ENDS_NEXT, other] < ends[ENDS_NEXT, d]:
                d = other
        if ends[ENDS_NEXT, d] == OVER:
            return used, found
        start = max(slice_at(grid, ends[ENDS_NEXT, d] - shape[LENGTH, d]), lo)
        end = min(slice_at(grid, ends[ENDS_NEXT, d]), hi + 1)
        if turn < lo or start >= turn:
            turn, low, back = end, end - 1, end
        # The front: one slice more with those above it.
        while low > start:
            above = ~((low + shift) & mask) if low == turn - 1 else turn - low
            low -= 1
            steps[STEP_TO, used], steps[STEP_A, used], steps[STEP_B, used] = (
                turn - low,
                ~((low + shift) & mask),
                above,
            )
            used += 1
        # The back: the first slice stays in the ring, the second is combined with it, others with row 0.
        while back < end:
            if back > turn:
                steps[STEP_TO, used], steps[STEP_B, used] = 0, ~((back + shift) & mask)
                steps[STEP_A, used] = ~((turn + shift) & mask) if back == turn + 1 else 0
                used += 1
            back += 1
        # The window: the front from its start on, and the back if there is one.
        steps[STEP_TO, used], steps[STEP_B, used] = ~found, ALONE
        steps[STEP_A, used] = ~((start + shift) & mask) if start == turn - 1 else turn - start
        if back > turn:
            steps[STEP_B, used] = ~((turn + shift) & mask) if back == turn + 1 else 0
        windows[WINDOW_SHAPE, found], windows[WINDOW_NUMBER, found] = (
            d,
            (ends[ENDS_NEXT, d] - shape[OFFSET, d]) // shape[STEP, d] - 1,
        )
        used, found = used + 1, found + 1
        ends[ENDS_NEXT, d] = (
            ends[ENDS_NEXT, d] + shape[STEP, d] if ends[ENDS_NEXT, d] < ends[ENDS_LAST, d] else OVER
        )


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
def reopen(spans, least, done, slots, low):
    """Note that of ``slots`` int64 (n,) no slice below ``low`` int64 (n,) is needed any more.

    spans int64 (groups, 2): lowest and highest slice, ``NO_WINDOW`` and the least integer if there is none; least
    int64 (blocks,) as in ``partials``; done int64 (groups,): the cut of each, of no meaning where there is no slice.
    Returns how many of the groups have no slice any more, and the lowest slice of any.  O(slots + blocks).
    """
    over = 0
    for i in range(len(slots)):
        slot = slots[i]
        if spans[slot, HIGH] < low[i]:
            over += spans[slot, LOW] != NO_WINDOW
            spans[slot, LOW], spans[slot, HIGH], done[slot] = NO_WINDOW, NOTHING, NOTHING
        else:
            spans[slot, LOW] = max(spans[slot, LOW], low[i])
    return over, settle(spans, least, slots)


@njit(cache=True, nogil=True)
def pick(shape, windows, tuples, slots, found):
    """Write of each window with tuples definition, unit behind its end, slot and place into ``found`` int64 (4, n).

    windows as of ``plan``; tuples integers (windows, groups): how many there are; slots int64 (groups,) or of
    each span, one.  They are by end, then definition.  O(windows x groups).
    """
    key = np.empty(windows.shape[1], np.int64)
    for w in range(windows.shape[1]):
        d = windows[WINDOW_SHAPE, w]
        key[w] = shape[OFFSET, d] + (windows[WINDOW_NUMBER, w] + 1) * shape[STEP, d]
    # One key for both: the end, then the number of the definition.
    ends = key.copy()
    least, definitions = key.min(), shape[NUMBER].max() + 1
    for w in range(windows.shape[1]):
        key[w] = (key[w] - least) * definitions + shape[NUMBER, windows[WINDOW_SHAPE, w]]
    k = 0
    for w in time_order(key):  # NumPy's own takes Numba ten seconds to compile
        for j in range(tuples.shape[1]):
            if tuples[w, j]:
                found[FOUND_NUMBER, k], found[FOUND_END, k] = shape[NUMBER, windows[WINDOW_SHAPE, w]], ends[w]
                found[FOUND_SLOT, k], found[FOUND_AT, k] = (
                    slots[windows[WINDOW_SPAN, w] + j],
                    w * tuples.shape[1] + j,
                )
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
            ends[ENDS_NEXT, d] = shape[OFFSET, d] + (first + 1) * shape[STEP, d] if first < stop else OVER
            ends[ENDS_LAST, d] = shape[OFFSET, d] + stop * shape[STEP, d]
        # Definitions of like lengths together.
        begin = np.int64(0)
        while begin < shape.shape[1]:
            stop, before = begin + 1, found
            while stop < shape.shape[1] and shape[LENGTH, stop] < 2 * shape[LENGTH, begin]:
                stop += 1
            place = used, found
            ring = shifts[i], mask
            used, found = _alike(shape, grid, spans[i], begin, stop, ring, place, steps, windows, ends)
            windows[WINDOW_SPAN, before:found] = i
            begin = stop
    return used, found
