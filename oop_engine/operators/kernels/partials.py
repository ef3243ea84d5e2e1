"""The table of partial aggregates: (group slot, window id) -> row, open addressing.

A cell holds slot, window and row; row -1 marks it free.  The cells of eight neighbouring
windows of a group are neighbours, because a tuple updates neighbouring windows.  Removal
shifts cells back, so there are no tombstones and a probe ends at the first free cell.
And lists of such windows, in order: each once, and where they are in another list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.kernel import njit

__all__ = ["NO_WINDOW", "Table", "collect", "fill", "locate", "once", "places_among", "rekey", "remove"]

Integers = NDArray[np.int64]

NO_WINDOW = int(np.iinfo(np.int64).max)
"""The lowest open window of a group that has none."""


class Table(NamedTuple):
    """``cells`` int64 (capacity, 3): slot, window, row; capacity a power of two, 4 x the rows.

    ``owner`` int64 (rows, 2): slot and window of each row, slot -1 if the row is free.
    ``free`` int64 (rows,): a stack of free rows, its top at ``rows - used - 1``.
    ``counts`` int64 (3,): rows used, groups that have windows, lowest window of any group.
    """

    cells: Integers
    owner: Integers
    free: Integers
    counts: Integers


@njit(cache=True, nogil=True)
def _home(slot, wid, mask):
    mixed = slot * -7046029254386353131 + (wid >> 3) * -4417276706812531889
    mixed = (mixed ^ (mixed >> 29)) * -4658895280553007687
    return (((mixed ^ (mixed >> 32)) << 3) | (wid & 7)) & mask


@njit(cache=True, nogil=True)
def _cell(cells, slot, wid):
    mask = len(cells) - 1
    at = _home(slot, wid, mask)
    while cells[at, 2] >= 0 and (cells[at, 1] != wid or cells[at, 0] != slot):
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def locate(table, spans, slots, first, starts, rows, begin):
    """Write the row of every (tuple, window) into ``rows``, making those that are not there.

    spans int64 (groups, 2): lowest open and highest window of each group, updated;
    slots, first int64 (tuples,); starts int64 (tuples + 1,): tuple i is in the windows
    first[i]... and its rows go to rows[starts[i]:starts[i + 1]].  Starts at tuple
    ``begin`` and returns the tuple at which the table was full, or the number of tuples.
    """
    cells, owner, free, counts = table
    used, limit = counts[0], len(owner)
    for i in range(begin, len(slots)):
        width, slot, wid = starts[i + 1] - starts[i], slots[i], first[i]
        if width == 0:
            continue
        if used + width > limit:
            counts[0] = used
            return i
        if spans[slot, 0] == NO_WINDOW:
            counts[1] += 1
        spans[slot, 0] = min(spans[slot, 0], wid)
        spans[slot, 1] = max(spans[slot, 1], wid + width - 1)
        counts[2] = min(counts[2], wid)
        for k in range(starts[i], starts[i + 1]):
            at = _cell(cells, slot, wid)
            row = cells[at, 2]
            if row < 0:
                row = free[limit - used - 1]
                used += 1
                cells[at, 0], cells[at, 1], cells[at, 2] = slot, wid, row
                owner[row, 0], owner[row, 1] = slot, wid
            rows[k] = row
            wid += 1
    counts[0] = used
    return len(slots)


@njit(cache=True, nogil=True)
def fill(cells, owner):
    """Enter the rows in use, by ``owner``, into ``cells``, which are all free."""
    for row in range(len(owner)):
        if owner[row, 0] >= 0:
            at = _cell(cells, owner[row, 0], owner[row, 1])
            cells[at, 0], cells[at, 1], cells[at, 2] = owner[row, 0], owner[row, 1], row


@njit(cache=True, nogil=True)
def _free(cells, hole):
    """Free a cell; those behind it that are looked for from before it move back."""
    mask = len(cells) - 1
    at = (hole + 1) & mask
    while cells[at, 2] >= 0:
        home = _home(cells[at, 0], cells[at, 1], mask)
        if ((at - home) & mask) >= ((at - hole) & mask):  # it may move back to the hole
            cells[hole, 0], cells[hole, 1], cells[hole, 2] = cells[at, 0], cells[at, 1], cells[at, 2]
            hole = at
        at = (at + 1) & mask
    cells[hole, 2] = -1


@njit(cache=True, nogil=True)
def rekey(table, rows, wid):
    """Enter ``rows`` int64 (n,), all in use, as those of the window ``wid`` of their groups."""
    cells, owner = table.cells, table.owner
    for row in rows:
        _free(cells, _cell(cells, owner[row, 0], owner[row, 1]))
        owner[row, 1] = wid
        at = _cell(cells, owner[row, 0], wid)
        cells[at, 0], cells[at, 1], cells[at, 2] = owner[row, 0], wid, row


@njit(cache=True, nogil=True)
def remove(table, rows):
    """Take ``rows`` int64 (n,), all in use, out of the table."""
    cells, owner, free, counts = table
    limit = len(owner)
    for row in rows:
        _free(cells, _cell(cells, owner[row, 0], owner[row, 1]))
        owner[row, 0] = -1
        counts[0] -= 1
        free[limit - counts[0] - 1] = row


@njit(cache=True, nogil=True)
def collect(cells, slots, low, stop, rows):
    """Write where windows are in the table, ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]`` into ``rows``.

    Returns how many there are; ``rows`` int64 is large enough for all that are in use.
    """
    found = 0
    for i in range(len(slots)):
        for wid in range(low[i], stop[i]):
            row = cells[_cell(cells, slots[i], wid), 2]
            if row >= 0:
                rows[found] = row
                found += 1
    return found


@njit(cache=True, nogil=True)
def once(groups, first, last, cuts, room):
    """Return the windows ``first[i]`` to ``last[i]`` of ``groups[i]``, each once: int64 (2, n), by window, then group.

    Those from ``cuts[i]`` on are left out, or from ``cuts[0]`` on, int64 (rows,) or (1,).  O(windows + pairs that there
    may be).  Of shape (2, 0), and False: these are more than ``room``.
    """
    least, behind, wide, every = NO_WINDOW, -NO_WINDOW, 0, len(cuts) > 1
    for i in range(len(groups)):
        stop = min(last[i] + 1, cuts[i if every else 0])
        if first[i] < stop:
            least, behind, wide = min(least, first[i]), max(behind, stop), max(wide, groups[i] + 1)
    wide = (wide + 7) // 8 * 8
    if least >= behind or float(behind - least) * wide > room:
        return np.empty((2, 0), np.int64), least >= behind
    marks, many = np.zeros((behind - least, wide), np.uint8), 0
    for i in range(len(groups)):
        for window in range(first[i] - least, min(last[i] + 1, cuts[i if every else 0]) - least):
            many += marks[window, groups[i]] == 0
            marks[window, groups[i]] = 1
    found, row = np.empty((2, many), np.int64), 0
    for window in range(len(marks)):
        its = marks[window]
        words = its.view(np.uint64)  # most are empty
        for word in range(len(words)):
            if words[word]:
                for group in range(8 * word, 8 * word + 8):
                    found[0, row], found[1, row] = group, least + window
                    row += its[group]
                    if row == many:
                        return found, True
    return found, True


@njit(cache=True, nogil=True)
def places_among(slots, numbers, ends, its, at):
    """Write where windows are among others: ``at`` int64 (n,).  None is missing; both are by end, definition, group.

    slots, ends int64 (rows,) are of the others, numbers int64 (rows,) too, or (0,) where there is one definition;
    ``its``: the same three of the windows.
    """
    row = 0
    for i in range(len(at)):
        while (
            slots[row] != its[0][i] or ends[row] != its[2][i] or (len(numbers) and numbers[row] != its[1][i])
        ):
            row += 1
        at[i] = row
        row += 1
