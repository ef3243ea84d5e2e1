"""Kernels of Distinct: a set of (slot, time) pairs, open addressing with linear probing."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["add"]

_MIX, _SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@njit(cache=True, nogil=True)
def add(
    held_slots: NDArray[np.int64],
    held_times: NDArray[np.int64],
    slots: NDArray[np.int64],
    times: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Add pairs to the set; return which of them were not there before, bool (rows,).

    ``held_slots``, ``held_times``: int64 (capacity,), the set, written to; capacity a power
    of two and more than all pairs there will be; a free place has slot -1.  ``slots``,
    ``times``: int64 (rows,), slots >= 0.  O(rows).  Called by ``Distinct``.
    """
    mask = np.uint64(held_slots.size - 1)
    new = np.zeros(slots.size, np.bool_)
    for row in range(slots.size):
        slot, time = slots[row], times[row]
        mixed = (np.uint64(slot) * _MIX) ^ (np.uint64(time) * _SPREAD)
        place = (mixed ^ (mixed >> np.uint64(29))) * _MIX >> np.uint64(20) & mask
        while held_slots[place] != -1 and (held_slots[place] != slot or held_times[place] != time):
            place = (place + np.uint64(1)) & mask
        if held_slots[place] == -1:
            held_slots[place], held_times[place] = slot, time
            new[row] = True
    return new
