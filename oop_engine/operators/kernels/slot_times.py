"""Times of slots; a bound finds those that it has passed, and reads few of the others."""

# Layout       times[slot]         FOREVER: the slot has none
#              block_times[block]  the least time of the 2**SHIFT slots of a block
# Invariant    No time of a block is below its block time, which may be too low: it is computed anew when it is read.
# Not obvious  A time is a load and a store; a queue sorts and merges, and has old times of a slot, too.  To find
#              the least of a million slots is to read 16 k block times, in the first cache.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.partials import SHIFT
from oop_engine.system.kernel import njit

__all__ = ["first_slots", "least_time", "lower", "passed", "replace"]

_FOREVER = np.iinfo(np.int64).max


@njit(cache=True, nogil=True)
def lower(times, block_times, slots, new):
    """Lower the times of slots int64 (n,) to ``new`` (n,), where these are earlier.  O(n)."""
    for i in range(len(slots)):
        slot = np.uintp(slots[i])  # unsigned: none is below 0
        block = slot >> np.uintp(SHIFT)
        times[slot], block_times[block] = min(times[slot], new[i]), min(block_times[block], new[i])


@njit(cache=True, nogil=True)
def replace(times, block_times, slots, new):
    """Set the times of slots int64 (n,) to ``new`` (n,).  O(n)."""
    for i in range(len(slots)):
        slot = np.uintp(slots[i])
        block = slot >> np.uintp(SHIFT)
        times[slot], block_times[block] = new[i], min(block_times[block], new[i])


@njit(cache=True, nogil=True)
def passed(times, block_times, bound):
    """Return the slots with a time of at most ``bound``, below the largest integer, ascending.

    O(blocks + slots of the blocks in which some may be).
    """
    many = 0
    for block in range(len(block_times)):
        if block_times[block] <= bound:
            _least_in(times, block_times, block)
            for time in times[block << SHIFT : (block + 1) << SHIFT]:
                many += time <= bound
    # The next slot is written over one that is not passed, so there is no branch.
    slots, count = np.empty(many + 1, np.int64), 0
    for block in range(len(block_times)):
        if block_times[block] <= bound:
            for slot in range(block << SHIFT, min((block + 1) << SHIFT, len(times))):
                slots[count] = slot
                count += times[slot] <= bound
    return slots[:many]


@njit(cache=True, nogil=True)
def first_slots(times, block_times):
    """Return the slots with a time of the block with the least one: read first, it spares most of the others."""
    block, count = _first_block(block_times), 0
    slots = np.empty(1 << SHIFT, np.int64)
    for slot in range(block << SHIFT, min((block + 1) << SHIFT, len(times))):
        slots[count] = slot
        count += times[slot] < _FOREVER
    return slots[:count]


@njit(cache=True, nogil=True)
def _first_block(block_times):
    """Return the block with the least value, the first of these, or 0."""
    first = 0
    for block in range(len(block_times)):
        first = block if block_times[block] < block_times[first] else first
    return first


@njit(cache=True, nogil=True)
def least_time(times, block_times):
    """Return the least time.  O(blocks, and slots of those whose block time was too low and is below the result)."""
    earliest = _FOREVER
    if len(block_times):
        earliest = _least_in(times, block_times, _first_block(block_times))
    for block in range(len(block_times)):
        if block_times[block] < earliest:
            earliest = min(earliest, _least_in(times, block_times, block))
    return earliest


@njit(cache=True, nogil=True)
def _least_in(times, block_times, block):
    """Return the least time of a block's slots, and write it as the block's time."""
    earliest = _FOREVER
    for slot in range(block << SHIFT, min((block + 1) << SHIFT, len(times))):
        earliest = min(earliest, times[slot])
    block_times[block] = earliest
    return earliest
