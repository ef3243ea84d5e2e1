"""Sliding: where ranges of rows begin, and the planner of two stacks over ranges.

Windows are ranges of rows, best by their ends, those of like lengths together.  From a *turn* on, the end of a window,
the front goes back, row by row, as far as windows begin, and the back goes on as far as windows end.  A window with the
turn inside is what the front and the back have together; one that begins behind it makes its own end the next turn.  So
there are at most four combinations a row, however many windows, and one a window.

Used for slices of many definitions, panes of all groups side by side (``slicing.panes.window_plans``), and tuples in
order of time (``slicing.ordered.slice_table``).  Stacks that stay from bound to bound are in ``kernels/panes.py``,
those of a stream in order are a loop (``kernels/loops.py``, ``slide``).

Source: van Herk 1992; Tangwongsan, Hirzel, Schneider, DEBS 2017 (two stacks).
"""

# Layout       steps[3, n]  monoids.py: STEP_TO, STEP_A, STEP_B.  A row of the input is row ^ code; row k of the scratch
#                           is scratch + k: code 0 and scratch = rows are the words of fold_steps, -1 and 0 those of
#                           fold_rows.  Result i is ~i; STEP_B is ALONE where row A is copied
#              scratch row  0: the back, of two rows at least; k, from 2 on: the front of the k rows before the turn
# Invariant    Scratch row k is rows [turn - k, turn) together, for k from 2 to turn - front; row 0 is rows [turn, back)
#              together, if these are two at least.  One row alone is read where it is.
#              A window that does not end behind the one before makes a new turn, so any order is right.
# Not obvious  Windows of like lengths only should share a turn: beside windows of an hour, those of a second would turn
#              every second, and each front would go back as far as an hour.
#              A window that begins behind the turn has its own end as the next turn: its rows are the new front.
# Tried        A planner for slices beside this one, which looked for the next end among all definitions: the same
#              steps, 75 lines more, O(definitions) a window.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.monoids import STEP_A, STEP_B, STEP_TO
from oop_engine.system.kernel import njit

__all__ = ["ALONE", "bisect", "over_ranges"]

ALONE = np.iinfo(np.int64).min


@njit(cache=True, nogil=True)
def bisect(values, begins, groups, wanted, out):
    """Write the first row of group ``groups[i]`` whose value is ``wanted[i]`` or more into ``out``; all int64.

    Group ``g`` has the rows ``begins[g]`` to ``begins[g + 1]`` of ``values``, ascending.  O(log rows) each, O(1) where
    the row is one of the next two of the one found before.
    """
    before, last_group = 0, -1
    for i in range(len(groups)):
        g, w = groups[i], wanted[i]
        lo, hi = begins[g], begins[g + 1]
        # Try the row found before and the two behind it, and search the rest of the group if it is none of these.
        if g == last_group and (before == lo or values[before - 1] < w):
            lo = before
            for _ in range(2):
                if lo < hi and values[lo] < w:
                    lo += 1
            if lo == hi or values[lo] >= w:
                hi = lo
        while lo < hi:
            middle = (lo + hi) >> 1
            if values[middle] < w:
                lo = middle + 1
            else:
                hi = middle
        out[i], before, last_group = lo, lo, g


@njit(cache=True, nogil=True)
def over_ranges(low, high, code, scratch, steps):
    """Write down how windows, ranges ``[low[i], high[i])`` of rows, are put together by two stacks; return the steps.

    ``code`` and ``scratch``: the words of ``steps`` int64 (3, n).  Nothing is written where these have no room: then
    they are counted.  O(rows + windows) where both sides ascend.
    """
    used, turn, front, back = 0, -1, 0, 0
    write = steps.shape[1] > 0
    for i in range(len(low)):
        lo, hi = low[i], high[i]
        if turn < 0 or lo >= turn or hi < back or hi < turn:
            turn, front, back = hi, hi - 1, hi
        # The front: one row more with those above it.
        while front > lo:
            front -= 1
            if write:
                steps[STEP_TO, used], steps[STEP_A, used] = scratch + turn - front, front ^ code
                steps[STEP_B, used] = (front + 1) ^ code if front + 2 == turn else scratch + turn - front - 1
            used += 1
        # The back: the first row stays where it is, the second is combined with it, others with the scratch.
        while back < hi:
            if back > turn:
                if write:
                    steps[STEP_TO, used], steps[STEP_B, used] = scratch, back ^ code
                    steps[STEP_A, used] = turn ^ code if back == turn + 1 else scratch
                used += 1
            back += 1
        # The window: the front from its start on, and the back if there is one.
        if write:
            steps[STEP_TO, used] = ~i
            steps[STEP_A, used] = lo ^ code if lo == turn - 1 else scratch + turn - lo
            steps[STEP_B, used] = ALONE
            if back > turn:
                steps[STEP_B, used] = turn ^ code if back == turn + 1 else scratch
        used += 1
    return used
