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
from oop_engine.operators.values.columns import Integers, begins_of, by_slot, filled_up
from oop_engine.system.knobs import knob

__all__ = ["Bounds", "Wakes", "last_bounds"]

_MOST = knob(__name__, "_MOST", 3)  # entries of a queue for each group, before it is made anew
_FEW = knob(__name__, "_FEW", 64)


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
        self._due, self._stamp = np.full((2, 0), FOREVER)  # (slots,) the time of its timer, its stamp
        self._timers, self._stamps = Timers(), Timers()

    @property
    def nbytes(self) -> int:
        """Bytes of the times and queues."""
        return self._due.nbytes + self._stamp.nbytes + self._timers.nbytes + self._stamps.nbytes

    def reserve(self, groups: int) -> None:
        """Make room for so many groups; O(1) amortised each."""
        if (size := self._due.size) < groups:
            self._due, self._stamp = (
                filled_up(column, max(groups, 3 * size // 2), FOREVER) for column in (self._due, self._stamp)
            )

    def set(self, slots: Integers, due: Integers | None, stamps: Integers) -> None:
        """Set the bounds that some groups wait for (None: they are looked at by each) and their least stamps.

        O(log groups) each, amortised.
        """
        if due is not None:
            sooner = due < self._due[slots]  # a timer that is due too soon is set anew then
            self._due[slots[sooner]] = due[sooner]
            self._timers.set(due[sooner], slots[sooner])
        lower = stamps < self._stamp[slots]  # one that has grown is set anew when it is the first
        self._stamp[slots] = stamps
        self._stamps.set(stamps[lower], slots[lower])
        self._timers = self._compact(self._timers, self._due)
        self._stamps = self._compact(self._stamps, self._stamp)

    def clear(self, slots: Integers) -> None:
        """Let some groups have no open window."""
        self._stamp[slots] = FOREVER

    def due(self, bound: int) -> Integers:
        """Return the groups that wait for a bound, in no order; their timers are gone."""
        slots = self._timers.due_at(bound)
        self._due[slots] = FOREVER
        return slots

    def stamps(self, slots: Integers) -> Integers:
        """Return the least stamps of open windows of some groups."""
        return self._stamp[slots]

    def least_stamp(self) -> int:
        """Return the least of all stamps.  Amortised: O(log groups) for each stamp that has changed."""
        return self._stamps.first(self._stamp)

    def rename(self, kept: Integers, slots: Integers) -> None:
        """Let only the groups ``kept`` stay; group ``g`` gets the slot ``slots[g]``."""
        there = kept[kept < self._due.size]
        self._due, self._stamp = (
            by_slot(slots[there], column[there], kept.size, FOREVER) for column in (self._due, self._stamp)
        )
        self._timers, self._stamps = _queue(self._due), _queue(self._stamp)

    def _compact(self, queue: Timers, times: Integers) -> Timers:
        """Return a queue without the entries that are over, once they are most of it."""
        return _queue(times) if len(queue) > _MOST * times.size + _FEW else queue


def _queue(times: Integers) -> Timers:
    queue, slots = Timers(), np.flatnonzero(times < FOREVER)
    queue.set(times[slots], slots)
    return queue
