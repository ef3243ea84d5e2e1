"""The ring of panes: partial aggregates of (group, pane), in a rectangle of memory.

A pane is what lies between two neighbouring ends or starts of windows: a slide, or two
parts of one where range is no multiple of slide.  So each window is a whole number of panes,
and a tuple goes into one of them instead of into all its windows.
The ring has room for some panes in a row, from the lowest open one on, and for some
groups.  It grows as long as enough of the rectangle is in use; tuples that do not fit, of
a time far away or of groups too sparse, are left to the table of windows (``Partials``).

Source: Li, Maier, Tufte, Papadimos, Tucker, No Pane, No Gain, SIGMOD Record 2005;
panes of two lengths: Krishnamurthy, Wu, Franklin, On-the-fly sharing, SIGMOD 2006.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.page import Page
from oop_engine.punctuation import NEVER
from operators.aggregates import Arrays, Part
from operators.closed import Closed, joined, narrow
from operators.components import SumOverflowError
from operators.kernels.pane_rows import free
from operators.kernels.panes import Geometry, place, plan, used
from operators.pane_folds import fold
from operators.pane_states import PaneStates
from operators.pane_sweep import Sweep, SweepOverflowError, is_dense
from operators.partials import States
from operators.windows import Extents

__all__ = ["PaneSumOverflowError", "Panes"]

Integers = NDArray[np.int64]

_FLOOR = 1 << 20  # cells: a rectangle so small may be as empty as it likes
_SMALL = 1 << 16  # cells: a rectangle so small is not worth making smaller
_SPARSE = 4  # cells there may be for each one in use and window a tuple is in
_WINDOWS = 16  # windows a tuple at most that count for that
_STEPS = 1 << 18  # of windows put together at a time: 6 MB
_TURNS = 4


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


class PaneSumOverflowError(Exception):
    """A checked sum of ``column`` would wrap in window ``wid`` of group ``slot``."""

    def __init__(self, column: str | None, slot: int, wid: int) -> None:
        super().__init__(column, slot, wid)
        self.column, self.slot, self.wid = column, slot, wid


class Panes:
    """Open panes of the groups, by slot; windows as ``extents`` has them (not landmark ones)."""

    def __init__(self, parts: Sequence[Part], extents: Extents) -> None:
        assert extents.range is not None
        self._parts = parts
        self._extents = extents
        whole, self._rest = divmod(extents.range, extents.slide)
        self._step = 2 if self._rest else 1
        self._length = self._step * whole + self._step - 1
        self._cells = 0
        self._low, self._high = 0, -1
        self._states = PaneStates(parts, 0)
        self._allot(0, 0)

    def __len__(self) -> int:
        return self._cells

    def nbytes(self, alive: int) -> int:
        """Bytes of the panes in use, and of the backs of ``alive`` groups."""
        return self._cells * self.cell_bytes + alive * self.back_bytes

    @property
    def cell_bytes(self) -> int:
        """Bytes of a group's pane."""
        return self._states.cell_bytes

    @property
    def back_bytes(self) -> int:
        """Bytes of a group beside its panes: its back, and where its stacks are."""
        return self._states.cell_bytes + 8 * _TURNS

    @property
    def step(self) -> int:
        """How many panes a slide has."""
        return self._step

    @property
    def area(self) -> int:
        """How many cells the rectangle has, used or not."""
        return self._room * self._groups

    def add(
        self, page: Page, times: Integers, slots: Integers, spans: Integers, counts: Integers
    ) -> Integers:
        """Add tuples to their panes; return the rows of those that do not fit.

        ``spans`` int64 (groups, 2) and ``counts`` are as in ``Partials``, and kept up to date.
        O(tuples), in kernels.  Raises ``ContractError`` if a time is too large for extents.
        """
        reach = np.array([times.min(), times.max()])
        self._extents.check(int(reach[0]), int(reach[1]))
        panes, reach = self._panes_of(times), self._panes_of(reach)
        if self._length < self._step:
            inside = (panes + self._length) // self._step > panes // self._step
            if not inside.all():
                rows = np.flatnonzero(inside)
                return rows[
                    self._add(page.take(rows), times[rows], panes[rows], reach, slots[rows], spans, counts)
                ]
        return self._add(page, times, panes, reach, slots, spans, counts)

    def _add(
        self, page: Page, times: Integers, panes: Integers, reach: Integers, slots: Integers, spans: Integers,
        counts: Integers,
    ) -> Integers:  # fmt: skip
        """Add tuples that are in windows, all within the panes ``reach``, lowest and highest."""
        if not panes.size:
            return panes
        if self._cells:  # what no open window needs is free
            self._low = max(self._low, (int(counts[2]) + 1) * self._step - self._length)
        kept = (self._low, self._high) if self._cells else None
        self._admit(panes, int(reach[0]), int(reach[1]), len(spans))
        self._clean(kept)
        self._states.expect(page)
        rows, fresh = _SCRATCH.columns(panes.size)
        new, out = place(
            self._geometry(), self._states.tuples, spans, counts, self._turns, slots, panes, rows, fresh
        )
        self._cells += new
        if not out:
            self._update(page, times, rows)
            return rows[:0]
        inside = rows >= 0
        self._update(page.filter(inside), times[inside], rows[inside])
        return np.flatnonzero(~inside)

    def take(self, slots: Integers, low: Integers, stop: Integers) -> Closed:
        """Put windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]`` together, and forget them.

        A group's windows are taken in order.  O(panes passed), in kernels; or by a sweep over all groups,
        where that is less.
        """
        first = np.maximum(low, self._low // self._step)
        stop = np.minimum(stop, (self._high + self._length) // self._step)
        some = (first < stop) & (slots < self._groups)
        if not some.all():
            slots, first, stop = slots[some], first[some], stop[some]
        if not slots.size:
            return Closed(np.empty(0, np.int64), np.empty(0, np.int64), States(self._parts).columns)
        windows, closing = int(stop.max() - first.min()), int((stop - first).sum())
        if (
            is_dense(self._geometry(), windows, closing, self._parts)
            and not (self._turns[0] > self._low).any()
        ):
            return self._sweep(slots, first, stop)
        return joined(list(self._closing(slots, first, stop)))

    @property
    def span(self) -> tuple[int, int]:
        """The lowest and the highest pane that may hold something."""
        return self._low, self._high

    @property
    def groups(self) -> int:
        """How many groups have room; slots from there on have no pane."""
        return self._groups

    @property
    def room(self) -> int:
        """How many panes have room, a power of two: pane ``p`` is row ``p & (room - 1)``, of ``groups`` cells."""
        return self._room

    @property
    def states(self) -> PaneStates:
        """What the cells hold."""
        return self._states

    def cells(self, panes: Integers, slots: Integers) -> Integers:
        """Return the cells of slots below ``groups`` in panes within ``span``."""
        found: Integers = (panes & (self._room - 1)) * self._groups + slots
        return found

    def forget(self, needed: Integers) -> None:
        """Forget the panes of each group ``g`` below ``needed[g]``, int64 (groups,).  O(panes x groups).

        As after a sweep, their states stay until the whole pane is emptied.
        """
        if self._cells and (panes := min(int(needed.max()), self._high + 1) - self._low) > 0:
            tuples = self._states.tuples.reshape(-1, self._groups)[: self._room]
            self._cells -= int(free(tuples, needed, self._low, panes))
            self._swept = True

    def clear(self) -> None:
        """Forget everything."""
        self._cells = 0
        self._allot(0, 0)

    def rename(self, slots: Integers, groups: int) -> None:
        """Give group ``g`` the slot ``slots[g]``, -1 for none; there are ``groups`` then."""
        if self._cells:
            self._move(self._room, groups, slots[: self._groups])
        else:
            self.clear()

    def save(self) -> dict[str, Any]:
        """Return the panes for a snapshot: which there are, a bit each, and their columns."""
        cells, panes, slots = self._used()
        held = np.zeros((self._high - self._low + 1 if self._cells else 0, self._groups), np.bool_)
        held[panes - self._low, slots] = True
        panes, slots = held.nonzero()
        cells = ((panes + self._low) & (self._room - 1)) * self._groups + slots
        backs = np.flatnonzero(self._turns[3])
        tuples, states = self._states.save(np.concatenate([cells, self._room * self._groups + backs]))
        turns = np.maximum(self._turns[:3], self._low) - self._low
        return {
            "low": self._low,
            "shape": list(held.shape),
            "held": np.packbits(held),
            "turns": narrow(turns),
            "backs": np.packbits(self._turns[3].astype(np.bool_)),
            "tuples": narrow(tuples),
            "states": [[narrow(column) for column in state] for state in states],
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take what ``save`` returned."""
        panes, groups = saved["shape"]
        held = np.unpackbits(saved["held"], count=panes * groups).reshape(panes, groups)
        self._low, self._high = saved["low"], saved["low"] + panes - 1
        self._states = PaneStates(self._parts, 0)
        self._allot(_power(panes), groups)
        turns = saved["turns"].astype(np.int64)
        self._turns[:3] = np.where(turns[0] > 0, turns + self._low, NEVER)  # 0: there is no front
        self._turns[3] = np.unpackbits(saved["backs"], count=groups)
        at, slots = held.nonzero()
        cells = ((at + self._low) & (self._room - 1)) * groups + slots
        self._cells = cells.size
        rows = np.concatenate([cells, self._room * groups + np.flatnonzero(self._turns[3])])
        self._states.load(rows, saved["tuples"], saved["states"])

    def _geometry(self) -> Geometry:
        return Geometry(self._step, self._length, self._low, self._high, self._room - 1, self._groups)

    def _allot(self, room: int, groups: int) -> None:
        """Make an empty rectangle; zeros that are not written to take no memory."""
        self._room, self._groups = room, groups
        self._turns = np.full((_TURNS, groups), NEVER)
        self._turns[3] = 0
        self._states = PaneStates(self._parts, (room + 1) * groups, self._states)
        self._swept = False

    def _clean(self, kept: tuple[int, int] | None) -> None:
        """Empty the panes that are new, which all are but those from ``kept[0]`` to ``kept[1]``.

        A sweep leaves the states of what it closed.  Writing row by row, right before tuples come to places in
        it, also brings the row into the cache: each place by itself would be waited for.
        """
        if self._swept:
            low, high = kept or (self._high + 1, self._high)
            self._empty(self._low, low)
            self._empty(high + 1, self._high + 1)

    def _empty(self, first: int, stop: int) -> None:
        """Empty the panes from ``first`` to ``stop`` (exclusive), at most all there is room for."""
        if first >= stop:
            return
        start = first & (self._room - 1)
        behind = min(start + stop - first, self._room)
        self._states.reset(slice(start * self._groups, behind * self._groups))
        if (rest := start + stop - first - behind) > 0:
            self._states.reset(slice(0, rest * self._groups))

    def _used(self) -> tuple[Integers, Integers, Integers]:
        """Return the cells in use, with their panes and slots."""
        cells, panes, slots = np.empty((3, self._cells), np.int64)
        found = used(self._geometry(), self._states.tuples, cells, panes, slots) if self._cells else 0
        return cells[:found], panes[:found], slots[:found]

    def _panes_of(self, times: Integers) -> Integers:
        origin, slide = self._extents.origin, self._extents.slide
        offsets = times - origin if origin else times
        panes: Integers = offsets // slide
        return 2 * panes + (offsets - panes * slide >= slide - self._rest) if self._rest else panes

    def _admit(self, panes: Integers, low: int, high: int, groups: int) -> None:
        """Make room for tuples of ``panes``, or else for most of them, as far as it is worth it."""
        highest = max(high, self._high if self._cells else low)
        if not self._grow(low, high, groups, panes.size):
            low, high = map(int, np.sort(panes)[[panes.size // 50, -1 - panes.size // 50]])
            if not self._grow(low, high, groups, panes.size):
                self._low = max(min(low, self._low), self._high - self._room + 1) if self._cells else low
        self._high = min(highest, self._low + self._room - 1)

    def _grow(self, low: int, high: int, groups: int, rows: int) -> bool:
        if self._cells:
            low, high = min(low, self._low), max(high, self._high)
        room, groups = high - low + 1, max(groups, self._groups)
        if room > self._room or groups > self._groups:
            windows = min(-(-self._length // self._step), _WINDOWS)
            if room * groups > max(_FLOOR, _SPARSE * windows * (self._cells + rows)):
                return False
            self._move(max(_power(room), self._room), groups, np.arange(self._groups))
        elif self._room > 8 * _power(room) and self._room * groups > _SMALL:
            self._move(_power(room), groups, np.arange(self._groups))
        self._low = low
        return True

    def _move(self, room: int, groups: int, slots: Integers) -> None:
        """Move everything to a rectangle of other measures; group ``g`` gets slot ``slots[g]``, -1: none."""
        cells, panes, of = self._used()
        states, turns, backs = self._states, self._turns, self._room * self._groups
        old = np.flatnonzero(slots >= 0)
        self._allot(room, groups)
        self._turns[:, slots[old]] = turns[:, old]
        moved = (panes & (room - 1)) * groups + slots[of]
        self._states.copy(moved, states, cells)
        self._states.copy(room * groups + slots[old], states, backs + old)

    def _update(self, page: Page, times: Integers, rows: Integers) -> None:
        try:
            self._states.add(page, times, rows)
        except SumOverflowError as error:
            at, slot = divmod(error.at, self._groups)
            pane = self._low + ((at - self._low) & (self._room - 1))
            raise PaneSumOverflowError(error.column, slot, pane // self._step) from None

    def _closing(self, slots: Integers, first: Integers, stop: Integers) -> Iterator[Closed]:
        """Yield closed windows in blocks of groups."""
        widest = int((stop - first).max())
        room = max(
            _STEPS, widest + 2 * min(self._high - self._low + 1, (widest - 1) * self._step + self._length)
        )
        steps, results = np.empty((3, room), np.int64), np.empty((2, room), np.int64)
        freed = np.empty(room, np.int64)
        begin = 0
        while begin < slots.size:
            begin, used, found, gone = plan(
                self._geometry(),
                self._states.tuples,
                self._turns,
                slots,
                first,
                stop,
                begin,
                steps,
                results,
                freed,
            )
            done = results[:, :found].copy()
            states = self._fold(steps[:, :used], done)
            self._cells -= gone
            self._states.reset(freed[:gone])
            yield Closed(done[0], done[1], states)

    def _sweep(self, slots: Integers, first: Integers, stop: Integers) -> Closed:
        """Close windows where no pane is in a front, so that all hold what came into them."""
        sweep = Sweep(self._states, self._geometry(), slots, first, stop)
        try:
            closed = sweep.closed()
        except SweepOverflowError as error:
            raise PaneSumOverflowError(error.column, error.at, error.wid) from None
        self._cells -= sweep.free()
        self._swept = True
        return closed

    def _fold(self, steps: Integers, results: Integers) -> list[Arrays]:
        try:
            return fold(self._states, steps, results.shape[1])
        except SumOverflowError as error:
            following = steps[0, error.at :]
            slot, wid = results[:, ~following[following < 0][0]]  # the window for which the step was taken
            raise PaneSumOverflowError(error.column, int(slot), int(wid)) from None


def _power(size: int) -> int:
    """Return the least power of two that is not less, 0 for 0."""
    return 1 << (size - 1).bit_length() if size else 0
