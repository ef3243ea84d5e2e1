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
from oop_engine.operators.kernels.partials import SHIFT
from oop_engine.operators.kernels.sessions.first_windows import (
    NONE,
    UNSURE,
    FirstTimes,
    least_of,
    note_runs,
    note_windows,
)
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.values.columns import Integers, filled_up

__all__ = ["FirstWindows"]

_IN_BLOCK = np.arange(1 << SHIFT)


class FirstWindows:
    """The first windows of groups by slot.  ``alive``: how many have one; ``lowest``: no ``until`` is below.

    ``gap``: runs at most so far from a window lengthen it; -1: it is not known which do.
    """

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._lay(0)

    def _lay(self, groups: int) -> None:
        """Have room for so many groups, none of which has a window."""
        until, first = np.full((2, groups), FOREVER)
        least_until, least_first = np.full((2, _blocks(groups)), FOREVER)
        self._of = FirstTimes(until, first, np.full(groups, NONE, np.int8), least_until, least_first)
        self.alive, self.lowest = 0, FOREVER

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._of)

    @property
    def until(self) -> Integers:
        """Before which time the last tuple of no open window of a group is, int64 (groups,); FOREVER: it has none."""
        return self._of.until

    @property
    def first(self) -> Integers:
        """The first time of all runs of a group, int64 (groups,)."""
        return self._of.first

    @property
    def room(self) -> int:
        """How many groups there is room for."""
        return int(self._of.until.size)

    def grow(self, groups: int) -> None:
        """Have room for so many groups; new ones have no window."""
        if groups > (size := self.room):
            size = max(groups, 3 * size // 2)
            until, first, known, least_until, least_first = self._of
            blocks = _blocks(size)
            self._of = FirstTimes(
                filled_up(until, size, FOREVER), filled_up(first, size, FOREVER), filled_up(known, size, NONE),
                filled_up(least_until, blocks, FOREVER), filled_up(least_first, blocks, FOREVER),
            )  # fmt: skip

    def note(self, slots: Integers, first: Integers, last: Integers) -> None:
        """Learn that there are more runs.  O(runs)."""
        if slots.size:
            self.alive += note_runs(self._of, fixed(slots), fixed(first), fixed(last), self._gap)
            self.lowest = min(self.lowest, int(last.min()))

    def note_windows(self, slots: Integers, first: Integers, until: Integers) -> None:
        """Learn that there are more windows, no two of which are one.  O(windows)."""
        if slots.size:
            self.alive += note_windows(self._of, fixed(slots), fixed(first), fixed(until))
            self.lowest = min(self.lowest, int(until.min()))

    def forget(self, slots: Integers) -> None:
        """Let some groups, each given once, have no window.  Their blocks may be too low then."""
        self.alive -= int(np.count_nonzero(self._of.known[slots]))
        self._of.until[slots] = self._of.first[slots] = FOREVER
        self._of.known[slots] = NONE

    def settle(self) -> None:
        """Let ``lowest`` be the least ``until``.  O(blocks)."""
        self.lowest = self.soonest()

    def clear(self) -> None:
        """Let no group have a window.  O(groups)."""
        self._lay(self.room)

    def keep(self, groups: Integers) -> None:
        """Let only some groups stay, in this order."""
        until, first, known, *_ = self._of
        too_low = np.full((2, _blocks(groups.size)), NEVER)  # it is found out when they are asked
        self._of = FirstTimes(until[groups], first[groups], known[groups], too_low[0], too_low[1])
        self.alive, self.lowest = int(np.count_nonzero(self._of.known)), NEVER

    def in_blocks(self, blocks: NDArray[np.bool_]) -> Integers:
        """Return the groups of some blocks, ascending."""
        some = np.flatnonzero(blocks)
        slots: Integers = ((some[:, None] << SHIFT) + _IN_BLOCK).ravel()
        return slots[: slots.searchsorted(self.room)]

    @property
    def least_until(self) -> Integers:
        """The least ``until`` of each block of groups, int64 (blocks,), or less."""
        return self._of.least_until

    def earliest(self) -> int:
        """Return the least first time of all runs, or FOREVER.  O(blocks)."""
        return int(least_of(self._of.first, self._of.least_first))

    def soonest(self) -> int:
        """Return the least ``until`` of all groups, or FOREVER.  O(blocks)."""
        return int(least_of(self._of.until, self._of.least_until))

    def unsure_at(self, until: int) -> Integers:
        """Return the unsure groups next to one whose window is the soonest, at ``until``; none if one there is sure."""
        block = int(self._of.least_until.argmin()) << SHIFT
        slots = np.arange(block, min(block + (1 << SHIFT), self.room))
        unsure = self.unsure(slots)
        at = np.count_nonzero(self._of.until[slots] == until)
        return unsure if at == np.count_nonzero(self._of.until[unsure] == until) else unsure[:0]

    def unsure(self, slots: Integers | None = None) -> Integers:
        """Return those of all groups, or of some, whose first window may end later."""
        known = self._of.known if slots is None else self._of.known[slots]
        found = np.flatnonzero(known == UNSURE)
        return found if slots is None else slots[found]


def _blocks(groups: int) -> int:
    return (groups + (1 << SHIFT) - 1) >> SHIFT
