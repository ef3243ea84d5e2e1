"""The ring of panes: partial aggregates of (group, pane), in a rectangle of memory.

A pane is what lies between two neighbouring ends or starts of windows: a slide, or two
parts of one where range is no multiple of slide.  So each window is a whole number of panes,
and a tuple goes into one of them instead of into all its windows.
Tuples that do not fit the rectangle, of a time far away or of groups too sparse, are left to the
table of windows (``Partials``).

Source: Li, Maier, Tufte, Papadimos, Tucker, No Pane, No Gain, SIGMOD Record 2005;
panes of two lengths: Krishnamurthy, Wu, Franklin, On-the-fly sharing, SIGMOD 2006.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.pane_rows import free
from oop_engine.operators.kernels.panes import place, plan
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.panes.pane_rectangle import PaneRectangle
from oop_engine.operators.slicing.panes.pane_sweep import Sweep, is_dense
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.windows import Extents

__all__ = ["Panes"]

Integers = NDArray[np.int64]

_STEPS = 1 << 18  # of windows put together at a time: 6 MB


class _Scratch(threading.local):
    """Room for the cells of a page's tuples, one a thread: new memory is slow to write to for the first time."""

    def __init__(self) -> None:
        self._room = np.empty((2, 0), np.int64)

    def columns(self, rows: int) -> tuple[Integers, Integers]:
        """Return an array of ``rows`` integers, and one of one more; what is in them means nothing."""
        if self._room.shape[1] <= rows:
            self._room = np.empty((2, rows + 1), np.int64)
        return self._room[0, :rows], self._room[1, : rows + 1]


_SCRATCH = _Scratch()
_LEAST, _MOST = np.minimum.reduce, np.maximum.reduce  # without the Python of ``min`` and ``max``
_NONE = np.empty(0, np.int64)


class Panes:
    """Open panes of the groups, by slot; windows as ``extents`` has them (not landmark ones).

    ``rectangle``: where they are, to be read.
    """

    def __init__(self, parts: Sequence[Part], extents: Extents) -> None:
        assert extents.range is not None
        self._parts = parts
        self._extents = extents
        whole, self._rest = divmod(extents.range, extents.slide)
        step = 2 if self._rest else 1
        self.rectangle = PaneRectangle(parts, step, step * whole + step - 1)
        low, high = extents.safe
        # Panes of times for which extents fit 64 bits, for sure; a time that wraps lies outside of them.
        self._sure = (
            step * ((low - extents.origin) // extents.slide + 1),
            step * ((high - extents.origin) // extents.slide),
        )

    def __len__(self) -> int:
        return self.rectangle.used

    @property
    def nbytes(self) -> int:
        """Bytes of the rectangle, its cells in use or not."""
        return self.rectangle.nbytes

    def add(
        self, page: Page, times: Integers, slots: Integers, spans: Integers, counts: Integers
    ) -> Integers:
        """Add tuples to their panes; return the rows of those that do not fit.

        ``spans`` int64 (groups, 2) and ``counts`` are as in ``Partials``, and kept up to date.
        O(tuples), in kernels.  Raises ``ContractError`` if a time is too large for extents.
        """
        panes = self._panes_of(times)
        step, length = self.rectangle.step, self.rectangle.length
        if length < step and not (inside := (panes + length) // step > panes // step).all():
            rows = np.flatnonzero(inside)
            if not rows.size:
                return rows
            part = page.take(rows), times[rows], slots[rows]
            return rows[self.add(*part, spans, counts)]
        of = self.rectangle
        low, high = int(_LEAST(panes)), int(_MOST(panes))
        least, behind = self._sure
        if not least <= low <= high < behind:
            self._extents.check(int(times.min()), int(times.max()))
        if not (of.used and of.low <= low and high <= of.high and len(spans) <= of.groups):
            of.admit(panes, (low, high), len(spans), (int(counts[2]) + 1) * of.step - of.length)
        of.states.expect(page)
        cells, fresh = _SCRATCH.columns(panes.size)
        slots = slots.view()
        slots.flags.writeable = False  # one signature of the kernel, wherever they come from
        new, out = place(of.geometry, of.states.tuples, spans, counts, of.turns, slots, panes, cells, fresh)
        of.used += new
        if not out:
            self._update(page, times, cells)
            return _NONE
        inside = cells >= 0
        self._update(page.filter(inside), times[inside], cells[inside])
        return np.flatnonzero(~inside)

    def take(self, slots: Integers, low: Integers, stop: Integers) -> WindowStates:
        """Put windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]`` together, and forget them.

        A group's windows are taken in order.  O(panes passed), in kernels; or by a sweep over all groups,
        where that is less.
        """
        of = self.rectangle
        begin, behind, _ = self.reach
        first, stop = np.maximum(low, begin), np.minimum(stop, behind)
        some = (first < stop) & (slots < of.groups)
        if not some.all():
            slots, first, stop = slots[some], first[some], stop[some]
        if not slots.size:
            return WindowStates(slots, first, States(self._parts).columns)
        windows, closing = int(stop.max() - first.min()), int((stop - first).sum())
        if is_dense(of.geometry, windows, closing, self._parts) and not (of.turns[0] > of.low).any():
            return self._sweep(slots, first, stop)
        return WindowStates.ordered(list(self._closing(slots, first, stop)))

    @property
    def reach(self) -> tuple[int, int, int]:
        """The first window that a pane is in, the first one behind all, and of how many groups there are panes."""
        of = self.rectangle
        return of.low // of.step, (of.high + of.length) // of.step, min(of.groups, of.used)

    def forget(self, needed: Integers) -> None:
        """Forget the panes of each group ``g`` below ``needed[g]``, int64 (groups,).  O(panes x groups).

        As after a sweep, their states stay until the whole pane is emptied.
        """
        of = self.rectangle
        if of.used and (panes := min(int(needed.max()), of.high + 1) - of.low) > 0:
            tuples = of.states.tuples.reshape(-1, of.groups)[: of.room]
            of.used -= int(free(tuples, needed, of.low, panes))
            of.swept = True

    def clear(self) -> None:
        """Forget everything."""
        self.rectangle.clear()

    def rename(self, slots: Integers, groups: int) -> None:
        """Give group ``g`` the slot ``slots[g]``, -1 for none; there are ``groups`` then."""
        self.rectangle.rename(slots, groups)

    def save(self) -> dict[str, Any]:
        """Return the panes for a snapshot."""
        return self.rectangle.save()

    def load(self, saved: Saved) -> None:
        """Restore a snapshot."""
        self.rectangle.load(saved)

    def _panes_of(self, times: Integers) -> Integers:
        origin, slide = self._extents.origin, self._extents.slide
        offsets = times - origin if origin else times
        panes: Integers = offsets // slide
        return 2 * panes + (offsets - panes * slide >= slide - self._rest) if self._rest else panes

    def _update(self, page: Page, times: Integers, cells: Integers) -> None:
        states = self.rectangle.states
        try:
            for of, state in zip(states.accumulators, states.columns, strict=True):
                if state is not None:
                    of.add(state, cells, of.prepare(page, times))
        except SumOverflowError as error:
            pane, slot = self.rectangle.place_of(error.at)
            raise self._overflow(error.column, slot, pane // self.rectangle.step) from None

    def _closing(self, slots: Integers, first: Integers, stop: Integers) -> Iterator[WindowStates]:
        """Yield closed windows in blocks of groups."""
        of, widest = self.rectangle, int((stop - first).max())
        room = max(_STEPS, widest + 2 * min(of.high - of.low + 1, (widest - 1) * of.step + of.length))
        steps, results = np.empty((3, room), np.int64), np.empty((2, room), np.int64)
        freed, begin = np.empty(room, np.int64), 0
        while begin < slots.size:
            begin, made, found, gone = plan(
                of.geometry, of.states.tuples, of.turns, slots, first, stop, begin, steps, results, freed
            )
            done = results[:, :found].copy()
            states = self._fold(steps[:, :made], done)
            of.used -= gone
            of.states.reset(freed[:gone])
            yield WindowStates(done[0], self._extents.extent(done[1])[1], states)

    def _sweep(self, slots: Integers, first: Integers, stop: Integers) -> WindowStates:
        """Close windows where no pane is in a front, so that all hold what came into them."""
        of = self.rectangle
        sweep = Sweep(of.states, of.geometry, slots, first, stop)
        try:
            of_windows, wids, states = sweep.closed()
        except SumOverflowError as error:
            raise self._overflow(error.column, error.group, error.at) from None
        of.used -= sweep.free()
        of.swept = True
        return WindowStates(of_windows, self._extents.extent(wids)[1], states, in_order=True)

    def _fold(self, steps: Integers, results: Integers) -> list[Arrays]:
        try:
            return self.rectangle.states.folded(steps, results.shape[1])
        except SumOverflowError as error:
            following = steps[0, error.at :]
            slot, wid = results[:, ~following[following < 0][0]]  # the window for which the step was taken
            raise self._overflow(error.column, slot, wid) from None

    def _overflow(self, column: str | None, slot: int, wid: int) -> WindowOverflowError:
        (start,), (end,) = self._extents.extent(np.array([wid]))
        return WindowOverflowError(column, slot, start, end)
