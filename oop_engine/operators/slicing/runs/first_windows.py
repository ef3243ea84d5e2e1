"""First windows: of each group the open window that ends first, so that a bound looks into the groups it concerns.

A bound must cost the windows it closes, not all that are open.  Of each group two times are known: ``until``, before
which the last tuple of no open window is, and ``first``, the first time of any.  Blocks of groups have the least of
both, so a bound looks at these, and into the blocks where it has passed one.

A tuple near the first window of its group lengthens it.  If that window is the only one, its last time is known;
where there are others, it may have come near the next one, and the group is *unsure* until its runs are looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.operators.kernels.sessions.first_windows import (
    NONE,
    UNSURE,
    FirstTimes,
    note_runs,
    note_windows,
)
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.slot_times import SlotTimes
from oop_engine.operators.values.columns import Integers, filled_up

__all__ = ["FirstWindows"]


class FirstWindows:
    """The first windows of groups by slot.  ``alive``: how many have one; ``lowest``: no ``until`` is below.

    ``gap``: runs at most so far from a window lengthen it; -1: it is not known which do.
    """

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._lay(0)

    def _lay(self, groups: int) -> None:
        """Have room for so many groups, none of which has a window."""
        self._until, self._first, self._known = SlotTimes(), SlotTimes(), np.empty(0, np.int8)
        self.alive, self.lowest = 0, FOREVER
        self.grow(groups)

    @property
    def nbytes(self) -> int:
        return self._until.nbytes + self._first.nbytes + self._known.nbytes

    @property
    def until(self) -> Integers:
        """Before which time the last tuple of no open window of a group is, int64 (groups,); FOREVER: it has none."""
        return self._until.times

    @property
    def first(self) -> Integers:
        """The first time of all runs of a group, int64 (groups,)."""
        return self._first.times

    @property
    def room(self) -> int:
        """How many groups there is room for."""
        return int(self.until.size)

    def grow(self, groups: int) -> None:
        """Have room for so many groups; new ones have no window."""
        self._until.reserve(groups)
        self._first.reserve(groups)
        self._known = filled_up(self._known, self.room, NONE)

    @property
    def _columns(self) -> FirstTimes:
        return FirstTimes(self.until, self.first, self._known, self._until.least, self._first.least)

    def note(self, slots: Integers, first: Integers, last: Integers) -> None:
        """Learn that there are more runs.  O(runs)."""
        if slots.size:
            self.alive += note_runs(self._columns, fixed(slots), fixed(first), fixed(last), self._gap)
            self.lowest = min(self.lowest, int(last.min()))

    def note_windows(self, slots: Integers, first: Integers, until: Integers) -> None:
        """Learn that there are more windows, no two of which are one.  O(windows)."""
        if slots.size:
            self.alive += note_windows(self._columns, fixed(slots), fixed(first), fixed(until))
            self.lowest = min(self.lowest, int(until.min()))

    def forget(self, slots: Integers) -> None:
        """Let some groups, each given once, have no window.  Their blocks may be too low then."""
        self.alive -= int(np.count_nonzero(self._known[slots]))
        self._until.clear(slots)
        self._first.clear(slots)
        self._known[slots] = NONE

    def settle(self) -> None:
        """Let ``lowest`` be the least ``until``.  O(blocks)."""
        self.lowest = self.soonest()

    def clear(self) -> None:
        """Let no group have a window.  O(groups)."""
        self._lay(self.room)

    def keep(self, groups: Integers) -> None:
        """Let only some groups stay, in this order."""
        self._until, self._first = self._until.kept(groups), self._first.kept(groups)
        self._known = self._known[groups]
        self.alive, self.lowest = int(np.count_nonzero(self._known)), NEVER

    def in_blocks(self, blocks: NDArray[np.bool_]) -> Integers:
        """Return the groups of some blocks, ascending."""
        return self._until.in_blocks(blocks)

    @property
    def least_until(self) -> Integers:
        """The least ``until`` of each block of groups, int64 (blocks,), or less."""
        return self._until.least

    def earliest(self) -> int:
        """Return the least first time of all runs, or FOREVER.  O(blocks)."""
        return self._first.earliest()

    def soonest(self) -> int:
        """Return the least ``until`` of all groups, or FOREVER.  O(blocks)."""
        return self._until.earliest()

    def unsure_at(self, until: int) -> Integers:
        """Return the unsure groups next to one whose window is the soonest, at ``until``; none if one there is sure."""
        slots = self._until.first_block()
        unsure = self.unsure(slots)
        at = np.count_nonzero(self.until[slots] == until)
        return unsure if at == np.count_nonzero(self.until[unsure] == until) else unsure[:0]

    def unsure(self, slots: Integers | None = None) -> Integers:
        """Return those of all groups, or of some, whose first window may end later."""
        known = self._known if slots is None else self._known[slots]
        found = np.flatnonzero(known == UNSURE)
        return found if slots is None else slots[found]
