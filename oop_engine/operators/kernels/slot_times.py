"""Times of slots, of which a bound finds those that it has passed, without a look at most others."""

# Layout       times[slot]   FOREVER: the slot has none
#              least[block]  the least time of the 2**SHIFT slots of a block
# Invariant    No time of a block is below its least, which may be too low: it is found anew when it is asked for.
# Not obvious  A time is a load and a store; a queue sorts and merges, and has old times of a slot, too.  To look at
#              the least of a million slots is to read 16 k numbers, in the first cache.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.partials import SHIFT
from oop_engine.system.kernel import njit

__all__ = ["first_slots", "least_time", "lower", "passed", "replace"]

_FOREVER = np.iinfo(np.int64).max


@njit(cache=True, nogil=True)
def lower(times, least, slots, new):
    """Let the times of slots int64 (n,) be ``new`` (n,), where these are earlier.  O(n)."""
    for i in range(len(slots)):
        slot = np.uintp(slots[i])  # unsigned: none is below 0
        block = slot >> np.uintp(SHIFT)
        times[slot], least[block] = min(times[slot], new[i]), min(least[block], new[i])


@njit(cache=True, nogil=True)
def replace(times, least, slots, new):
    """Let the times of slots int64 (n,) be ``new`` (n,).  O(n)."""
    for i in range(len(slots)):
        slot = np.uintp(slots[i])
        block = slot >> np.uintp(SHIFT)
        times[slot], least[block] = new[i], min(least[block], new[i])


@njit(cache=True, nogil=True)
def passed(times, least, bound):
    """Return the slots with a time of at most ``bound``, below the largest integer, ascending.

    O(blocks + slots of the blocks in which some may be).
    """
    many = 0
    for block in range(len(least)):
        if least[block] <= bound:
            _least_in(times, least, block)
            for time in times[block << SHIFT : (block + 1) << SHIFT]:
                many += time <= bound
    # The next slot is written over one that is not passed, so there is no branch.
    slots, found = np.empty(many + 1, np.int64), 0
    for block in range(len(least)):
        if least[block] <= bound:
            for slot in range(block << SHIFT, min((block + 1) << SHIFT, len(times))):
                slots[found] = slot
                found += times[slot] <= bound
    return slots[:many]


@njit(cache=True, nogil=True)
def first_slots(times, least):
    """Return the slots with a time of the block with the least value: asked first, it spares most of the others."""
    block, found = _first_block(least), 0
    slots = np.empty(1 << SHIFT, np.int64)
    for slot in range(block << SHIFT, min((block + 1) << SHIFT, len(times))):
        slots[found] = slot
        found += times[slot] < _FOREVER
    return slots[:found]


@njit(cache=True, nogil=True)
def _first_block(least):
    """Return the block with the least value, the first of these, or 0."""
    first = 0
    for block in range(len(least)):
        first = block if least[block] < least[first] else first
    return first


@njit(cache=True, nogil=True)
def least_time(times, least):
    """Return the least time.  O(blocks, and slots of those whose least was too low and is below the result)."""
    found = _FOREVER
    if len(least):
        found = _least_in(times, least, _first_block(least))
    for block in range(len(least)):
        if least[block] < found:
            found = min(found, _least_in(times, least, block))
    return found


@njit(cache=True, nogil=True)
def _least_in(times, least, block):
    """Return the least time of a block's slots."""
    found = _FOREVER
    for slot in range(block << SHIFT, min((block + 1) << SHIFT, len(times))):
        found = min(found, times[slot])
    least[block] = found
    return found
