"""Held runs: rows of ``runs.py`` that a store keeps, and those of a group without a look at others.

Rows are kept in two sets, one in which no two belong together and one of those that came since.  When the second
outgrows the first they are merged, so a row is merged O(log rows) times, and memory is at most twice that of rows that
differ (of lists, which take longer to merge, three times).  All is done with whole columns: sort, then combine
neighbours.

Both are ``Levels``, so the rows of some groups are found, and dropped, without a look at others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.runs import reaches
from oop_engine.operators.slicing.accumulators import SumOverflowError, is_ragged
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.runs.runs import Identity, Runs, Sides
from oop_engine.operators.slicing.window_states import WindowOverflowError, narrow
from oop_engine.operators.values.columns import Integers, ends_of, rows_of, spread
from oop_engine.operators.values.levels import Levels
from oop_engine.system.knobs import knob

__all__ = ["HeldRuns"]

_LEAST = knob(__name__, "_LEAST", 64)  # partial aggregates; fewer are not worth a merge
_PAIRS = knob(
    __name__, "_PAIRS", 1 << 20
)  # (row, window) pairs combined at a time, as far as one window allows


class HeldRuns:
    """The runs of a store.  ``marks``: those of new rows.

    ``sides``: of the window that a row is in, for the error that a sum does not fit 64 bits.
    """

    def __init__(
        self, parts: Sequence[Part], identity: Identity, sides: Sides,
        marks: tuple[np.generic, ...] = (),
    ) -> None:  # fmt: skip
        self.parts, self._identity, self._sides, self._marks = parts, identity, sides, marks
        self._of = States(parts)
        self._room = 1 + is_ragged(parts)
        none = np.empty(0, np.int64)
        self._none = self.without_values(none, none, none)
        self._merged, self._fresh = Levels(self._none), Levels(self._none)
        self.put(self._none)

    def __len__(self) -> int:
        return self._merged_partials + self._fresh_partials - self._gone

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, with marks and orders."""
        return self._merged.nbytes + self._fresh.nbytes

    def without_values(self, slots: Integers, first: Integers, last: Integers) -> Runs:
        """Return rows with states of no values."""
        return self.new(slots, first, last, States(self.parts, slots.size).columns)

    def new(self, slots: Integers, first: Integers, last: Integers, states: list[Arrays]) -> Runs:
        """Return rows with these states and the marks of new ones."""
        return Runs(slots, first, last, states, tuple(map(np.full, repeat(slots.size), self._marks)))

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
        self._fresh.put(runs)
        self._fresh_partials += runs.partials
        if self._fresh_partials > max(self._room * self._merged_partials, _LEAST):
            self.put(self.merged())

    def merged(self) -> Runs:
        """Return all rows, those that belong together as one; ``put`` keeps them so."""
        fresh, merged = self._fresh.parts(), self._merged.all()
        return self._together(merged.joined(*fresh)) if fresh else merged

    def levels(self) -> list[Runs]:
        """Return all rows, as merged ones and others."""
        merged, fresh = self._merged.all(), self._fresh.all()
        return [merged, fresh] if fresh.size else [merged]

    def put(self, merged: Runs, *fresh: Runs) -> None:
        """Let these be the rows."""
        self._merged.clear()
        self._fresh.clear()
        self._merged_partials, self._fresh_partials = merged.partials, 0
        self._gone = 0  # partial aggregates of these that were dropped since
        self._merged.put(merged)
        for runs in fresh:
            self._fresh.put(runs)
            self._fresh_partials += runs.partials

    def of(self, groups: Integers) -> Runs:
        """Return the rows of some groups.  O(log rows) a group, and O(these), amortised."""
        found, more = (levels.take(levels.places("slots", groups)) for levels in (self._merged, self._fresh))
        return found.joined(more)

    def drop(self, groups: Integers | None, over: Callable[[Runs], NDArray[np.bool_]]) -> None:
        """Forget the rows that are ``over``, of some groups, or of all.  Costs as ``of``."""
        if groups is None:
            every = [(runs, over(runs)) for runs in self.levels()]
            self.put(*(runs.take(~gone) if gone.any() else runs for runs, gone in every))
            return
        for levels in (self._merged, self._fresh):
            places = levels.places("slots", groups)
            rows = levels.take(places)
            gone = np.flatnonzero(over(rows))
            levels.drop(places[gone])
            self._gone += rows.take(gone).partials

    def take_out(self, groups: Integers) -> Runs:
        """Take out the rows of some groups; return them, those that belong together as one.  Costs as ``of``."""
        found, more = (levels.take_out("slots", groups) for levels in (self._merged, self._fresh))
        self._gone += found.partials + more.partials
        return self._together(found.joined(more))

    def together_of(self, groups: Integers) -> Runs:
        """Return the rows of some groups, those that belong together as one, and keep them.  Costs as ``of``."""
        return self._together(self.of(groups))

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
        while runs.size:
            stop = _block(runs)
            inside = int(np.searchsorted(runs.first, stop))
            part, rest = runs.take(slice(None, inside)), runs.take(slice(inside, None))
            over = part.take(part.last >= stop)
            runs = over._replace(first=np.full(over.size, stop)).joined(rest)
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
        return self.reduced(ordered, self._identity.begins(*ordered[:3]).nonzero()[0])

    def reduced(self, runs: Runs, starts: Integers, sides: Sides | None = None) -> Runs:
        """Return the rows from each of ``starts`` (ascending, the first 0) to the next as one."""
        if starts.size == runs.size:
            return runs
        last = np.empty_like(starts)
        reaches(runs.last, starts, last)
        try:
            states = self._of.reduced(runs.states, starts)
        except SumOverflowError as error:
            ends = runs._replace(last=last.repeat(ends_of(starts, runs.size) - starts))
            raise _error(sides or self._sides, error, ends, int(starts[error.at])) from None
        marks = tuple([mark[starts] for mark in runs.marks])
        return Runs(runs.slots[starts], runs.first[starts], last, states, marks)

    def save(self) -> list[list[Any]]:
        rows = [(map(narrow, runs[:3]), runs.states, map(narrow, runs.marks)) for runs in self.levels()]
        return [[*places, self._of.saved(of), list(marks)] for places, of, marks in rows]

    def load(self, saved: Sequence[Saved], groups: int, check: Callable[[Runs], None]) -> None:
        """Take a snapshot of so many groups; ``check`` raises if places cannot be."""
        merged, *fresh = [self._loaded(runs, groups) for runs in saved] or [self._none]
        for runs in (merged, *fresh):
            check(runs)
        order = self._identity.order(*merged[:3])
        if not (self._identity.begins(*merged[:3]).all() and (order == np.arange(order.size)).all()):
            msg = f"runs must be disjoint and in order; got {merged.size} that are not"
            raise SnapshotError(msg)
        self.put(merged, *fresh)

    def _loaded(self, saved: Saved, groups: int) -> Runs:
        slots = saved.integers(0, (None,), least=0, below=groups)
        first, last = (saved.integers(side, slots.shape) for side in (1, 2))
        kinds = enumerate(mark.dtype for mark in self._marks)
        marks = tuple(np.array(saved.part(4).numbers(i, slots.shape, kind)) for i, kind in kinds)
        return Runs(slots, first, last, self._of.loaded(saved.part(3), slots.size), marks)


def _error(sides: Sides, error: SumOverflowError, runs: Runs, at: int) -> WindowOverflowError:
    return WindowOverflowError(error.column, runs.slots[at], *sides(int(runs.first[at]), int(runs.last[at])))


def _block(runs: Runs) -> int:
    """Return a window below which there are about ``_PAIRS`` pairs of rows and windows, or one window."""
    low = int(runs.first[0])
    each = low + _PAIRS // runs.size
    fits = int(np.searchsorted(np.cumsum(runs.last - runs.first + 1), _PAIRS, side="right"))
    upto = int(runs.first[fits]) if fits < runs.size else int(runs.last.max()) + 1
    return max(low + 1, each, upto)
