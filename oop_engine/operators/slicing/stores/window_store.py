"""The window store: WID, a partial aggregate for each open (group, window) of one grid, or Paned-WID, by panes.

Where few panes of the ring's rectangle are used, or most tuples do not fit it, groups are sparse: from then on those of
few tuples have these kept (AdaptWID, ``adaptive_groups.py``), if that is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.partials import ALIVE, LOW, USED
from oop_engine.operators.slicing.checks import AT_ONCE
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.panes import pane_windows
from oop_engine.operators.slicing.panes.open_spans import OpenGrid
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.partials import with_empty
from oop_engine.operators.slicing.stores.adaptive_groups import AdaptiveGroups
from oop_engine.operators.slicing.stores.grid_cells import GridCells
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob

__all__ = ["WindowStore"]

_FLOOR = knob(__name__, "_FLOOR", 1 << 23)  # bytes: a rectangle so small may be as empty as it likes
_SPARSE = knob(__name__, "_SPARSE", 16)  # cells of the rectangle for each one in use: then groups are sparse
_FEW = knob(__name__, "_FEW", 500)
"""Cells; fewer are sooner looked for group by group, unless all is added up."""
_MANY = knob(__name__, "_MANY", 1000)  # tuples; fewer that do not fit tell nothing


class WindowStore:
    """Open windows of ``extents``, the definition ``number``; ``panes``: by panes, as far as they fit.

    ``every``: windows without a tuple are results too.  ``still``: windows can be read at any time.  ``ids`` returns
    the first and last window of each tuple of a page; None: they follow from times.  ``adapts`` makes what keeps the
    tuples of sparse groups: at once, or of ``panes`` when groups turn out to be sparse.
    """

    def __init__(
        self, number: int, extents: Extents, parts: Sequence[Part], stamp: Stamp,
        *, panes: bool, every: bool = False, still: bool = False,
        ids: Callable[[Page], tuple[Integers, Integers]] | None = None,
        adapts: Callable[[OpenGrid, GridCells], AdaptiveGroups] | None = None,
    ) -> None:  # fmt: skip
        self.grid = OpenGrid(number, extents, stamp, every=every)
        self.cells = GridCells(
            self.grid, parts, PaneRing(parts, extents, still=still, alone=True) if panes else None
        )
        self._parts, self._ids, self._adapts = parts, ids, adapts
        self.adaptive: AdaptiveGroups | None = None
        self._seen = self._refused = 0  # tuples since the last bound, and those that did not fit the ring
        self._most = 0  # panes in use at the last bound
        self.living = self.grid.spans.living
        self.least_stamp, self.least_stamps = self.grid.least_stamp, self.grid.least_stamps
        self.state = self.cells.state
        if adapts is not None and not panes:
            self._begin(adapts)

    def _begin(self, adapts: Callable[[OpenGrid, GridCells], AdaptiveGroups]) -> AdaptiveGroups:
        """Keep the tuples of sparse groups from now on."""
        self.adaptive = adapts(self.grid, self.cells)
        self.state = self.adaptive.state
        return self.adaptive

    @property
    def alive(self) -> int:
        return int(self.grid.spans.counts[ALIVE])

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        spans, ring = self.grid.spans, self.cells.ring
        if groups > len(spans.of):
            spans.reserve(groups)
        if self.adaptive is not None:
            self.adaptive.add(page, times, slots)
        elif ring is None or not times.size:
            self.cells.add_to_table(page, times, slots, *self._wids(page, times))
        else:
            left = ring.add(page, times, slots, spans)
            self._seen += slots.size
            if left.size:
                self._refused += left.size
                self.cells.add_left(ring, page, times, slots, left)

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        first, last = self._wids(page, times)
        first = np.maximum(first, self.grid.extents.closed_by(bounds))
        self.cells.add_to_table(page, times, slots, first, last)

    def _wids(self, page: Page, times: Integers) -> tuple[Integers, Integers]:
        return self.grid.extents.wids(times) if self._ids is None else self._ids(page)

    def close(self, slots: Integers | None, bounds: Integers | int) -> Iterable[WindowStates]:
        if self.adaptive is None and self._seen and self._adapts is not None and self.cells.ring is not None:
            self._consider(self._adapts, self.cells.ring)
        cuts, ring = self.grid.extents.closed_by(bounds), self.cells.ring
        if self.adaptive is not None:
            self.adaptive.before(None if slots is not None else int(bounds))
        if slots is None:
            cut, (_, alive, lowest) = int(cuts), self.grid.spans.counts.tolist()
            if lowest >= cut:
                return []
            if (swept := self._swept(lowest)) is not None:
                parts = pane_windows.take_all(swept, lowest, cut, alive, self.grid.number)
                if parts is not None:
                    self.grid.spans.reopen_all(cut)
                    return parts
        some, low, stop, after = self.grid.closing(slots, cuts)
        if not some.size:
            return []
        if self.adaptive is not None:
            found = self.adaptive.take(some, low, stop)
        elif ring is None or self.grid.spans.counts[USED]:
            found = self.cells.take(some, low, stop)
        else:
            found = pane_windows.take(ring, some, low, stop, self.grid.number)
        if self.grid.every:
            found = with_empty(self.grid, self._parts, found, some, low, stop)
        self.grid.spans.reopen(some, after)
        return [found] if found.slots.size else []

    def _swept(self, lowest: int) -> PaneRing | None:
        """Return the panes if windows of all groups, from ``lowest`` on, may be put together by a sweep.

        So it is if all are there, with a tuple each, and no group has closed one of them before.
        """
        ring, grid = self.cells.ring, self.grid
        if ring is None or grid.every or grid.spans.counts[USED] or lowest < grid.alike_from:
            return None
        return ring if ring.used > _FEW or (ring.summed and ring.length == 1) else None

    def forget(self, slots: Integers | None, bounds: Integers | int) -> None:
        """Forget the windows that ``close`` would take out, unread: in a table, or in panes that are ``still``.

        ``close`` by these bounds, or later ones, follows: it finds nothing there, and notes the windows that are open.
        """
        cuts, ring, table = self.grid.extents.closed_by(bounds), self.cells.ring, self.cells.table
        if slots is None and ring is not None and not len(table):
            ring.forget_all(int(cuts))
            if ring.length > 1:  # panes are of windows that are still open, too
                self.grid.spans.reopen_all(int(cuts))
            return
        some, low, stop, after = self.grid.closing(slots, cuts)
        if ring is not None:
            ring.forget_windows(some, low, stop)
        if len(table):
            table.remove(table.find(some, low, stop))
        self.grid.spans.reopen(some, after)

    def between(self, slots: Integers | None, after: Integers | int, until: Integers | int) -> WindowStates:
        """Return the open windows of ``slots[i]`` that ``until[i]`` completes and ``after[i]`` does not.

        Each group is named once; None: all, by bounds that are numbers.  In panes that are ``still``, or a table.
        """
        grid, cells, ring = self.grid, self.cells, self.cells.ring
        low, stop = grid.extents.closed_by(after), grid.extents.closed_by(until)
        if slots is None:
            lowest = max(grid.spans.lowest, int(low))
            if (swept := self._swept(lowest)) is not None:
                read = pane_windows.read_all(swept, lowest, int(stop), self.alive, grid.number)
                if read is not None:
                    return read
            slots = grid.spans.below(int(stop))
        some, first, last = grid.spans.between(slots, low, stop)
        rows = cells.table.find(some, first, last)
        if ring is None:
            return cells.with_table(None, rows)
        return cells.with_table(pane_windows.take(ring, some, first, last, grid.number, forget=False), rows)

    def read(self, slots: Integers, wids: Integers) -> WindowStates:
        """Return the open windows ``wids[i]`` of ``slots[i]``, which are by number, then group, each once.

        In panes that are ``still``, or a table.
        """
        ring, table, spans = self.cells.ring, self.cells.table, self.grid.spans
        if ring is not None and ring.length > 1:  # panes of a window that has left may be there
            known = slots < len(spans)
            slots, wids = slots[known], wids[known]
            there = wids >= spans.of[slots, LOW]
            slots, wids = slots[there], wids[there]
        rows = table.find(slots, wids, wids + 1, each=True)
        each = None if ring is None else pane_windows.read_each(ring, slots, wids, self.grid.number)
        return self.cells.with_table(each, rows)

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        used, _, lowest = self.grid.spans.counts.tolist()
        cut = int(self.grid.extents.closed_by(bounds if slots is None else np.asarray(bounds).max()))
        if lowest >= cut:
            return 0.0
        ring, held = self.cells.ring, 0  # windows of a table are in memory already
        if self.adaptive is not None:
            return self.adaptive.most_until(slots, bounds, cut)
        if ring is not None:
            windows = min((ring.high + ring.length) // ring.step, cut) - max(ring.low // ring.step, lowest)
            held, used = max(windows, 0) * min(ring.groups, ring.used), used + ring.used
        if held <= AT_ONCE and not self.grid.every:
            return held or 1.0
        return self.grid.most_until(slots, bounds, cut, held, used)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self.cells.rename(kept, slots)
        if self.adaptive is not None:
            self.adaptive.rename(kept, slots)

    def copied(self, slots: Integers) -> None:
        return None

    def _consider(self, adapts: Callable[[OpenGrid, GridCells], AdaptiveGroups], ring: PaneRing) -> None:
        """Adapt, before windows close, if groups are sparse."""
        panes = ring.high - ring.low + 1 if ring.used else 0  # a ring without tuples is saved without panes
        area = panes * ring.groups  # there is room for more panes, at most as many again
        empty = area > max(_FLOOR // ring.cell_bytes, _SPARSE * max(self._most, ring.used))
        if empty or self._refused > max(_MANY, self._seen / 2):
            self._begin(adapts).take_over()
        self._most, self._seen, self._refused = ring.used, 0, 0

    def save(self) -> dict[str, Any]:
        looked = [self._most, self._seen, self._refused]
        adaptive = None if self.adaptive is None else self.adaptive.save()
        return {**self.cells.save(), "looked": looked, "adaptive": adaptive}

    def load(self, saved: Saved, groups: int) -> None:
        looked = saved.part("looked")
        self._most, self._seen, self._refused = (looked.integer(i, least=0) for i in range(3))
        if self._adapts is not None and self.adaptive is None and saved["adaptive"] is not None:
            self._begin(self._adapts)
            self.cells.give_up_ring()
        self.cells.load(saved, groups)
        if self.adaptive is not None:
            self.adaptive.load(saved.part("adaptive"), groups)
