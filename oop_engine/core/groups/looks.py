"""Looks: when a bound of the whole stream looks at all groups, for those that it has reached.

To find them at once would take a queue of all groups, which costs more than their bounds do.  To find them late costs
room.  So a look is due where half of the groups that there were at the last one have been reached, or have moved on,
or where half as many have come.  A look costs O(groups), and they have paid for it: with a message, or they go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import NEVER

__all__ = ["Looks"]


class Looks:
    """The next look at all groups; at ``few`` of them or less each bound looks.

    >>> looks = Looks(few=2)
    >>> looks.note(np.array([10, 20, 30, 40]))
    >>> looks.due(6, 29), looks.due(4, 30), looks.due(7, 0), looks.due(2, 0)
    (False, True, True, True)
    """

    def __init__(self, few: int) -> None:
        self._few, self._groups, self._at = few, 0, NEVER

    def due(self, groups: int, linear: int) -> bool:
        """Return whether the bound ``linear`` looks at the ``groups`` there are.  O(1)."""
        return groups <= self._few or linear >= self._at or 2 * groups > 3 * self._groups

    def note(self, bounds: NDArray[np.int64]) -> None:
        """Set the bounds of all groups that remain, int64 (groups,).  O(groups)."""
        self._groups, half = bounds.size, bounds.size // 2
        self._at = int(np.partition(bounds, half)[half]) if bounds.size else NEVER

    def save(self) -> NDArray[np.int64]:
        """Return all for a snapshot."""
        return np.array([self._at, self._groups])

    def load(self, saved: NDArray[np.int64]) -> None:
        """Restore the state that ``save`` returned."""
        self._at, self._groups = saved.tolist()
