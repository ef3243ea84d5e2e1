"""Windows of many groups, whose states in a pane lie next to each other in memory: a row.

Common arguments: ``geometry`` as in ``kernels.panes``; ``lowest``: the first of the windows that are put together; of
window ``lowest + w`` results go to ``ends[w - 1]`` to ``ends[w]`` (exclusive), those of ``slots`` int64
(results,), ascending.  Columns are (room, groups).  Called by ``slicing.panes.pane_windows`` and ``kept_rows``.
"""

# Layout       tuples[pane's row, group]  how many there are in each cell; `row_of` finds the row
#              count[group], reach[2]     tuples of each group in the panes reach[0] to reach[1] (exclusive)
#              sides[2, groups] int32     the windows that a group closes, from ... to (exclusive), `lowest` being 0
#              cells, was, now            CELL_SLOT, CELL_WINDOW, CELL_AT (the cell), CELL_TUPLES, CELL_AMONG (its place
#                                         in `now`), as many of these rows as the argument has
# Invariant    A cell without tuples that a window still needs holds the state of no values, so whole rows are combined
#              without a look at their cells.
#              count is the sum of the rows of tuples from reach[0] to reach[1]: a window adds the panes that come in
#              and subtracts those that go out.
# Not obvious  Results are listed without a branch: which groups have something cannot be foreseen.  So a list needs
#              room for one more than it gets, for the last write that does not count.
#              `free` multiplies by its mask: a choice would become masked writes, which are slow.
#              Unsigned indices: Numba tests a signed one for below 0 and adds the length; these are never below.
#              Windows of one pane forget its tuples as they are read: another pass would fetch the row again.
# Tried        Three comparisons a cell, and a pass of its own to forget: W3 took 7.4 ns a tuple for it, and takes 2.3.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.panes import row_of
from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = [
    "CELL_AMONG", "CELL_AT", "CELL_SLOT", "CELL_TUPLES", "CELL_WINDOW", "cells_of", "changed", "empty", "free", "held",
    "sides", "spread",
]  # fmt: skip

CELL_SLOT, CELL_WINDOW, CELL_AT, CELL_TUPLES, CELL_AMONG = range(5)

_BLOCK = kernel_knob(__name__, "_BLOCK", 32)  # cells


@njit(cache=True, nogil=True)
def sides(geometry, slots, first, stop, lowest, begin, end, needed):
    """Write for each group which windows ``slots`` int64 (n,) close: ``begin`` and ``end``, as ``held`` reads them.

    And the first pane that is needed behind: ``needed`` int64 (groups,).  Groups that close nothing: 0, 0, the least.
    """
    step, length, low, _, _, _, _ = geometry
    for i in range(len(begin)):
        begin[i], end[i], needed[i] = 0, 0, low
    for i in range(len(slots)):
        slot = slots[i]
        begin[slot], end[slot] = first[i] - lowest, stop[i] - lowest
        needed[slot] = (stop[i] + 1) * step - length


@njit(cache=True, nogil=True)
def held(geometry, tuples, sides, place, counted, slots, numbers, ends, forget):
    """Write which groups have tuples in each window: ``slots``, and how many: ``numbers``.

    Of group i windows sides[0, i] to sides[1, i] (exclusive) are closed, int32 (2, groups), counted from a lowest one
    on; (2, 0): of each group all of them.  ``place``: the lowest one, and how many have been looked at before; this
    goes on as long as slots and numbers have room for all groups, and one more.  numbers (0,): they are not needed.
    ``ends`` int64 (windows,) is written.  ``counted``, kept up to date: integers (groups,), the tuples of each group in
    some panes, and which these are, int64 (2,).  ``forget``: windows of one pane forget its tuples at once.  Returns
    how many were found, and in how many windows.  O((windows + panes) x groups).
    """
    (lowest, done), (count, reach), listed, many = place, counted, np.uintp(0), 0
    groups = np.uintp(len(count))
    closed, all_of_them = np.empty(len(count), count.dtype), sides.shape[1] == 0
    while many < len(ends) and listed + groups < np.uintp(len(slots)):
        wid, window = lowest + done + many, np.int32(done + many)
        if all_of_them and forget and geometry.length == 1:
            # All that the row has leaves: no mask, and no copy.
            pane = (wid + 1) * geometry.step - 1
            if geometry.low <= pane <= geometry.high:
                row = tuples[row_of(geometry, pane)]
                listed = _listed(row, listed, slots, numbers)
                row[:] = 0
        elif _slid(geometry, tuples, wid, count, reach):
            # Mask the groups that do not close this window.
            if all_of_them:
                closed[:] = count
            else:
                for i in range(groups):
                    closed[i] = count[i] if sides[0, i] <= window and window < sides[1, i] else 0
            # A window of one pane has all its tuples: where it closes, nothing is left.
            if forget and geometry.length == 1:
                row = tuples[row_of(geometry, reach[0])]
                for i in range(groups):
                    row[i] -= closed[i]
            listed = _listed(closed, listed, slots, numbers)
        ends[many] = listed
        many += 1
    return np.int64(listed), many


@njit(cache=True, nogil=True)
def _slid(geometry, tuples, wid, count, reach):
    """Count the tuples of a window, from those of the panes ``reach``; return whether it has a pane."""
    step, length, low, high, _, _, _ = geometry
    start, stop = max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)
    if start >= stop:
        return False
    groups = np.uintp(len(count))
    if length == 1:
        row = tuples[row_of(geometry, start)]
        for i in range(groups):
            count[i] = row[i]
    else:
        # Panes before the start go out, those behind the last window come in; where the two do not touch, all go out.
        for pane in range(reach[0], min(start, reach[1])):
            row = tuples[row_of(geometry, pane)]
            for i in range(groups):
                count[i] -= row[i]
        for pane in range(max(start, reach[1]), stop):
            row = tuples[row_of(geometry, pane)]
            for i in range(groups):
                count[i] += row[i]
    reach[0], reach[1] = start, stop
    return True


@njit(cache=True, nogil=True)
def _listed(counts, listed, slots, numbers):
    """List the groups with tuples, and how many, from ``listed`` on; return how many are listed then."""
    if len(numbers):
        for i in range(np.uintp(len(counts))):
            slots[listed], numbers[listed] = i, counts[i]
            listed += np.uintp(counts[i] != 0)
    else:
        for i in range(np.uintp(len(counts))):
            slots[listed] = i
            listed += np.uintp(counts[i] != 0)
    return listed


@njit(cache=True, nogil=True)
def spread(values, ends, out):
    """Write ``values`` int64 (windows,) to each result of their window: ``out`` int64 (results,)."""
    begin = 0
    for w in range(len(ends)):
        for k in range(begin, ends[w]):
            out[k] = values[w]
        begin = ends[w]


@njit(cache=True, nogil=True)
def free(geometry, tuples, needed, first_pane, panes):
    """Clear the tuples in ``panes`` panes from ``first_pane`` on, below needed[slot]; return how many cells.

    needed int64 (groups,).
    """
    freed = 0
    for pane in range(first_pane, first_pane + panes):
        row = tuples[row_of(geometry, pane)]
        for i in range(len(needed)):
            left = row[i] * (pane >= needed[i])
            freed += int(row[i] != 0) - int(left != 0)
            row[i] = left
    return freed


@njit(cache=True, nogil=True)
def empty(geometry, tuples, first_pane, panes):
    """Clear all tuples in ``panes`` panes from ``first_pane`` on; return how many cells had some."""
    freed = np.int64(0)
    for pane in range(first_pane, first_pane + panes):
        # Counted in 32 bits, twice as many to a vector; a row has fewer cells than that.
        row, in_use = tuples[row_of(geometry, pane)], np.int32(0)
        for i in range(len(row)):
            in_use += np.int32(row[i] != 0)
        row[:] = 0
        freed += np.int64(in_use)
    return freed


@njit(cache=True, nogil=True)
def cells_of(geometry, tuples, slots, wids, cells):
    """Write which windows ``wids[i]`` of ``slots[i]`` have tuples, and their cells; return how many.

    Windows are of one pane; geometry and tuples as in ``kernels.panes``, slots, wids int64 (n,), cells int64 (3, n).
    """
    step, _, low, high, _, groups, _ = geometry
    many = 0
    for i in range(len(slots)):
        pane = (wids[i] + 1) * step - 1
        if low <= pane <= high and slots[i] < groups:
            cell = row_of(geometry, pane) * groups + slots[i]
            if tuples[cell]:
                cells[CELL_SLOT, many], cells[CELL_WINDOW, many], cells[CELL_AT, many] = (
                    slots[i],
                    wids[i],
                    cell,
                )
                many += 1
    return many


@njit(cache=True, nogil=True)
def changed(geometry, tuples, snapshot, first, lowest, stop, was, now):
    """Write which windows from ``lowest`` to ``stop`` (exclusive), of one pane, differ from ``snapshot`` in tuples.

    ``snapshot`` integers (windows, groups): the tuples kept of windows from ``first`` on, of the groups of then.
    ``now`` int64 (4, cells + 1): groups, windows, cells, numbers of tuples; ``was`` int64 (5, cells + 1): the same of
    those that had some, with cells of ``snapshot``, and where they are in ``now``.  Returns how many there are in both.
    O(windows x groups).
    """
    if stop <= lowest:  # as mostly: no row of zeros, which costs a walk over all groups
        return 0, 0
    groups, wide, was_count, many = geometry.groups, snapshot.shape[1], 0, 0
    none = np.zeros(groups, snapshot.dtype)
    for wid in range(lowest, stop):
        # Tuples that groups had before: a copy of the row where groups have come since; nothing where no row was kept.
        at, before, begin = wid - first, none, many
        cell = row_of(geometry, (wid + 1) * geometry.step - 1) * groups
        if 0 <= at < len(snapshot) and wide == groups:
            before = snapshot[at]
        elif 0 <= at < len(snapshot):
            before = none.copy()
            before[:wide] = snapshot[at]
        many = _differing(tuples[cell : cell + groups], before, now[CELL_SLOT], many)
        for i in range(begin, many):
            group = now[CELL_SLOT, i]
            now[CELL_WINDOW, i], now[CELL_AT, i], now[CELL_TUPLES, i] = (
                wid,
                cell + group,
                tuples[cell + group],
            )
            if before[group]:
                (
                    was[CELL_SLOT, was_count],
                    was[CELL_WINDOW, was_count],
                    was[CELL_AT, was_count],
                    was[CELL_TUPLES, was_count],
                ) = (
                    group,
                    wid,
                    at * wide + group,
                    before[group],
                )
                was[CELL_AMONG, was_count] = i
                was_count += 1
    return was_count, many


@njit(cache=True, nogil=True)
def _differing(row_a, row_b, places, many):
    """Write where two rows differ, from ``many`` on; return how many places there are then.  Most blocks are alike."""
    for start in range(0, len(row_a), _BLOCK):
        # Whether a block differs at all, in vector instructions; then where.
        part_a, part_b, bits = row_a[start : start + _BLOCK], row_b[start : start + _BLOCK], np.int64(0)
        for i in range(len(part_a)):
            bits |= part_a[i] ^ part_b[i]
        if bits:
            for i in range(len(part_a)):
                places[many] = start + i
                many += part_a[i] != part_b[i]
    return many
