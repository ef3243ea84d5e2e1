"""Open runs of sessions, in lists: each group has its runs from the newest to the oldest.

Common arguments: ``table``, the lists; ``slots`` int64 (n,) of groups; ``gaps`` int64 (definitions,), the narrowest
first.  Runs of a list are further apart than the least gap, or have left for it.

A run is *covered* where a newer one of its group is so near that the next window of both is the same: that one ends
it.  So the windows that are complete are found in the columns, and only lists that have some are walked along.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "FOUND",
    "FREE",
    "FULL",
    "OPEN",
    "USED",
    "RunLists",
    "complete",
    "extremes",
    "leave",
    "listed",
    "place",
    "release",
    "settle",
]

Integers = NDArray[np.int64]
USED, OPEN, FOUND, FULL, FREE = range(5)
_NONE = -1  # ``left`` of a free run
_FOREVER = np.iinfo(np.int64).max


class RunLists(NamedTuple):
    """The newest run of each group is ``heads[slot]``, int32, the next older one ``older[run]``, int32; -1: none.

    ``times`` int64 (runs, 2): the first and the last of a run; ``of`` int32: its group; ``left`` int16: how many
    definitions have put it out, the narrowest first; the complement of that where it is covered, -1 where it is free.
    ``counts`` int64 (5,): runs in use; groups with runs; pairs that ``place`` has found; whether it stopped for want of
    free runs; the first free run, whose ``older`` is the next one.
    """

    heads: NDArray[np.int32]
    older: NDArray[np.int32]
    times: Integers
    of: NDArray[np.int32]
    left: NDArray[np.int16]
    counts: Integers


@njit(cache=True, nogil=True)
def place(table, slots, times, gaps, begin, most, of, pairs):
    """Put each tuple into the run it is at most the least gap away from, else a new one; write them into ``of`` (n,).

    slots, times int64 (n,), from ``begin`` on.  Where a tuple joins two runs the older one ends: ``pairs`` int64
    (3, n) takes the run that stays, the older one, and the one that stays; runs that end are not used again here.
    Returns the tuple at which there are no free runs, or more than ``most`` steps a tuple were taken along lists, or
    n.  A tuple of the same group as the one before it that is not later goes on from there.
    """
    heads, older, spans, owner, left, counts = table
    used, opened, found, free, steps = counts[USED], counts[OPEN], counts[FOUND], counts[FREE], -1024
    newer, run, slot, time, gap = -1, -1, -1, 0, gaps[0]
    counts[FULL] = False
    for i in range(begin, len(slots)):
        if slots[i] != slot or times[i] > time:
            slot, newer, run = slots[i], -1, heads[slots[i]]
        time = times[i]
        if run >= 0 and spans[run, 0] <= time <= spans[run, 1] + gap:  # as most do
            spans[run, 1], of[i] = max(spans[run, 1], time), run
            continue
        while run >= 0 and spans[run, 0] - gap > time:
            newer, run, steps = run, older[run], steps + 1
        counts[FULL] = free < 0
        if counts[FULL] or steps > most * (i - begin + 1):
            counts[USED], counts[OPEN], counts[FOUND], counts[FREE] = used, opened, found, free
            return i
        if run < 0 or time > spans[run, 1] + gap:
            new, free, used = free, older[free], used + 1
            spans[new, 0], spans[new, 1], owner[new], left[new], older[new] = time, time, slot, 0, run
            if newer >= 0:
                older[newer] = new
            else:
                opened += heads[slot] < 0
                heads[slot] = new
            if run >= 0 and _is_covered(spans[run, 1], left[run], time, gaps):
                left[run] = ~left[run]
            run = new
        else:
            spans[run, 1] = max(spans[run, 1], time)
            if time < spans[run, 0]:
                spans[run, 0], other = time, older[run]
                if other >= 0 and time <= spans[other, 1] + gap:
                    spans[run, 0], left[run], older[run] = spans[other, 0], _level(left[other]), older[other]
                    pairs[0, found], pairs[1, found], pairs[2, found] = run, other, run
                    found += 1
                elif other >= 0 and _is_covered(spans[other, 1], left[other], time, gaps):
                    left[other] = ~left[other]
        of[i] = run
    counts[USED], counts[OPEN], counts[FOUND], counts[FREE] = used, opened, found, free
    return len(slots)


@njit(cache=True, nogil=True)
def _level(left):
    """Return how many definitions have put a run out."""
    return left if left >= 0 else ~left


@njit(cache=True, nogil=True)
def _is_covered(last, left, time, gaps):
    """Tell whether a run that is not is covered once a newer run begins at ``time``."""
    return left > 0 and time <= last + gaps[left]


@njit(cache=True, nogil=True)
def complete(table, bound, gaps, slots):
    """Write the group of each run that ends windows which are complete by ``bound`` into ``slots``.

    slots int64 (runs + 1,).  Returns how many there are, and the least end of the windows of other runs.  O(runs),
    without a branch.
    """
    times, of, left, found, least = table.times, table.of, table.left, 0, _FOREVER
    for run in range(len(left)):
        slots[found], end = of[run], times[run, 1] + gaps[max(left[run], 0)]
        ends, over = left[run] >= 0, end < bound
        found += ends & over
        least = min(least, end if ends & (not over) else _FOREVER)
    return found, least


@njit(cache=True, nogil=True)
def extremes(table, gaps):
    """Return the least end of an open window and the least first time, or the largest integer.  O(runs)."""
    times, left, end, first = table.times, table.left, _FOREVER, _FOREVER
    for run in range(len(left)):
        first = min(first, times[run, 0] if left[run] != _NONE else _FOREVER)
        end = min(end, times[run, 1] + gaps[max(left[run], 0)] if left[run] >= 0 else _FOREVER)
    return end, first


@njit(cache=True, nogil=True)
def leave(table, slots, bounds, gaps, place, rows, out):
    """Mark the windows, of definitions from ``place`` on, that are complete by ``bounds`` int64 (n,) of groups.

    Fills ``rows`` with the runs of windows, one window behind the other, and ``out`` int64 (5, ...): where a window's
    runs begin, its slot, first and last time, and the number of its definition.  Returns how many windows and runs
    there are.  O(runs of the groups x gaps).
    """
    heads, older, times, _, left, _ = table
    windows, runs = 0, 0
    for i in range(len(slots)):
        oldest = -1
        for at in range(place, place + len(gaps)):
            run, gap = heads[slots[i]], gaps[at - place]
            if oldest >= 0 and times[oldest, 1] + gap >= bounds[i]:  # nor is a wider one complete
                break
            while run >= 0:
                reach, begin = times[run, 1], runs
                over = _level(left[run]) <= at and reach + gap < bounds[i]
                while True:
                    if over:
                        rows[runs], left[run] = run, at + 1
                        runs += 1
                    low, oldest, run = times[run, 0], run, older[run]
                    if run < 0 or times[run, 1] + gap < low:
                        break
                if over:
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
    heads, older, times, _, left, counts = table
    gone, found = 0, 0
    for i in range(len(slots)):
        run, newer = heads[slots[i]], -1
        out[0, i] = out[1, i] = _FOREVER
        if run < 0:
            continue
        while run >= 0:
            below, here = older[run], _level(left[run])
            apart = newer < 0 or times[run, 1] + gaps[min(here, len(gaps) - 1)] < times[newer, 0]
            if here == len(gaps):
                rows[gone], gone = run, gone + 1
            elif not apart and here > 0 and here == _level(left[newer]):
                times[newer, 0] = times[run, 0]
                pairs[0, found], pairs[1, found], pairs[2, found] = newer, run, newer
                found += 1
            else:
                if newer >= 0:
                    older[newer] = run
                else:
                    heads[slots[i]] = run
                if apart:  # else its window is that of the newer run, whose narrower ones end before
                    out[0, i] = min(out[0, i], times[run, 1] + gaps[here])
                newer, left[run] = run, here if apart else ~here
            run = below
        if newer < 0:
            heads[slots[i]] = -1
            counts[OPEN] -= 1
        else:
            older[newer] = -1
            out[1, i] = times[newer, 0]
    return gone, found


@njit(cache=True, nogil=True)
def release(table, runs):
    """Let ``runs`` be free, which no list has any more."""
    _, older, _, _, left, counts = table
    for run in runs:
        older[run], left[run], counts[FREE] = counts[FREE], _NONE, run
    counts[USED] -= len(runs)


@njit(cache=True, nogil=True)
def listed(table, rows):
    """Write all runs into ``rows``: by group, the newest first.  O(groups + runs)."""
    heads, older, runs = table[0], table[1], 0
    for slot in range(len(heads)):
        run = heads[slot]
        while run >= 0:
            rows[runs] = run
            run, runs = older[run], runs + 1
