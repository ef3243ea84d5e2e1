"""Store: the protocol of those that keep the window state of some definitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, looked_up

__all__ = ["Holder", "OnTime", "Store", "bounds_of"]


class Holder(Protocol):
    """Something of the groups, by slot, that results may still follow from."""

    def least_stamp(self, bound: int) -> int:
        """Return the least stamp of later results, if no later tuple is below ``bound``."""

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        """Do so for many bounds, where that of group ``slots[i]`` is ``bounds[of[i]]``."""

    def living(self, groups: int) -> NDArray[np.bool_]:
        """Tell which groups have an open window."""

    def rename(self, kept: Integers, slots: Integers) -> None:
        """Let only the groups ``kept`` stay; group ``g`` gets the slot ``slots[g]``, -1: none."""


class Store(Holder, Protocol):
    """Window state of the groups, by slot.  Slots are dense; groups are known before their tuples come.

    ``rename``, ``save`` and ``load`` mean the same wherever a part of a store has them; ``nbytes`` of a part are its
    bytes, with the room there is for more.
    """

    @property
    def alive(self) -> int:
        """How many groups have an open window."""

    def state(self) -> State:
        """Return the state: tuples that are held, partial aggregates, groups that have an open window, bytes."""

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        """Fold tuples in; there are ``groups`` groups.  Raises ``WindowOverflowError``."""

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        """Fold tuples that came behind ``bounds``, int64 (rows,), into the windows these leave open, if that can be.

        Raises ``WindowOverflowError``.
        """

    def close(self, slots: Integers | None, bounds: Integers | int) -> Iterable[WindowStates]:
        """Take out the windows of ``slots[i]`` that end by ``bounds[i]``; None: those of all groups, by one bound.

        A list has them all; another iterable puts them together as they are asked for, in order, and has to be gone
        through before anything else is asked.  Raises ``WindowOverflowError``.
        """

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        """Return how many windows that ``close`` would take out are not in memory yet, at most; 0: it takes out none.

        O(1), as long as few leave.  Raises ``LongGapError`` if a group would put out too many windows without a tuple.
        """

    def copied(self, slots: Integers) -> Store | None:
        """Return a store with the windows of some groups, ascending, as those of the groups 0, 1, ...

        No change of one concerns the other.  O(their state), amortised.  None: it can be copied as a whole
        alone, by a snapshot.
        """

    def save(self) -> dict[str, Any]:
        """Return everything for a snapshot."""

    def load(self, saved: Saved, groups: int) -> None:
        """Restore a snapshot of so many groups."""


class OnTime:
    """A store whose windows follow from their tuples: one that comes late would change windows that have left."""

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        """Leave the tuples out."""

    def copied(self, slots: Integers) -> Store | None:
        return None


def bounds_of(held: Integers, slots: Integers | None, bounds: Integers | int) -> Integers | int:
    """Return the bounds of the groups ``held``, by those of ``slots``: ``NEVER`` where it is none of these."""
    if slots is None:
        return bounds
    found: Integers = looked_up(held, slots, bounds, NEVER)
    return found
