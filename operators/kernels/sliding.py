"""Sliding: the aggregate of the last ``length`` panes, at the end of each pane, in order.

Common arguments: ``panes`` (n,): the partial aggregates of the panes that ended, in order;
``at``: where in the ring the first of them goes, the ring's length is ``length`` (it may be
shorter before it has gone round once, and longer); ``out`` (n,) takes the results.  What has not come
yet counts as nothing.  Returned is ``at`` after them, and what else goes on.

Two stacks, in one array: below ``at`` are panes since the last turn, of which the *back* is
the aggregate; from ``at`` on, the front: what each pane of the round before has together with
all later ones of that round.  A window is one cell of the front and the back.  A new pane takes the
place of the front's cell that no window needs any more; when the round is over the array is made the
front, from its end on.  So only panes are kept of the back, and only aggregates of the front.

Source: Theodorakis et al., Hammer Slide, ADMS 2018, 3.2 and figure 5 (it calls front what comes in).
"""

from __future__ import annotations

from numba import njit

__all__ = ["add", "bisect", "moments", "over_ranges", "smallest", "subtract_on_evict"]


@njit(cache=True, nogil=True)
def smallest(panes, at, length, back, nothing, stack, out):
    """Slide the smallest by two stacks, integers all of one type.  Returns at, back.

    ``nothing``, the largest of the type, is the aggregate of no panes; ``stack[length]`` is that.
    """
    begin = 0
    while begin < len(panes):
        count = min(length - at, len(panes) - begin)
        new, some = panes[begin : begin + count], out[begin : begin + count]
        held, front = stack[at : at + count], stack[at + 1 : at + 1 + count]
        for k in range(count):
            held[k] = new[k]
            back = min(back, new[k])
            some[k] = min(back, front[k])
        begin, at = begin + count, at + count
        if at == length:
            at, back = 0, nothing
            for k in range(length):
                back = min(back, stack[length - 1 - k])
                stack[length - 1 - k] = back
            back = nothing
    return at, back


@njit(cache=True, nogil=True)
def add(panes, at, length, back, stack, out):
    """Slide the sum as floats by two stacks.  Returns at, back.

    ``stack`` and ``out`` are float64, ``stack[length]`` is 0.
    Nothing is ever subtracted, so nothing drifts, and NaN or infinity leave with their tuple.
    """
    begin = 0
    while begin < len(panes):
        count = min(length - at, len(panes) - begin)
        new, some = panes[begin : begin + count], out[begin : begin + count]
        held, front = stack[at : at + count], stack[at + 1 : at + 1 + count]
        for k in range(count):
            held[k] = new[k]
            back += new[k]
            some[k] = back + front[k]
        begin, at = begin + count, at + count
        if at == length:
            at, back = 0, 0.0
            for k in range(length):
                back += stack[length - 1 - k]
                stack[length - 1 - k] = back
            back = 0.0
    return at, back


@njit(cache=True, nogil=True)
def _together(one, other):
    """Merge (count, mean, sum of squared deviations), after Chan, Golub, LeVeque."""
    n, mean, squares = one
    m, average, more = other
    if n == 0.0 or m == 0.0:  # one side alone is taken as it is: 0 * infinity would be NaN
        return other if n == 0.0 else one
    away, total = average - mean, n + m
    return total, mean + away * m / total, squares + more + away * away * n * m / total


@njit(cache=True, nogil=True)
def moments(panes, at, length, back, stack, out):
    """Slide counts, means and sums of squared deviations by two stacks, float64 (3, ...).  Returns at.

    back float64 (3,) is updated; ``stack[:, length]`` is 0.
    """
    held = back[0], back[1], back[2]
    for i in range(panes.shape[1]):
        new = panes[0, i], panes[1, i], panes[2, i]
        stack[0, at], stack[1, at], stack[2, at] = new
        held, at = _together(held, new), at + 1
        front = stack[0, at], stack[1, at], stack[2, at]
        out[0, i], out[1, i], out[2, i] = _together(front, held)
        if at == length:
            at, held = 0, (0.0, 0.0, 0.0)
            for k in range(length - 1, -1, -1):
                held = _together((stack[0, k], stack[1, k], stack[2, k]), held)
                stack[0, k], stack[1, k], stack[2, k] = held
            held = 0.0, 0.0, 0.0
    back[0], back[1], back[2] = held
    return at


@njit(cache=True, nogil=True)
def subtract_on_evict(panes, at, length, total, ring, out, first, step):
    """Slide the sum, int64: add what comes, subtract what goes.

    total int64 (2,) is updated: the sum is ``total[0] + 2**64 * total[1]``.  Of the results,
    those from ``first`` on, every ``step``-th, are of windows: they have to fit 64 bits.  Returns
    at, and the first result that does not, or -1.
    """
    low, turns, wrong, begin = total[0], total[1], -1, 0
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
            if turns != 0 and wrong < 0 and begin + k >= first and (begin + k - first) % step == 0:
                wrong = begin + k
        begin, at = begin + count, (at + count) % length
    total[0], total[1] = low, turns
    return at, wrong


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
