"""Combining panes to windows: one kernel per kind of partial, for the steps of ``plan``.

Common arguments: ``to``, ``a``, ``b`` int64 (steps,): what rows ``a`` and ``b`` have
together (``b`` -1: row ``a`` alone) goes to row ``to``, or if that is negative to row
``~to`` of the results.  Columns are (rows,), those of results have ``new`` in their names.
Called by ``oop_engine.operators.slicing.pane_folds``.
"""

from __future__ import annotations

from numba import njit

__all__ = ["add", "add_checked", "edge", "extreme", "moments"]


@njit(cache=True, nogil=True)
def add(column, new, to, a, b):
    """Add counts (int64) or sums (float64)."""
    for i in range(len(to)):
        value = column[a[i]]
        if b[i] >= 0:
            value += column[b[i]]
        if to[i] >= 0:
            column[to[i]] = value
        else:
            new[~to[i]] = value


@njit(cache=True, nogil=True)
def add_checked(column, new, to, a, b):
    """Add int64 sums; return the step whose sum would wrap, or -1."""
    for i in range(len(to)):
        value = column[a[i]]
        if b[i] >= 0:
            more = column[b[i]]
            total = value + more
            if ((total ^ value) & (total ^ more)) < 0:
                return i
            value = total
        if to[i] >= 0:
            column[to[i]] = value
        else:
            new[~to[i]] = value
    return -1


@njit(cache=True, nogil=True)
def extreme(column, new, to, a, b, largest):
    """Keep the smaller value, or the ``largest``; NaN gives way to any number."""
    for i in range(len(to)):
        value = column[a[i]]
        if b[i] >= 0:
            other = column[b[i]]
            if value != value or (other > value if largest else other < value):
                value = other
        if to[i] >= 0:
            column[to[i]] = value
        else:
            new[~to[i]] = value


@njit(cache=True, nogil=True)
def edge(column, when, new, new_when, to, a, b, last):
    """Keep the value of the first (or ``last``) time; of equal times the smaller (larger) value."""
    for i in range(len(to)):
        value, time = column[a[i]], when[a[i]]
        if b[i] >= 0:
            other, since = column[b[i]], when[b[i]]
            better = since > time if last else since < time
            if since == time:
                better = value != value or (other > value if last else other < value)
            if better:
                value, time = other, since
        if to[i] >= 0:
            column[to[i]], when[to[i]] = value, time
        else:
            new[~to[i]], new_when[~to[i]] = value, time


@njit(cache=True, nogil=True)
def moments(number, mean, squares, new_number, new_mean, new_squares, to, a, b):
    """Merge counts, means and sums of squared deviations, after Chan, Golub, LeVeque."""
    for i in range(len(to)):
        n, average, square = number[a[i]], mean[a[i]], squares[a[i]]
        if b[i] >= 0 and number[b[i]] > 0:
            m, other, more = number[b[i]], mean[b[i]], squares[b[i]]
            if n == 0:  # one side alone is taken as it is: 0 * infinity would be NaN
                n, average, square = m, other, more
            else:
                away = other - average
                average += away * m / (n + m)
                square += more + away * away * n * m / (n + m)
                n += m
        if to[i] >= 0:
            number[to[i]], mean[to[i]], squares[to[i]] = n, average, square
        else:
            new_number[~to[i]], new_mean[~to[i]], new_squares[~to[i]] = n, average, square
