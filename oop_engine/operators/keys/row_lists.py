"""Row lists: which rows a group has, without a look at those of others."""

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels import runs as kernels
from oop_engine.operators.values.columns import Integers, filled_up

__all__ = ["RowLists"]


class RowLists:
    """The rows of each group; rows are numbered as they come.  O(1) a row that is added, removed or read.

    ``rows``: how many have come.  ``nbytes``: 8 for each of them and 4 for each group, with room for as many more.

    >>> lists = RowLists()
    >>> lists.add(np.array([0, 1, 0]))
    >>> lists.of(np.array([1, 0]))
    (array([0, 1, 2]), array([1, 0, 1]))
    """

    def __init__(self) -> None:
        self.rows = 0
        self._head = np.empty(0, np.int32)  # (groups or more,)
        self._after, self._before = np.empty((2, 0), np.int32)  # (rows or more,)

    @property
    def nbytes(self) -> int:
        return self._head.nbytes + self._after.nbytes + self._before.nbytes

    def add(self, groups: Integers) -> None:
        """Add the next n rows, of groups int64 (n,)."""
        if not groups.size:
            return
        rows = np.arange(self.rows, self.rows + groups.size)
        self.rows += groups.size
        if self.rows > self._after.size:
            room = max(self.rows, 2 * self._after.size)
            self._after = filled_up(self._after, room, -1)
            self._before = filled_up(self._before, room, kernels.APART)
        self._link(rows, groups)

    def again(self, rows: Integers, groups: Integers) -> None:
        """Put rows that were removed into lists once more."""
        self._link(rows, groups)

    def apart(self, rows: Integers) -> Integers:
        """Return those of some rows that were removed."""
        rows = rows[rows < self.rows]
        apart_rows: Integers = rows[self._before[rows] == kernels.APART]
        return apart_rows

    def remove(self, rows: Integers) -> None:
        """Remove rows from their lists, where they are in one."""
        kernels.unlink(self._head, self._after, self._before, rows[rows < self.rows])

    def of(self, groups: Integers) -> tuple[Integers, Integers]:
        """Return the rows of some groups, ascending, and the number of the group of each among these.

        Groups that have never been seen, -1 among them, have none.
        """
        groups = np.where(groups < self._head.size, groups, -1)
        rows, at = np.empty((2, kernels.length(self._head, self._after, groups)), np.int64)
        kernels.walk(self._head, self._after, groups, rows, at)
        order = np.argsort(rows, kind="stable")
        return rows[order], at[order]

    def _link(self, rows: Integers, groups: Integers) -> None:
        if (most := int(groups.max()) + 1) > self._head.size:
            self._head = filled_up(self._head, max(most, 2 * self._head.size), -1)
        kernels.link(self._head, self._after, self._before, rows, np.ascontiguousarray(groups))
