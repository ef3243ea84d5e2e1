"""Slot timers: of each group the event time at which a bound must look at it, one timer a group that counts."""

from __future__ import annotations

import numpy as np

from oop_engine.core.groups.timers import Timers
from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.values.columns import Integers, by_slot, filled_up
from oop_engine.system.knobs import knob

__all__ = ["SlotTimers", "compacted", "timers_of"]

_MOST = knob(__name__, "_MOST", 3)  # entries of a queue for each group, before it is made anew
_FEW = knob(__name__, "_FEW", 64)


class SlotTimers:
    """Timers of slots; ``FOREVER``: none.  A timer may be too early: its owner sets another one when it is due."""

    def __init__(self) -> None:
        self._times = np.zeros(0, np.int64)  # (slots,) of the timer that counts
        self._queue = Timers()

    @property
    def nbytes(self) -> int:
        """Bytes of the times and the queue."""
        return self._times.nbytes + self._queue.nbytes

    def reserve(self, groups: int) -> None:
        """Make room for so many groups; O(1) amortised each."""
        if (size := self._times.size) < groups:
            self._times = filled_up(self._times, max(groups, 3 * size // 2), FOREVER)

    def set(self, slots: Integers, times: Integers) -> None:
        """Set the timers of some groups where these times are earlier.  O(log groups) each, amortised."""
        sooner = times < self._times[slots]
        self._times[slots[sooner]] = times[sooner]
        self._queue.set(times[sooner], slots[sooner])
        self._queue = compacted(self._queue, self._times)

    def due(self, bound: int) -> Integers:
        """Return the groups whose timer is at ``bound`` or before it, in no order; their timers are gone."""
        slots = self._queue.due_at(bound)
        self._times[slots] = FOREVER
        return slots

    def rename(self, kept: Integers, slots: Integers) -> None:
        """Let only the groups ``kept`` stay; group ``g`` gets the slot ``slots[g]``."""
        there = kept[kept < self._times.size]
        self._times = by_slot(slots[there], self._times[there], kept.size, FOREVER)
        self._queue = timers_of(self._times)


def compacted(queue: Timers, times: Integers) -> Timers:
    """Return a queue without the entries that are over, once they are most of it."""
    return timers_of(times) if len(queue) > _MOST * times.size + _FEW else queue


def timers_of(times: Integers) -> Timers:
    """Return a timer for each slot that has a time."""
    queue, slots = Timers(), np.flatnonzero(times < FOREVER)
    queue.set(times[slots], slots)
    return queue
