"""Kernel of a bound by quantiles: how late tuples are, in a histogram of the last ones."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["CELLS", "quantile_behind"]

Ints = NDArray[np.int64]
Cells = NDArray[np.int16]
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max - 1
CELLS = 8 * 62
"""Cells of the histogram: eight for each power of two, and one for each number below eight."""


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def quantile_behind(times: Ints, share: float, last: Cells, counts: Ints, memory: Ints) -> Ints:
    """Return after each row the largest value so far, minus the quantile ``share`` of the lateness of the last rows.

    ``times``: int64 (rows,).  ``last``: int16 (n,), a ring of the cells of the last ``n`` rows.  ``counts``: int64
    (CELLS,).  ``memory``: int64 (5,): the largest value, the bound, how many rows came, the cell of the quantile, how
    many of the last rows are in it or below.  The last three learn.  Returns int64 (rows,), never decreasing.
    O(rows), amortised, as long as the quantile moves by a few cells at a time.
    """
    found = np.empty(times.size, np.int64)
    largest, bound, came, cell, below = memory[0], memory[1], memory[2], memory[3], memory[4]
    for i in range(times.size):
        value = min(times[i], _MOST)  # a tuple may have the largest integer; that does not end the stream
        if came == 0 or value > largest:
            largest = value
        at = came % last.size
        if came >= last.size:
            counts[last[at]] -= 1
            below -= last[at] <= cell
        last[at] = _cell(largest - value if value >= 0 or largest <= _MOST + value else _MOST)
        counts[last[at]] += 1
        below += last[at] <= cell
        came += 1
        needed = int(np.ceil(share * min(came, last.size)))
        while below < needed:
            cell += 1
            below += counts[cell]
        while below - counts[cell] >= needed:
            below -= counts[cell]
            cell -= 1
        late = _most(cell)
        bound = max(bound, largest - late if largest >= _LEAST + late else _LEAST)
        found[i] = bound
    memory[0], memory[1], memory[2], memory[3], memory[4] = largest, bound, came, cell, below
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _cell(late: int) -> int:
    """Return the cell of a lateness."""
    power = 0
    while late >> (power + 4) > 0:
        power += 1
    return 8 * power + (late >> power)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _most(cell: int) -> int:
    """Return the largest lateness of a cell."""
    if cell < 16:
        return cell
    power = cell // 8 - 1
    return min(((cell - 8 * power + 1) << power) - 1, _MOST) if power < 59 else _MOST
