"""The whole store: one partial aggregate a group, for windows that only the end of the group completes (``Global``).

The state of a group is in the row of its slot, with the first and last time of its tuples.  A linear bound completes
nothing, so it looks at no group.  The output must not pass the least stamp of an open window: ``SlotTimes`` find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.slicing.accumulators import SumOverflowError
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.slot_times import SlotTimes
from oop_engine.operators.slicing.store import OnTime
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates, narrow
from oop_engine.operators.values.columns import Integers, filled_up
from oop_engine.operators.windows import Merging

__all__ = ["WholeStore"]


class WholeStore(OnTime):
    """The windows of ``definition``, number ``number``: ``parts`` of all tuples of each group.

    ``stamp`` is that of results.  A tuple costs O(1), a group that ends O(1), a linear bound O(blocks of groups), and
    O(1) for each group whose end has grown.
    """

    def __init__(self, number: int, definition: Merging, parts: Sequence[Part], stamp: Stamp) -> None:
        self._number, self._definition, self._stamp = number, definition, stamp
        self._parts, self._states = parts, States(parts)
        self._first, self._last = SlotTimes(), SlotTimes()
        self.alive = 0

    def state(self) -> State:
        held = self._first.nbytes + self._last.nbytes + self._states.row_bytes * self._last.times.size
        return State(0, self.alive, self.alive, held)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        self._grow(groups)
        if not times.size:
            return
        self._definition.check(np.array([times.min(), times.max()]))
        last = self._last.times
        new = np.unique(slots[last[slots] == FOREVER])
        last[new] = NEVER
        self._first.lower(slots, times)
        np.maximum.at(last, slots, times)
        self._last.lower(new, last[new])
        self.alive += new.size
        try:
            self._states.add(slots, self._states.prepare(page, times))
        except SumOverflowError as error:
            raise self._overflow(error, error.at) from None

    def _overflow(self, error: SumOverflowError, slot: int) -> WindowOverflowError:
        end = int(self._definition.ends(self._last.times[[slot]])[0])
        return WindowOverflowError(error.column, slot, int(self._first.times[slot]), end)

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        return float(self.alive > 0 and (slots is not None or bounds == FOREVER))

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        ended = np.equal(bounds, FOREVER)
        if not ended.any():
            return []
        last = self._last.times
        of = np.arange(last.size) if slots is None else np.sort(slots[ended])
        of = of[last[of] < FOREVER]
        if not of.size:
            return []
        ends, first, states = self._definition.ends(last[of]), self._first.times[of], self._states.take(of)
        self._states.reset(of)
        self._first.clear(of)
        self._last.clear(of)
        self.alive -= of.size
        return [WindowStates(of, ends, states, self._number, first)]

    def least_stamp(self, bound: int) -> int:
        """A later window has the stamp of an open one, or of tuples that are still to come."""
        if self._stamp == "start":
            return min(bound, self._first.earliest())
        least = self._last.earliest()
        later = int(self._definition.least_end(np.array([bound]))[0])
        return min(later, int(self._definition.ends(np.array([least]))[0])) if least < FOREVER else later

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        some = np.flatnonzero(self._last.times[slots] < FOREVER)
        if self._stamp == "start":
            stamps, open_ = bounds.copy(), self._first.times[slots[some]]
        else:
            stamps = self._definition.least_end(bounds)
            open_ = self._definition.ends(self._last.times[slots[some]])
        np.minimum.at(stamps, of[some], open_)
        return stamps

    def living(self, groups: int) -> NDArray[np.bool_]:
        return np.asarray(filled_up(self._last.times[:groups], groups, FOREVER) < FOREVER)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._grow(kept.size and int(kept.max()) + 1)
        self._states.columns = self._states.take(kept)
        self._first, self._last = self._first.kept(kept), self._last.kept(kept)

    def _grow(self, groups: int) -> None:
        if groups > (known := self._last.times.size):
            for times in (self._first, self._last):
                times.reserve(groups)
            self._states.columns = self._states.resized(np.arange(known), self._last.times.size)

    def copied(self, slots: Integers) -> WholeStore:
        other = WholeStore(self._number, self._definition, self._parts, self._stamp)
        self._grow(int(slots.max(initial=-1)) + 1)
        first, last = self._first.times, self._last.times
        open_ = np.flatnonzero(last[slots] < FOREVER)
        rows = slots[open_]
        other._put(slots.size, open_, first[rows], last[rows], self._states.take(rows))
        return other

    def save(self) -> dict[str, Any]:
        first, last = self._first.times, self._last.times
        slots = np.flatnonzero(last < FOREVER)
        columns = [narrow(column) for column in (slots, first[slots], last[slots])]
        return {"windows": columns, "states": self._states.saved(self._states.take(slots))}

    def load(self, saved: Saved, groups: int) -> None:
        windows = saved.part("windows")
        slots = windows.integers(0, (None,), least=0, below=groups)
        first, last = (windows.integers(side, slots.shape) for side in (1, 2))
        self._definition.check(last)
        if np.unique(slots).size < slots.size or (first > last).any():
            msg = "windows of whole groups must be one a group, and end behind their beginning"
            raise SnapshotError(msg)
        self._put(groups, slots, first, last, self._states.loaded(saved.part("states"), slots.size))

    def _put(
        self, groups: int, slots: Integers, first: Integers, last: Integers, states: list[Arrays]
    ) -> None:
        """Let these be the windows of so many groups."""
        self._grow(groups)
        self._states.put(slots, states)
        self._first.put(slots, first)
        self._last.put(slots, last)
        self.alive = slots.size
