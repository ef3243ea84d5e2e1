"""The pane store: panes of one grid as rows, for partial aggregates that come combined, or are lists.

Landmark windows are kept so, too, a row of the window that tuples came in (``landmark_windows.py``).

First halves send partial aggregates (``Consolidate``), and the same pane of a group may come several times; states that
are lists do not fit cells that are added to.  So the rows of a page are put behind others, and ``runs.py`` merges panes
that are there twice.  A row is in the windows of its pane, and stays until the last of them has closed; windows are put
together as they close.  Paned-WID itself, of tuples, is in ``window_store.py`` and ``panes/pane_ring.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import SnapshotError
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.partials import LOW, LOWEST, NO_WINDOW
from oop_engine.operators.kernels.places import pane_rows
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.checks import AT_ONCE
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.panes.open_spans import OpenGrid
from oop_engine.operators.slicing.partials import with_empty
from oop_engine.operators.slicing.runs.held_runs import HeldRuns
from oop_engine.operators.slicing.runs.runs import BY_GROUP, EQUAL, Runs
from oop_engine.operators.slicing.stores.landmark_windows import checked, closed
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, looked_up
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob

__all__ = ["PaneStore"]

_FAR = 3 << 61  # windows; no extent of times up to 2**62 reaches so far
_PLACES = knob(__name__, "_PLACES", 4)  # of a group and pane, for each tuple: with more they are hashed
_FEW = knob(__name__, "_FEW", 4096)  # places that there may be in any case
_EXACT = 2**53  # times of all panes of a page together, up to which a float is exact


class PaneStore:
    """Open panes of ``extents``, the definition ``number``; ``every``: windows without a tuple are results too.

    ``given`` returns the states in the rows of a page; without it rows are tuples.  ``ids`` returns the first and last
    window of each tuple of a page; None: they follow from times.
    """

    def __init__(
        self, number: int, extents: Extents, parts: Sequence[Part], stamp: Stamp,
        *, every: bool = False, given: Callable[[Page], list[Arrays]] | None = None,
        ids: Callable[[Page], tuple[Integers, Integers]] | None = None, grid: OpenGrid | None = None,
    ) -> None:  # fmt: skip
        self.grid = grid or OpenGrid(number, extents, stamp, every=every)
        self._given, self._ids = given, ids
        self._rows = HeldRuns(
            parts,
            BY_GROUP if extents.landmark else EQUAL,
            lambda first, _: (int(extents.starts(first)), int(extents.ends(first))),
        )
        self.living = self.grid.spans.living
        self.least_stamp, self.least_stamps = self.grid.least_stamp, self.grid.least_stamps

    @property
    def alive(self) -> int:
        return self.grid.spans.alive

    def state(self) -> State:
        return State(0, len(self._rows), self.alive, self._rows.nbytes + self.grid.spans.nbytes)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        self.grid.spans.reserve(groups)
        if self._given is None:
            panes = self._of_tuples(page, times, slots)
        else:
            first, last = self.grid.extents.wids(times)
            panes = Runs(slots, first, last, self._given(page))
            if (last < first).any():  # of other grids
                panes = panes.take(last >= first)
        self._add(panes)

    def _add(self, panes: Runs) -> None:
        self.grid.open(panes.slots, panes.first, panes.last)
        self._rows.add(panes)

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        first, last = self._wids(page, times)
        since = np.maximum(first, self.grid.extents.closed_by(bounds))
        if self.grid.extents.landmark:  # in all from there on, but of a group that has ended none can change
            last = np.where((last >= first) & (bounds < FOREVER), since, NEVER)
        rows = np.flatnonzero(last >= since)
        page, times, slots, first, last = page.take(rows), times[rows], slots[rows], since[rows], last[rows]
        of_tuple, rows = row_codes([pa.array(slots), pa.array(first), pa.array(last)])
        self._add(self._rows.of_page(page, times, (of_tuple, slots[rows], first[rows], last[rows])))

    def _wids(self, page: Page, times: Integers) -> tuple[Integers, Integers]:
        """Return the first and the last window that each tuple is kept for: of landmark windows the one it came in."""
        first, last = self.grid.extents.wids(times) if self._ids is None else self._ids(page)
        return (first, np.minimum(first, last)) if self.grid.extents.landmark else (first, last)

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        grid, held = self.grid, len(self._rows)
        cut = int(grid.extents.closed_by(bounds if slots is None else np.asarray(bounds).max()))
        if int(grid.spans.counts[LOWEST]) >= cut:
            return 0.0
        most = grid.most_until(slots, bounds, cut, float(held * grid.extents.overlap), held)
        if most <= AT_ONCE or grid.every:
            return most
        # Between panes of a group there may be a long stretch without one.
        spans = grid.spans.of
        sides = (
            (np.maximum(runs.first, spans[runs.slots, LOW]), runs.last + 1) for runs in self._rows.levels()
        )
        return min(most, float(sum(np.maximum(np.minimum(stop, cut) - low, 0).sum() for low, stop in sides)))

    def _of_tuples(self, page: Page, times: Integers, slots: Integers) -> Runs:
        if self._ids is not None:
            first, last = self._wids(page, times)
            of_tuple, rows = row_codes([pa.array(slots), pa.array(first), pa.array(last)])
            first, last = first[rows], last[rows]
        else:
            of_tuple, rows = self._numbered(page, times, slots)
            first, last = self._wids(page, times[rows])
        if not (inside := last >= first).all():
            some = inside[of_tuple]
            return self._of_tuples(page.filter(some), times[some], slots[some])
        return self._rows.of_page(page, times, (of_tuple, slots[rows], first, last))

    def _numbered(self, page: Page, times: Integers, slots: Integers) -> tuple[Integers, Integers]:
        """Return the row of each tuple, by its group and pane, and the first tuple of each row."""
        extents, groups = self.grid.extents, len(self.grid.spans)
        origin, slide, step = extents.origin, extents.slide, 1 if extents.landmark else extents.panes[1]
        low, high = page.reach_of(times) if times.size else (FOREVER, NEVER)
        slides = (high - origin) // slide - (low - origin) // slide + 1
        if not 0 < slides * step * groups <= max(_PLACES * times.size, _FEW) or slides * slide > _EXACT:
            first, last = self._wids(page, times)  # a pane is known by both its ends
            return row_codes([pa.array(slots), pa.array(first + last)])
        extents.check(low, high)
        free = np.full((slides * step, groups), -1, np.int32)
        rows, first = np.empty((2, times.size), np.int64)
        grid = low - (low - origin) % slide, slide, step, slide - (extents.range or 0) % slide
        many = pane_rows(fixed(slots), fixed(times), grid, free, rows, first)
        return rows, first[:many].copy()

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        cuts = self.grid.extents.closed_by(bounds)
        if self.grid.extents.landmark:
            return closed(self.grid, self._rows, slots, cuts)
        some, low, stop, after = self.grid.closing(slots, cuts)
        if not some.size:
            return []
        found = self._windows(self._within(some, low, stop))
        if self.grid.every:
            found = with_empty(self.grid, self._rows.parts, found, some, low, stop)
        self._reopen(some, after)
        return [found] if found.slots.size else []

    def _within(self, slots: Integers, low: Integers, stop: Integers) -> Runs:
        """Return the rows in windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]``, cut to these."""
        levels = [self._rows.of(slots)] if self.grid.spans.few(slots) else self._rows.levels()
        found = [
            _cut(runs, *(looked_up(runs.slots, slots, *side) for side in ((low, NO_WINDOW), (stop, NEVER))))
            for runs in levels
        ]
        return found[0].joined(*found[1:])

    def _windows(self, closing: Runs) -> WindowStates:
        """Return the windows that rows are in."""
        ends, found = self.grid.extents.ends, self._rows.windows(closing)
        return WindowStates.ordered(
            [WindowStates(o.slots, ends(o.first), o.states, self.grid.number) for o in found]
        )

    def _reopen(self, slots: Integers, low: Integers) -> None:
        """Note that the lowest open window of some groups is another now, and drop the rows that are in none."""
        self.grid.spans.reopen(slots, low)
        some, spans = slots if self.grid.spans.few(slots) else None, self.grid.spans.of
        self._rows.drop(some, lambda runs: runs.last < spans[runs.slots, LOW])

    def rename(self, kept: Integers, slots: Integers) -> None:
        self.grid.spans.keep(kept)
        self._rows.rename(slots)

    def copied(self, slots: Integers) -> PaneStore:
        grid, extents = self.grid.copied(slots), self.grid.extents
        other = PaneStore(
            grid.number, extents, self._rows.parts, grid.stamps.stamp, given=self._given, grid=grid
        )
        runs = self._rows.of(slots)
        other.put(runs._replace(slots=slots.searchsorted(runs.slots)))
        return other

    def put(self, panes: Runs) -> None:
        """Put rows of windows that are open."""
        self._rows.add(panes)

    def save(self) -> dict[str, Any]:
        return {"grid": self.grid.save(), "panes": self._rows.save()}

    def load(self, saved: Saved, groups: int) -> None:
        self.grid.load(saved.part("grid"), groups)
        self._rows.load(saved.parts("panes"), groups, checked if self.grid.extents.landmark else self._check)

    def _check(self, panes: Runs) -> None:
        most, widths = self.grid.extents.overlap, panes.last - panes.first + 1
        near = panes.size == 0 or max(-int(panes.first.min()), int(panes.last.max())) < _FAR
        if not near or (panes.size and not (widths.min() >= 0 and widths.max() <= most)):
            msg = f"a pane must be in at most {most} windows, {_FAR} at most; got {widths.min()} to {widths.max()}"
            raise SnapshotError(msg)


def _cut(runs: Runs, low: Integers, stop: Integers) -> Runs:
    """Return rows as far as they are in windows ``low[i]`` to ``stop[i]`` (exclusive)."""
    first, behind = np.maximum(runs.first, low), np.minimum(runs.last + 1, stop)
    some = np.flatnonzero(first < behind)
    return runs.take(some)._replace(first=first[some], last=behind[some] - 1)
