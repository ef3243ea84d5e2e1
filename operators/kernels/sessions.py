"""Open runs of sessions, in lists: each group has its runs from the newest to the oldest.

Common arguments: ``table``, the lists; ``slots`` int64 (n,) of groups.  Runs of a list are further apart than the least
gap, or have left for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["FOUND", "FULL", "OPEN", "USED", "RunLists", "leave", "listed", "place", "settle"]

Integers = NDArray[np.int64]
USED, OPEN, FOUND, FULL = range(4)


class RunLists(NamedTuple):
    """The newest run of each group is ``heads[slot]``, int32, the next older one ``older[run]``, int32; -1: none.

    ``first``, ``last`` int64: times of a run; ``left`` int16: how many definitions have put it out, the narrowest
    first.  ``free`` int32: the numbers of free runs are the first ``runs - counts[USED]``.  ``counts`` int64 (4,): runs
    in use; groups with runs; pairs that ``place`` has found; whether it stopped for want of free runs.
    """

    heads: NDArray[np.int32]
    older: NDArray[np.int32]
    first: Integers
    last: Integers
    left: NDArray[np.int16]
    free: NDArray[np.int32]
    counts: Integers


@njit(cache=True, nogil=True)
def place(table, slots, times, gap, begin, most, of, pairs):
    """Put each tuple into the run it is at most ``gap`` away from, else a new one; write the runs into ``of`` (n,).

    slots, times int64 (n,), from ``begin`` on.  Where a tuple joins two runs the older one ends: ``pairs`` int64
    (3, n) takes the run that stays, the older one, and the one that stays; runs that end are not used again here.
    Returns the tuple at which there are no free runs, or more than ``most`` steps a tuple were taken along lists, or
    n.  A tuple of the same group as the one before it that is not later goes on from there.
    """
    heads, older, first, last, left, free, counts = table
    used, opened, found, steps = counts[USED], counts[OPEN], counts[FOUND], -1024
    newer, run, slot, time = -1, -1, -1, 0
    for i in range(begin, len(slots)):
        if slots[i] != slot or times[i] > time:
            slot, newer, run = slots[i], -1, heads[slots[i]]
        time = times[i]
        while run >= 0 and first[run] - gap > time:
            newer, run, steps = run, older[run], steps + 1
        counts[FULL] = used == len(first)
        if counts[FULL] or steps > most * (i - begin + 1):
            counts[USED], counts[OPEN], counts[FOUND] = used, opened, found
            return i
        if run < 0 or time > last[run] + gap:
            used += 1
            new = free[len(first) - used]
            first[new], last[new], left[new], older[new] = time, time, 0, run
            if newer >= 0:
                older[newer] = new
            else:
                opened += heads[slot] < 0
                heads[slot] = new
            run = new
        elif time > last[run]:
            last[run] = time
        elif time < first[run]:
            first[run], other = time, older[run]
            if other >= 0 and time - last[other] <= gap:
                first[run], left[run], older[run] = first[other], left[other], older[other]
                pairs[0, found], pairs[1, found], pairs[2, found] = run, other, run
                found += 1
        of[i] = run
    counts[USED], counts[OPEN], counts[FOUND] = used, opened, found
    return len(slots)


@njit(cache=True, nogil=True)
def leave(table, slots, bounds, gaps, place, rows, out):
    """Mark the windows, of definitions from ``place`` on, that are complete by ``bounds`` int64 (n,) of groups.

    Fills ``rows`` with the runs of windows, one window behind the other, and ``out`` int64 (5, ...): where a window's
    runs begin, its slot, first and last time, and the number of its definition.  Returns how many windows and runs
    there are.  O(runs of the groups x gaps).
    """
    heads, older, first, last, left = table[:5]
    windows, runs = 0, 0
    for i in range(len(slots)):
        for at in range(place, place + len(gaps)):
            run, gap = heads[slots[i]], gaps[at - place]
            while run >= 0:
                reach, begin = last[run], runs
                complete = left[run] <= at and reach + gap < bounds[i]
                while True:
                    if complete:
                        rows[runs], left[run] = run, at + 1
                        runs += 1
                    low, run = first[run], older[run]
                    if run < 0 or low - last[run] > gap:
                        break
                if complete:
                    out[0, windows], out[1, windows], out[2, windows] = begin, slots[i], low
                    out[3, windows], out[4, windows] = reach, at
                    windows += 1
    return windows, runs


@njit(cache=True, nogil=True)
def settle(table, slots, gaps, rows, pairs, out):
    """Forget the runs that have left for all ``gaps``, and join those that have left for narrower ones alone.

    Fills ``rows`` with the runs that are forgotten, ``pairs`` as ``place`` does, and ``out`` int64 (2, n): the least
    end of an open window of each group, and the least first time; the largest integer where there is none.  Returns
    how many are forgotten, and how many pairs there are.  O(runs of the groups).
    """
    heads, older, first, last, left, _, counts = table
    gone, found = 0, 0
    for i in range(len(slots)):
        run, newer = heads[slots[i]], -1
        out[0, i] = out[1, i] = np.iinfo(np.int64).max
        if run < 0:
            continue
        while run >= 0:
            below, here = older[run], left[run]
            apart = newer < 0 or first[newer] - last[run] > gaps[min(here, len(gaps) - 1)]
            if here == len(gaps):
                rows[gone], gone = run, gone + 1
            elif not apart and here > 0 and here == left[newer]:
                first[newer] = first[run]
                pairs[0, found], pairs[1, found], pairs[2, found] = newer, run, newer
                found += 1
            else:
                if newer >= 0:
                    older[newer] = run
                else:
                    heads[slots[i]] = run
                if apart:  # else its window is that of the newer run, whose narrower ones end before
                    out[0, i] = min(out[0, i], last[run] + gaps[here])
                newer = run
            run = below
        if newer < 0:
            heads[slots[i]] = -1
            counts[OPEN] -= 1
        else:
            older[newer] = -1
            out[1, i] = first[newer]
    return gone, found


@njit(cache=True, nogil=True)
def listed(table, rows, slots):
    """Write all runs into ``rows``, their groups into ``slots``: by group, the newest first.  O(groups + runs)."""
    heads, older, runs = table[0], table[1], 0
    for slot in range(len(heads)):
        run = heads[slot]
        while run >= 0:
            rows[runs], slots[runs] = run, slot
            run, runs = older[run], runs + 1
