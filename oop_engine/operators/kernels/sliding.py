"""Sliding: sums by subtraction, over panes in order; and which rows windows over ranges of them are made of.

Two stacks over panes in order, for what cannot be subtracted, are a loop of ``kernels/monoids.py``.

Source: Theodorakis et al., Hammer Slide, ADMS 2018, 2.2 (subtract-on-evict).
"""

from __future__ import annotations

from oop_engine.system.kernel import njit

__all__ = ["bisect", "over_ranges", "subtract_on_evict"]


@njit(cache=True, nogil=True)
def subtract_on_evict(panes, wraps, at, length, total, ring, ring_wraps, out, out_wraps):
    """Write the sum of the last ``length`` of ``panes``, in order, at the end of each: by what comes and what goes.

    panes, out int64 (n,).  The first pane goes to ``at`` of ``ring``, which has ``length`` cells (fewer before it has
    gone round once, or more); what has not come yet counts as 0.
    total int64 (2,) is updated: the sum is ``total[0] + 2**64 * total[1]``.  Of each result the first goes to ``out``,
    the second to ``out_wraps`` int32 (n,); (0,): no sum can wrap.  ``wraps``, as long as panes, and ``ring_wraps`` are
    the same of panes; (0,): none has wrapped.  Returns ``at``.
    """
    low, turns, begin = total[0], total[1], 0
    while begin < len(panes):
        count = min(length - at, len(panes) - begin)
        new, some, old = panes[begin : begin + count], out[begin : begin + count], ring[at : at + count]
        for k in range(count):
            less = low - old[k]
            if ((low ^ old[k]) & (less ^ low)) < 0:
                turns += 1 if old[k] < 0 else -1
            low = less + new[k]
            if ((low ^ less) & (low ^ new[k])) < 0:
                turns += 1 if new[k] >= 0 else -1
            some[k], old[k] = low, new[k]
            if len(wraps):
                turns += wraps[begin + k] - ring_wraps[at + k]
                ring_wraps[at + k] = wraps[begin + k]
            if len(out_wraps):
                out_wraps[begin + k] = turns
        begin, at = begin + count, (at + count) % length
    total[0], total[1] = low, turns
    return at


@njit(cache=True, nogil=True)
def bisect(values, begins, groups, wanted, out):
    """Write the first row of group ``groups[i]`` whose value is ``wanted[i]`` or more into ``out``; all int64.

    Group ``g`` has the rows ``begins[g]`` to ``begins[g + 1]`` of ``values``, ascending.  O(log rows) each, O(1) where
    the row is one of the next two of the one found before.
    """
    before, of = 0, -1
    for i in range(len(groups)):
        g, w = groups[i], wanted[i]
        lo, hi = begins[g], begins[g + 1]
        if g == of and (before == lo or values[before - 1] < w):
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
        out[i], before, of = lo, lo, g


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
        while front > lo:
            front -= 1
            if write:
                steps[0, used], steps[1, used] = rows + turn - front, front
                steps[2, used] = front + 1 if front + 2 == turn else rows + turn - front - 1
            used += 1
        while back < hi:
            if back > turn:
                if write:
                    steps[0, used], steps[2, used] = rows, back
                    steps[1, used] = turn if back == turn + 1 else rows
                used += 1
            back += 1
        if write:
            steps[0, used] = ~i
            steps[1, used] = lo if lo == turn - 1 else rows + turn - lo
            steps[2, used] = -1
            if back > turn:
                steps[2, used] = turn if back == turn + 1 else rows
        used += 1
    return used
