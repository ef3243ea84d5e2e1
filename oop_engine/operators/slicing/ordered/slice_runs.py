"""Slice runs: the slices of all groups at rest, of which a bound takes out those of the groups that it touches.

The table is log-structured, as ``core/groups/timers.py`` is: sorted runs, each less than half as long as the run before
it.  The slices of a group are all in one run, ``run_of`` its slot.  Rows of a group that has been taken out stay where
they are until half of their run is such; so to take out and put back costs the rows moved, amortised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Part
from oop_engine.operators.slicing.ordered.slice_table import SliceRows
from oop_engine.operators.values.columns import Integers, filled_up, spread

__all__ = ["SliceRuns"]

_NOWHERE = -1


class SliceRuns:
    """Slices of ``parts``, with the columns of ``none``, a table without slices."""

    def __init__(self, none: SliceRows, parts: Sequence[Part]) -> None:
        self._none, self._parts = none, parts
        self._runs: list[SliceRows] = []  # each by slot, then place
        self._taken: list[int] = []  # of each run: how many of its rows have been taken out
        self._run_of = np.full(0, _NOWHERE, np.int8)  # (slots,) the run with the slices of each group
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, with those that have been taken out and not yet dropped."""
        return sum(run.nbytes for run in self._runs) + self._run_of.nbytes

    def reserve(self, groups: int) -> None:
        """Make room for so many groups; O(1) amortised each."""
        if groups > self._run_of.size:
            self._run_of = filled_up(self._run_of, max(groups, 3 * self._run_of.size // 2), _NOWHERE)

    def occupied(self, slots: Integers) -> NDArray[np.bool_]:
        """Tell which groups have slices."""
        occupied: NDArray[np.bool_] = self._run_of[slots] != _NOWHERE
        return occupied

    def take(self, slots: Integers | None) -> SliceRows:
        """Take out the slices of some groups, named in ascending order; None: all.

        O(slices taken out log runs), amortised.
        """
        if slots is None:
            found = [self._left(number) for number in range(len(self._runs))]
            for run in found:
                self._run_of[run.slots] = _NOWHERE
            self._runs, self._taken, self._rows = [], [], 0
            return self._together(found)
        of, found = self._run_of[slots], []
        for number in np.flatnonzero(np.bincount(of[of != _NOWHERE])).tolist():
            run, some = self._runs[number], slots[of == number]
            low = run.slots.searchsorted(some)
            rows = spread(low, run.slots.searchsorted(some, side="right") - low)[1]
            found.append(run.take(rows) if rows.size < run.slots.size else run)
            self._taken[number] += rows.size
            self._rows -= rows.size
        self._run_of[slots] = _NOWHERE
        for number, run in enumerate(self._runs):
            if 2 * self._taken[number] > run.slots.size:
                self._settle(number)
                break
        return self._together(found)

    def put(self, rows: SliceRows) -> None:
        """Put in slices of groups that have none here, by group, then place.  O(log slices) each, amortised."""
        self._rows += rows.slots.size
        self._push(rows)

    def _together(self, found: Sequence[SliceRows]) -> SliceRows:
        rows = self._none
        for some in found:
            rows = rows.with_more(some, self._parts)
        return rows

    def _left(self, number: int) -> SliceRows:
        """Return the rows of a run that have not been taken out."""
        run = self._runs[number]
        return run.take(np.flatnonzero(self._run_of[run.slots] == number)) if self._taken[number] else run

    def _settle(self, first: int) -> None:
        """Drop the rows taken out of a run and those behind it, and let each be long enough."""
        left = [self._left(number) for number in range(first, len(self._runs))]
        del self._runs[first:], self._taken[first:]
        for rows in left:
            self._push(rows)

    def _push(self, rows: SliceRows) -> None:
        """Let some rows be the last run; runs that are not twice as long are merged with it."""
        if not rows.slots.size:
            return
        while self._runs and self._runs[-1].slots.size < 2 * rows.slots.size:
            rows = self._left(len(self._runs) - 1).with_more(rows, self._parts)
            self._runs.pop()
            self._taken.pop()
        self._run_of[rows.slots] = len(self._runs)
        self._runs.append(rows)
        self._taken.append(0)
