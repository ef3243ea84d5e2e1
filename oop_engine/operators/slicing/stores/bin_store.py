"""The bin store: windows that end with each tuple, from bins in which nothing but partial aggregates is kept.

The aggregate of the tuples of ``(t - range, t]`` changes where a tuple comes, at its time, and where it goes, a range
later.  A bin is the stretch between two such times, with the partial aggregate of windows that end in it.  A tuple cuts
two bins, which go on with the state of the bin before them, and is added to all bins in its reach.  A bound puts out
the bins that tuples begin, and drops those below it but the last, with which later tuples go on.

    Keep       two bins a tuple, from its time to a range behind it; no tuple.
    Cost       O(bins in a range) a tuple, in whole columns; the fold on the bound (``ordered``) takes O(log).
    Source     thesis 6.1.4.1, fig. 6-7; a bin where tuples go is in its E, and of the bins below a punctuation the
               largest stays, as in its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.groups.group_index import occurring
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.sliding import bisect
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import OnTime, bounds_of
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers, begins_of, by_slot, bytes_of, rows_of, spread
from oop_engine.operators.windows.folding import Folding, checked_times
from oop_engine.system.knobs import knob

__all__ = ["BinStore"]

_PAIRS = knob(__name__, "_PAIRS", 1 << 20)  # of a tuple and a bin, added at once


class BinStore(OnTime):
    """Bins of ``definition``, which has the ``number``: group, time of their beginning, how many tuples ask there."""

    def __init__(self, number: int, definition: Folding, parts: Sequence[Part], stamp: Stamp) -> None:
        self._number, self._definition, self._parts, self._stamp = number, definition, list(parts), stamp
        assert definition.trailing is not None
        self._range = definition.trailing
        self._slots, self._times, self._asked = np.empty((3, 0), np.int64)
        self._states = States(self._parts)

    @property
    def alive(self) -> int:
        return occurring(self._slots, int(self._slots.max(initial=-1)) + 1).size

    def state(self) -> State:
        held = 3 * self._slots.nbytes + bytes_of(self._states.columns)
        return State(0, self._slots.size, self.alive, held)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        checked_times(times, self._range, self._range + 1)
        edges = np.tile(slots, 2), np.concatenate([times, times + self._range])
        self._cut(*edges)
        low, high = self._rows(*edges).reshape(2, -1)
        np.add.at(self._asked, low, 1)
        many = high - low
        step = max(_PAIRS // max(int(many.max(initial=1)), 1), 1)
        for begin in range(0, times.size, step):
            some = slice(begin, begin + step)
            of, rows = spread(low[some], many[some])
            try:
                self._states.add(rows, self._states.prepare(page.take(of + begin), times[of + begin]))
            except SumOverflowError as error:
                end = self._times[error.at] + 1
                raise WindowOverflowError(
                    error.column, self._slots[error.at], end - self._range, end
                ) from None

    def _cut(self, slots: Integers, times: Integers) -> None:
        """Let bins begin at these times; new ones have the state of the bin before them."""
        both = np.concatenate([self._slots, slots]), np.concatenate([self._times, times])
        fresh = np.zeros(both[0].size, np.bool_)
        fresh[self._slots.size :] = True
        order = np.lexsort((fresh, both[1], both[0]))
        slots, times = both[0][order], both[1][order]
        first = begins_of(slots, times)
        order, slots, times = order[first], slots[first], times[first]
        old = order < self._slots.size
        before = np.cumsum(old) - 1  # the bin that was there before, maybe of another group
        there = before >= 0
        there[there] = self._slots[before[there]] == slots[there]
        rows = np.where(there, before, self._slots.size)
        padded = self._states.resized(np.arange(self._slots.size), self._slots.size + 1)
        self._states.columns = rows_of(padded, rows)
        self._asked = np.where(old, np.append(self._asked, 0)[np.where(old, before, -1)], 0)
        self._slots, self._times = slots, times

    def _rows(self, slots: Integers, times: Integers) -> Integers:
        """Return the bins that begin at these times, all of which there are."""
        begins, rows = begins_of(self._slots), np.empty(slots.size, np.int64)
        groups = np.searchsorted(self._slots[begins], slots)
        bisect(self._times, np.append(begins, self._slots.size), groups, times, rows)
        return rows

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        return float(self._slots.size > 0)

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        """Put out the windows of bins below the bounds, and drop these; of a group that goes on the last one stays."""
        gone = self._times < bounds_of(self._slots, slots, bounds)
        rows = np.repeat(np.arange(gone.size), np.where(gone, self._asked, 0))
        states, ends = self._states.take(rows), self._times[rows] + 1
        found = WindowStates(self._slots[rows], ends, states, self._number, ends - self._range)
        last = np.zeros(gone.size, np.bool_)
        last[:-1] = gone[:-1] & ~gone[1:] & (self._slots[1:] == self._slots[:-1])
        self._asked = np.where(last, 0, self._asked)
        kept = np.flatnonzero(~gone | last)
        self._states.columns = self._states.take(kept)
        self._slots, self._times, self._asked = self._slots[kept], self._times[kept], self._asked[kept]
        return [found] if rows.size else []

    def least_stamp(self, bound: int) -> int:
        return int(self._definition.least_later(np.array([bound]), self._stamp)[0])

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        return self._definition.least_later(bounds, self._stamp)

    def living(self, groups: int) -> NDArray[np.bool_]:
        return by_slot(self._slots, True, groups, False)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._slots = slots[self._slots]

    def save(self) -> dict[str, Any]:
        states = self._states.saved(self._states.columns)
        return {"bins": np.stack([self._slots, self._times, self._asked]), "states": states}

    def load(self, saved: Saved, groups: int) -> None:
        self._slots, self._times, self._asked = bins = saved.integers("bins", (3, None))
        ascending = (np.diff(bins[0]) > 0) | ((np.diff(bins[0]) == 0) & (np.diff(bins[1]) > 0))
        inside = bins.shape[1] == 0 or (bins[0, 0] >= 0 and bins[0, -1] < groups and bins[2].min() >= 0)
        if not (ascending.all() and inside):
            msg = f"bins must be of the {groups} groups there are, by group and time; got {bins.shape[1]} that are not"
            raise SnapshotError(msg)
        self._states.columns = self._states.loaded(saved.part("states"), self._slots.size)
