"""Slot times: a time of each group, and which of them a bound has passed, without a look at the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.operators.kernels.partials import SHIFT
from oop_engine.operators.kernels.slot_times import first_slots, least_time, lower, passed, replace
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.values.columns import Integers, filled_up

__all__ = ["SlotTimes"]

_IN_BLOCK = np.arange(1 << SHIFT)


class SlotTimes:
    """``times`` int64 (room,) of slots, ``FOREVER``: it has none; ``least`` int64 (blocks,): of 64 slots each, or less.

    >>> times = SlotTimes()
    >>> times.reserve(3)
    >>> times.put(np.array([0, 2]), np.array([30, 10]))
    >>> times.until(20), times.earliest()
    (array([2]), 10)
    """

    def __init__(self) -> None:
        self.times: Integers = np.empty(0, np.int64)
        self.least: Integers = self.times

    @classmethod
    def of(cls, times: Integers) -> SlotTimes:
        """Return these times, for exactly so many groups."""
        found = cls()
        found.times, found.least = (
            times,
            np.full(_blocks(times.size), NEVER),
        )  # found anew when it is asked for
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of both columns."""
        return self.times.nbytes + self.least.nbytes

    def reserve(self, groups: int) -> None:
        """Make room for so many groups; O(1) amortised each."""
        if groups > (size := self.times.size):
            room = max(groups, 3 * size // 2)
            self.times = filled_up(self.times, room, FOREVER)
            self.least = filled_up(self.least, _blocks(room), FOREVER)

    def lower(self, slots: Integers, times: Integers) -> None:
        """Let some groups have these times, where they are earlier.  O(groups)."""
        lower(self.times, self.least, fixed(slots), fixed(times))

    def put(self, slots: Integers, times: Integers) -> None:
        """Let some groups have these times.  O(groups)."""
        replace(self.times, self.least, fixed(slots), fixed(times))

    def clear(self, slots: Integers) -> None:
        """Let some groups have none.  O(groups)."""
        self.times[slots] = FOREVER

    def until(self, bound: int) -> Integers:
        """Return the groups with a time of at most ``bound``, ascending.  O(blocks + groups returned), amortised."""
        slots: Integers = passed(self.times, self.least, min(bound, FOREVER - 1))
        return slots

    def first_block(self) -> Integers:
        """Return the groups of the block with the least time, or one that was less."""
        slots: Integers = first_slots(self.times, self.least)
        return slots

    def in_blocks(self, blocks: NDArray[np.bool_]) -> Integers:
        """Return the groups of some blocks, ascending."""
        some = np.flatnonzero(blocks)
        slots: Integers = ((some[:, None] << SHIFT) + _IN_BLOCK).ravel()
        return slots[: slots.searchsorted(self.times.size)]

    def earliest(self) -> int:
        """Return the least time, or ``FOREVER``.  O(blocks), amortised."""
        return int(least_time(self.times, self.least))

    def kept(self, groups: Integers) -> SlotTimes:
        """Return the times of some groups, as those of the groups 0, 1, ..."""
        self.reserve(int(groups.max(initial=-1)) + 1)
        return SlotTimes.of(self.times[groups])


def _blocks(groups: int) -> int:
    return (groups + (1 << SHIFT) - 1) >> SHIFT
