"""The landmark store: windows that hold all tuples since the origin.

A tuple is added only to the window it came in.  Closing forms running combinations over the windows of a group, all
groups at once, and keeps the last one as the group's start for the next closing.  A group is in all windows from its
first tuple's to that of the stream's last tuple, which is known only when a later tuple has come: the bound of results
stays behind it (unless ``lulls``), and groups are kept for as long as the stream lasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.partials import LOW, NO_WINDOW
from oop_engine.operators.kernels.sliding import bisect
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.runs.runs import Runs, order_of
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.stores.pane_store import PaneStore
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers, looked_up, new_rows, rows_of, spread
from oop_engine.operators.windows import Extents

__all__ = ["LandmarkStore", "came_in"]

_BEFORE = -1
"""The window at which a group's state up to its lowest open window is kept: the first window is 0."""


class LandmarkStore(PaneStore):
    """Open windows of landmark ``extents``, the definition ``number``; spans have the lowest open window of groups."""

    def __init__(self, number: int, extents: Extents, parts: Sequence[Part], stamp: Stamp) -> None:
        super().__init__(number, extents, parts, stamp, every=True)
        self._latest = NEVER  # the stream's last window with a tuple

    def wids(self, page: Page, times: Integers) -> tuple[Integers, Integers]:
        return came_in(*self.extents.wids(times))

    def _open(self, panes: Runs) -> None:
        super()._open(panes)
        self._latest = max(self._latest, int(panes.first.max(initial=NEVER)))

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        first, last = self.wids(page, times)
        # A window of a group that has ended can change no more.
        rows = np.flatnonzero((last >= first) & (bounds < FOREVER))
        first = np.maximum(first, self.extents.closed_by(bounds))[rows]
        page, times, slots = page.take(rows), times[rows], slots[rows]
        of_tuple, rows = row_codes([pa.array(slots), pa.array(first)])
        panes = self._rows.of_page(page, times, (of_tuple, slots[rows], first[rows], first[rows]))
        self._open(panes)
        self._rows.add(panes)

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        of, cuts = self._each(slots, self.extents.closed_by(bounds))
        found = self._close_landmark(of, cuts)
        if slots is None and bounds == FOREVER:
            none = of[:0]
            self._rows.put(self._rows.without_values(none, none, none))
            super(PaneStore, self).reopen(of, np.full(of.size, NO_WINDOW))
        return found

    def _close_landmark(self, slots: Integers, cuts: Integers) -> list[WindowStates]:
        low = self.opened.of[slots, LOW]
        some = np.flatnonzero((low < cuts) & (low != NO_WINDOW))
        some = some[np.argsort(slots[some])]
        slots, low, stop = slots[some], low[some], self._stop(cuts[some], slots[some])
        some = np.flatnonzero(stop > low)
        slots, low, stop = slots[some], low[some], stop[some]
        if not slots.size:
            return []
        of, wid, states = self._accumulated(slots, stop)
        super(PaneStore, self).reopen(slots, stop)
        groups, wids = spread(low, stop - low)
        padded = states.resized(np.arange(wid.size), wid.size + 1)
        begins, behind = np.searchsorted(of, np.append(slots, FOREVER)), np.empty_like(wids)
        bisect(wid, begins, groups, wids + 1, behind)  # behind the latest window with a tuple
        found = rows_of(padded, np.where(behind > begins[groups], behind - 1, wid.size))
        starts, ends = self.extents.extent(wids)
        return [WindowStates(slots[groups], ends, found, self.number, starts)]

    def _accumulated(self, slots: Integers, stop: Integers) -> tuple[Integers, Integers, States]:
        """Return the states of groups up to each of their windows with a tuple; only the last of each stays.

        It is kept at the window ``_BEFORE``.  O(rows of these groups log rows), or of all where they are many.
        """
        few = self.few(slots)
        runs = self._rows.take_out(slots) if few else self._rows.merged()
        closing = runs.first < looked_up(runs.slots, slots, stop, NEVER)
        rest, runs = runs.take(~closing), runs.take(closing)
        runs = runs.take(order_of(runs.slots, runs.first))
        states = States(self.parts)
        states.columns = runs.states
        begins = new_rows(runs.slots)
        if runs.rows:
            self._accumulate(states, runs.slots, runs.first)
        last = np.flatnonzero(np.append(begins[1:], True)[: runs.rows])
        at = np.full(last.size, _BEFORE)
        rest = self._rows.new(runs.slots[last], at, at, states.take(last)).joined(rest)
        if few:
            self._rows.add(rest)
        else:
            self._rows.put(rest.take(order_of(rest.first, rest.slots)))
        return runs.slots, runs.first, states

    def _accumulate(self, held: States, of: Integers, wid: Integers) -> None:
        """Make every row of a group the combination of all its rows so far, by doubling."""
        step = 1
        while step < of.size and (same := np.flatnonzero(of[step:] == of[:-step])).size:
            try:
                together = held.combine(held.take(same), held.take(same + step))
            except SumOverflowError as error:
                at = int(same[error.at]) + step
                (start,), (end,) = self.extents.extent(wid[[at]])
                raise WindowOverflowError(error.column, of[at], start, end) from None
            held.put(same + step, together)
            step *= 2

    def _stop(self, cuts: Integers, high: Integers) -> Integers:
        cuts = np.broadcast_to(cuts, np.shape(high))
        stop = np.minimum(cuts, self._latest + 1)
        return np.where(cuts == FOREVER, stop, cuts) if self.extents.lulls else stop

    def _between(self, cuts: Integers) -> tuple[int, int]:
        behind = int(self._stop(cuts, cuts).max(initial=NEVER)) if self.extents.lulls else NEVER
        return self.partials.lowest, max(behind, self._latest + 1)

    def copied(self, slots: Integers) -> LandmarkStore:
        other = LandmarkStore(self.number, self.extents, self.parts, self.stamps.stamp)
        self._copy_to(other, slots)
        other._latest = self._latest
        return other

    def save(self) -> dict[str, Any]:
        return {**super().save(), "latest": self._latest}

    def load(self, saved: Saved, groups: int) -> Store:
        self._latest = saved.integer("latest")
        return super().load(saved, groups)

    def _check(self, panes: Runs) -> None:
        if (panes.first != panes.last).any() or (panes.first < _BEFORE).any():
            msg = f"rows must be of one window each, {_BEFORE} or later; got others"
            raise SnapshotError(msg)


def came_in(first: Integers, last: Integers) -> tuple[Integers, Integers]:
    """Return the window that each tuple came in, by the first and last that it is in; last < first: in none."""
    return first, np.where(last >= first, first, first - 1)
