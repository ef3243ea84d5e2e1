"""The pane store: panes of one grid as rows, for partial aggregates that come combined, or are lists.

First halves send partial aggregates (``Consolidate``), and the same pane of a group may come several times; states that
are lists do not fit cells that are added to.  So the rows of a page are put behind others, and ``runs.py`` merges panes
that are there twice.  A row is in the windows of its pane, and stays until the last of them has closed; windows are put
together as they close.  Paned-WID itself, of tuples, is in ``window_store.py`` and ``panes/pane_ring.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import SnapshotError
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.partials import LOW, NO_WINDOW
from oop_engine.operators.kernels.places import pane_rows
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.panes.open_spans import OpenSpans
from oop_engine.operators.slicing.runs.held_runs import HeldRuns
from oop_engine.operators.slicing.store import Reach, Store
from oop_engine.operators.slicing.runs.runs import EQUAL, Runs
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, looked_up
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob

__all__ = ["PaneStore"]

_FAR = 3 << 61  # windows; no extent of times up to 2**62 reaches so far
_PLACES = knob(__name__, "_PLACES", 4)  # of a group and pane, for each tuple: with more they are hashed
_FEW = knob(__name__, "_FEW", 4096)  # places that there may be in any case
_EXACT = 2**53  # times of all panes of a page together, up to which a float is exact


class PaneStore(WindowStore):
    """Open panes of ``extents``, the definition ``number``; ``every``: as in ``WindowStore``.

    ``given`` returns the states in the rows of a page; without it rows are tuples.
    """

    from_columns: ClassVar = False
    """Whether ``wids`` follow from columns of the page, not from times alone."""

    def __init__(
        self, number: int, extents: Extents, parts: Sequence[Part], stamp: Stamp,
        *, every: bool, given: Callable[[Page], list[Arrays]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(number, extents, parts, stamp, panes=False, every=every)
        self.by_spans, self._given = True, given
        self._rows = HeldRuns(
            parts, EQUAL, lambda first, _: (int(extents.starts(first)), int(extents.ends(first)))
        )

    def state(self) -> State:
        held = self._rows.nbytes + self._rows.index_bytes + self.opened.nbytes
        return State(0, len(self._rows), self.alive, held)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        if groups > len(self.opened.of):
            self.grow(groups)
        if self._given is None:
            panes = self._of_tuples(page, times, slots)
        else:
            first, last = self.extents.wids(times)
            panes = Runs(slots, first, last, self._given(page))
            if (last < first).any():  # of other grids
                panes = panes.take(last >= first)
        self._open(panes)
        self._rows.add(panes)

    def _open(self, panes: Runs) -> None:
        """Keep up to date which windows are open."""
        woken = self.opened.widen(panes.slots, panes.first, panes.last)
        lowest = int(panes.first.min(initial=self.partials.lowest))
        self.partials.note(self.alive + woken, lowest)

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        self.add(page, times, slots, len(self.opened.of))
        slots, of = np.unique(slots, return_index=True)
        self.close(slots, bounds[of])  # panes are of many windows: those that have left do so once more

    def most_until(self, bound: int, slots: Integers | None = None) -> float:
        if self.every or (slots is not None and self.few(slots)):
            return super().most_until(bound, slots)
        return self.open_until(float(len(self._rows) * self.extents.overlap), bound)

    def reach(self, slots: Integers | None, bounds: Integers | int) -> Reach:
        """Return between which times windows end that have panes: none lie in a stretch without tuples.  O(n log n)."""
        if self.every or not len(self._rows):
            return super().reach(slots, bounds)
        levels = self._rows.levels()
        last = np.concatenate([runs.last for runs in levels])
        opened = [
            np.maximum(runs.first, np.minimum(self.opened.of[runs.slots, LOW], runs.last)) for runs in levels
        ]
        low = np.concatenate(opened)  # the first windows that have not left
        order = np.argsort(low)
        first, behind = low[order], np.maximum.accumulate(last[order]) + 1
        apart = np.flatnonzero(first[1:] > behind[:-1])
        origin, slide = self.extents.origin, self.extents.slide
        first, behind = first[np.append(0, apart + 1)], behind[np.append(apart, -1)]
        return origin + first * slide, origin + behind * slide, np.full(first.size, self.alive / slide)

    def _of_tuples(self, page: Page, times: Integers, slots: Integers) -> Runs:
        if self.from_columns:
            first, last = self.wids(page, times)
            of_tuple, rows = row_codes([pa.array(slots), pa.array(first), pa.array(last)])
            first, last = first[rows], last[rows]
        else:
            of_tuple, rows = self._numbered(page, times, slots)
            first, last = self.wids(page, times[rows])
        if not (inside := last >= first).all():
            some = inside[of_tuple]
            return self._of_tuples(page.filter(some), times[some], slots[some])
        return self._rows.of_page(page, times, (of_tuple, slots[rows], first, last))

    def _numbered(self, page: Page, times: Integers, slots: Integers) -> tuple[Integers, Integers]:
        """Return the row of each tuple, by its group and pane, and the first tuple of each row."""
        extents, groups = self.extents, len(self.opened.of)
        origin, slide, step = extents.origin, extents.slide, 1 if extents.landmark else extents.panes[1]
        low, high = (int(times.min()), int(times.max())) if times.size else (FOREVER, NEVER)
        slides = (high - origin) // slide - (low - origin) // slide + 1
        if not 0 < slides * step * groups <= max(_PLACES * times.size, _FEW) or slides * slide > _EXACT:
            first, last = self.wids(page, times)  # a pane is known by both its ends
            return row_codes([pa.array(slots), pa.array(first + last)])
        extents.check(low, high)
        free = np.full((slides * step, groups), -1, np.int32)
        rows, first = np.empty((2, times.size), np.int64)
        grid = low - (low - origin) % slide, slide, step, slide - (extents.range or 0) % slide
        many = pane_rows(fixed(slots), fixed(times), grid, free, rows, first)
        return rows, first[:many].copy()

    def take(self, slots: Integers, low: Integers, stop: Integers) -> WindowStates:
        return self._windows(self._within(slots, low, stop))

    def _close_every(
        self, slots: Integers, low: Integers, stop: Integers, over: Integers
    ) -> list[WindowStates]:
        some = np.flatnonzero(low < stop)
        nothing = self._rows.without_values(slots[some], low[some], stop[some] - 1)
        found = self._windows(self._within(slots, low, stop).joined(nothing))
        self.reopen(slots, np.where(np.isin(slots, over), NO_WINDOW, stop))
        return [found] if found.slots.size else []

    def _within(self, slots: Integers, low: Integers, stop: Integers) -> Runs:
        """Return the rows in windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]``, cut to these."""
        levels = [self._rows.of(slots)[0]] if self.few(slots) else self._rows.levels()
        found = [
            _cut(runs, *(looked_up(runs.slots, slots, *side) for side in ((low, NO_WINDOW), (stop, NEVER))))
            for runs in levels
        ]
        return found[0].joined(*found[1:])

    def _windows(self, closing: Runs) -> WindowStates:
        """Return the windows that rows are in."""
        ends, found = self.extents.ends, self._rows.windows(closing)
        return WindowStates.ordered(
            [WindowStates(o.slots, ends(o.first), o.states, self.number) for o in found]
        )

    def reopen(self, slots: Integers, low: Integers) -> None:
        super().reopen(slots, low)
        if self.few(slots):
            runs, rows = self._rows.of(slots)
            over = runs.last < self.opened.of[runs.slots, LOW]
            self._rows.drop(runs.take(over), rows[over])
            return
        kept = [runs.last >= self.opened.of[runs.slots, LOW] for runs in self._rows.levels()]
        pairs = zip(self._rows.levels(), kept, strict=True)
        self._rows.put(*(runs if alive.all() else runs.take(alive) for runs, alive in pairs))

    def rename(self, kept: Integers, slots: Integers) -> None:
        super().rename(kept, slots)
        self._rows.rename(slots)

    def copied(self, slots: Integers) -> PaneStore:
        other = PaneStore(
            self.number, self.extents, self.parts, self.stamps.stamp, every=self.every, given=self._given
        )
        self._copy_to(other, slots)
        return other

    def _copy_to(self, other: PaneStore, slots: Integers) -> None:
        """Let an empty store have the panes of some groups, as those of the groups 0, 1, ..."""
        other.opened = self.opened.kept(slots)
        other.partials.note(other.opened.alive, other.opened.lowest)
        runs, _ = self._rows.of(slots)
        other._rows.add(runs._replace(slots=slots.searchsorted(runs.slots)))

    def save(self) -> dict[str, Any]:
        return {"spans": self.opened.save(), "panes": self._rows.save()}

    def load(self, saved: Saved, groups: int) -> Store:
        self.opened = OpenSpans.loaded(saved.part("spans"), groups, 0)
        self.partials.note(self.opened.alive, self.opened.lowest)
        self._rows.load(saved.parts("panes"), groups, self._check)
        return self

    def _check(self, panes: Runs) -> None:
        most, widths = self.extents.overlap, panes.last - panes.first + 1
        near = panes.rows == 0 or max(-int(panes.first.min()), int(panes.last.max())) < _FAR
        if not near or (panes.rows and not (widths.min() >= 0 and widths.max() <= most)):
            msg = f"a pane must be in at most {most} windows, {_FAR} at most; got {widths.min()} to {widths.max()}"
            raise SnapshotError(msg)


def _cut(runs: Runs, low: Integers, stop: Integers) -> Runs:
    """Return rows as far as they are in windows ``low[i]`` to ``stop[i]`` (exclusive)."""
    first, behind = np.maximum(runs.first, low), np.minimum(runs.last + 1, stop)
    some = np.flatnonzero(first < behind)
    return runs.take(some)._replace(first=first[some], last=behind[some] - 1)
