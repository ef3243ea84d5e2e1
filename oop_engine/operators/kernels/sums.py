"""Differences of running sums: windows of one group, and of the last panes of a stream.

A window of slices is the running sum at its end, less that at its start.  A window of the last panes is the sum before,
with the pane that comes and without the one that goes.  (Of groups side by side: ``loops.totals``.)

Source: prefix sums: Traub et al., Scotty, TODS 2021; subtract-on-evict: Theodorakis et al., Hammer Slide, ADMS
2018, 2.2.
"""

# Layout       shape, grid, span, sides  as of slices.py, but definitions by number
#              given[4, windows]   GIVEN_SHAPE, GIVEN_END, GIVEN_BEGIN, GIVEN_STOP: windows by definition, then end
#              ring[length]  the last panes; the oldest one is at `at`, where the next one goes
#              total[2]      TOTAL_LOW, TOTAL_WRAPS: the sum of the ring is TOTAL_LOW + 2**64 * TOTAL_WRAPS
# Invariant    Running sums wrap and differences wrap back: a window that fits is right.  `sums` tells whether all do.
#              Behind each pane, total is the sum of the ring: the pane at `at` goes out before the new pane comes in.
# Not obvious  `leaving` sorts by counting: it counts the windows that end before each slice, which gives each slice its
#              place, and fills in windows by definition; so they come by end, then definition.
#              Windows without tuples are overwritten by the next: no branch.  Unsigned indices as in places.py.
#              A sum wraps if its sign differs from that of both sides; a difference, if the sides differ in sign and
#              the result from the left one.  Sums that wrapped are still exact: how often they did is counted.
#              The ring is passed over in stretches up to its end, so that no index in the loop is taken modulo.
# Tried        Without groups, steps of stacks, and a call for each aggregate and for the order of results: W5-1000
#              takes 1.18 times as long, W5 1.15 times.  With groups, running sums side by side: 0.98 to 1.14 times.
#              Panes of one tuple, put together by the stacks of panes.py: W6 took 6 to 20 times as long.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.partials import HIGH, LOW
from oop_engine.operators.kernels.slices import (
    LENGTH,
    NUMBER,
    OFFSET,
    SIDE_FIRST,
    SIDE_STOP,
    SPAN_DONE,
    STEP,
    first_and_stop,
    slice_at,
)  # fmt: skip
from oop_engine.system.kernel import njit

__all__ = ["TOTAL_LOW", "TOTAL_WRAPS", "leaving", "subtract_on_evict", "sums"]

TOTAL_LOW, TOTAL_WRAPS = range(2)
_SAFE = float(1 << 62)
WIDS_FIRST, WIDS_STOP = range(2)
GIVEN_SHAPE, GIVEN_END, GIVEN_BEGIN, GIVEN_STOP = range(4)


@njit(cache=True, nogil=True)
def leaving(shape, grid, clock, span, tuples, mask):
    """Return the windows that close and have tuples, by end, then definition: a column (n,) of each of four things.

    These are the definition's number, the start and the end in time, and how many tuples there are.  Behind them:
    the first slice of each and the one behind, counted from the lowest slice there is on, int64 (2, n).  shape int64
    (4, definitions) as in ``slices.measure``, by number; grid and span likewise; clock: where unit 0 begins, and how
    long each is; tuples integers (rows,): slice ``s`` is row ``s & mask``.  O(windows + slices + definitions).
    """
    low, slices, definitions = span[LOW], span[HIGH] - span[LOW] + 1, np.uintp(shape.shape[1])
    # Tuples before each slice: a window has the difference.
    counted = np.zeros(slices + 1, np.int64)
    for at in range(slices):
        counted[at + 1] = counted[at] + tuples[(low + at) & mask]
    # How many windows close, and up to which slice they end.
    base = top = max(span[SPAN_DONE], low)
    wids, many = np.empty((2, shape.shape[1]), np.int64), 0
    for d in range(definitions):
        wids[WIDS_FIRST, d], wids[WIDS_STOP, d] = first, stop = first_and_stop(shape, grid, d, span)
        if first < stop:
            many += stop - first
            top = max(top, slice_at(grid, shape[OFFSET, d] + stop * shape[STEP, d]))
    # List those with tuples by definition, and count them by the slice they end before.
    given, places, windows = np.empty((4, many), np.int64), np.zeros(top - base + 2, np.int64), np.uintp(0)
    for d in range(definitions):
        step, length = shape[STEP, d], shape[LENGTH, d]
        end = shape[OFFSET, d] + wids[WIDS_FIRST, d] * step
        for _ in range(wids[WIDS_FIRST, d], wids[WIDS_STOP, d]):
            end += step
            end_slice = slice_at(grid, end)
            begin = min(max(slice_at(grid, end - length) - low, 0), slices)
            (
                given[GIVEN_SHAPE, windows],
                given[GIVEN_END, windows],
                given[GIVEN_BEGIN, windows],
                given[GIVEN_STOP, windows],
            ) = d, end, begin, end_slice
            used = counted[np.uintp(min(end_slice - low, slices))] > counted[np.uintp(begin)]
            places[np.uintp(end_slice - base + 1)] += used
            windows += np.uintp(used)
    # Where the windows of each slice begin among the results.
    for at in range(1, len(places)):
        places[at] += places[at - 1]
    # Write each window to its place.
    numbers, starts = np.empty(windows, np.int64), np.empty(windows, np.int64)
    ends, counts = np.empty(windows, np.int64), np.empty(windows, np.int64)
    sides = np.empty((2, windows), np.int64)
    for w in range(windows):
        definition, end, begin, end_slice = (
            np.uintp(given[GIVEN_SHAPE, w]),
            given[GIVEN_END, w],
            given[GIVEN_BEGIN, w],
            given[GIVEN_STOP, w],
        )
        to, stop = np.uintp(places[np.uintp(end_slice - base)]), min(end_slice - low, slices)
        places[np.uintp(end_slice - base)] += 1
        numbers[to], ends[to] = shape[NUMBER, definition], clock[0] + end * clock[1]
        starts[to] = ends[to] - shape[LENGTH, definition] * clock[1]
        counts[to] = counted[np.uintp(stop)] - counted[np.uintp(begin)]
        sides[SIDE_FIRST, to], sides[SIDE_STOP, to] = begin, stop
    return numbers, starts, ends, counts, sides


@njit(cache=True, nogil=True)
def sums(column, mask, span, sides, out):
    """Write the sum of each window into ``out`` int64 (n,), by its ``sides`` (``leaving``); false: they may not fit.

    ``column`` integers (rows,), as ``tuples`` there.  O(windows + slices).
    """
    low, slices = span[LOW], span[HIGH] - span[LOW] + 1
    # All that is added up, without signs: no window has more, so below _SAFE none can wrap.
    running, most = np.zeros(slices + 1, np.int64), 0.0
    for at in range(slices):
        value = np.int64(column[(low + at) & mask])
        running[at + 1] = running[at] + value
        most += abs(np.float64(value))
    for w in range(len(out)):
        out[w] = running[sides[SIDE_STOP, w]] - running[sides[SIDE_FIRST, w]]
    return most < _SAFE


@njit(cache=True, nogil=True)
def subtract_on_evict(panes, wraps, at, length, total, ring, ring_wraps, out, out_wraps):
    """Write the sum of the last ``length`` of ``panes``, in order, at the end of each: by what comes and what goes.

    panes, out int64 (n,).  The first pane goes to ``at`` of ``ring``, which has ``length`` cells (fewer before it has
    gone round once, or more); what has not come yet counts as 0.
    total int64 (2,) is updated: the sum of the ring.  Of each result the first goes to ``out``, the second to
    ``out_wraps`` int32 (n,); (0,): no sum can wrap.  ``wraps``, as long as panes, and ``ring_wraps`` are the same of
    panes; (0,): none has wrapped.  Returns ``at``.
    """
    low, wrapped, begin = total[TOTAL_LOW], total[TOTAL_WRAPS], 0
    while begin < len(panes):
        count = min(length - at, len(panes) - begin)
        new, sums, old = panes[begin : begin + count], out[begin : begin + count], ring[at : at + count]
        for k in range(count):
            less = low - old[k]
            if ((low ^ old[k]) & (less ^ low)) < 0:
                wrapped += 1 if old[k] < 0 else -1
            low = less + new[k]
            if ((low ^ less) & (low ^ new[k])) < 0:
                wrapped += 1 if new[k] >= 0 else -1
            sums[k], old[k] = low, new[k]
            if len(wraps):
                wrapped += wraps[begin + k] - ring_wraps[at + k]
                ring_wraps[at + k] = wraps[begin + k]
            if len(out_wraps):
                out_wraps[begin + k] = wrapped
        begin, at = begin + count, (at + count) % length
    total[TOTAL_LOW], total[TOTAL_WRAPS] = low, wrapped
    return at
