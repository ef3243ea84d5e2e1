"""Windows of many groups, whose states in a pane lie next to each other in memory: a row.

A cell that nothing is in holds the state of no values, so rows are combined without looking.  Common
arguments: ``geometry`` as in ``kernels.panes``; ``lowest``: the first of the windows that are closed; of
window ``lowest + w`` results go to ``ends[w - 1]`` to ``ends[w]`` (exclusive), those of ``slots`` int64
(results,), ascending.  Columns are (room, groups), room a power of two.  Called by ``slicing.panes.pane_windows``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["all_held", "cells_of", "changed", "empty", "free", "held", "sides", "spread"]


@njit(cache=True, nogil=True)
def sides(geometry, slots, first, stop, lowest, begin, end, needed):
    """Write for each group which windows ``slots`` int64 (n,) close: ``begin`` and ``end``, as ``held`` takes them.

    And the first pane that is needed behind: ``needed`` int64 (groups,).  Groups that close nothing: 0, 0, the least.
    """
    step, length, low, _, _, _ = geometry
    for i in range(len(begin)):
        begin[i], end[i], needed[i] = 0, 0, low
    for i in range(len(slots)):
        slot = slots[i]
        begin[slot], end[slot] = first[i] - lowest, stop[i] - lowest
        needed[slot] = (stop[i] + 1) * step - length


@njit(cache=True, nogil=True)
def held(geometry, tuples, first, stop, lowest, slots, numbers, ends, forget):
    """Write which groups have something in each window: ``slots``, and how many tuples: ``numbers``.

    Of group i windows first[i] to stop[i] (exclusive) are closed, int32 (groups,), counted from ``lowest``
    on.  slots and numbers int64 have room for one more than may be found; ``ends`` int64 (windows,) is
    written.  ``forget``: windows of one pane forget its tuples at once.  Returns how many were found.
    O((windows + panes) x groups).
    """
    step, length, low, high, mask, _ = geometry
    groups, found = np.uintp(len(first)), np.uintp(0)  # unsigned: no index is below 0
    count, some = np.zeros(len(first), tuples.dtype), np.empty(len(first), tuples.dtype)
    begin, end = low, low
    for w in range(len(ends)):
        wid, window = lowest + w, np.int32(w)
        start, till = max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)
        if start < till:
            row = tuples[start & mask]
            if length > 1:
                for pane in range(begin, min(start, end)):
                    row = tuples[pane & mask]
                    for i in range(groups):
                        count[i] -= row[i]
                for pane in range(max(start, end), till):
                    row = tuples[pane & mask]
                    for i in range(groups):
                        count[i] += row[i]
                begin, end, row = start, till, count
            for i in range(groups):
                some[i] = row[i] if first[i] <= window and window < stop[i] else 0
            if forget and length == 1:
                for i in range(groups):
                    row[i] -= some[i]
            for i in range(groups):
                slots[found], numbers[found] = i, some[i]  # no branch: it cannot be foreseen
                found += np.uintp(some[i] != 0)
        ends[w] = found
    return np.int64(found)


@njit(cache=True, nogil=True)
def all_held(geometry, tuples, lowest, slots, numbers, ends, forget):
    """Write as ``held`` does where windows are of one pane, and all groups close them.

    O(windows x groups).
    """
    step, _, low, high, mask, _ = geometry
    found = np.uintp(0)  # unsigned: no index is below 0
    for w in range(len(ends)):
        pane = (lowest + w + 1) * step - 1
        if low <= pane <= high:
            row = tuples[pane & mask]
            for i in range(np.uintp(len(row))):
                slots[found], numbers[found] = i, row[i]  # no branch: it cannot be foreseen
                found += np.uintp(row[i] != 0)
            if forget:
                row[:] = 0
        ends[w] = found
    return np.int64(found)


@njit(cache=True, nogil=True)
def spread(values, ends, out):
    """Write ``values`` int64 (windows,) to each result of their window: ``out`` int64 (results,)."""
    begin = 0
    for w in range(len(ends)):
        for k in range(begin, ends[w]):
            out[k] = values[w]
        begin = ends[w]


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


@njit(cache=True, nogil=True)
def empty(tuples, first_pane, panes):
    """Forget all tuples in ``panes`` panes from ``first_pane`` on; return how many cells had some."""
    gone, mask = np.int64(0), tuples.shape[0] - 1
    for pane in range(first_pane, first_pane + panes):
        row, some = tuples[pane & mask], np.int32(0)
        for i in range(len(row)):
            some += np.int32(row[i] != 0)
        row[:] = 0
        gone += np.int64(some)
    return gone


@njit(cache=True, nogil=True)
def cells_of(geometry, tuples, slots, wids, some):
    """Write which windows ``wids[i]`` of ``slots[i]`` have tuples, and their cells; return how many.

    Windows are of one pane; geometry and tuples as in ``kernels.panes``, slots, wids int64 (n,), some int64 (3, n).
    """
    step, _, low, high, mask, groups = geometry
    many = 0
    for i in range(len(slots)):
        pane = (wids[i] + 1) * step - 1
        if low <= pane <= high and slots[i] < groups:
            cell = (pane & mask) * groups + slots[i]
            if tuples[cell]:
                some[0, many], some[1, many], some[2, many] = slots[i], wids[i], cell
                many += 1
    return many


@njit(cache=True, nogil=True)
def changed(geometry, tuples, kept, first, lowest, cut):
    """Return which windows from ``lowest`` to ``cut`` (exclusive), of one pane, have other numbers of tuples than kept.

    ``kept`` integers (windows, groups): those of windows from ``first`` on, of groups that there were; others had none.
    Returns groups, windows and cells, int64 (3, n).  O(windows x groups).
    """
    step, _, low, high, mask, groups = geometry
    lowest = max(lowest, low // step)
    cut = max(min(cut, high // step + 1), lowest)
    none, many = np.zeros(groups, tuples.dtype), 0
    some = np.empty((3, (cut - lowest) * groups + 1), np.int64)
    for wid in range(lowest, cut):
        pane, begin = (wid + 1) * step - 1, many
        if low <= pane <= high:
            cell = (pane & mask) * groups
            row, its = tuples[cell : cell + groups], none
            if first <= wid < first + len(kept):
                its = none.copy()
                its[: kept.shape[1]] = kept[wid - first]
            for group in range(groups):
                some[0, many] = group  # no branch: it cannot be foreseen
                many += row[group] != its[group]
            for i in range(begin, many):
                some[1, i], some[2, i] = wid, cell + some[0, i]
    return some[:, :many]
