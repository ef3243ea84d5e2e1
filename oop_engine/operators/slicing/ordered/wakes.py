"""Wakes: when a bound must look at a group of which it passes no tuple, and the least stamps of open windows.

A linear bound touches three kinds of groups: those with tuples that it passes, those with a window due, and those that
drop a slice.  A timer finds the last two.  The punctuation behind the results needs the least stamp of all groups;
a group that a bound does not touch keeps its stamp, so that, too, is a queue.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oop_engine.core.groups.timers import Timers
from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.slicing.ordered.slot_timers import SlotTimers, compacted, timers_of
from oop_engine.operators.values.columns import Integers, begins_of, by_slot, filled_up

__all__ = ["Bounds", "Wakes", "last_bounds"]


def last_bounds(slots: Integers, below: Integers) -> tuple[Integers, Integers]:
    """Return the bound of each of some groups, by group; of those named twice the last one."""
    order = np.argsort(slots, kind="stable")
    order = order[np.append(begins_of(slots[order])[1:], slots.size) - 1]
    return slots[order], below[order]


class Bounds(NamedTuple):
    """Bounds of the groups ``slots``, ascending: ``below`` of each, or of all these; None: of all groups there are."""

    slots: Integers | None
    below: Integers | int

    def of(self, slots: Integers) -> Integers:
        """Return the bounds of some of the groups."""
        if self.slots is None or isinstance(self.below, int):
            return np.full(slots.size, self.below)
        found: Integers = self.below[self.slots.searchsorted(slots)]
        return found

    def ended(self, groups: int) -> Integers:
        """Return which of the groups, among so many, are over."""
        if isinstance(self.below, int) and self.below < FOREVER:
            return np.empty(0, np.int64)
        slots = np.arange(groups) if self.slots is None else self.slots
        ended: Integers = slots[np.broadcast_to(np.equal(self.below, FOREVER), slots.shape)]
        return ended


class Wakes:
    """Of each group the bound that it waits for and the least stamp of its open windows; ``FOREVER``: none."""

    def __init__(self) -> None:
        self._stamp = np.full(0, FOREVER)  # (slots,)
        self._timers, self._stamps = SlotTimers(), Timers()

    @property
    def nbytes(self) -> int:
        """Bytes of the times and queues."""
        return self._stamp.nbytes + self._timers.nbytes + self._stamps.nbytes

    def reserve(self, groups: int) -> None:
        """Make room for so many groups; O(1) amortised each."""
        self._timers.reserve(groups)
        if (size := self._stamp.size) < groups:
            self._stamp = filled_up(self._stamp, max(groups, 3 * size // 2), FOREVER)

    def set(self, slots: Integers, due: Integers | None, stamps: Integers) -> None:
        """Set the bounds that some groups wait for (None: they are looked at by each) and their least stamps.

        O(log groups) each, amortised.
        """
        if due is not None:
            self._timers.set(slots, due)
        lower = stamps < self._stamp[slots]  # one that has grown is set anew when it is the first
        self._stamp[slots] = stamps
        self._stamps.set(stamps[lower], slots[lower])
        self._stamps = compacted(self._stamps, self._stamp)

    def clear(self, slots: Integers) -> None:
        """Let some groups have no open window."""
        self._stamp[slots] = FOREVER

    def due(self, bound: int) -> Integers:
        """Return the groups that wait for a bound, in no order; their timers are gone."""
        return self._timers.due(bound)

    def stamps(self, slots: Integers) -> Integers:
        """Return the least stamps of open windows of some groups."""
        return self._stamp[slots]

    def least_stamp(self) -> int:
        """Return the least of all stamps.  Amortised: O(log groups) for each stamp that has changed."""
        return self._stamps.first(self._stamp)

    def rename(self, kept: Integers, slots: Integers) -> None:
        """Let only the groups ``kept`` stay; group ``g`` gets the slot ``slots[g]``."""
        self._timers.rename(kept, slots)
        there = kept[kept < self._stamp.size]
        self._stamp = by_slot(slots[there], self._stamp[there], kept.size, FOREVER)
        self._stamps = timers_of(self._stamp)
