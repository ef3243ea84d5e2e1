"""Sliding: sums by subtraction, over panes in order; and which rows windows over ranges of them are made of.

Two stacks over panes in order, for what cannot be subtracted, are a loop of ``kernels/loops.py`` (``slide``).

Source: Theodorakis et al., Hammer Slide, ADMS 2018, 2.2 (subtract-on-evict).
"""

# Layout       ring[length]  the last panes; the oldest one is at `at`, where the next one goes
#              total[2]      TOTAL_LOW, TOTAL_WRAPS: the sum of the ring is TOTAL_LOW + 2**64 * TOTAL_WRAPS
#              steps         monoids.py, taken by fold_steps: rows from `rows` on are scratch; rows + k is the front of
#                            the k rows before the turn, for k from 2 on; `rows` is the back, of two rows at least
# Invariant    Behind each pane, total is the sum of the ring: the pane at `at` goes out before the new pane comes in.
#              In over_ranges windows ascend at both sides while they share a turn; one that does not makes a new turn.
# Not obvious  A sum wraps if its sign differs from that of both sides; a difference, if the sides differ in sign and
#              the result from the left one.  Sums that wrapped are still exact: how often they did is counted.
#              The ring is passed over in stretches up to its end, so that no index in the loop is taken modulo.
# Tried        Panes of one tuple, put together by the stacks of panes.py: W6 took 6 to 20 times as long.

from __future__ import annotations

from oop_engine.operators.kernels.monoids import STEP_A, STEP_B, STEP_TO
from oop_engine.system.kernel import njit

__all__ = ["TOTAL_LOW", "TOTAL_WRAPS", "bisect", "over_ranges", "subtract_on_evict"]

TOTAL_LOW, TOTAL_WRAPS = range(2)


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
def over_ranges(low, high, rows, steps):
    """Write down how windows, ranges ``[low[i], high[i])`` of rows, are put together by two stacks; return the steps.

    Steps, int64 (3, n), are those of ``monoids.fold_steps``, in its words: rows from ``rows`` on are scratch, of which
    ``rows + k`` is the front of ``k`` rows before the turn, and ``rows`` the back.  Nothing is written where ``steps``
    has no room: then they are counted.  O(rows + windows) where both sides ascend.
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
                steps[STEP_TO, used], steps[STEP_A, used] = rows + turn - front, front
                steps[STEP_B, used] = front + 1 if front + 2 == turn else rows + turn - front - 1
            used += 1
        # The back: the first row stays where it is, the second is combined with it, others with the scratch.
        while back < hi:
            if back > turn:
                if write:
                    steps[STEP_TO, used], steps[STEP_B, used] = rows, back
                    steps[STEP_A, used] = turn if back == turn + 1 else rows
                used += 1
            back += 1
        # The window: the front from its start on, and the back if there is one.
        if write:
            steps[STEP_TO, used] = ~i
            steps[STEP_A, used] = lo if lo == turn - 1 else rows + turn - lo
            steps[STEP_B, used] = -1
            if back > turn:
                steps[STEP_B, used] = turn if back == turn + 1 else rows
        used += 1
    return used
