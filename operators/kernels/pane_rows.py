"""Windows of many groups, whose states in a pane lie next to each other in memory: a row.

A cell that nothing is in holds the state of no values, so rows are combined without looking.  Common
arguments: ``geometry`` as in ``kernels.panes``; ``lowest``: the first of the windows that are closed; of
window ``lowest + w`` results go to ``ends[w - 1]`` to ``ends[w]`` (exclusive), those of ``slots`` int64
(results,), ascending.  Columns are (room, groups), room a power of two.  Called by ``slicing.panes.pane_windows``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["free", "held", "windows"]


@njit(cache=True, nogil=True)
def held(geometry, tuples, first, stop, lowest, slots, numbers, ends):
    """Write which groups have something in each window: ``slots``, and how many tuples: ``numbers``.

    Of group i windows first[i] to stop[i] (exclusive) are closed, int32 (groups,), counted from ``lowest``
    on.  slots and numbers int64 have room for one more than may be found; ``ends`` int64 (windows,) is
    written.  Returns how many were found.  O((windows + panes) x groups).
    """
    step, length, low, high, mask, _ = geometry
    count = np.zeros(len(first), tuples.dtype)
    begin, end, found = low, low, 0
    for w in range(len(ends)):
        wid = lowest + w
        start, till = max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)
        if start < till and length == 1:
            row = tuples[start & mask]
            for i in range(len(first)):
                slots[found], numbers[found] = i, row[i]  # no branch: it cannot be foreseen
                found += (row[i] != 0) & (first[i] <= w) & (w < stop[i])
        elif start < till:
            for pane in range(begin, min(start, end)):
                row = tuples[pane & mask]
                for i in range(len(count)):
                    count[i] -= row[i]
            for pane in range(max(start, end), till):
                row = tuples[pane & mask]
                for i in range(len(count)):
                    count[i] += row[i]
            begin, end = start, till
            for i in range(len(count)):
                slots[found], numbers[found] = i, count[i]
                found += (count[i] != 0) & (first[i] <= w) & (w < stop[i])
        ends[w] = found
    return found


@njit(cache=True, nogil=True)
def windows(lowest, ends, out):
    """Write the windows that results are of into ``out`` int64 (results,)."""
    k = 0
    for w in range(len(ends)):
        while k < ends[w]:
            out[k] = lowest + w
            k += 1


@njit(cache=True, nogil=True)
def free(tuples, needed, first_pane, panes):
    """Forget the tuples in ``panes`` panes from ``first_pane`` on, below needed[slot]; return how many cells.

    needed int64 (groups,).
    """
    gone, mask = 0, tuples.shape[0] - 1
    for pane in range(first_pane, first_pane + panes):
        row = tuples[pane & mask]
        for i in range(len(needed)):
            kept = row[i] * (pane >= needed[i])  # not a choice: masked writing is slow
            gone += (row[i] != 0) - (kept != 0)
            row[i] = kept
    return gone
