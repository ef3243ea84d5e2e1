"""Updating cells of partial aggregates where each tuple goes into one: a kernel per kind of partial.

Common arguments: ``rows`` int64 (tuples,): tuple ``i`` goes into row ``rows[i]``; ``values`` int32, int64 or
float64 (tuples,); ``valid`` bool (tuples,): false where the value is null, or (0,) if none is.  Columns
are (rows,) of the table and are updated in place.  Called by ``oop_engine.operators.slicing.components``; where a tuple
goes into several rows see ``partials_update``.
"""

from __future__ import annotations

from numba import njit

__all__ = ["count", "edge", "extreme", "moments", "sum_floats", "sum_integers"]


@njit(cache=True, nogil=True)
def count(column, rows, valid):
    """Count values: ``column`` int64."""
    known = len(valid) == 0
    for i in range(len(rows)):
        if known or valid[i]:
            column[rows[i]] += 1


@njit(cache=True, nogil=True)
def sum_integers(column, rows, values, valid):
    """Sum int64 ``values`` into int64 ``column``; return the row that would wrap, or -1."""
    known = len(valid) == 0
    for i in range(len(rows)):
        if known or valid[i]:
            old, value = column[rows[i]], values[i]
            new = old + value
            if ((new ^ old) & (new ^ value)) < 0:
                return rows[i]
            column[rows[i]] = new
    return -1


@njit(cache=True, nogil=True)
def sum_floats(column, rows, values, valid):
    """Sum float64 ``values`` into float64 ``column``."""
    known = len(valid) == 0
    for i in range(len(rows)):
        if known or valid[i]:
            column[rows[i]] += values[i]


@njit(cache=True, nogil=True)
def extreme(column, rows, values, valid, largest):
    """Keep the smallest value, or the ``largest``; NaN gives way to any number."""
    known = len(valid) == 0
    for i in range(len(rows)):
        if known or valid[i]:
            held, value = column[rows[i]], values[i]
            if held != held or (value > held if largest else value < held):
                column[rows[i]] = value


@njit(cache=True, nogil=True)
def edge(column, when, rows, values, times, valid, last):
    """Keep the value of the first (or ``last``) time, and that time in ``when`` int64.

    Of equal times the smallest value stays (the largest): the order of tuples is no matter.
    """
    known = len(valid) == 0
    for i in range(len(rows)):
        if known or valid[i]:
            row, value, time = rows[i], values[i], times[i]
            held, since = column[row], when[row]
            if time == since:
                better = held != held or (value > held if last else value < held)
            else:
                better = time > since if last else time < since
            if better:
                column[row], when[row] = value, time


@njit(cache=True, nogil=True)
def moments(number, mean, squares, rows, values, valid):
    """Add values to count (int64), mean and sum of squared deviations (float64), after Welford."""
    known = len(valid) == 0
    for i in range(len(rows)):
        if known or valid[i]:
            row = rows[i]
            number[row] += 1
            away = values[i] - mean[row]
            mean[row] += away / number[row]
            squares[row] += away * (values[i] - mean[row])
