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

from oop_engine.core.errors import SnapshotError
from oop_engine.core.groups.group_index import occurring
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.partials import LOW, NO_WINDOW
from oop_engine.operators.kernels.sliding import bisect
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates, narrow
from oop_engine.operators.values.columns import Integers, new_rows, rows_of, spread
from oop_engine.operators.windows import Extents

__all__ = ["LandmarkStore"]

_BEFORE = -NO_WINDOW
"""The window at which a group's state up to its lowest open window is kept; no time is so early."""


class LandmarkStore(WindowStore):
    """Open windows of landmark ``extents``, the definition ``number``; spans have the lowest open window of groups."""

    def __init__(self, number: int, extents: Extents, parts: Sequence[Part], stamp: Stamp) -> None:
        super().__init__(number, extents, parts, stamp, panes=False, every=True)
        self._latest = NEVER  # the stream's last window with a tuple

    def add_to_table(
        self, page: Page, times: Integers, slots: Integers, first: Integers, last: Integers
    ) -> None:
        inside = last >= first
        if inside.any():
            self._latest = max(self._latest, int(first[inside].max()))
        super().add_to_table(page, times, slots, first, np.where(inside, first, first - 1))

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        if not (open_ := bounds < FOREVER).all():  # a window of a group that has ended can change no more
            page, times, slots, bounds = page.filter(open_), times[open_], slots[open_], bounds[open_]
        super().add_late(page, times, slots, bounds)

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        of, cuts = self._each(slots, self.extents.closed_by(bounds))
        found = self._close_landmark(of, cuts)
        if slots is None and bounds == FOREVER:
            self.partials.clear()
            self.reopen(of, np.full(of.size, NO_WINDOW))
        return found

    def _close_landmark(self, slots: Integers, cuts: Integers) -> list[WindowStates]:
        low = self.opened.of[slots, LOW]
        some = np.flatnonzero((low < cuts) & (low != NO_WINDOW))
        some = some[np.argsort(slots[some])]
        slots, low, stop = slots[some], low[some], self._stop(cuts[some], slots[some])
        stop = np.maximum(low, stop)
        if not (stop > low).any():
            return []
        of, wid, states = self._accumulated(slots, low, stop)
        self.reopen(slots, stop)
        groups, wids = spread(low, stop - low)
        padded = states.resized(np.arange(wid.size), wid.size + 1)
        begins, behind = np.searchsorted(of, np.append(slots, FOREVER)), np.empty_like(wids)
        bisect(wid, begins, groups, wids + 1, behind)  # behind the latest window with a tuple
        found = rows_of(padded, np.where(behind > begins[groups], behind - 1, wid.size))
        starts, ends = self.extents.extent(wids)
        return [WindowStates(slots[groups], ends, found, self.number, starts)]

    def _accumulated(
        self, slots: Integers, low: Integers, stop: Integers
    ) -> tuple[Integers, Integers, States]:
        """Return the states of groups up to each of their windows with a tuple; only the last of each stays.

        It is kept at the window ``_BEFORE``.  O(windows that close).
        """
        partials, states = self.partials, States(self.parts)
        closing = np.flatnonzero(stop > low)
        slots, low, stop = slots[closing], low[closing], stop[closing]
        before = np.full(slots.size, _BEFORE)
        low, stop = np.concatenate([before, low]), np.concatenate([before + 1, stop])
        rows = partials.find(np.concatenate([slots, slots]), low, stop, 0)
        of, wid = partials.owner(rows)
        order = np.lexsort((wid, of))
        rows, of, wid = rows[order], of[order], wid[order]
        states.columns = partials.states.take(rows)
        if rows.size:
            self._accumulate(states, of, wid)
            begins = new_rows(of)
            last = np.append(begins[1:], True)
            partials.rekey(rows[begins], _BEFORE)
            partials.states.put(rows[begins], rows_of(states.columns, last))
            partials.remove(rows[~begins])
        return of, wid, states

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

    def save(self) -> dict[str, Any]:
        saved = super().save()
        slots, wids = saved["partials"]["owner"]
        before = self.opened.of[slots, LOW] - 1  # a small number takes few bytes
        saved["partials"]["owner"] = [slots, narrow(np.where(wids == _BEFORE, before, wids))]
        return {**saved, "latest": self._latest}

    def load(self, saved: Saved, groups: int) -> Store:
        self._latest = saved.integer("latest")
        super().load(saved, groups)
        rows = self.partials.used
        of, wid = self.partials.owner(rows)
        before = np.flatnonzero(wid < self.opened.of[of, LOW])
        if occurring(of[before], len(self.opened.of)).size != before.size:
            msg = "a group must have one state at most before its lowest open window; got more"
            raise SnapshotError(msg)
        self.partials.rekey(rows[before], _BEFORE)
        return self
