"""Merging: which runs of time join the ones before them."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["begins"]


@njit(cache=True, nogil=True)
def begins(slots, first, last, gap):
    """Tell which runs begin a new one, bool (n,): of another slot, or more than ``gap`` behind all before of theirs.

    slots, first, last int64 (n,), sorted by slot, then first.  O(n).
    """
    new = np.ones(len(slots), np.bool_)
    reach = 0
    for i in range(len(slots)):
        if i > 0 and slots[i] == slots[i - 1] and first[i] - reach <= gap:
            new[i] = False
            reach = max(reach, last[i])
        else:
            reach = last[i]
    return new
