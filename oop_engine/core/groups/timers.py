"""Timers: slots by the event time at which their owner must look at them again.

A bound must cost the windows it closes and the keys it frees, not all that are stored.  The owner of groups, keys or
windows sets a timer for each slot and asks for the timers that a bound has passed; it touches no other slot.

The queue is log-structured: sorted runs, each less than half as long as the run before it.  Setting an array of timers
takes one sort and a few merges; a bound reads the front of each run.

Timers are neither moved nor cancelled.  If the time of a slot has grown, its owner finds that when the timer is due,
and sets another.  A group whose bound grows with each message so has one timer, and pays for it once, when the stream
has passed the bound that the group had when the timer was set.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Timers"]

Integers = NDArray[np.int64]
Slots = Integers | NDArray[np.int32]
Run = tuple[Integers, Slots]
_NONE = 2**63 - 1
_NOTHING = np.empty(0, np.int64)


class Timers:
    """Timers of slots, int64 (below 2**31 they take half of it); ``least``: the earliest time, or ``2**63 - 1``.

    >>> timers = Timers()
    >>> timers.set(np.array([30, 10, 20]), np.array([0, 1, 2]))
    >>> timers.due(30), timers.least, len(timers)
    (array([1, 2]), 30, 1)
    """

    def __init__(self) -> None:
        self._runs: list[Run] = []  # times ascending, and their slots
        self.least = _NONE

    def __len__(self) -> int:
        return sum(times.size for times, _ in self._runs)

    @property
    def nbytes(self) -> int:
        """Bytes of all timers."""
        return sum(times.nbytes + slots.nbytes for times, slots in self._runs)

    def set(self, times: Integers, slots: Slots) -> None:
        """Set a timer for each of some slots; amortised O(log n) each."""
        if not times.size:
            return
        order = np.argsort(times, kind="stable")
        run: Run = times[order], _narrow(slots[order])
        self.least = min(self.least, int(run[0][0]))
        while self._runs and self._runs[-1][0].size < 2 * run[0].size:
            run = _merged(self._runs.pop(), run)
        self._runs.append(run)

    def due(self, below: int) -> Integers:
        """Return the slots whose time is before ``below``, in no order, and forget these timers.

        O(log n) where none is; a slot with several timers may come several times.
        """
        if below <= self.least:
            return _NOTHING
        slots_due, left = [], []
        for times, slots in self._runs:
            many = int(times.searchsorted(below))
            slots_due.append(slots[:many])
            if many < times.size:
                left.append((times[many:], slots[many:]))
        self._runs = left
        self._settle()
        self.least = min((int(times[0]) for times, _ in self._runs), default=_NONE)
        return np.concatenate(slots_due, dtype=np.int64)

    def due_at(self, now: int) -> Integers:
        """Return the slots whose time is ``now`` or before it, likewise."""
        if now < self.least:
            return _NOTHING
        if now < _NONE:
            return self.due(now + 1)
        slots_due, self._runs, self.least = [slots for _, slots in self._runs], [], _NONE
        return np.concatenate(slots_due, dtype=np.int64) if slots_due else _NOTHING

    def _settle(self) -> None:
        """Merge runs until each is less than half as long as the one before it; drop the memory of timers past."""
        runs, self._runs = self._runs, []
        for run in runs:
            while self._runs and self._runs[-1][0].size < 2 * run[0].size:
                run = _merged(self._runs.pop(), run)
            if run[0].base is not None and 2 * run[0].size < run[0].base.size:
                run = run[0].copy(), run[1].copy()
            self._runs.append(run)


def _narrow(slots: Slots) -> Slots:
    return slots.astype(np.int32) if int(slots.max()) < 1 << 31 else slots


def _merged(a: Run, b: Run) -> Run:
    times, slots = np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])
    order = np.argsort(times, kind="stable")  # of two sorted runs: a merge
    return times[order], slots[order]
