"""The pane store: panes of one grid as rows, for partial aggregates that come combined, or are lists.

First halves send partial aggregates (``Consolidate``), and the same pane of a group may come several times; states that
are lists do not fit cells that are added to.  So the rows of a page are put behind others, and ``runs.py`` merges panes
that are there twice.  A row is in the windows of its pane, and stays until the last of them has closed; windows are put
together as they close.  Paned-WID itself, of tuples, is in ``window_store.py`` and ``panes/pane_ring.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.output import Stamp, Stamps
from oop_engine.operators.slicing.partials import NO_WINDOW
from oop_engine.operators.slicing.store import Reach, Store
from oop_engine.operators.slicing.stores.runs import EQUAL, HeldRuns, Runs
from oop_engine.operators.slicing.stores.window_store import no_spans
from oop_engine.operators.slicing.window_limits import check_gap
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.windows import Extents

__all__ = ["PaneStore"]

Integers = NDArray[np.int64]

_FAR = 1 << 61  # windows; no extent reaches so far


class PaneStore:
    """Open panes of ``extents``, the definition ``number``; ``every``: as in ``WindowStore``.

    ``given`` returns the states in the rows of a page; without it rows are tuples.
    """

    tuples = 0

    def __init__(
        self, number: int, extents: Extents, parts: Sequence[Part], stamp: Stamp,
        *, every: bool, given: Callable[[Page], list[Arrays]] | None = None,
    ) -> None:  # fmt: skip
        self._number, self._extents, self._every, self._given = number, extents, every, given
        self._stamps = Stamps([extents], stamp)
        self._spans = no_spans(0)  # (groups, 2)  lowest open, highest window
        self._panes = HeldRuns(parts, EQUAL, self._overflow)
        self._note()

    def _note(self) -> None:
        low = self._spans[:, 0]
        self._alive, self._lowest = int(np.count_nonzero(low != NO_WINDOW)), int(low.min(initial=NO_WINDOW))

    def __len__(self) -> int:
        return len(self._panes)

    @property
    def alive(self) -> int:
        return self._alive

    @property
    def nbytes(self) -> int:
        return self._panes.nbytes + self._spans.nbytes

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        first, last = self._extents.wids(times)
        if groups > len(self._spans):
            more = max(groups, 2 * len(self._spans)) - len(self._spans)
            self._spans = np.concatenate([self._spans, no_spans(more)])
        if self._given is None:
            panes = self._of_tuples(page, times, slots, first, last)
        else:
            panes = Runs(slots, first, last, self._given(page))
        np.minimum.at(self._spans[:, 0], panes.slots, panes.first)
        np.maximum.at(self._spans[:, 1], panes.slots, panes.last)
        self._note()
        self._panes.add(panes)

    def _of_tuples(
        self, page: Page, times: Integers, slots: Integers, first: Integers, last: Integers
    ) -> Runs:
        inside = last >= first
        if not inside.all():
            page, times, slots = page.filter(inside), times[inside], slots[inside]
            first, last = first[inside], last[inside]
        of_tuple, rows = row_codes(
            [pa.array(slots), pa.array(first + last)]
        )  # a pane is known by both its ends
        return self._panes.of_page(page, times, (of_tuple, slots[rows], first[rows], last[rows]))

    def due(self, bound: int) -> bool:
        return self._alive > 0 and int(self._extents.closed_by(bound)) > self._lowest

    def close(self, bound: int) -> Iterator[WindowStates]:
        cut = int(self._extents.closed_by(bound))
        yield from self._close(np.arange(len(self._spans)), np.full(len(self._spans), cut))

    def close_some(self, slots: Integers, bounds: Integers) -> Iterator[WindowStates]:
        yield from self._close(slots, self._extents.closed_by(bounds))

    def _close(self, slots: Integers, cuts: Integers) -> Iterator[WindowStates]:
        low, high = self._spans[slots].T
        some = (low < cuts) & (low != NO_WINDOW)
        if not some.any():
            return
        slots, cuts, low, high = slots[some], cuts[some], low[some], high[some]
        stop = np.minimum(cuts, high + 1)
        over = cuts == FOREVER if self._every else high < cuts
        kept = np.where(over, NO_WINDOW, np.maximum(low, stop) if self._every else cuts)
        closing = self._take(slots, stop, kept)
        if self._every:  # a row of no values for all windows of each group
            between = np.flatnonzero(low < stop)
            nothing = self._panes.without_values(slots[between], low[between], stop[between] - 1)
            closing = closing.joined(nothing)
        for windows in self._panes.windows(closing):
            if windows.rows:
                ends = self._extents.extent(windows.first)[1]
                yield WindowStates(windows.slots, ends, windows.states, self._number)

    def _take(self, slots: Integers, stop: Integers, kept: Integers) -> Runs:
        """Take what closes out of the panes, and note what is open then.

        Windows of group ``slots[i]`` below ``stop[i]`` close, and those below ``kept[i]`` are not asked for again.
        """
        low = self._spans[:, 0]
        cuts, keep = np.full(low.size, NEVER), low.copy()
        cuts[slots], keep[slots] = stop, kept
        closing, staying = [], []
        for runs in self._panes.levels():
            first = np.maximum(runs.first, low[runs.slots])
            behind = np.minimum(runs.last + 1, cuts[runs.slots])
            some = np.flatnonzero(first < behind)
            closing.append(runs.take(some)._replace(first=first[some], last=behind[some] - 1))
            alive = runs.last >= keep[runs.slots]
            staying.append(runs if alive.all() else runs.take(alive))
        self._panes.put(*staying)
        self._spans[slots, 0] = kept
        self._spans[slots[kept == NO_WINDOW], 1] = NEVER
        self._note()
        return closing[0].joined(*closing[1:])

    def least_stamp(self, bound: int) -> int:
        if self._every and self._alive:
            bound = min(bound, self._extents.origin + self._lowest * self._extents.slide)
        return self._stamps.least(bound)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        if self._every:
            low = self._spans[slots, 0]
            some = np.flatnonzero(low != NO_WINDOW)
            bounds = bounds.copy()
            np.minimum.at(bounds, of[some], self._extents.origin + low[some] * self._extents.slide)
        return self._stamps.of_each(bounds)

    def most_until(self, bound: int) -> float:
        highest = int(self._spans[:, 1].max(initial=NEVER)) + 1
        if not self._alive:
            return 0.0
        return max(float(min(int(self._extents.closed_by(bound)), highest)) - self._lowest, 0.0) * self._alive

    def reach(self, slots: Integers | None, bounds: Integers | int) -> Reach:
        if not self._alive:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        if self._every:
            slots = np.arange(len(self._spans)) if slots is None else slots
            low, high = self._spans[slots].T
            some = low != NO_WINDOW
            stop = np.minimum(self._extents.closed_by(bounds), np.where(some, high, 0) + 1)
            some &= low < stop
            check_gap(self._extents, slots[some], low[some], stop[some], len(self._panes))
        sides = np.array([self._lowest, int(self._spans[:, 1].max()) + 1])
        first, behind = self._extents.origin + sides[:, np.newaxis] * self._extents.slide
        return first, behind, np.array([self._alive / self._extents.slide])

    def living(self, groups: int) -> NDArray[np.bool_]:
        living: NDArray[np.bool_] = self._spans[:groups, 0] != NO_WINDOW
        return living

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._spans = self._spans[kept]
        self._panes.rename(slots)

    def successor(self) -> Store:
        return self

    def save(self) -> dict[str, Any]:
        alive = np.flatnonzero(self._spans[:, 0] != NO_WINDOW)
        return {"alive": alive, "spans": self._spans[alive], "panes": self._panes.save()}

    def load(self, saved: Saved, groups: int) -> Store:
        alive = saved.integers("alive", (None,), least=0, below=groups)
        self._spans = no_spans(groups)
        self._spans[alive] = saved.integers("spans", (alive.size, 2))
        self._note()
        self._panes.load(saved.parts("panes"), groups, self._check)
        return self

    def _check(self, panes: Runs) -> None:
        most, widths = self._extents.overlap, panes.last - panes.first + 1
        near = panes.rows == 0 or max(-int(panes.first.min()), int(panes.last.max())) < _FAR
        if not near or (panes.rows and not (widths.min() >= 0 and widths.max() <= most)):
            msg = f"a pane must be in at most {most} windows, {_FAR} at most; got {widths.min()} to {widths.max()}"
            raise SnapshotError(msg)

    def _overflow(self, column: str | None, slot: int, first: int, last: int) -> WindowOverflowError:
        (start,), (end,) = self._extents.extent(np.array([first]))
        return WindowOverflowError(column, slot, start, end)
