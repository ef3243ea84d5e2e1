"""Session cells: open runs of sessions in a ring of cells of time, each as long as the least gap.

The tuples of a group in one cell are of one run, so a tuple goes there at once, and nothing is searched, made or joined
until a bound has passed.  Then a run goes on in the next cell, or has left.  That is for runs that are close together
in time, for there is a place for each group and cell (``SessionCells.reach``), and for few definitions,
each of which has places for the runs that it has put out and a wider one has not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.sessions.cells import (
    LOW,
    OPEN,
    TOP,
    USED,
    Cells,
    advance,
    assign_cells,
    emit_closed,
    list_runs,
    open_bounds,
)
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.slot_times import SlotTimes
from oop_engine.operators.slicing.stores.session_lists import OpenRuns
from oop_engine.operators.slicing.window_states import WindowOverflowError, narrow
from oop_engine.operators.values.columns import Integers, filled_up
from oop_engine.operators.windows import Gap
from oop_engine.system.knobs import knob

__all__ = ["SessionCells"]

_FEW = knob(__name__, "_FEW", 8)  # cells of a group, however few of them are in use
_CELLS = knob(__name__, "_CELLS", 64)  # cells of a group at most, and definitions
_SMALL = knob(__name__, "_SMALL", 1 << 17)  # cells of all groups: so few may be as empty as they like
_SPARSE = knob(__name__, "_SPARSE", 4)  # cells there may be for each tuple and run, where they are more
_LONGEST = 1 << 48  # of a gap: so many cells of it are exact as a float
_NOTHING = FOREVER, -FOREVER


class SessionCells:
    """As ``SessionLists``, of runs that are close together in time."""

    def __init__(self, gaps: Integers, parts: Sequence[Part]) -> None:
        self._gaps, self._gap, self.states = gaps, int(gaps[0]), States(parts)
        self._ring = self._groups = 0
        self.ends = SlotTimes()  # no open window of the group ends before
        self._cells = Cells(np.empty(0, np.int64), self.ends.times, self.ends.least, np.zeros(4, np.int64))

    def __len__(self) -> int:
        return int(self._cells.counts[USED])

    @property
    def alive(self) -> int:
        """How many groups have a run."""
        return int(self._cells.counts[OPEN])

    @property
    def nbytes(self) -> int:
        """Bytes of the cells and states, with the room there is for more."""
        held = sum(column.nbytes for column in self._cells)
        return held + self.states.row_bytes * (self._cells.spans.size // 2)

    @property
    def _spans(self) -> Integers:
        """The first and the last time of each row, int64 (rows, 2)."""
        return self._cells.spans.reshape(-1, 2)

    @property
    def steps(self) -> int:
        """How many steps ``leave`` needs room for at least: those of 16 groups."""
        return 16 * 2 * self._gaps.size * (self._ring + self._gaps.size)

    def reach(self, first: int, last: int, tuples: int, groups: int) -> bool:
        """Make room for so many tuples of such times; tell whether that can be, which it cannot if cells are too many.

        A group has ``_FEW`` in any case, and up to ``_CELLS`` where all groups together have ``_SMALL`` at most, or one
        in ``_SPARSE`` of them has something in it: each is looked at once, when a bound passes.
        """
        if self._gap > _LONGEST or self._gaps.size > _FEW:
            return False
        counts, low, top = self._cells.counts, first // self._gap, last // self._gap
        if len(self):
            if max(top, counts[TOP]) - min(low, counts[LOW]) >= self._ring:
                self._leave_out(low)
            low, top = min(low, int(counts[LOW])), max(top, int(counts[TOP]))
        most = max(_SMALL, _SPARSE * (tuples + len(self)))
        if (wanted := top - low + 1) > _FEW and (wanted > _CELLS or wanted * groups > most):
            return False
        if wanted > self._ring:
            ring = max(min(2 * wanted, _FEW), min(wanted + wanted // 4, _CELLS), wanted)
            self._lay(ring, slice(None), self.ends.times.size)
        counts[LOW], counts[TOP] = low, top
        return True

    def _leave_out(self, low: int) -> None:
        """Leave out the cells below one, as long as there is nothing in them."""
        counts, first = self._cells.counts, self._cells.spans[::2].reshape(-1, self.ends.times.size)
        while counts[LOW] < low and (first[counts[LOW] % self._ring] == FOREVER).all():
            counts[LOW] = low if counts[LOW] == counts[TOP] else counts[LOW] + 1
        counts[TOP] = max(counts[LOW], counts[TOP])

    def _lay(self, ring: int, kept: Integers | slice, groups: int) -> None:
        """Let there be so many cells side by side, and so many groups, the first of them ``kept``."""
        ring = max(ring, 1)  # groups may be known, and asked for, before the first tuple
        spans, until, _, counts = self._cells
        cells, other = counts[LOW] + np.arange(self._ring), np.arange(self._gaps.size - 1)
        rows = (ring + other.size) * groups
        new = [(np.tile(_NOTHING, rows),), *self.states.empty(rows)]
        if spans.size and groups:
            old = [(spans,), *self.states.columns]
            to = np.append(cells % ring, ring + other)
            of = np.append(cells % self._ring, self._ring + other)
            for column, into in zip(chain(*old), chain(*new), strict=True):
                column = column.reshape(of.size, until.size, -1)[:, kept]
                into.reshape(rows // groups, groups, -1)[to, : column.shape[1]] = column[of]
        self.states.columns, self.ends = new[1:], SlotTimes.of(filled_up(until[kept], groups, FOREVER))
        self._cells = Cells(new[0][0], self.ends.times, self.ends.least, counts)
        self._ring = ring

    def room(self, groups: int) -> None:
        """Make room for so many groups."""
        self._groups = groups
        if groups > (known := self.ends.times.size):
            self._lay(self._ring, slice(known), max(groups, 3 * known // 2))

    def add(self, slots: Integers, times: Integers, inputs: list[Arrays]) -> None:
        """Put tuples into cells, which are there."""
        rows = np.empty(times.size, np.int64)
        assign_cells(self._cells, fixed(slots), fixed(times), self._gap, self._ring, rows)
        try:
            self.states.add(rows, inputs)
        except SumOverflowError as error:
            raise self._overflow(error, error.at) from None

    def leave(
        self, slots: Integers, bounds: Integers, begin: int, out: Integers
    ) -> tuple[int, int, int, int]:
        """Take out complete windows, as the kernel does."""
        found: tuple[int, int, int, int] = emit_closed(self._cells, slots, bounds, self._gaps, begin, out)
        return found

    def misfit(self, error: SumOverflowError, out: Integers) -> WindowOverflowError:
        """Return the error of a step that the kernel has written into ``out``."""
        row = out[0, error.at]
        for to, a, b in out[:3, error.at + 1 :].T.tolist():  # where it went
            row = to if row in (a, b) else row
            if row < 0:
                slot, end, first = out[4:7, ~row].tolist()
                return WindowOverflowError(error.column, slot, first, end)
        return self._overflow(error, row)

    def _overflow(self, error: SumOverflowError, row: int) -> WindowOverflowError:
        """Return the error of a place: it names the window that it is in."""
        rows, begins, left = self._chains()
        run = int(np.searchsorted(begins, np.flatnonzero(rows == row)[0], side="right")) - 1
        first, last = self._times(rows, begins)[run].tolist()
        return WindowOverflowError(
            error.column, row % self.ends.times.size, first, last + self._gaps[left[run]]
        )

    def _chains(self, slots: Integers | None = None) -> tuple[Integers, Integers, Integers]:
        """Return the places in use of some groups, newest first; where runs begin, how many put them out."""
        most = len(self) if slots is None else min(len(self), slots.size * (self._ring + self._gaps.size))
        rows, begins, left = np.empty((3, most), np.int64)
        slots = np.arange(self.ends.times.size) if slots is None else slots
        found, runs = list_runs(self._cells, slots, self._gaps, rows, begins, left)
        return rows[:found], begins[:runs], left[:runs]

    def _times(self, rows: Integers, begins: Integers) -> Integers:
        """Return the first and the last time of each run, int64 (runs, 2)."""
        first, last = self._spans[rows].T
        if not begins.size:
            return np.empty((0, 2), np.int64)
        return np.stack([np.minimum.reduceat(first, begins), np.maximum.reduceat(last, begins)], axis=1)

    def runs(self, slots: Integers | None = None) -> OpenRuns:
        """Return the runs of some groups, ascending, or of all, put together."""
        rows, begins, left = self._chains(slots)
        times, slots = self._times(rows, begins), rows[begins] % max(self.ends.times.size, 1)
        try:
            states = self.states.reduced(self.states.take(rows), begins)
        except SumOverflowError as error:
            raise self._overflow(error, int(rows[begins[error.at]])) from None
        return OpenRuns(slots, times, left, states)

    def _needless(self, bound: int) -> int:
        """Return below which cell all can be forgotten once no tuple comes below a bound."""
        return min(bound // self._gap - 1, int(self._cells.counts[TOP]))

    def lags(self, bound: int) -> bool:
        """Tell whether cells can be given back once no tuple comes below a bound; O(1)."""
        return bool(self._cells.counts[LOW] < self._needless(bound)) and len(self) > 0

    def shrink(self, bound: int) -> None:
        """Give back cells to which no tuple comes any more: their runs go on in the next ones."""
        if not self.lags(bound):
            return
        room = np.empty((3, len(self)), np.int64)
        merged = advance(self._cells, self._gap, self._ring, self._groups, self._needless(bound), room)
        steps = room[:, :merged]
        try:
            self.states.folded(steps)
        except SumOverflowError as error:
            raise self.misfit(error, steps) from None
        self.states.reset(steps[1])

    def look(self, slots: Integers, out: Integers) -> tuple[int, int]:
        """Return the least end of an open window of some groups, and the least first time, as the kernel does."""
        least: tuple[int, int] = open_bounds(self._cells, slots, self._gaps, out)
        return least

    def living(self, groups: int) -> NDArray[np.bool_]:
        """Tell which groups have a run."""
        return filled_up(self.ends.times[:groups] < FOREVER, groups, False)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self.room(slots.size)
        self._lay(self._ring, kept, kept.size)
        self._groups = kept.size

    def save(self) -> dict[str, Any]:
        rows, _, _ = self._chains()
        slots, left = (
            rows % max(self.ends.times.size, 1),
            rows // max(self.ends.times.size, 1) - self._ring + 1,
        )
        columns = slots, *self._spans[rows].T, np.maximum(left, 0)
        return {"cells": [*map(narrow, columns)], "states": self.states.saved(self.states.take(rows))}

    def load(self, saved: Saved, groups: int) -> None:
        cells, gap = saved.part("cells"), self._gap
        slots = cells.integers(0, (None,), least=0, below=groups)
        times = np.stack([cells.integers(side, slots.shape) for side in (1, 2)], axis=1)
        left = cells.integers(3, slots.shape, least=0, below=self._gaps.size)
        Gap(int(self._gaps[-1])).check(times)
        cell = times[left == 0, 1] // gap
        low, top = (int(cell.min()), int(cell.max())) if cell.size else (0, 0)
        ring, (first, last) = top - low + 1, times.T
        row = np.where(left > 0, ring + left - 1, last // gap % ring) * groups + slots
        wrong = [first > last, slots[1:] < slots[:-1], (slots[1:] == slots[:-1]) & (last[1:] >= first[:-1])]
        if any(map(np.any, wrong)) or ring > max(_FEW, _CELLS) or np.unique(row).size < row.size:
            msg = f"cells must be by group, the newest first, apart, and few; got {slots.size} that are not"
            raise SnapshotError(msg)
        self.room(groups)
        self._lay(ring, slice(None), groups)
        self._spans[row] = times
        self.states.put(row, self.states.loaded(saved.part("states"), slots.size))
        self.ends.put(slots, np.full(slots.size, NEVER))
        self._cells.counts[:] = slots.size, np.unique(slots).size, low, top
