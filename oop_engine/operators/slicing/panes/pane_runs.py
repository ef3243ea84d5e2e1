"""Pane runs: rows of a pane each, found by their groups, so that a bound of a few groups looks at no others.

Rows are numbered as ``HeldRuns`` has them: those that are merged, then those that came since.  Lists of the rows of
each group are made when they are first asked for, grow with each page, and are made anew behind a merge.  Rows that are
over are marked, and dropped together once they are half of all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oop_engine.operators.aggregates import Part
from oop_engine.operators.keys.row_lists import RowLists
from oop_engine.operators.slicing.stores.runs import EQUAL, HeldRuns, Runs, Sides
from oop_engine.operators.values.columns import Integers, filled_up

__all__ = ["PaneRuns"]

_NO_ROWS = np.empty(0, np.bool_)


class PaneRuns(HeldRuns):
    """Rows of a pane each; ``sides`` as in ``HeldRuns``."""

    _lists: RowLists | None
    _gone: int
    """How many rows are over."""

    def __init__(self, parts: Sequence[Part], sides: Sides) -> None:
        super().__init__(parts, EQUAL, sides)

    def __len__(self) -> int:
        return super().__len__() - self._gone_partials

    @property
    def index_bytes(self) -> int:
        """Bytes of the lists and marks."""
        return self._over.nbytes + (0 if self._lists is None else self._lists.nbytes)

    def put(self, merged: Runs, *fresh: Runs) -> None:
        """Let these be all rows; their lists are made when they are asked for."""
        super().put(merged, *fresh)
        self._lists, self._over = None, _NO_ROWS
        self._gone = self._gone_partials = 0

    def add(self, runs: Runs) -> None:
        super().add(runs)
        if self._lists is not None:  # else they were made before a merge, or never
            self._lists.add(runs.slots)

    def of(self, groups: Integers) -> tuple[Runs, Integers]:
        """Return the rows of some groups, and their numbers.  O(these), amortised."""
        if self._lists is None:
            self._lists = RowLists()
            for runs in self.levels():
                self._lists.add(runs.slots)
        rows, _ = self._lists.of(groups)
        found, begin = [self._merged.take(slice(0, 0))], 0
        for runs in (self._merged, *self._fresh):
            behind = begin + runs.rows
            first, stop = np.searchsorted(rows, [begin, behind])
            if first < stop:
                found.append(runs.take(rows[first:stop] - begin))
            begin = behind
        return found[0].joined(*found[1:]), rows

    def drop(self, runs: Runs, rows: Integers) -> None:
        """Forget some rows that ``of`` has found, by their numbers.  O(these), amortised."""
        if not rows.size:
            return
        assert self._lists is not None
        self._lists.remove(rows)
        self._over = filled_up(self._over, self._lists.rows, False)
        self._over[rows] = True
        self._gone, self._gone_partials = self._gone + rows.size, self._gone_partials + runs.partials
        if 2 * self._gone > self._lists.rows:
            self._tidy()

    def merged(self) -> Runs:
        """Return all rows but those that are over, as one."""
        self._tidy()
        return super().merged()

    def levels(self) -> list[Runs]:
        """Return all rows but those that are over, as they were merged."""
        self._tidy()
        return super().levels()

    def _tidy(self) -> None:
        """Drop the rows that are over."""
        if not self._gone:
            return
        kept, begin = [], 0
        for runs in (self._merged, *self._fresh):
            over = self._over[begin : begin + runs.rows]
            stay = np.ones(runs.rows, np.bool_)
            stay[: over.size] = ~over
            kept.append(runs.take(stay))
            begin += runs.rows
        self.put(*kept)

    def _join_small(self) -> None:
        super()._join_small()
        fresh = self._fresh
        while self._lists is not None and len(fresh) > 1 and fresh[-2].rows <= 2 * fresh[-1].rows:
            self._join_last()  # each is looked through for a group
