"""Grid cells: partial aggregates of a grid, of panes in a ring as far as they fit it, else of windows in a table.

Tuples that do not fit the ring are of a time far away, or of groups too sparse.  A window may lie in both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.partials import NO_WINDOW
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.panes import pane_windows
from oop_engine.operators.slicing.panes.open_spans import OpenGrid
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.partials import Partials
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers, begins_of

__all__ = ["GridCells"]


class GridCells:
    """Partial aggregates of ``parts`` in the windows of ``grid``, whose spans they keep up to date.

    ``ring``: None for a table alone.  ``starts`` returns where windows start.
    """

    def __init__(
        self, grid: OpenGrid, parts: Sequence[Part], ring: PaneRing | None,
        starts: Callable[[WindowStates], Integers] | None = None,
    ) -> None:  # fmt: skip
        self.ring, self.table = ring, Partials(parts, grid.spans)
        self._grid, self._starts = grid, starts or self._by_range

    def _by_range(self, found: WindowStates) -> Integers:
        return found.ends - (self._grid.extents.range or 0)

    def state(self) -> State:
        """Return the partial aggregates, groups with an open window, and bytes."""
        partials, alive, _ = self._grid.spans.counts.tolist()
        held = self.table.nbytes + self._grid.spans.nbytes + (self.table.lists and self.table.list_bytes)
        if self.ring is not None:
            partials, held = partials + self.ring.used, held + self.ring.nbytes
        return State(0, partials, alive, held)

    def add_left(self, ring: PaneRing, page: Page, times: Integers, slots: Integers, left: Integers) -> None:
        """Add the tuples in the rows ``left``, which did not fit the ring, to the table."""
        self.add_to_table(page.take(left), times[left], slots[left], *self._grid.extents.wids(times[left]))
        if left.size > ring.used:  # it has the wrong panes: let it begin anew
            self.to_table(ring)

    def add_to_table(
        self, page: Page, times: Integers, slots: Integers, first: Integers, last: Integers
    ) -> None:
        """Add tuples to the windows ``first`` (``FOREVER``: none) to ``last``, inclusive: a partial aggregate each."""
        try:
            self.table.add(page, times, slots, first, np.where(first > last, 0, last - first + 1))
        except SumOverflowError as error:
            raise self._overflow(error) from None

    def to_table(self, ring: PaneRing) -> None:
        """Move panes to the table of windows, as they are now."""
        low, high = self._grid.spans.of.T
        alive = np.flatnonzero(low != NO_WINDOW)
        found = pane_windows.take(ring, alive, low[alive], high[alive] + 1)
        try:
            self.table.merge(found.slots, self._grid.extents.closed_by(found.ends) - 1, found.states)
        except SumOverflowError as error:
            raise self._overflow(error) from None
        ring.clear()

    def give_up_ring(self) -> PaneRing:
        """Return the ring, which is not theirs any more."""
        ring, self.ring = self.ring, None
        assert ring is not None
        return ring

    def _overflow(self, error: SumOverflowError) -> WindowOverflowError:
        """Return the error of an overflow in a row of the table."""
        (slot,), (wid,) = self.table.owner(np.array([error.at]))
        (start,), (end,) = self._grid.extents.extent(np.array([wid]))
        return WindowOverflowError(error.column, slot, start, end)

    def take(self, slots: Integers, low: Integers, stop: Integers) -> WindowStates:
        """Take out windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]``, each named once."""
        in_panes = None
        if self.ring is not None:
            in_panes = pane_windows.take(self.ring, slots, low, stop, self._grid.number)
        rows = self.table.find(slots, low, stop)
        found = self.with_table(in_panes, rows)
        self.table.remove(rows)
        return found

    def with_table(self, in_panes: WindowStates | None, rows: Integers) -> WindowStates:
        """Return windows that panes have together with those in ``rows`` of the table."""
        if in_panes is not None and not rows.size:
            return in_panes
        of, wids = self.table.owner(rows)
        ends, states = self._grid.extents.extent(wids)[1], self.table.states.take(rows)
        held = WindowStates(of, ends, states, self._grid.number)
        return held if in_panes is None else self.united([in_panes, held])

    def united(self, found: Sequence[WindowStates]) -> WindowStates:
        """Return windows in order, the states of those that are there twice combined."""
        if any(some.starts is not None for some in found):
            found = [some._replace(starts=self._starts(some)) for some in found]
        together = WindowStates.ordered(found)
        numbers = np.broadcast_to(together.number, together.slots.shape)
        kept = begins_of(together.ends, numbers, together.slots)
        if kept.size == numbers.size:
            return together
        once = together.take(kept)
        try:
            states = self.table.states.reduced(together.states, kept)
        except SumOverflowError as error:
            start, end = self._starts(once)[error.at], once.ends[error.at]
            raise WindowOverflowError(error.column, once.slots[error.at], start, end) from None
        return once._replace(states=states, in_order=True)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._grid.spans.keep(kept)
        self.table.rename(slots)
        if self.ring is not None:
            self.ring.rename(slots, len(self._grid.spans))

    def save(self) -> dict[str, Any]:
        panes = None if self.ring is None else self.ring.save()
        return {"partials": self.table.save(), "panes": panes, "grid": self._grid.save()}

    def load(self, saved: Saved, groups: int) -> None:
        self.table.load(saved.part("partials"), groups)
        if self.ring is not None:
            self.ring.clear() if saved["panes"] is None else self.ring.load(saved.part("panes"))
        self._grid.load(saved.part("grid"), groups, 0 if self.ring is None else self.ring.groups)
