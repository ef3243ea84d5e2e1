"""Sleeping groups: which groups have windows that a bound closes, without a look at those that have none.

Definitions of very different lengths share a ring of slices.  A bound that closes a short window must not look at each
group that is in a long one, nor at those whose tuples are all later.  A group that got no tuple since a bound looked at
it has its next window where the first window ends that has some of its slices and is still open: it has a time for
that (``SlotTimes``), and is *asleep* until then.  A tuple wakes it.

Where most groups are awake, a pass over all of them is sooner, and none of this is kept.
"""

from __future__ import annotations

import numpy as np

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.kernels.partials import HIGH, LOW, NO_WINDOW
from oop_engine.operators.slicing.panes.shared_slices import Slicing
from oop_engine.operators.slicing.slot_times import SlotTimes
from oop_engine.operators.values.columns import Integers
from oop_engine.system.knobs import knob

__all__ = ["SleepingGroups"]

_NOTHING = np.empty(0, np.int64)
_DEFINITIONS = knob(__name__, "_DEFINITIONS", 32)
"""Of more it takes too long to know when the next window of a group ends."""
_AWAKE = knob(__name__, "_AWAKE", 4)
"""Groups for each tuple since the last bound: with fewer of them a pass over all is sooner."""
_TUPLES = knob(__name__, "_TUPLES", 1 << 16)
"""Since the last bound, after which a pass over all groups costs little."""


class SleepingGroups:
    """The groups of a ring of ``slicing``; ``spans`` int64 (groups, 2) are their lowest and highest slices."""

    def __init__(self, slicing: Slicing) -> None:
        self._slicing = slicing
        self.forget()

    def forget(self) -> None:
        """Know nothing: slots have changed, or all groups may be awake."""
        self._known = False
        self._woken: list[Integers] = []  # by the pages since the last bound
        self._looked = _NOTHING  # at, by the last bound
        self._tuples = 0
        self._next_end = SlotTimes()  # in units, of the next window of each group

    @property
    def nbytes(self) -> int:
        """Bytes of these times, and of the groups that are known to be awake."""
        return self._next_end.nbytes + sum(slots.nbytes for slots in self._woken)

    def wake(self, slots: Integers) -> None:
        """Learn the groups of some tuples that came."""
        self._tuples += slots.size
        if not self._known:
            return
        if self._tuples > _TUPLES:
            self.forget()
        else:
            self._woken.append(slots)

    def until(self, spans: Integers, done: Integers | None, cut: int) -> Integers:
        """Return the groups with slices before a cut that may be in a window which ends by it, ascending.

        ``done`` int64 (groups,): windows of a group that end by there have left; None: of none.  O(groups that are
        awake or due), or O(groups) where that is sooner.
        """
        if not self._known or _AWAKE * self._tuples > len(spans):
            self._known = False
            closing = spans[:, LOW] < cut
            if done is not None:
                closing &= done < cut
            return closing.nonzero()[0]
        due = self._next_end.until(FOREVER if cut == FOREVER else int(self._slicing.units(cut)))
        slots = self._looked = occurring(np.concatenate([self._looked, *self._woken, due]), len(spans))
        self._woken = []
        some = spans[slots, LOW] < cut
        if done is not None:
            some &= done[slots] < cut
        found: Integers = slots[some]
        return found

    def closing(self, spans: Integers, slots: Integers, after: int, cut: int) -> int:
        """Return how many of some groups may have a window that ends behind a cut and by another; so many at a restart.

        There all groups are asked, here those that are awake.
        """
        if self._slicing.shape.shape[1] > _DEFINITIONS:
            return slots.size
        least = self._next_ends(spans[slots], int(self._slicing.units(after)))
        return int(np.count_nonzero(least <= self._slicing.units(cut)))

    def settle(self, spans: Integers, cut: int) -> None:
        """Set the times of groups that were looked at, now that all windows that end by a cut have left."""
        few = _AWAKE * self._tuples < len(spans) and self._slicing.shape.shape[1] <= _DEFINITIONS
        if not few or cut == FOREVER:
            self._tuples = 0
            if self._next_end.times.size:
                self.forget()
            return
        if not self._known:
            self.forget()
            self._known, self._looked = True, np.arange(len(spans))
        self._next_end.reserve(len(spans))
        self._next_end.clear(self._looked)
        slots = self._looked[spans[self._looked, LOW] != NO_WINDOW]
        self._looked, self._tuples = _NOTHING, 0
        self._next_end.put(slots, self._next_ends(spans[slots], int(self._slicing.units(cut))))

    def _next_ends(self, spans: Integers, at: int) -> Integers:
        """Return when the next window ends, behind a unit, that has a slice of each span.  O(spans x definitions)."""
        first, last = self._slicing.units(spans[:, LOW]), self._slicing.units(spans[:, HIGH])
        least = np.full(len(spans), FOREVER)
        since = np.maximum(first, at)
        for step, length, offset, _ in self._slicing.shape.T.tolist():
            end = offset + ((since - offset) // step + 1) * step
            np.minimum(least, end, out=least, where=end - length <= last)
        return least
