"""Held runs: rows of ``runs.py`` that a store keeps, and those of a group without a look at others.

Rows are kept at two levels, one in which no two belong together and one of those that came since.  When the second
outgrows the first they are merged, so a row is merged O(log rows) times, and memory is at most twice that of rows that
differ (of lists, which take longer to merge, three times).  All is done with whole columns: sort, then combine
neighbours.

Rows are numbered, those that are merged first, then those that came since.  Lists of the rows of each group are made
when they are first asked for, grow with each page, and are made anew behind a merge.  Rows that are over are marked,
and dropped together once they are half of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.runs import reaches
from oop_engine.operators.keys.row_lists import RowLists
from oop_engine.operators.slicing.accumulators import SumOverflowError, is_ragged
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.runs.runs import Identity, Runs, Sides
from oop_engine.operators.slicing.window_states import WindowOverflowError, narrow
from oop_engine.operators.values.columns import Integers, filled_up, rows_of, spread
from oop_engine.system.knobs import knob

__all__ = ["HeldRuns"]

_LEAST = knob(__name__, "_LEAST", 64)  # partial aggregates; fewer are not worth a merge
_SMALL = knob(__name__, "_SMALL", 1024)  # rows; fresh ones of smaller pages are put together
_PAIRS = knob(
    __name__, "_PAIRS", 1 << 20
)  # (row, window) pairs combined at a time, as far as one window allows
_NO_ROWS = np.empty(0, np.bool_)


class HeldRuns:
    """The runs of a store.  ``nbytes``: bytes of the rows.  ``marks``: those of new rows.

    ``sides``: of the window that a row is in, for the error that a sum does not fit 64 bits.
    """

    def __init__(
        self, parts: Sequence[Part], identity: Identity, sides: Sides,
        marks: tuple[np.generic, ...] = (),
    ) -> None:  # fmt: skip
        self.parts, self._identity, self._sides, self._marks = parts, identity, sides, marks
        self._room = 1 + is_ragged(parts)
        none = np.empty(0, np.int64)
        self.put(self.without_values(none, none, none))

    nbytes: int
    _fresh: list[Runs]
    _lists: RowLists | None
    _over: NDArray[np.bool_]
    """Which rows are over; those behind it are not."""

    def __len__(self) -> int:
        return self._merged_partials + self._fresh_partials - self._gone_partials

    @property
    def index_bytes(self) -> int:
        """Bytes of the lists and marks."""
        return self._over.nbytes + (0 if self._lists is None else self._lists.nbytes)

    def without_values(self, slots: Integers, first: Integers, last: Integers) -> Runs:
        """Return rows with states of no values."""
        return self.new(slots, first, last, States(self.parts, slots.size).columns)

    def new(self, slots: Integers, first: Integers, last: Integers, states: list[Arrays]) -> Runs:
        """Return rows with these states and the marks of new ones."""
        return Runs(slots, first, last, states, tuple(np.full(slots.size, mark) for mark in self._marks))

    def assigned(self, slots: Integers, times: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Return the run of each tuple, and slots, first and last times of runs.  O(tuples log tuples)."""
        order = self._identity.order(slots, times, times)
        slots, times = slots[order], times[order]
        begins = self._identity.begins(slots, times, times)
        starts = np.flatnonzero(begins)
        of_tuple, last = np.empty_like(order), np.empty_like(starts)
        of_tuple[order] = np.cumsum(begins) - 1
        reaches(times, starts, last)
        return of_tuple, slots[starts], times[starts], last

    def of_page(self, page: Page, times: Integers, assigned: Sequence[Integers]) -> Runs:
        """Return the tuples of a page, ``assigned`` to runs, as these."""
        of_tuple, slots, first, last = assigned
        states = States(self.parts, slots.size)
        runs = self.new(slots, first, last, states.columns)
        try:
            states.add(of_tuple, states.prepare(page, times))
        except SumOverflowError as error:
            raise _error(self._sides, error, runs, error.at) from None
        return runs

    def add(self, runs: Runs) -> None:
        """Put rows, whoever made them.  O(log rows) a row, amortized."""
        self._fresh.append(runs)
        self._fresh_partials += runs.partials
        self.nbytes += runs.nbytes
        self._join_small()
        if self._fresh_partials > max(self._room * self._merged_partials, _LEAST):
            self.merged()
        elif self._lists is not None:
            self._lists.add(runs.slots)

    def _join_small(self) -> None:
        """Put the rows of small pages behind each other, for the objects of a page take as much as many rows."""
        # With lists, each page is looked through for a group.
        fresh, most = self._fresh, 2 * _SMALL if self._lists is None else FOREVER
        while len(fresh) > 1 and fresh[-2].rows <= 2 * fresh[-1].rows < most:
            self._join_last()

    def _join_last(self) -> None:
        """Put the rows of the last two pages behind each other."""
        after, before = self._fresh.pop(), self._fresh.pop()
        self._fresh.append(before.joined(after))
        self.nbytes += self._fresh[-1].nbytes - before.nbytes - after.nbytes

    def merged(self) -> Runs:
        """Return all rows but those that are over, those that belong together as one."""
        self._tidy()
        if self._fresh:
            self.put(self._together(self._merged.joined(*self._fresh)))
        return self._merged

    def levels(self) -> list[Runs]:
        """Return all rows but those that are over, as merged ones and others."""
        self._tidy()
        if len(self._fresh) > 1:
            self._fresh = [self._fresh[0].joined(*self._fresh[1:])]
        return [self._merged, *self._fresh]

    def put(self, merged: Runs, *fresh: Runs) -> None:
        """Let these be the rows; lists of them are made when they are asked for."""
        self._lists, self._over, self._gone_partials = None, _NO_ROWS, 0
        self._gone = 0
        self._merged, self._fresh = merged, [runs for runs in fresh if runs.rows]
        self._merged_partials = merged.partials
        self._fresh_partials = sum(runs.partials for runs in self._fresh)
        self.nbytes = sum(runs.nbytes for runs in (merged, *self._fresh))

    def of(self, groups: Integers) -> tuple[Runs, Integers]:
        """Return the rows of some groups, and their numbers.  O(these), amortised."""
        if self._lists is None:
            self._lists = RowLists()
            for runs in self.levels():
                self._lists.add(runs.slots)
        rows, _ = self._lists.of(groups)
        found, begin = [self._merged.take(slice(0, 0))], 0
        for runs in (self._merged, *self._fresh):
            behind = begin + runs.rows
            first, stop = np.searchsorted(rows, [begin, behind])
            if first < stop:
                found.append(runs.take(rows[first:stop] - begin))
            begin = behind
        return found[0].joined(*found[1:]), rows

    def drop(self, runs: Runs, rows: Integers) -> None:
        """Forget some rows that ``of`` has found, by their numbers.  O(these), amortised."""
        if not rows.size:
            return
        assert self._lists is not None
        self._lists.remove(rows)
        if (known := self._lists.rows) > (size := self._over.size):
            self._over = filled_up(self._over, max(known, 2 * size), False)
        self._over[rows] = True
        self._gone, self._gone_partials = self._gone + rows.size, self._gone_partials + runs.partials
        if 2 * self._gone > self._lists.rows:
            self._tidy()

    def take_out(self, groups: Integers) -> Runs:
        """Take out the rows of some groups; return them, those that belong together as one.  O(these), amortised."""
        found, rows = self.of(groups)
        self.drop(found, rows)
        return self._together(found)

    def together_of(self, groups: Integers) -> Runs:
        """Return the rows of some groups, those that belong together as one, and keep them.  O(these), amortised."""
        return self._together(self.of(groups)[0])

    def _tidy(self) -> None:
        """Drop the rows that are over."""
        if not self._gone:
            return
        kept, begin = [], 0
        for runs in (self._merged, *self._fresh):
            over = self._over[begin : begin + runs.rows]
            stay = np.ones(runs.rows, np.bool_)
            stay[: over.size] = ~over
            kept.append(runs.take(stay))
            begin += runs.rows
        self.put(*kept)

    def rename(self, slots: Integers) -> None:
        """Give group ``g`` the slot ``slots[g]``; the order of groups stays."""
        self.put(*(runs._replace(slots=slots[runs.slots]) for runs in self.levels()))

    def windows(self, runs: Runs) -> Iterator[Runs]:
        """Yield a row a (group, window), in the order of windows, of rows that are in windows ``first`` to ``last``.

        O(pairs of rows and windows x log(rows of a window)).
        """
        if float((runs.last - runs.first + 1.0).sum()) <= _PAIRS:
            yield self._of_windows(runs)
            return
        runs = runs.take(np.argsort(runs.first, kind="stable"))
        while runs.rows:
            stop = _block(runs)
            inside = int(np.searchsorted(runs.first, stop))
            part, rest = runs.take(slice(None, inside)), runs.take(slice(inside, None))
            over = part.take(part.last >= stop)
            runs = over._replace(first=np.full(over.rows, stop)).joined(rest)
            yield self._of_windows(part._replace(last=np.minimum(part.last, stop - 1)))

    def _of_windows(self, runs: Runs) -> Runs:
        rows, wids = spread(runs.first, runs.last - runs.first + 1)
        return self._together(Runs(runs.slots[rows], wids, wids, runs.states, runs.marks), rows)

    def _together(self, runs: Runs, rows: Integers | None = None) -> Runs:
        """Return rows with those that belong together as one; ``rows``: where the state of each is."""
        order = self._identity.order(*runs[:3])
        [(slots, first, last)] = rows_of([runs[:3]], order)
        marks, *states = rows_of([runs.marks, *runs.states], order if rows is None else rows[order])
        ordered = Runs(slots, first, last, states, marks)
        return self.reduced(ordered, np.flatnonzero(self._identity.begins(*ordered[:3])))

    def reduced(self, runs: Runs, starts: Integers, sides: Sides | None = None) -> Runs:
        """Return the rows from each of ``starts`` (ascending, the first 0) to the next as one."""
        if starts.size == runs.rows:
            return runs
        last = np.empty_like(starts)
        reaches(runs.last, starts, last)
        try:
            states = States(self.parts).reduced(runs.states, starts)
        except SumOverflowError as error:
            ends = runs._replace(last=np.repeat(last, np.diff(starts, append=runs.rows)))
            raise _error(sides or self._sides, error, ends, int(starts[error.at])) from None
        marks = tuple(mark[starts] for mark in runs.marks)
        return Runs(runs.slots[starts], runs.first[starts], last, states, marks)

    def save(self) -> list[list[Any]]:
        states = States(self.parts)
        rows = [(map(narrow, runs[:3]), runs.states, map(narrow, runs.marks)) for runs in self.levels()]
        return [[*places, states.saved(of), list(marks)] for places, of, marks in rows]

    def load(self, saved: Sequence[Saved], groups: int, check: Callable[[Runs], None]) -> None:
        """Take a snapshot of so many groups; ``check`` raises if places cannot be."""
        merged, *fresh = [self._loaded(runs, groups) for runs in saved] or [self._merged]
        for runs in (merged, *fresh):
            check(runs)
        order = self._identity.order(*merged[:3])
        if not (self._identity.begins(*merged[:3]).all() and (order == np.arange(order.size)).all()):
            msg = f"runs must be disjoint and in order; got {merged.rows} that are not"
            raise SnapshotError(msg)
        self.put(merged, *fresh)

    def _loaded(self, saved: Saved, groups: int) -> Runs:
        slots = saved.integers(0, (None,), least=0, below=groups)
        first, last = (saved.integers(side, slots.shape) for side in (1, 2))
        kinds = enumerate(mark.dtype for mark in self._marks)
        marks = tuple(np.array(saved.part(4).numbers(i, slots.shape, kind)) for i, kind in kinds)
        return Runs(slots, first, last, States(self.parts).loaded(saved.part(3), slots.size), marks)


def _error(sides: Sides, error: SumOverflowError, runs: Runs, at: int) -> WindowOverflowError:
    return WindowOverflowError(error.column, runs.slots[at], *sides(int(runs.first[at]), int(runs.last[at])))


def _block(runs: Runs) -> int:
    """Return a window below which there are about ``_PAIRS`` pairs of rows and windows, or one window."""
    low = int(runs.first[0])
    each = low + _PAIRS // runs.rows
    fits = int(np.searchsorted(np.cumsum(runs.last - runs.first + 1), _PAIRS, side="right"))
    upto = int(runs.first[fits]) if fits < runs.rows else int(runs.last.max()) + 1
    return max(low + 1, each, upto)
