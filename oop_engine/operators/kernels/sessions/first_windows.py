"""The open window of each group that ends first, as runs come, and the least of blocks of groups."""

# Layout       until[slot], first[slot]: times, FOREVER: the group has no window;  known[slot]: NONE to UNSURE
#              least_until[block], least_first[block]: of the 2**SHIFT groups of a block
# Invariant    until[slot] is not above the last time of any open window of the group, and is that of the first one
#              unless the group is UNSURE; first[slot] is the first time of all of its runs.
#              The least of a block is not above any of its groups; it may be too low: it is corrected when asked.
# Not obvious  A run near the only window of a group lengthens it.  With others behind, it may join the next one, too.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.kernels.partials import SHIFT
from oop_engine.system.kernel import njit

__all__ = [
    "ALONE",
    "FIRST_OF_SEVERAL",
    "NONE",
    "UNSURE",
    "FirstTimes",
    "note_runs",
    "note_windows",
]

Integers = NDArray[np.int64]
NONE, ALONE, FIRST_OF_SEVERAL, UNSURE = range(4)


class FirstTimes(NamedTuple):
    """``until`` and ``first`` int64, ``known`` int8, of groups; of blocks of groups the least of both, int64."""

    until: Integers
    first: Integers
    known: NDArray[np.int8]
    least_until: Integers
    least_first: Integers


@njit(cache=True, nogil=True)
def note_runs(first_times, slots, first, last, gap):
    """Note runs that came, int64 (n,) each; return how many groups had no window before.  O(n).

    gap: runs so far from a window at most lengthen it; below 0: it is not known which do.
    """
    until, begin, known, least_until, least_first = first_times
    opened = 0
    for i in range(len(slots)):
        slot = np.uintp(slots[i])
        # The first window is lengthened, or another one is first, or the run is behind it.
        if known[slot] == NONE:
            until[slot], known[slot], opened = last[i], ALONE, opened + 1
        elif gap < 0:
            until[slot], known[slot] = min(until[slot], last[i]), UNSURE
        elif first[i] - gap <= until[slot] and begin[slot] - gap <= last[i]:
            until[slot] = max(until[slot], last[i])
            known[slot] = ALONE if known[slot] == ALONE else UNSURE
        else:
            known[slot] = FIRST_OF_SEVERAL if known[slot] == ALONE else known[slot]
            until[slot] = min(until[slot], last[i])
        begin[slot] = min(begin[slot], first[i])
        block = slot >> np.uintp(SHIFT)
        least_until[block] = min(least_until[block], until[slot])
        least_first[block] = min(least_first[block], first[i])
    return opened


@njit(cache=True, nogil=True)
def note_windows(first_times, slots, first, until):
    """Note windows, int64 (n,) each, of which no two are one; return how many groups had none before.  O(n)."""
    times, begin, known, least_until, least_first = first_times
    opened = 0
    for i in range(len(slots)):
        slot = np.uintp(slots[i])
        opened += known[slot] == NONE
        known[slot] = ALONE if known[slot] == NONE else FIRST_OF_SEVERAL
        times[slot], begin[slot] = min(times[slot], until[i]), min(begin[slot], first[i])
        block = slot >> np.uintp(SHIFT)
        least_until[block] = min(least_until[block], until[i])
        least_first[block] = min(least_first[block], first[i])
    return opened
