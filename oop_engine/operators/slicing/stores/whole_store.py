"""The whole store: one partial aggregate a group, for windows that only the end of the group completes (``Global``).

The state of a group is in the row of its slot, with the first and last time of its tuples.  A linear bound completes
nothing, so it looks at no group.  The output must not pass the least end of an open window: timers find it.  Ends only
grow, so a group has one timer, which is set anew, at the end of the group by then, when it is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.groups.timers import Timers
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.slicing.accumulators import SumOverflowError
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import OnTime
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates, narrow
from oop_engine.operators.values.columns import Integers, filled_up
from oop_engine.operators.windows import Merging

__all__ = ["WholeStore"]


class WholeStore(OnTime):
    """The windows of ``definition``, number ``number``: ``parts`` of all tuples of each group.

    ``stamp`` is that of results.  A tuple costs O(1), a group that ends O(1), a linear bound O(log groups) for each
    group whose end has grown since its timer was set.
    """

    def __init__(self, number: int, definition: Merging, parts: Sequence[Part], stamp: Stamp) -> None:
        self._number, self._definition, self._stamp = number, definition, stamp
        self._parts, self._states = parts, States(parts)
        self._first, self._last = np.full((2, 0), FOREVER)  # (room,)  without a tuple: FOREVER
        self._stamps = Timers()
        self.alive = 0

    def state(self) -> State:
        held = self._first.nbytes + self._last.nbytes + self._states.row_bytes * self._first.size
        return State(0, self.alive, self.alive, held + self._stamps.nbytes)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        self._grow(groups)
        if not times.size:
            return
        self._definition.check(np.array([times.min(), times.max()]))
        new = np.unique(slots[self._last[slots] == FOREVER])
        self._last[new] = NEVER
        before = self._first[slots] if self._stamp == "start" else None
        np.minimum.at(self._first, slots, times)
        np.maximum.at(self._last, slots, times)
        self.alive += new.size
        if before is None:
            self._stamps.set(self._last[new], new)
        else:  # starts shrink, so each that has needs a timer of its own
            earlier = np.unique(slots[self._first[slots] < before])
            self._stamps.set(self._first[earlier], earlier)
        try:
            self._states.add(slots, self._states.prepare(page, times))
        except SumOverflowError as error:
            raise self._overflow(error, error.at) from None

    def _overflow(self, error: SumOverflowError, slot: int) -> WindowOverflowError:
        end = int(self._definition.ends(self._last[slot : slot + 1])[0])
        return WindowOverflowError(error.column, slot, int(self._first[slot]), end)

    def most_until(self, bound: int, slots: Integers | None = None) -> float:
        return float(bound == FOREVER and self.alive > 0)

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        of = np.flatnonzero(self._last < FOREVER) if slots is None else slots[self._last[slots] < FOREVER]
        ended = np.equal(bounds, FOREVER)
        if slots is not None:
            ended = ended[self._last[slots] < FOREVER]
        of = of[np.broadcast_to(ended, of.shape)]
        if not of.size:
            return []
        of = np.sort(of)
        ends, first, states = self._definition.ends(self._last[of]), self._first[of], self._states.take(of)
        self._states.reset(of)
        self._first[of] = self._last[of] = FOREVER
        self.alive -= of.size
        return [WindowStates(of, ends, states, self._number, first)]

    def least_stamp(self, bound: int) -> int:
        """A later window has the stamp of an open one, or of tuples that are still to come."""
        if self._stamp == "start":
            return min(bound, self._stamps.first(self._first))
        least = self._stamps.first(self._last)
        later = int(self._definition.least_end(np.array([bound]))[0])
        return min(later, int(self._definition.ends(np.array([least]))[0])) if least < FOREVER else later

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        some = np.flatnonzero(self._last[slots] < FOREVER)
        if self._stamp == "start":
            stamps, open_ = bounds.copy(), self._first[slots[some]]
        else:
            stamps = self._definition.least_end(bounds)
            open_ = self._definition.ends(self._last[slots[some]])
        np.minimum.at(stamps, of[some], open_)
        return stamps

    def living(self, groups: int) -> NDArray[np.bool_]:
        return np.asarray(filled_up(self._last[:groups], groups, FOREVER) < FOREVER)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._grow(kept.size and int(kept.max()) + 1)
        self._states.columns = self._states.take(kept)
        self._first, self._last = self._first[kept], self._last[kept]
        self._set_timers()

    def _set_timers(self) -> None:
        stamps = self._first if self._stamp == "start" else self._last
        open_ = np.flatnonzero(self._last < FOREVER)
        self._stamps = Timers()
        self._stamps.set(stamps[open_], open_)
        self.alive = open_.size

    def _grow(self, groups: int) -> None:
        if groups > self._first.size:
            size = max(groups, 2 * self._first.size)
            self._states.columns = self._states.resized(np.arange(self._first.size), size)
            self._first, self._last = (
                filled_up(self._first, size, FOREVER),
                filled_up(self._last, size, FOREVER),
            )

    def copied(self, slots: Integers) -> WholeStore:
        other = WholeStore(self._number, self._definition, self._parts, self._stamp)
        self._grow(int(slots.max(initial=-1)) + 1)
        open_ = np.flatnonzero(self._last[slots] < FOREVER)
        rows = slots[open_]
        other._put(slots.size, open_, self._first[rows], self._last[rows], self._states.take(rows))
        return other

    def save(self) -> dict[str, Any]:
        slots = np.flatnonzero(self._last < FOREVER)
        columns = [narrow(column) for column in (slots, self._first[slots], self._last[slots])]
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
        self._first[slots], self._last[slots] = first, last
        self._set_timers()
