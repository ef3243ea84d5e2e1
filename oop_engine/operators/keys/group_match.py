"""Group match: which of the known groups a punctuation has bounds for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.punctuation import GroupWise
from oop_engine.operators.keys.row_lists import RowLists
from oop_engine.operators.keys.tables import IN_KERNELS

__all__ = ["GroupMatch"]

Integers = NDArray[np.int64]


class _Coarse:
    """Groups of some of the columns, ``names``, and which of the known groups are part of each."""

    def __init__(self, punctuation: GroupWise) -> None:
        self.names = punctuation.attributes
        self._index = GroupIndex(punctuation.groups.schema.types, IN_KERNELS)
        self.lists = RowLists()

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + self.lists.nbytes

    def codes(self, groups: GroupIndex, by: Sequence[str], slots: Integers) -> Integers:
        """Return the coarse group of some slots."""
        keys = dict(zip(by, groups.keys(slots), strict=True))
        return self._index.encode([keys[name] for name in self.names], slots.size)

    def find(self, punctuation: GroupWise) -> Integers:
        """Return the coarse group of each row, or -1."""
        return self._index.find([punctuation.groups.column(n) for n in self.names], len(punctuation))


class GroupMatch:
    """Finds the slots of ``groups``, of the columns ``by``, that punctuation has bounds for.

    The columns of a punctuation are some of ``by``.  The first one about fewer than all of them takes a walk over all
    groups; from then on an index of these columns (``coarse``) has the groups that are part of each coarser one.
    """

    def __init__(self, groups: GroupIndex, by: Sequence[str]) -> None:
        self._groups, self._by = groups, tuple(by)
        self.coarse: dict[frozenset[str], _Coarse] = {}
        self._moves = groups.moves

    @property
    def nbytes(self) -> int:
        """Bytes of the indexes of coarser groups."""
        return sum(coarse.nbytes for coarse in self.coarse.values())

    def of(self, punctuation: GroupWise) -> tuple[Integers, Integers]:
        """Return the slots that it has bounds for, and the row of each in it.

        O(groups it names and groups that are part of them), and O(1) for each group that is new since the last time.
        """
        if len(punctuation.attributes) == len(self._by):
            columns = [punctuation.groups.column(name) for name in self._by]
            slots = self._groups.find(columns, len(punctuation))
            (known,) = (slots >= 0).nonzero()
            return slots[known], known
        coarse = self._of_columns(punctuation)
        if (more := np.arange(coarse.lists.rows, self._groups.size)).size:
            coarse.lists.add(coarse.codes(self._groups, self._by, more))
        return coarse.lists.of(coarse.find(punctuation))

    def leave(self, slots: Integers) -> None:
        """Note that groups need not be looked up again, unless they come ``again``."""
        for coarse in self._now().values():
            coarse.lists.remove(slots)

    def again(self, slots: Integers) -> None:
        """Note that groups, which may have been removed, must be looked up."""
        for coarse in self._now().values():
            if (apart := coarse.lists.apart(slots)).size:
                coarse.lists.again(apart, coarse.codes(self._groups, self._by, apart))

    def _of_columns(self, punctuation: GroupWise) -> _Coarse:
        known, names = self._now(), frozenset(punctuation.attributes)
        if names not in known:
            known[names] = _Coarse(punctuation)
        return known[names]

    def _now(self) -> dict[frozenset[str], _Coarse]:
        """Return the indexes, without those from before slots were given anew."""
        if self._moves != self._groups.moves:
            self.coarse, self._moves = {}, self._groups.moves
        return self.coarse
