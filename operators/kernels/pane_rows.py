"""Combining panes row by row: what all groups have in a pane, next to each other in memory.

Common arguments: ``a`` and ``b`` (slots,) what the groups have in two rows, ``in_a`` and ``in_b`` uint8 (slots,)
whether they have anything there (if not the value means nothing), ``out`` (slots,), written.  All O(slots), most in
vector instructions.  Called by ``operators.pane_sweep``.
"""

from __future__ import annotations

from numba import njit

__all__ = ["add", "add_checked", "edge", "extreme", "free", "moments", "move", "pick"]


@njit(cache=True)
def add(a, in_a, b, in_b, out):
    """Add counts (int64) or sums (float64)."""
    for i in range(len(out)):
        out[i] = (a[i] if in_a[i] else 0) + (b[i] if in_b[i] else 0)


@njit(cache=True)
def add_checked(a, in_a, b, in_b, out):
    """Add int64 sums; return a slot whose sum wraps, or -1."""
    wrapped = 0
    for i in range(len(out)):
        one, other = a[i] if in_a[i] else 0, b[i] if in_b[i] else 0
        total = one + other
        wrapped |= (total ^ one) & (total ^ other)
        out[i] = total
    if wrapped < 0:
        for i in range(len(out)):
            if in_a[i] and in_b[i] and ((out[i] ^ a[i]) & (out[i] ^ b[i])) < 0:
                return i
    return -1


@njit(cache=True)
def extreme(a, in_a, b, in_b, out, largest):
    """Keep the smaller value, or the ``largest``; NaN gives way to any number."""
    for i in range(len(out)):
        value, other = a[i], b[i]
        better = value != value or (other > value if largest else other < value)
        out[i] = other if in_b[i] and (better or not in_a[i]) else value


@njit(cache=True)
def edge(a, when_a, in_a, b, when_b, in_b, out, when, last):
    """Keep the value of the first (or ``last``) time; of equal times the smaller (larger) value."""
    for i in range(len(out)):
        better = when_b[i] > when_a[i] if last else when_b[i] < when_a[i]
        if when_b[i] == when_a[i]:
            better = a[i] != a[i] or (b[i] > a[i] if last else b[i] < a[i])
        other = in_b[i] and (better or not in_a[i])
        out[i], when[i] = b[i] if other else a[i], when_b[i] if other else when_a[i]


@njit(cache=True)
def moments(a, in_a, b, in_b, out):
    """Merge counts, means and sums of squared deviations, three columns each, after Chan, Golub, LeVeque."""
    number_a, mean_a, squares_a = a
    number_b, mean_b, squares_b = b
    number, mean, squares = out
    for i in range(len(number)):
        n, m = number_a[i] if in_a[i] else 0, number_b[i] if in_b[i] else 0
        number[i] = n + m
        if n and m:
            away = mean_b[i] - mean_a[i]
            mean[i] = mean_a[i] + away * m / (n + m)
            squares[i] = squares_a[i] + squares_b[i] + away * away * n * m / (n + m)
        else:  # one side alone is taken as it is: 0 * infinity would be NaN
            mean[i] = mean_b[i] if m else mean_a[i] if n else 0.0
            squares[i] = squares_b[i] if m else squares_a[i] if n else 0.0


@njit(cache=True)
def move(total, row, held, sign):
    """Add an int64 row to ``total``, or take it away (``sign`` -1); return a slot whose total wraps, or -1."""
    wrapped = 0
    for i in range(len(total)):
        before, more = total[i], sign * row[i] if held[i] else 0
        after = before + more
        wrapped |= (after ^ before) & (after ^ more)
        total[i] = after
    if wrapped < 0:
        for i in range(len(total)):
            before = total[i] - (sign * row[i] if held[i] else 0)
            if held[i] and ((total[i] ^ before) & (total[i] ^ (sign * row[i]))) < 0:
                return i
    return -1


@njit(cache=True)
def pick(held, first, stop, wid, slots):
    """Write the slots that have something in window ``wid``, and close it now; return how many.

    held any integers, first and stop int64 (slots,): windows first[i] to stop[i] (exclusive) are closed.
    slots int64 (slots + 1 or more,).
    """
    found = 0
    for i in range(len(held)):
        slots[found] = i
        found += held[i] != 0 and first[i] <= wid and wid < stop[i]
    return found


@njit(cache=True)
def free(present, needed, first_pane, panes):
    """Empty the cells of ``panes`` panes from ``first_pane`` on that lie below needed[slot]; return how many.

    present uint8 (room, slots), room a power of two; needed int64 (slots,).
    """
    freed, mask = 0, present.shape[0] - 1
    for pane in range(first_pane, first_pane + panes):
        row = present[pane & mask]
        for i in range(len(needed)):
            if pane < needed[i]:
                freed += row[i]
                row[i] = 0
    return freed
