"""Bounds of groups, as punctuation gives them to the ordered store."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.values.columns import Integers, begins_of, ends_of

__all__ = ["Bounds", "last_bounds"]


def last_bounds(slots: Integers, below: Integers) -> tuple[Integers, Integers]:
    """Return the bound of each of some groups, by group; of those named twice the last one."""
    order = np.argsort(slots, kind="stable")
    order = order[ends_of(begins_of(slots[order]), slots.size) - 1]
    return slots[order], below[order]


class Bounds(NamedTuple):
    """Bounds of the groups ``slots``, ascending: ``below`` of each, or of all these; None: of all groups there are."""

    slots: Integers | None
    below: Integers | int

    def of(self, slots: Integers) -> Integers:
        """Return the bounds of some of the groups."""
        if self.slots is None or isinstance(self.below, int):
            return np.int64(self.below).repeat(slots.size)
        found: Integers = self.below[self.slots.searchsorted(slots)]
        return found

    def ended(self, groups: int) -> Integers:
        """Return which of the groups, among so many, are over."""
        if isinstance(self.below, int) and self.below < FOREVER:
            return np.empty(0, np.int64)
        slots = np.arange(groups) if self.slots is None else self.slots
        ended: Integers = slots[np.broadcast_to(np.equal(self.below, FOREVER), slots.shape)]
        return ended
