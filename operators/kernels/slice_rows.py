"""Combining slices row by row, for the steps of ``oop_engine.operators.kernels.slices``.

Common arguments: ``ring`` (rows, slots) what there is in each slice, the state of no values where there is nothing;
``results`` (windows, groups), written, of the slots from ``begin`` on; ``cells`` (rows, groups), scratch; ``steps``
int64 (3, steps).  All O(steps x groups), most in vector instructions.  Called by ``slicing.slice_windows``.
"""

from __future__ import annotations

from numba import njit

from oop_engine.operators.kernels.slices import ALONE

__all__ = ["add", "add_checked", "edge", "extreme", "moments"]


@njit(cache=True, nogil=True)
def _row(ring, begin, cells, at):
    return cells[at] if at >= 0 else ring[~at, begin : begin + cells.shape[1]]


@njit(cache=True, nogil=True)
def add(ring, begin, cells, results, steps):
    """Add counts or floating sums."""
    for i in range(steps.shape[1]):
        to, a, b = steps[0, i], steps[1, i], steps[2, i]
        out, one = cells[to] if to >= 0 else results[~to], _row(ring, begin, cells, a)
        if b == ALONE:
            out[:] = one
            continue
        other = _row(ring, begin, cells, b)
        for j in range(len(out)):
            out[j] = one[j] + other[j]


@njit(cache=True, nogil=True)
def add_checked(ring, begin, cells, results, steps):
    """Add int64 sums; return the step and the group whose sum wraps, or -1, -1."""
    for i in range(steps.shape[1]):
        to, a, b = steps[0, i], steps[1, i], steps[2, i]
        out, one = cells[to] if to >= 0 else results[~to], _row(ring, begin, cells, a)
        if b == ALONE:
            out[:] = one
            continue
        other, wrapped = _row(ring, begin, cells, b), 0
        for j in range(len(out)):
            total = one[j] + other[j]
            wrapped |= (total ^ one[j]) & (total ^ other[j])
            out[j] = total
        if wrapped < 0:
            for j in range(len(out)):
                before = out[j] - other[j]  # ``one`` may be overwritten
                if ((out[j] ^ before) & (out[j] ^ other[j])) < 0:
                    return i, j
    return -1, -1


@njit(cache=True, nogil=True)
def extreme(ring, begin, cells, results, steps, largest):
    """Keep the smaller value, or the ``largest``; NaN gives way to any number."""
    for i in range(steps.shape[1]):
        to, a, b = steps[0, i], steps[1, i], steps[2, i]
        out, one = cells[to] if to >= 0 else results[~to], _row(ring, begin, cells, a)
        other = one if b == ALONE else _row(ring, begin, cells, b)
        for j in range(len(out)):
            value, more = one[j], other[j]
            better = value != value or (more > value if largest else more < value)
            out[j] = more if better else value


@njit(cache=True, nogil=True)
def edge(ring, begin, cells, results, steps, last):
    """Keep the value of the first (or ``last``) time; of equal times the smaller (larger) value; two columns each."""
    for i in range(steps.shape[1]):
        to, a, b = steps[0, i], steps[1, i], steps[2, i]
        b = a if b == ALONE else b
        out = cells[0][to] if to >= 0 else results[0][~to]
        when = cells[1][to] if to >= 0 else results[1][~to]
        one, time_of = _row(ring[0], begin, cells[0], a), _row(ring[1], begin, cells[1], a)
        other, since_of = _row(ring[0], begin, cells[0], b), _row(ring[1], begin, cells[1], b)
        for j in range(len(out)):
            value, time, more, since = one[j], time_of[j], other[j], since_of[j]
            better = since > time if last else since < time
            if since == time:
                better = value != value or (more > value if last else more < value)
            out[j], when[j] = (more, since) if better else (value, time)


@njit(cache=True, nogil=True)
def moments(ring, begin, cells, results, steps):
    """Merge counts, means and sums of squared deviations, three columns each, after Chan, Golub, LeVeque."""
    for i in range(steps.shape[1]):
        to, a, b = steps[0, i], steps[1, i], steps[2, i]
        alone, b = b == ALONE, a if b == ALONE else b
        one, other = _row(ring[0], begin, cells[0], a), _row(ring[0], begin, cells[0], b)
        means, more_means = _row(ring[1], begin, cells[1], a), _row(ring[1], begin, cells[1], b)
        squares, more_squares = _row(ring[2], begin, cells[2], a), _row(ring[2], begin, cells[2], b)
        number = cells[0][to] if to >= 0 else results[0][~to]
        mean = cells[1][to] if to >= 0 else results[1][~to]
        square = cells[2][to] if to >= 0 else results[2][~to]
        for j in range(len(number)):
            n, m = one[j], 0 if alone else other[j]
            average, total = means[j], squares[j]
            if n and m:
                away = more_means[j] - average
                average += away * m / (n + m)
                total += more_squares[j] + away * away * n * m / (n + m)
            elif m:  # one side alone is taken as it is: 0 * infinity would be NaN
                average, total = more_means[j], more_squares[j]
            number[j], mean[j], square[j] = n + m, average, total
