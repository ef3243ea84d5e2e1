"""The pane ring: partial aggregates of (group, pane), in a rectangle of memory; the panes of Paned-WID.

A pane is the time between two neighbouring ends or starts of windows: a slide, or two parts of one where range is no
multiple of slide.  So each window is a whole number of panes, and a tuple goes into one of them instead of into all its
windows.  Tuples that do not fit the rectangle, of a time far away or of groups too sparse, are left to a table.

A pane is a row of cells, a cell a group.  The rectangle grows as long as enough of it is in use, and rows are used
again: pane ``p`` is row ``p % room``.  Each cell has the number of its tuples, which also tells whether there
is anything in it.  As long as a column has had no null, a count of its values is that number, without room of its own.
A cell without tuples holds the state of no values; but below ``low``, above ``high``, or where no later window asks for
it, it may have any.

Cells are as narrow as they can be.  Numbers of tuples have 16 bits and integer sums 32, until one does not fit; then
they are moved to wider cells.  In *stacks* cells hold the states of several panes together, so these need wide ones,
and one cell more a group; there is room for stacks once a window has been put together by them.

Source: Li, Maier, Tufte, Papadimos, Tucker, No Pane, No Gain, SIGMOD Record 2005;
panes of two lengths: Krishnamurthy, Wu, Franklin, On-the-fly sharing, SIGMOD 2006.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import Later
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.pane_rows import empty, free
from oop_engine.operators.kernels.panes import BACK, TURN, Geometry, forget, used
from oop_engine.operators.kernels.partials import LOWEST
from oop_engine.operators.kernels.places import PAGE_PANES, place, place_sums, sum_times
from oop_engine.operators.slicing.accumulator import Accumulator, SumOverflowError, filled
from oop_engine.operators.slicing.accumulators import accumulator, is_compiled
from oop_engine.operators.slicing.panes.open_spans import OpenSpans
from oop_engine.operators.slicing.window_states import WindowOverflowError, as_slice, narrow
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob
from oop_engine.system.memory import given_back

__all__ = ["PaneRing"]

_FLOOR = knob(__name__, "_FLOOR", 1 << 23)  # bytes: a rectangle so small may be as empty as it likes
_SMALL = knob(__name__, "_SMALL", 1 << 16)  # cells: a rectangle so small is not worth making smaller
_SPARE = knob(
    __name__, "_SPARE", 16
)  # panes for each that there is room for beside them, where groups are many
_SPARSE = knob(__name__, "_SPARSE", 4)  # cells there may be for each one in use and window a tuple is in
_WINDOWS = knob(__name__, "_WINDOWS", 16)  # windows a tuple at most that count for that
_TURNS = 4
_FAR = 1 << 62  # panes; no extent reaches so far
_MOST_CELLS = 1 << 27  # of the room that a snapshot asks for
_MOST = 2**40  # tuples in a cell: less than can ever come
_SHORT = 2**14  # tuples in a cell that 16 bits can count, with those of the block that comes to it
_NARROW = 2**31 - 1  # tuples in all cells together that 32 bits can count
_EXACT = 2**53  # times of all panes together, from which on a float is not exact


class _Scratch(threading.local):
    """Room for the cells of a page's tuples, one a thread: new memory is slow to write to for the first time."""

    def __init__(self) -> None:
        self.room = np.empty(0, np.int64)


_SCRATCH = _Scratch()
_LEAST, _GREATEST = np.minimum.reduce, np.maximum.reduce  # without the Python of ``min`` and ``max``
_NONE = np.empty(0, np.int64)
_NOTHING = np.empty(0, np.int64)
_NOTHING.flags.writeable = False
_NO_CARRIES = np.empty(0, np.int32)
_UNTURNED = np.empty((_TURNS, 0), np.int64)
_Known = tuple[Integers, Integers, Integers, Integers]  # spans, least, counts, turns


class PaneRing:
    """Open panes of groups, by slot; windows as ``extents`` has them (not landmark ones).

    There is room for ``room`` panes, of which ``low`` to ``high`` may have tuples, and ``groups`` groups; a window has
    ``length``, a slide ``step`` panes.  ``used``: how many cells have tuples.  ``tuples`` integers (cells,), and
    for each part its ``columns``, (cells,), or None: ``tuples``.  ``accumulators``: how each part is kept.
    ``stacked``: there is room for stacks; then ``turns`` int64 (4, groups): where those of each group are
    (``operators/kernels/panes.py``), else (4, 0).  ``turned``: whether there may have been any.  ``swept``: cells
    without tuples may have any state.  ``compiled``: all in compiled loops. ``cell_bytes``: bytes of a cell.
    ``still``: panes are in no stack, so that windows can be read at any time.  ``exact``: in whatever order panes are
    put together, windows are the same to the last digit.  ``alone``: nobody reads cells but who
    puts windows together here, so they may be narrow, and ``room`` need not be a power of two.
    """

    def __init__(
        self, parts: Sequence[Part], extents: Extents, *, still: bool = False, alone: bool = False
    ) -> None:
        assert extents.range is not None
        self.extents, self.still = extents, still
        self._rest = extents.range % extents.slide
        self.length, self.step = extents.panes
        low, high = extents.safe
        # Panes of times for which extents fit 64 bits, for sure; a time that wraps lies outside of them.
        low, high = (int(extents.places(time - extents.origin)) for time in (low, high))
        self._sure = self.step * (low + 1), self.step * high
        self._even = type(extents).places is Extents.places  # slides are as long as each other
        self.accumulators: list[Accumulator] = list(map(accumulator, parts))
        self.compiled = is_compiled(parts)
        self.exact = self.length == 1 or all(of.invertible or of.exact for of in self.accumulators)
        self.low, self.high = 0, -1
        self.used, self.swept, self.turned = 0, False, False
        self._alone, self.stacked = alone, False
        self._kind: type[np.integer[Any]] = np.int16 if alone else np.int32  # of ``tuples``
        self._apart = [not of.counts for of in self.accumulators]  # whether a part has columns of its own
        self._narrow = [alone and of.by_times for of in self.accumulators]  # whether its sums have 32 bits
        self._most = 0  # tuples that may be there
        self.tuples: NDArray[Any]
        self._allot(0, 0)

    @property
    def back_bytes(self) -> int:
        """Bytes of a group beside its panes: its back, and where its stacks are."""
        return self.cell_bytes + 8 * _TURNS

    def add(self, page: Page, times: Integers, slots: Integers, spans: OpenSpans) -> Integers:
        """Add tuples to their panes; return the rows of those that do not fit.  ``spans`` are kept up to date.

        O(tuples), in kernels.  Raises ``ContractError`` if a time is too large for extents.
        """
        step, length, extents, groups = self.step, self.length, self.extents, len(spans.of)
        where, origin, slide = times, extents.origin, extents.slide
        if self._rest or not self._even:
            where, origin, slide = self._panes(times), 0, 1
        if length < step and not (inside := (where + length) // step > where // step).all():
            if not (rows := np.flatnonzero(inside)).size:
                return rows
            return rows[self.add(page.take(rows), times[rows], slots[rows], spans)]
        if where.size == 1:  # a tenth of the time
            low = high = (where.item() - origin) // slide
        else:
            reach = page.reach_of(where) if where is times else (int(_LEAST(where)), int(_GREATEST(where)))
            low, high = (reach[0] - origin) // slide, (reach[1] - origin) // slide
        if not self._sure[0] <= low <= high < self._sure[1]:
            extents.check(*page.reach_of(times))
        fits = self.used and self.low <= low and high <= self.high and groups <= self.groups
        if not fits:
            self._admit(
                where, origin, slide, (low, high), groups, (int(spans.counts[LOWEST]) + 1) * step - length
            )
            fits = self.low <= low and high <= self.high and groups <= self.groups
        for name in () if page.whole else self._shared:
            if page.columns.column(name).null_count:
                self._count_apart(name)
        self._most += page.rows
        if self._most > _NARROW and self._kind is np.int32:
            self._widen(page.rows)
        if (self.high - self.low + 1) * slide > _EXACT:
            where, origin, slide = (where - origin) // slide, 0, 1
        if _SCRATCH.room.size < times.size:
            _SCRATCH.room = np.empty(times.size, np.int64)
        slots, where = slots.view(), where.view()
        slots.flags.writeable = where.flags.writeable = False  # one signature, whoever made them
        known = spans.of, spans.least, spans.counts, self.turns if self.turned else _UNTURNED
        if fits and self.groups == 1 and self.summed:
            self._add_alone(page, times, (slots, where), known, (origin, slide), (low, high))
            return _NONE
        cells = _SCRATCH.room[: times.size] if self.own or not fits else _NONE
        left = _NONE
        if self._count(known, (origin + self.low * slide, slide), (slots, where, cells)):
            inside = cells >= 0
            left, page = np.flatnonzero(~inside), page.filter(inside)
            times, cells = times[inside], cells[inside]
        try:
            for i, (of, state) in enumerate(zip(self.accumulators, self.columns, strict=True)):
                if state is not None:
                    self._add_part(i, cells, of.prepare(page, times))
        except SumOverflowError as error:
            raise self._too_large(error.column, error.at) from None
        return left

    def _add_part(self, i: int, cells: Integers, inputs: Arrays) -> None:
        """Add tuples to the states of a part: to narrow ones as long as they fit."""
        of, state = self.accumulators[i], self.columns[i]
        assert state is not None
        if self._narrow[i]:
            done = of.add_narrow(state, cells, inputs)
            if done == cells.size:
                return
            cells, inputs = cells[done:], tuple(given[done:] for given in inputs)
            state = self._widened(i)
        of.add(state, cells, inputs)

    def as_kept(self, i: int) -> Accumulator:
        """Return how the first column of a part is read: sums of narrow cells fit 64 bits."""
        of = self.accumulators[i]
        return accumulator(Part("sum", of.part.column)) if self._narrow[i] else of

    def _widened(self, i: int, *, wide: bool = True) -> Arrays:
        """Return the states of a part, no more narrow if they must be ``wide``."""
        state = self.columns[i]
        assert state is not None
        if self._narrow[i] and wide:
            self._narrow[i] = False
            identity = self.accumulators[i].identity
            self.columns[i] = state = tuple(c.astype(of.dtype) for c, of in zip(state, identity, strict=True))
            self._measure()
        return state

    def _count(self, known: _Known, grid: tuple[int, int], placed: tuple[Integers, ...]) -> int:
        """Count tuples in their cells; return how many are left out."""
        limit = _SHORT if self._kind is np.int16 else _MOST
        new, out, done, over = place(self.geometry, grid, self.tuples, known, *placed, (0, limit))
        if over:  # the rest is counted in wider cells
            self._widen(placed[0].size - done)
            more, left_out, *_ = place(self.geometry, grid, self.tuples, known, *placed, (done, _MOST))
            new, out = new + more, out + left_out
        self.used += new
        return int(out)

    def _add_alone(
        self, page: Page, times: Integers, placed: tuple[Integers, Integers], known: _Known,
        grid: tuple[int, int], reach: tuple[int, int],
    ) -> None:  # fmt: skip
        """Add tuples of the one group, all in panes that there are: by their times, without the cell of each.

        ``grid``: where pane 0 begins, how long each is; ``reach``: the first and the last pane of the page.  The first
        sum is added up as tuples are counted.
        """
        (slots, where), (origin, slide), (low, high) = placed, grid, reach
        own = [
            (of.prepare(page, times)[0], *self._widened(i), _NO_CARRIES)[:3]
            for i, of in enumerate(self.accumulators)
            if self._apart[i]
        ]
        first = own[0] if own else (_NOTHING, _NONE, _NO_CARRIES)
        done = 0
        if high - low < PAGE_PANES:
            stretch = low, origin + low * slide, slide, high - low + 1
            limit = _SHORT if self._kind is np.int16 else _MOST
            new, done = place_sums(self.geometry, stretch, self.tuples, known, slots, where, *first, limit)
            self.used += new
        grid = origin + self.low * slide, slide
        if done < where.size:
            self._count(known, grid, (slots[done:], where[done:], _NONE))
        for given, sums, carries in own:
            if done < where.size:
                sum_times(self.geometry, *grid, where[done:], given[done:], sums, carries)
            done = 0  # the other ones have not been added yet

    def _too_large(self, column: str | None, cell: int) -> WindowOverflowError:
        """Return the error of a sum that does not fit in a cell."""
        at, slot = divmod(cell, self.groups)
        pane = self.low + (at - self.low) % self.room
        return self.overflow(column, slot, pane // self.step)

    def _panes(self, times: Integers) -> Integers:
        """Return the panes of times, where they are not all of one length."""
        extents = self.extents
        offsets = times - extents.origin if extents.origin else times
        panes: Integers = extents.places(offsets)
        if self._rest:
            panes = 2 * panes + (offsets - panes * extents.slide >= extents.slide - self._rest)
        return panes

    def overflow(self, column: str | None, slot: int, wid: int) -> WindowOverflowError:
        """Return the error of a sum that does not fit in a window of a group."""
        (start,), (end,) = self.extents.extent(np.array([wid]))
        return WindowOverflowError(column, slot, start, end)

    def cells(self, panes: Integers, slots: Integers) -> Integers:
        """Return the cells of slots below ``groups`` in panes from ``low`` to ``high``."""
        found: Integers = panes % self.room * self.groups + slots
        return found

    def forget(self, needed: Integers) -> None:
        """Forget the panes of each group ``g`` below ``needed[g]``, int64 (groups,).  O(panes x groups).

        Their states stay until the whole pane is emptied.
        """
        if self.used and (panes := min(int(needed.max()), self.high + 1) - self.low) > 0:
            self.used -= int(free(self.geometry, self.rows(self.tuples), needed, self.low, panes))
            self.swept = True

    def forget_some(self, slots: Integers, first: Integers, needed: Integers) -> None:
        """Forget the panes from ``first[i]`` to ``needed[i]`` (exclusive) of ``slots[i]``.  O(panes of these)."""
        if self.used:
            self.used -= int(forget(self.geometry, self.tuples, slots, first, needed))
            self.swept = True

    def forget_windows(self, slots: Integers, low: Integers, stop: Integers) -> None:
        """Forget the panes that windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]`` need, and no later one.

        Windows are of a ring that is ``still``.  O(panes of these).
        """
        if self.used:
            low, stop = ((side + 1) * self.step - self.length for side in (low, stop))
            self.used -= int(forget(self.geometry, self.tuples, slots, low, stop))
            self.swept = True

    def forget_all(self, cut: int) -> None:
        """Forget the panes of all groups that windows from ``cut`` on do not need, in a ring that is ``still``.

        O(panes x groups), in vector instructions.
        """
        needed = (cut + 1) * self.step - self.length
        if self.used and (panes := min(needed, self.high + 1) - self.low) > 0:
            self.used -= int(empty(self.geometry, self.rows(self.tuples), self.low, panes))
            self.swept = True

    def rows(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column (cells,) as rows (room, groups), a row a pane."""
        return column.reshape(self.room + self.stacked, self.groups)[: self.room]

    def stack(self) -> None:
        """Make room for stacks, in wide cells, if there is none yet.  O(cells)."""
        if self.stacked:
            return
        for i in range(len(self.columns)):
            if self._narrow[i]:
                self._widened(i)
        if self._kind is np.int16:
            self._widen(0)
        for i, (of, state) in enumerate(zip(self.accumulators, self.columns, strict=True)):
            if state is not None:
                nothing = (filled(self.groups, value) for value in of.identity)
                self.columns[i] = tuple(map(np.append, state, nothing))
        self.tuples = np.append(self.tuples, np.zeros(self.groups, self._kind))
        self.turns, self.stacked = _asleep(self.groups), True
        self._measure()

    def rename(self, slots: Integers, groups: int) -> None:
        if self.used:
            self._move(self.room, groups, slots[: self.groups])
        else:
            self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.turned = False
        self._allot(0, 0)

    def save(self) -> Later:
        """Return everything for a snapshot: which cells have tuples, a bit each, and their columns.

        Made of a copy, unless most of the rectangle is empty, which a copy would not be.
        """
        if self.tuples.nbytes > _FLOOR and self.tuples.size > _SPARSE * max(self.used, self.groups):
            found = self._saved()
            return Later(lambda: found)
        still = copy(self)
        still.tuples, still.turns = self.tuples.copy(), self.turns.copy()
        still.columns = [None if state is None else tuple(c.copy() for c in state) for state in self.columns]
        return Later(still._saved)

    def _saved(self) -> dict[str, Any]:
        cells, panes, slots = np.empty((3, self.used), np.int64)
        self._place()
        found = used(self.geometry, self.tuples, cells, panes, slots) if self.used else 0
        panes, slots = panes[:found], slots[:found]
        held = np.zeros((self.high - self.low + 1 if self.used else 0, self.groups), np.bool_)
        held[panes - self.low, slots] = True
        panes, slots = held.nonzero()
        turns = self.turns if self.stacked else _asleep(self.groups)
        backs = np.flatnonzero(turns[BACK])
        cells = np.concatenate([self.cells(panes + self.low, slots), self.room * self.groups + backs])
        return {
            "low": self.low,
            "room": self.room,  # which tuples fit, and so where results are cut into pages, is as before
            "shape": np.array(held.shape),
            "held": np.packbits(held),
            "turns": narrow(np.maximum(turns[:BACK], self.low) - self.low),
            "backs": np.packbits(turns[BACK].astype(np.bool_)),
            "tuples": narrow(self.tuples[cells]),
            "states": [[narrow(column[cells]) for column in state or ()] for state in self.columns],
        }

    def load(self, saved: Saved) -> None:
        panes, groups = saved.integers("shape", (2,), least=0, below=_FAR).tolist()
        held = np.flatnonzero(saved.bits("held", panes * groups))
        turns = saved.narrow("turns", (BACK, groups), least=0)  # of who is asleep: anything
        backs = saved.bits("backs", groups)
        tuples = saved.narrow("tuples", (held.size + int(np.count_nonzero(backs)),), least=0, below=_MOST)
        states = saved.parts("states", len(self.accumulators))
        self._most = int(tuples.sum(dtype=np.int64))
        awake = np.flatnonzero(turns[TURN]) if panes else _NONE  # groups whose front is above 0
        self.turned, self.stacked = bool(awake.size), bool(awake.size or backs.any())
        self._kind = np.int32 if self._most <= _NARROW else np.int64
        self._narrow = [self._alone and not self.stacked and of.by_times for of in self.accumulators]
        if self._alone and not self.stacked and int(tuples.max(initial=0)) <= _SHORT:
            self._kind = np.int16
        pairs = zip(self.accumulators, states, strict=True)
        self._apart = [bool(state) or not of.counts for of, state in pairs]
        self.low = saved.integer("low", least=-_FAR, most=_FAR)
        self.high = self.low + panes - 1
        rows = self._rows_for(panes, groups)
        room = saved.integer("room", least=0) if "room" in saved else 0
        self._allot(room if rows < room <= _MOST_CELLS // max(groups, 1) else rows, groups)
        if self.stacked:
            some = as_slice(awake)
            self.turns[:BACK, some] = np.minimum(turns[:, some].astype(np.int64), panes) + self.low
            self.turns[BACK] = backs
        self.used = held.size
        self._put(held, np.flatnonzero(backs), tuples, states)

    def _put(self, held: Integers, backs: Integers, tuples: NDArray[Any], states: Sequence[Saved]) -> None:
        """Write the cells ``held``, counted from the first pane on, and those of the backs."""
        cells, behind = self.room * self.groups, held.size
        if first := self.low % self.room * self.groups if self.room else 0:
            held = (held + first) % cells
        places = [(as_slice(held), slice(0, behind)), (cells + backs, slice(behind, None))]
        for where, of in places:
            self.tuples[where] = tuples[of]
        for i, (kept, state) in enumerate(zip(self.accumulators, states, strict=True)):
            read = list(map(narrow, kept.read(state, tuples.shape))) if self._apart[i] else []
            wide = any(
                of.itemsize > value.itemsize for of, value in zip(read, self._nothing(i), strict=False)
            )
            for column, values in zip(self._widened(i, wide=wide) if read else (), read, strict=True):
                for where, of in places:
                    column[where] = values[of]

    def _allot(self, room: int, groups: int) -> None:
        """Make an empty rectangle; zeros that are not written to take no memory."""
        self.room, self.groups, self.used, self.swept = room, groups, 0, False
        self.turns = _asleep(groups * self.stacked)
        self.tuples = given_back((room + self.stacked) * groups, self._kind(0))
        self.columns: list[Arrays | None] = [
            tuple(given_back(self.tuples.size, value) for value in self._nothing(i)) if apart else None
            for i, apart in enumerate(self._apart)
        ]
        self._measure()

    def _nothing(self, i: int) -> tuple[np.generic, ...]:
        """Return the state of no values of a part, in the types of its columns."""
        nothing = self.accumulators[i].identity
        return (np.int32(0), np.int8(0))[: len(nothing)] if self._narrow[i] else nothing

    def _measure(self) -> None:
        """Note the measures of the rectangle and of its columns, which have changed."""
        columns = [column for state in self.columns if state is not None for column in state]
        self.cell_bytes = sum(column.itemsize for column in (self.tuples, *columns))
        self.nbytes = self.tuples.size * self.cell_bytes + self.turns.nbytes
        shared = zip(self.accumulators, self.columns, strict=True)
        self._shared = [name for of, state in shared if state is None for name in of.part.columns]
        own = [of for of, state in zip(self.accumulators, self.columns, strict=True) if state is not None]
        self.own, self.summed = bool(own), all(of.by_times for of in own)
        self._place()

    def _place(self) -> None:
        """Note where the rectangle is now."""
        self.geometry = Geometry(
            self.step,
            self.length,
            self.low,
            self.high,
            self.room - 1,
            self.groups,
            self.low % (self.room or 1),
        )

    def _count_apart(self, name: str) -> None:
        """Count the values of a column apart from tuples, from its first null on."""
        for i, of in enumerate(self.accumulators):
            if not self._apart[i] and name in of.part.columns:
                self._apart[i], self.columns[i] = True, (self.tuples.astype(np.int64),)
        self._measure()

    def _widen(self, rows: int) -> None:
        """Count tuples in 32 bits, or in 64 if with ``rows`` more of them 32 may be too few."""
        self._most = int(self.tuples.sum(dtype=np.int64)) + rows
        kind: type[np.integer[Any]] = np.int64 if self._most > _NARROW else np.int32
        if kind is not self._kind:
            self._recount(kind)

    def _recount(self, kind: type[np.integer[Any]]) -> None:
        """Count tuples in more bits."""
        self._kind, self.tuples = kind, self.tuples.astype(kind)
        self._measure()

    def _admit(
        self, where: Integers, origin: int, slide: int, reach: tuple[int, int], groups: int, needed: int
    ) -> None:
        """Make room for tuples in panes, all within ``reach``, or else for most, as far as it is worth it.

        They are at ``where``, panes from ``origin`` on ``slide`` long.  There are ``groups`` groups; panes below
        ``needed`` no window needs any more.  O(cells that are new).
        """
        if self.used:
            self.low = max(self.low, needed)
        kept = (self.low, self.high) if self.used else None
        low, high = reach
        highest = max(high, self.high if self.used else low)
        if not self._grow(low, high, groups, where.size):
            most = np.sort(where)[[where.size // 50, -1 - where.size // 50]]
            low, high = ((int(end) - origin) // slide for end in most)
            if not self._grow(low, high, groups, where.size):
                self.low = max(min(low, self.low), self.high - self.room + 1) if self.used else low
        self.high = min(highest, self.low + self.room - 1)
        if self.swept:
            self._clean(kept)
        self._place()

    def _grow(self, low: int, high: int, groups: int, rows: int) -> bool:
        """Make room for panes ``low`` to ``high`` and those there are, if ``rows`` more tuples are worth it."""
        if self.used:
            low, high = min(low, self.low), max(high, self.high)
        room, groups = high - low + 1, max(groups, self.groups)
        if room > self.room or groups > self.groups:
            windows = min(-(-self.length // self.step), _WINDOWS)
            if room * groups > max(_FLOOR // self.cell_bytes, _SPARSE * windows * (self.used + rows)):
                return False
            rows = self._rows_for(room, groups)
            self._move(self.room if rows <= self.room <= rows + rows // 2 else rows, groups)
        elif self.room * self.groups > _SMALL and self.room > 8 * _power(room):
            self._move(self._rows_for(room, groups), groups)
        self.low = low
        return True

    def _rows_for(self, panes: int, groups: int) -> int:
        """Return how many rows so many panes get: few of many groups, for a row of these takes much memory."""
        room = _power(panes)
        return min(panes + panes // _SPARE, room) if self._alone and room * groups > _SMALL else room

    def _move(self, room: int, groups: int, slots: Integers | None = None) -> None:
        """Move everything to a rectangle of other measures; group ``g`` gets slot ``slots[g]``, -1: none, else its own.

        Panes are moved as a whole, so a cell that no later window asks for keeps the state it has.  O(cells).
        """
        some: slice | Integers = slice(self.groups)
        to = some
        if slots is not None:
            some = np.flatnonzero(slots >= 0)
            to = slots[some]
        before, turns = self.room, self.turns
        high = self.high if self.used else self.low - 1
        moves = list(_stretches(self.low, high, before, room))
        if self.stacked:
            moves.append((before, 1, room))  # the row of backs

        def moved(values: NDArray[Any], nothing: np.generic) -> NDArray[Any]:
            column = given_back((room + self.stacked) * groups, values.dtype.type(nothing))
            rows = column.reshape(room + self.stacked, groups)
            there = values.reshape(before + self.stacked, self.groups)
            for first, length, row in moves:
                rows[row : row + length, to] = there[first : first + length, some]
            return column

        for i, (of, state) in enumerate(zip(self.accumulators, self.columns, strict=True)):
            if state is not None:  # one part is there twice at a time
                self.columns[i] = tuple(map(moved, state, of.identity))
        self.tuples = moved(self.tuples, self._kind(0))
        self.room, self.groups = room, groups
        self.turns = _asleep(groups * self.stacked)
        if self.stacked:
            self.turns[:, to] = turns[:, some]
        self._measure()
        if slots is not None:
            self.used = int(np.count_nonzero(self.rows(self.tuples)))

    def _clean(self, kept: tuple[int, int] | None) -> None:
        """Empty the panes that are new, which all are but those from ``kept[0]`` to ``kept[1]``.

        Writing row by row, right before tuples come to places in it, also brings the row into the cache: each
        place by itself would be waited for.
        """
        low, high = kept or (self.high + 1, self.high)
        for first, stop in ((self.low, low), (high + 1, self.high + 1)):
            while first < stop:  # to the end of the rectangle, then from its beginning
                start = first % self.room
                behind = min(start + stop - first, self.room)
                cells = slice(start * self.groups, behind * self.groups)
                self.tuples[cells] = 0
                for of, state in zip(self.accumulators, self.columns, strict=True):
                    for column, nothing in zip(state or (), of.identity, strict=state is not None):
                        column[cells] = nothing
                first += behind - start


def _asleep(groups: int) -> Integers:
    """Return where the stacks of groups are that have none."""
    turns = np.full((_TURNS, groups), NEVER)
    turns[BACK] = 0
    return turns


def _stretches(low: int, high: int, old: int, new: int) -> Iterator[tuple[int, int, int]]:
    """Yield where panes ``low`` to ``high`` are one after the other in rectangles of ``old`` and ``new`` rows.

    Their first row in the old one, how many they are, and their first row in the new one.  Three times at most.
    """
    while low <= high:
        first, to = low % old, low % new
        length = min(high + 1 - low, old - first, new - to)
        yield first, length, to
        low += length


def _power(size: int) -> int:
    """Return the least power of two that is not less, 0 for 0."""
    return 1 << (size - 1).bit_length() if size else 0
