"""The table of partial aggregates: (group slot, window id) -> row, open addressing.

And lists of such windows, in order: each once, and where they are in another list.
"""

# Layout       cells[capacity, 3]  SLOT, WINDOW, ROW: open addressing; ROW -1: the cell is free
#              owner[rows, 2]      SLOT, WINDOW of each row; SLOT -1: the row is free
#              free[rows]          a stack of free rows, its top at rows - USED - 1
#              counts[3]           USED rows; groups ALIVE, which have open windows; LOWEST open window of any group
#              spans[groups, 2]    LOW and HIGH: the lowest open window of a group and its highest one.  A group without
#                                  a window has NO_WINDOW and the least integer, so min and max need no first case
#              block_lows[blocks]  the least LOW of the 2**SHIFT groups of each block
# Invariant    A row in use has one cell, and no cell between that one and its home is free: a probe ends at the first
#              free cell.  So removal moves cells back, and there are no tombstones.
# Not obvious  Eight neighbouring windows of a group have neighbouring homes: a tuple updates neighbouring windows, so
#              its probes stay in few lines of the cache.
#              A quarter of the cells is in use at most.  Tried: half of them; half as fast.
#              A bound that closes windows of few groups reads block_lows, and the blocks it has passed: 1 M groups
#              with later windows cost 16 k numbers.  Tried: all of spans, 16 MB; 5 ms a bound, now tens of us.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = [
    "ALIVE", "HIGH", "LOW", "LOWEST", "NO_WINDOW", "ROW", "SHIFT", "SLOT", "USED", "WINDOW", "Table", "collect",
    "fill", "locate", "once", "places_among", "remove", "settle",
]  # fmt: skip

Integers = NDArray[np.int64]
SLOT, WINDOW, ROW = range(3)
USED, ALIVE, LOWEST = range(3)
LOW, HIGH = range(2)
SHIFT = kernel_knob(__name__, "SHIFT", 6)  # 64 groups are a block

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
    # The hash is of the block of eight windows; the last three bits of the window choose a cell in the block.
    mixed = slot * -7046029254386353131 + (wid >> 3) * -4417276706812531889
    mixed = (mixed ^ (mixed >> 29)) * -4658895280553007687
    return (((mixed ^ (mixed >> 32)) << 3) | (wid & 7)) & mask


@njit(cache=True, nogil=True)
def _cell(cells, slot, wid):
    mask = len(cells) - 1
    at = _home(slot, wid, mask)
    while cells[at, ROW] >= 0 and (cells[at, WINDOW] != wid or cells[at, SLOT] != slot):
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def locate(table, spans, block_lows, slots, first, starts, rows, begin):
    """Write the row of every (tuple, window) into ``rows``, making those that are not there.

    spans int64 (groups, 2): lowest open and highest window of each group, and block_lows int64 (blocks,), updated;
    slots, first int64 (tuples,); starts int64 (tuples + 1,): tuple i is in the windows
    first[i]... and its rows go to rows[starts[i]:starts[i + 1]].  Starts at tuple
    ``begin`` and returns the tuple at which the table was full, or the number of tuples.
    """
    cells, owner, free, counts = table
    used, limit = counts[USED], len(owner)
    for i in range(begin, len(slots)):
        width, slot, wid = starts[i + 1] - starts[i], slots[i], first[i]
        if width == 0:
            continue
        # Checks for room as if all windows were new, so a tuple is never entered by halves.
        if used + width > limit:
            counts[USED] = used
            return i
        # The group is open now, whether the windows are new or not.
        if spans[slot, LOW] == NO_WINDOW:
            counts[ALIVE] += 1
        spans[slot, LOW] = min(spans[slot, LOW], wid)
        spans[slot, HIGH] = max(spans[slot, HIGH], wid + width - 1)
        block_lows[slot >> SHIFT] = min(block_lows[slot >> SHIFT], wid)
        counts[LOWEST] = min(counts[LOWEST], wid)
        for k in range(starts[i], starts[i + 1]):
            at = _cell(cells, slot, wid)
            row = cells[at, ROW]
            if row < 0:
                row = free[limit - used - 1]
                used += 1
                cells[at, SLOT], cells[at, WINDOW], cells[at, ROW] = slot, wid, row
                owner[row, SLOT], owner[row, WINDOW] = slot, wid
            rows[k] = row
            wid += 1
    counts[USED] = used
    return len(slots)


@njit(cache=True, nogil=True)
def settle(spans, block_lows, slots):
    """Compute the least LOW of the blocks of ``slots`` anew; return the least of all blocks.

    slots int64 (n,), best ascending: O(n + blocks) where those of a block are together, and at most a block for each.
    """
    done = np.int64(-1)
    for slot in slots:
        block = slot >> SHIFT
        if block != done:
            lowest, done = NO_WINDOW, block
            for other in range(block << SHIFT, min((block + 1) << SHIFT, len(spans))):
                lowest = min(lowest, spans[other, LOW])
            block_lows[block] = lowest
    lowest = NO_WINDOW
    for block_low in block_lows:
        lowest = min(lowest, block_low)
    return lowest


@njit(cache=True, nogil=True)
def fill(cells, owner):
    """Enter the rows in use, by ``owner``, into ``cells``, which are all free."""
    for row in range(len(owner)):
        if owner[row, SLOT] >= 0:
            at = _cell(cells, owner[row, SLOT], owner[row, WINDOW])
            cells[at, SLOT], cells[at, WINDOW], cells[at, ROW] = owner[row, SLOT], owner[row, WINDOW], row


@njit(cache=True, nogil=True)
def _free(cells, hole):
    """Free a cell; later cells whose probe starts at or before it move back."""
    mask = len(cells) - 1
    at = (hole + 1) & mask
    while cells[at, ROW] >= 0:
        home = _home(cells[at, SLOT], cells[at, WINDOW], mask)
        # Distances are modulo the capacity: the hole lies between the home and the cell, so it may move back there.
        if ((at - home) & mask) >= ((at - hole) & mask):
            cells[hole, SLOT], cells[hole, WINDOW], cells[hole, ROW] = (
                cells[at, SLOT],
                cells[at, WINDOW],
                cells[at, ROW],
            )
            hole = at
        at = (at + 1) & mask
    cells[hole, ROW] = -1


@njit(cache=True, nogil=True)
def remove(table, rows):
    """Remove ``rows`` int64 (n,), all in use, from the table."""
    cells, owner, free, counts = table
    limit = len(owner)
    for row in rows:
        _free(cells, _cell(cells, owner[row, SLOT], owner[row, WINDOW]))
        owner[row, SLOT] = -1
        counts[USED] -= 1
        free[limit - counts[USED] - 1] = row


@njit(cache=True, nogil=True)
def collect(cells, slots, low, stop, rows):
    """Write where windows are in the table, ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]`` into ``rows``.

    Returns how many there are; ``rows`` int64 is large enough for all that are in use.
    """
    count = 0
    for i in range(len(slots)):
        for wid in range(low[i], stop[i]):
            row = cells[_cell(cells, slots[i], wid), ROW]
            if row >= 0:
                rows[count] = row
                count += 1
    return count


@njit(cache=True, nogil=True)
def once(groups, first, last, cuts, room):
    """Return the windows ``first[i]`` to ``last[i]`` of ``groups[i]``, each once: int64 (2, n), by window, then group.

    Those from ``cuts[i]`` on are left out, or from ``cuts[0]`` on, int64 (rows,) or (1,).  O(windows + pairs that there
    may be).  Of shape (2, 0), and False: these are more than ``room``.
    """
    # The rectangle of windows x groups, as wide as whole words of eight groups; floats, for its size may not fit.
    first_window, stop_window, wide, every = NO_WINDOW, -NO_WINDOW, 0, len(cuts) > 1
    for i in range(len(groups)):
        stop = min(last[i] + 1, cuts[i if every else 0])
        if first[i] < stop:
            first_window, stop_window = min(first_window, first[i]), max(stop_window, stop)
            wide = max(wide, groups[i] + 1)
    wide = (wide + 7) // 8 * 8
    if first_window >= stop_window or float(stop_window - first_window) * wide > room:
        return np.empty((2, 0), np.int64), first_window >= stop_window
    # Mark each pair, and count those that were not marked.
    marks, many = np.zeros((stop_window - first_window, wide), np.uint8), 0
    for i in range(len(groups)):
        for window in range(
            first[i] - first_window, min(last[i] + 1, cuts[i if every else 0]) - first_window
        ):
            many += marks[window, groups[i]] == 0
            marks[window, groups[i]] = 1
    # List the marks.  A group is written whether it is marked or not, so the loop ends with the last one: there is no
    # room for another.  Most words are empty, and one comparison passes over eight groups.
    windows, row = np.empty((2, many), np.int64), 0
    for window in range(len(marks)):
        marked = marks[window]
        words = marked.view(np.uint64)
        for word in range(len(words)):
            if words[word]:
                for group in range(8 * word, 8 * word + 8):
                    windows[SLOT, row], windows[WINDOW, row] = group, first_window + window
                    row += marked[group]
                    if row == many:
                        return windows, True
    return windows, True


@njit(cache=True, nogil=True)
def places_among(slots, numbers, ends, wanted, at):
    """Write where windows are among others: ``at`` int64 (n,).  None is missing; both are by end, definition, group.

    slots, ends int64 (rows,) are of the others, numbers int64 (rows,) too, or (0,) where there is one definition;
    ``wanted``: the same three of the windows.
    """
    # Both lists ascend and none is missing: one pass, which never turns back.
    row = 0
    for i in range(len(at)):
        while (
            slots[row] != wanted[0][i]
            or ends[row] != wanted[2][i]
            or (len(numbers) and numbers[row] != wanted[1][i])
        ):
            row += 1
        at[i] = row
        row += 1
