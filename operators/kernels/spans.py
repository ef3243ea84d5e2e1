"""Spans: the lowest open and the highest window of each group, looked at for many groups at once.

spans int64 (groups or more, 2); a group without a window has NO_WINDOW and the least integer.
Called by ``slicing.stores.window_store``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from oop_engine.operators.kernels.partials import NO_WINDOW

__all__ = ["closing", "reopen"]

NEVER = np.iinfo(np.int64).min


@njit(cache=True, nogil=True)
def closing(spans, slots, cuts, found, low, stop):
    """Write which of ``slots`` have windows below their cuts, and from which to which (exclusive); return how many.

    slots, cuts, found, low, stop int64 (n,).
    """
    many = 0
    for i in range(len(slots)):
        first, last = spans[slots[i], 0], spans[slots[i], 1]
        if first < cuts[i] and first != NO_WINDOW:
            found[many], low[many] = slots[i], first
            stop[many] = cuts[i] if cuts[i] <= last else last + 1
            many += 1
    return many


@njit(cache=True, nogil=True)
def reopen(spans, slots, low, counts):
    """Note that the lowest open window of ``slots`` is now ``low``, both int64 (n,), or NO_WINDOW.

    counts int64 (3,), as in ``Table``: how many groups have windows, and the lowest one, are corrected.
    O(groups), of which there are as many as spans.
    """
    for i in range(len(slots)):
        spans[slots[i], 0] = low[i]
        if low[i] == NO_WINDOW:
            spans[slots[i], 1] = NEVER
    alive, lowest = 0, NO_WINDOW
    for i in range(len(spans)):
        alive += spans[i, 0] != NO_WINDOW
        lowest = min(lowest, spans[i, 0])
    counts[1], counts[2] = alive, lowest
