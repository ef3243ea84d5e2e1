"""Updating columns of partial aggregates: one kernel per kind of partial.

Common arguments: ``rows`` int64 and ``starts`` int64 (tuples + 1,): tuple ``i`` goes into
``rows[starts[i]:starts[i + 1]]``; ``lo``, ``hi``: which tuples; ``values`` int32, int64 or float64
(tuples,); ``valid`` bool (tuples,): false where the value is null, or (0,) if none is.  Columns are
(rows,) of the table and are updated in place.  Called by ``oop_engine.operators.slicing.components``.
"""

from __future__ import annotations

from numba import njit

__all__ = ["count", "edge", "extreme", "moments", "sum_floats", "sum_integers"]


@njit(cache=True, nogil=True)
def count(column, rows, starts, lo, hi, valid):
    """Count values: ``column`` int64."""
    known = len(valid) == 0
    for i in range(lo, hi):
        if known or valid[i]:
            for k in range(starts[i], starts[i + 1]):
                column[rows[k]] += 1


@njit(cache=True, nogil=True)
def sum_integers(column, rows, starts, lo, hi, values, valid):
    """Sum int64 ``values`` into int64 ``column``; return the row that would wrap, or -1."""
    known = len(valid) == 0
    for i in range(lo, hi):
        if known or valid[i]:
            value = values[i]
            for k in range(starts[i], starts[i + 1]):
                old = column[rows[k]]
                new = old + value
                if ((new ^ old) & (new ^ value)) < 0:
                    return rows[k]
                column[rows[k]] = new
    return -1


@njit(cache=True, nogil=True)
def sum_floats(column, rows, starts, lo, hi, values, valid):
    """Sum float64 ``values`` into float64 ``column``."""
    known = len(valid) == 0
    for i in range(lo, hi):
        if known or valid[i]:
            for k in range(starts[i], starts[i + 1]):
                column[rows[k]] += values[i]


@njit(cache=True, nogil=True)
def extreme(column, rows, starts, lo, hi, values, valid, largest):
    """Keep the smallest value, or the ``largest``; NaN gives way to any number."""
    known = len(valid) == 0
    for i in range(lo, hi):
        if known or valid[i]:
            value = values[i]
            for k in range(starts[i], starts[i + 1]):
                held = column[rows[k]]
                if held != held or (value > held if largest else value < held):
                    column[rows[k]] = value


@njit(cache=True, nogil=True)
def edge(column, when, rows, starts, lo, hi, values, times, valid, last):
    """Keep the value of the first (or ``last``) time, and that time in ``when`` int64.

    Of equal times the smallest value stays (the largest): the order of tuples is no matter.
    """
    known = len(valid) == 0
    for i in range(lo, hi):
        if known or valid[i]:
            value, time = values[i], times[i]
            for k in range(starts[i], starts[i + 1]):
                held, since = column[rows[k]], when[rows[k]]
                if time == since:
                    better = held != held or (value > held if last else value < held)
                else:
                    better = time > since if last else time < since
                if better:
                    column[rows[k]] = value
                    when[rows[k]] = time


@njit(cache=True, nogil=True)
def moments(number, mean, squares, rows, starts, lo, hi, values, valid):
    """Add values to count (int64), mean and sum of squared deviations (float64), after Welford."""
    known = len(valid) == 0
    for i in range(lo, hi):
        if known or valid[i]:
            for k in range(starts[i], starts[i + 1]):
                row = rows[k]
                number[row] += 1
                away = values[i] - mean[row]
                mean[row] += away / number[row]
                squares[row] += away * (values[i] - mean[row])
