"""Partials: the open partial aggregates of (group, window), in columns.

``States`` are the columns, a row a partial aggregate.  ``Partials`` finds the row of each
(group slot, window id) in a hash table, so that a tuple costs one probe and one addition
for each window it is in.  Memory follows the open windows: rows are used again, and the table
shrinks when most of it is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.partials import (
    NO_WINDOW,
    ROW,
    SLOT,
    USED,
    WINDOW,
    Table,
    collect,
    fill,
    locate,
    remove,
)
from oop_engine.operators.slicing.accumulators import SumOverflowError, accumulator, is_ragged
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.panes.open_spans import OpenGrid, OpenSpans
from oop_engine.operators.slicing.window_states import WindowStates, narrow
from oop_engine.operators.values.columns import Integers, bytes_of, joined, looked_up, rows_of, spread
from oop_engine.system.knobs import knob

__all__ = ["Partials", "States", "with_empty"]

_LEAST_ROWS = knob(__name__, "_LEAST_ROWS", 16)
_UPDATES = knob(
    __name__, "_UPDATES", 1 << 20
)  # (tuple, window) pairs at a time, or those of one tuple: 8 MB of row numbers


class States:
    """Columns for ``parts``: one tuple of arrays a part, one row a partial aggregate.

    ``columns``: those there are, else ``rows`` of no values.
    """

    def __init__(self, parts: Sequence[Part], rows: int = 0, columns: list[Arrays] | None = None) -> None:
        self._accumulators = list(map(accumulator, parts))
        self.columns = self.empty(rows) if columns is None else columns

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return sum(value.nbytes for of in self._accumulators for value in of.identity)

    def prepare(self, page: Page, times: Integers) -> list[Arrays]:
        """Return the inputs of ``update``, of the tuples of ``page``."""
        return [c.prepare(page, times) for c in self._accumulators]

    def add(self, rows: Integers, inputs: Sequence[Arrays]) -> None:
        """Add each tuple to the row ``rows[i]``."""
        for c, state, arrays in zip(self._accumulators, self.columns, inputs, strict=True):
            c.add(state, rows, arrays)

    def add_runs(self, starts: Integers, ends: Integers, inputs: Sequence[Arrays]) -> None:
        """Add the tuples from each of ``starts`` (ascending, the first 0) to its end, the next one, to a row."""
        starts, ends = fixed(starts), fixed(ends)
        for c, state, arrays in zip(self._accumulators, self.columns, inputs, strict=True):
            c.add_runs(state, starts, ends, arrays)

    def update(self, rows: Integers, starts: Integers, lo: int, hi: int, inputs: Sequence[Arrays]) -> None:
        """Add tuples ``lo`` to ``hi``, each to ``rows[starts[i]:starts[i + 1]]``."""
        for c, state, arrays in zip(self._accumulators, self.columns, inputs, strict=True):
            c.update(state, rows, starts, lo, hi, arrays)

    def combine(self, a: Sequence[Arrays], b: Sequence[Arrays]) -> list[Arrays]:
        """Return the states of two sets of rows together, row by row."""
        with np.errstate(invalid="ignore", over="ignore"):  # infinities and wrapping: both are looked at
            return [c.combine(x, y) for c, x, y in zip(self._accumulators, a, b, strict=True)]

    def reduced(self, states: Sequence[Arrays], starts: Integers) -> list[Arrays]:
        """Return the states of the rows from each of ``starts`` (ascending, the first 0) to the next, together."""
        return [c.reduce(state, starts) for c, state in zip(self._accumulators, states, strict=True)]

    def folded(self, steps: Integers, results: int = 0) -> list[Arrays]:
        """Take ``steps`` int64 (3, n) by turns: the rows in the second and the third together go to the first.

        A third of -1 is none; a first below 0 is a row ``~first`` of the ``results`` that are returned.
        """
        of = zip(self._accumulators, self.columns, strict=True)
        return [c.fold_steps(state, steps, results) for c, state in of]

    def empty(self, rows: int) -> list[Arrays]:
        """Return states of no values."""
        return [c.empty(rows) for c in self._accumulators]

    def take(self, rows: Integers) -> list[Arrays]:
        """Return a copy of some rows."""
        return rows_of(self.columns, rows)

    def put(self, rows: Integers, values: Sequence[Arrays]) -> None:
        """Overwrite some rows."""
        for state, arrays in zip(self.columns, values, strict=True):
            for column, new in zip(state, arrays, strict=True):
                column[rows] = new

    def reset(self, rows: Integers) -> None:
        """Make some rows states of no values."""
        for of, state in zip(self._accumulators, self.columns, strict=True):
            for column, value in zip(
                state, of.identity or of.empty(rows.size), strict=True
            ):  # a list has no identity
                column[rows] = value

    def saved(self, states: Sequence[Arrays]) -> list[list[Any]]:
        return [c.saved(state) for c, state in zip(self._accumulators, states, strict=True)]

    def loaded(self, saved: Saved, rows: int) -> list[Arrays]:
        """Return the columns of a snapshot, of so many rows."""
        parts = saved.parts_of(len(self._accumulators))
        return [c.loaded(of, rows) for c, of in zip(self._accumulators, parts, strict=True)]

    def resized(self, rows: Integers, size: int) -> list[Arrays]:
        """Return ``rows`` and after them states of no values, ``size`` in all."""
        new = self.empty(size - rows.size)
        return joined([self.take(rows), new]) if rows.size else new


class Partials:
    """The open partial aggregates, by (group slot, window id); the ``spans`` of the groups are kept up to date.

    ``nbytes``: bytes of the table and of states of one size, with the room there is for more.  ``lists``: whether some
    states are lists.
    """

    def __init__(self, parts: Sequence[Part], spans: OpenSpans) -> None:
        self.states, self.lists = States(parts), is_ragged(parts)
        self._spans = spans
        self._owner = np.full((0, 2), -1)
        self._allot(1, np.empty(0, np.int64))  # where windows are kept by panes, that is all

    def __len__(self) -> int:
        return int(self._spans.counts[USED])

    @property
    def list_bytes(self) -> int:
        """Bytes of the states beside ``nbytes``: lists.  O(columns)."""
        return bytes_of(self.states.columns) - self.states.row_bytes * len(self._owner)

    def add(self, page: Page, times: Integers, slots: Integers, first: Integers, widths: Integers) -> None:
        """Add the tuples of ``page`` to ``widths[i]`` windows each, from ``first[i]`` on.

        O(tuples x windows a tuple), in kernels.
        """
        starts = np.concatenate([[0], np.cumsum(widths)])
        inputs = self.states.prepare(page, times)
        hi = 0
        while (lo := hi) < slots.size:
            hi = max(int(np.searchsorted(starts, starts[lo] + _UPDATES, side="right")) - 1, lo + 1)
            part, some = slice(lo, hi), starts[lo : hi + 1] - starts[lo]
            given = rows_of(inputs, part)
            rows = np.empty(some[-1], np.int64)
            for begin, done in self._located(slots[part], first[part], some, rows):
                self.states.update(rows, some, begin, done, given)

    def merge(self, slots: Integers, wids: Integers, states: Sequence[Arrays]) -> None:
        """Take in states of windows, all different, as if their tuples had come here."""
        rows, starts = np.empty_like(slots), np.arange(slots.size + 1)
        for begin, done in self._located(slots, wids, starts, rows):
            some = rows[begin:done]
            try:
                new = rows_of(states, slice(begin, done))
                self.states.put(some, self.states.combine(self.states.take(some), new))
            except SumOverflowError as error:
                raise SumOverflowError(error.column, int(some[error.at])) from None

    def _located(
        self, slots: Integers, first: Integers, starts: Integers, rows: Integers
    ) -> Iterator[tuple[int, int]]:
        """Find rows as ``locate`` does; yield from which tuple to which they are there, before they move."""
        begin = 0
        slots, first = fixed(slots), fixed(first)  # one signature of the kernel, whoever calls
        while True:
            of, least = self._spans.of, self._spans.least
            done = locate(self._table, of, least, slots, first, starts, rows, begin)
            yield begin, done
            if done == slots.size:
                return
            self._resize(max(2 * len(self._owner), len(self) + int(starts[done + 1] - starts[done])))
            begin = done

    @property
    def used(self) -> Integers:
        """The rows there are.  O(rows)."""
        return np.flatnonzero(self._owner[:, SLOT] >= 0)

    def owner(self, rows: Integers) -> tuple[Integers, Integers]:
        """Return the group slot and the window of some rows."""
        return self._owner[rows, SLOT], self._owner[rows, WINDOW]

    def find(self, slots: Integers, low: Integers, stop: Integers, *, each: bool = False) -> Integers:
        """Return where windows are in the table, ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]``.

        O(windows asked for) or O(rows there are), whichever is less.  ``each``: a group may be named more than once.
        """
        if not len(self):
            return slots[:0]
        stop = np.maximum(stop, low)  # the length of a range must not wrap
        asked = (stop.astype(float) - low.astype(float)).sum()
        if each or 4 * asked < len(self._owner):
            widths = np.minimum((stop - low).view(np.uint64), len(self))  # exact, however far apart
            rows = np.empty(min(len(self), int(widths.sum())), np.int64)
            return rows[: collect(self._table.cells, slots, low, stop, rows)]
        of, wid = self._owner[:, SLOT], self._owner[:, WINDOW]
        lowest, below = looked_up(of, slots, low, NO_WINDOW), looked_up(of, slots, stop, -NO_WINDOW)
        return np.flatnonzero((wid >= lowest) & (wid < below) & (of >= 0))  # the slot of a free row is -1

    def remove(self, rows: Integers) -> None:
        """Forget some rows."""
        if rows.size == len(self):
            self.clear()
            return
        remove(self._table, rows)
        self.states.reset(rows)
        if 8 * len(self) < len(self._owner) > _LEAST_ROWS:
            self._resize(2 * len(self))

    def rename(self, slots: Integers) -> None:
        used = self._owner[:, SLOT] >= 0
        self._owner[used, SLOT] = slots[self._owner[used, SLOT]]
        self._allot(len(self._owner), np.flatnonzero(used))

    def clear(self) -> None:
        """Forget all rows."""
        self._allot(min(len(self._owner), _LEAST_ROWS), np.empty(0, np.int64))

    def save(self) -> dict[str, Any]:
        used = self.used
        states = self.states.saved(self.states.take(used))
        owner = [narrow(column) for column in self._owner[used].T]
        return {"owner": owner, "states": states}

    def load(self, saved: Saved, groups: int) -> None:
        owner = saved.part("owner")
        slots = owner.integers(0, (None,), least=0, below=groups)
        self._owner = np.stack([slots, owner.integers(1, slots.shape)], axis=1)
        self.states.columns = self.states.loaded(saved.part("states"), slots.size)
        used = np.arange(slots.size)
        self._allot(1, used) if not used.size else self._resize(2 * used.size, used)
        if (kept := np.count_nonzero(self._table.cells[:, ROW] >= 0)) != slots.size:
            msg = f"'owner' must be {slots.size} different windows; got {kept}"
            raise SnapshotError(msg)

    def _resize(self, rows: int, used: Integers | None = None) -> None:
        """Make room for at least ``rows``, the ``used`` ones (default: all) first."""
        if used is None:
            used = self.used
        self._allot(1 << max(rows - 1, _LEAST_ROWS - 1).bit_length(), used)

    def _allot(self, size: int, used: Integers) -> None:
        """Let there be ``size`` rows, a power of two, the ``used`` ones first."""
        self.states.columns = self.states.resized(used, size)
        owner = np.full((size, 2), -1)
        owner[: used.size] = self._owner[used]
        self._owner = owner
        self._spans.counts[USED] = used.size
        cells = np.full((4 * size, 3), -1)  # a quarter full at most: half as fast where it is half full
        if used.size:  # of a table that is only weighed no kernel is loaded
            fill(cells, owner)
        free = np.arange(size)[::-1].copy()
        self._table = Table(cells, owner, free, self._spans.counts)
        self.nbytes = owner.nbytes + cells.nbytes + free.nbytes + self.states.row_bytes * size


def with_empty(
    grid: OpenGrid, parts: Sequence[Part], found: WindowStates, slots: Integers, low: Integers, stop: Integers
) -> WindowStates:
    """Return the windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]``, of which ``found`` have tuples."""
    of, wids = spread(low, stop - low)
    at = looked_up(found.slots, slots, np.cumsum(stop - low) - stop, 0)
    states = States(parts, of.size)
    states.put(at + grid.extents.closed_by(found.ends) - 1, found.states)
    return WindowStates(slots[of], grid.extents.extent(wids)[1], states.columns, grid.number)
