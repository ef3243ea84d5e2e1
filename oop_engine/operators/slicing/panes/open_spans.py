"""Open spans: the lowest open window of each group and its highest one, and which groups a bound concerns.

A bound that is passed by windows of few groups must not look at all others.  So blocks of groups have the least of
their lowest windows: a bound looks at these, and into the blocks where it has passed one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import Later
from oop_engine.operators.kernels.partials import HIGH, LOW, NO_WINDOW, SHIFT, settle
from oop_engine.operators.slicing.window_states import as_slice, narrow
from oop_engine.operators.values.columns import Integers, filled_up

__all__ = ["OpenSpans"]

_FAR = 1 << 62  # windows; no extent reaches so far
_IN_BLOCK = np.arange(1 << SHIFT)


class OpenSpans:
    """``of`` int64 (groups, 2), ``LOW`` and ``HIGH``, and ``least`` int64 (blocks,), as in ``kernels/partials.py``.

    ``nbytes``: of both.
    """

    def __init__(self, of: Integers | None = None) -> None:
        self.of: Integers = np.empty((0, 2), np.int64) if of is None else of
        self.least: Integers
        self._settle()

    def __len__(self) -> int:
        return len(self.of)

    @property
    def lowest(self) -> int:
        """The lowest open window of any group.  O(blocks)."""
        return int(self.least.min(initial=NO_WINDOW))

    @property
    def alive(self) -> int:
        """How many groups have an open window.  O(groups)."""
        return int(np.count_nonzero(self.of[:, LOW] != NO_WINDOW))

    def grow(self, groups: int) -> None:
        """Have room for so many groups; new ones have no window."""
        more = np.empty((groups - len(self.of), 2), np.int64)
        more[:, LOW], more[:, HIGH] = NO_WINDOW, NEVER
        self.of = np.concatenate([self.of, more])
        self.least = filled_up(self.least, _blocks(groups), NO_WINDOW)
        self.nbytes = self.of.nbytes + self.least.nbytes

    def below(self, cut: int) -> Integers:
        """Return groups, ascending, among which are all with a window below a cut.  O(blocks + groups returned)."""
        blocks = np.flatnonzero(self.least < cut)
        slots: Integers = ((blocks[:, None] << SHIFT) + _IN_BLOCK).ravel()
        return slots[: slots.searchsorted(len(self.of))]

    def widen(self, slots: Integers, first: Integers, last: Integers) -> int:
        """Open the windows ``first[i]`` to ``last[i]`` of ``slots[i]``; return how many groups had none before."""
        asleep = slots[self.of[slots, LOW] == NO_WINDOW]
        np.minimum.at(self.of[:, LOW], slots, first)
        np.maximum.at(self.of[:, HIGH], slots, last)
        np.minimum.at(self.least, slots >> SHIFT, first)
        return int(occurring(asleep, len(self.of)).size)

    def kept(self, slots: Integers) -> OpenSpans:
        """Return the spans of some groups alone.  O(groups)."""
        return OpenSpans(self.of[slots])

    def save(self) -> Later:
        """Return the spans for a snapshot.  O(groups) for the copy."""
        copied = self.of.copy()
        return Later(lambda: _narrow(copied))

    @classmethod
    def loaded(cls, saved: Saved, groups: int, room: int) -> OpenSpans:
        """Return the spans of a snapshot of so many groups, with ``room`` for at least as many."""
        lowest = saved.integer(0, least=-_FAR, most=_FAR)
        rows = saved.narrow(1, (None,), least=0, below=groups)
        low = saved.narrow(2, rows.shape, least=0, below=_FAR)
        # below low: a group that waits for its next
        high = saved.narrow(3, rows.shape, least=-_FAR, below=_FAR)
        spans = cls()
        spans.grow(max(room, groups))
        where = as_slice(rows)
        spans.of[where, LOW], spans.of[where, HIGH] = low, high
        spans.of[where] += lowest
        spans._settle()
        return spans

    def _settle(self) -> None:
        self.least = np.full(_blocks(len(self.of)), NO_WINDOW)
        self.nbytes = self.of.nbytes + self.least.nbytes
        if self.of.size:  # else no kernel is loaded
            settle(self.of, self.least, np.arange(0, len(self.of), 1 << SHIFT))


def _blocks(groups: int) -> int:
    return (groups + (1 << SHIFT) - 1) >> SHIFT


def _narrow(spans: Integers) -> list[Any]:
    alive = np.flatnonzero(spans[:, LOW] != NO_WINDOW)
    low, high = spans[alive].T
    lowest = int(low.min()) if low.size else 0
    return [lowest, narrow(alive), narrow(low - lowest), narrow(high - lowest)]
