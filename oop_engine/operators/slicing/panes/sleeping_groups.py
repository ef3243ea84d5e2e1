"""Sleeping groups: which groups have windows that a bound closes, without a look at those that have none.

Definitions of very different lengths share a ring of slices.  A bound that closes a short window must not look at each
group that is in a long one.  A group is *awake* while it has a slice that no bound has passed, or got a tuple since the
last bound: its next window may end any time.  Any other is asleep: no tuple came, so its next window ends when the
first window does that has its last slice and is still open.  It has a timer for that.

Where most groups are awake, a pass over all of them is sooner, and none of this is kept.
"""

from __future__ import annotations

import numpy as np

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.groups.timers import Timers
from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.kernels.partials import HIGH, LOW, NO_WINDOW
from oop_engine.operators.slicing.panes.shared_slices import Slicing
from oop_engine.operators.values.columns import Integers
from oop_engine.system.knobs import knob

__all__ = ["SleepingGroups"]

_DEFINITIONS = knob(__name__, "_DEFINITIONS", 32)
"""Of more it takes too long to know when the next window of a group ends."""
_TUPLES = knob(__name__, "_TUPLES", 1 << 16)
"""Since the last bound, after which a pass over all groups costs little."""


class SleepingGroups:
    """The groups of a ring of ``slicing``; ``spans`` int64 (groups, 2) are their lowest and highest slices."""

    def __init__(self, slicing: Slicing) -> None:
        self._slicing = slicing
        self.forget()

    def forget(self) -> None:
        """Know nothing: slots have changed, or all groups may be awake."""
        self._awake: Integers | None = None  # None: any may be
        self._woken: list[Integers] = []  # by the pages since the last bound
        self._tuples = 0
        self._timers = Timers()  # in units

    @property
    def nbytes(self) -> int:
        """Bytes of timers, and of the groups that are known to be awake."""
        return self._timers.nbytes + (0 if self._awake is None else self._awake.nbytes)

    def wake(self, slots: Integers) -> None:
        """Learn the groups of some tuples that came."""
        self._tuples += slots.size
        if self._awake is None:
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
        if self._awake is None or self._tuples + self._awake.size > len(spans):
            self._awake = None
            closing = spans[:, LOW] < cut
            if done is not None:
                closing &= done < cut
            return np.flatnonzero(closing)
        due = self._timers.due_at(FOREVER if cut == FOREVER else int(self._slicing.units(cut)))
        slots = occurring(np.concatenate([self._awake, *self._woken, due]), len(spans))
        self._awake, self._woken = slots, []
        some = spans[slots, LOW] < cut
        if done is not None:
            some &= done[slots] < cut
        found: Integers = slots[some]
        return found

    def settle(self, spans: Integers, cut: int) -> None:
        """Note which groups are asleep now that all windows that end by a cut have left."""
        few = self._tuples < len(spans) and self._slicing.shape.shape[1] <= _DEFINITIONS and cut < FOREVER
        slots = self._awake
        if not few:
            self.forget()
            return
        if slots is None:
            self.forget()
            slots = np.arange(len(spans))
        slots = slots[spans[slots, LOW] != NO_WINDOW]
        asleep = spans[slots, HIGH] < cut
        self._awake, self._woken, self._tuples = slots[~asleep], [], 0
        self._sleep(slots[asleep], spans, int(self._slicing.units(cut)))

    def _sleep(self, slots: Integers, spans: Integers, at: int) -> None:
        """Set timers for when the next window of some groups ends behind a unit.  O(groups x definitions)."""
        last = self._slicing.units(spans[slots, HIGH])
        least = np.full(slots.size, FOREVER)
        for step, length, offset, _ in self._slicing.shape.T.tolist():
            end = offset + ((at - offset) // step + 1) * step
            np.minimum(least, end, out=least, where=end - length <= last)
        self._timers.set(least, slots)
