"""The run store: window state of definitions whose windows merge, such as sessions.

A run is a partial aggregate of some tuples of a group with their first and last time; runs that the definition says
belong together are joined.  A page's tuples are sorted into runs first.  Runs held are in two parts, one in which no
two can be joined any more and one of what has come since; when the second outgrows the first both are joined, so a run
is joined O(log runs) times.  What is complete is asked of the definition alone.

Several definitions share the runs if they are nested, as sessions of several gaps are: a window of a wider definition
is a row of windows of a narrower one.  Runs are those of the narrowest.  A window closes in the narrower definitions
first, so how many definitions a run has left for tells which; it is forgotten when it has left for the widest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.groups.group_index import occurring
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import Reach, Store
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates, narrow
from oop_engine.operators.windows import Merging

__all__ = ["RunStore", "Runs"]

Integers = NDArray[np.int64]

_LEAST = 64  # runs; fewer are not worth joining


class Runs(NamedTuple):
    """Runs: slots of groups, first and last time, int64 (n,), and columns (n,) of each part.

    ``left``: how many definitions have put out the window that a run is in, the narrowest first.
    """

    slots: Integers
    first: Integers
    last: Integers
    states: list[Arrays]
    left: NDArray[np.int16]

    def take(self, rows: NDArray[Any]) -> Runs:
        """Return some of them."""
        states = [tuple(column[rows] for column in state) for state in self.states]
        return Runs(self.slots[rows], self.first[rows], self.last[rows], states, self.left[rows])

    @property
    def nbytes(self) -> int:
        """Bytes of the runs."""
        columns = [self.slots, self.first, self.last, *(column for state in self.states for column in state)]
        return self.left.nbytes + sum(column.nbytes for column in columns)


class RunStore:
    """Open runs of nested ``definitions``, the narrowest first, by their numbers; ``stamp`` is that of results."""

    tuples = 0

    def __init__(self, definitions: Mapping[int, Merging], parts: Sequence[Part], stamp: Stamp) -> None:
        self._definitions, self._narrowest = list(definitions.items()), next(iter(definitions.values()))
        self._parts, self._stamp = list(parts), stamp
        self._open = np.zeros(0, np.bool_)  # (slots,) which groups have runs
        none = np.empty(0, np.int64)
        self._set(Runs(none, none, none, States(self._parts).columns, none.astype(np.int16)))

    _alive: int
    _least: list[int]  # the least last time of an open window, by definition

    def __len__(self) -> int:
        return int(self._joined.slots.size) + self._fresh_runs

    @property
    def nbytes(self) -> int:
        return self._joined.nbytes + sum(runs.nbytes for runs in self._fresh) + self._open.nbytes

    @property
    def alive(self) -> int:
        return self._alive

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        self._check(times)
        self.merge(self._runs_of(page, times, slots))

    def _runs_of(self, page: Page, times: Integers, slots: Integers) -> Runs:
        """Return the tuples of a page as runs.  O(tuples log tuples)."""
        order = np.lexsort((times, slots))
        of, at = slots[order], times[order]
        starts = np.flatnonzero(self._narrowest.begins(of, at, at))
        run = np.zeros(order.size, np.int64)
        run[starts[1:]] = 1
        of_tuple = np.empty_like(order)
        of_tuple[order] = np.cumsum(run)
        behind = np.append(starts[1:], order.size) - 1
        states, left = States(self._parts, starts.size), np.zeros(starts.size, np.int16)
        runs = Runs(of[starts], at[starts], at[behind], states.columns, left)
        try:
            states.add(of_tuple, states.prepare(page, times))
        except SumOverflowError as error:
            raise _overflow(self._narrowest, runs, runs.last[error.at], error.column, error.at) from None
        return runs

    def merge(self, runs: Runs) -> None:
        """Take in runs, whoever made them.  O(log runs) a run, amortized."""
        self._fresh.append(runs)
        self._fresh_runs += runs.slots.size
        self._note(runs.slots)
        least = int(runs.last.min(initial=FOREVER))
        self._least = [min(least, known) for known in self._least]
        if self._fresh_runs > max(self._joined.slots.size, _LEAST):
            self._join()

    def _join(self) -> None:
        """Join all runs that belong together."""
        if not self._fresh:
            return
        some = [self._joined, *self._fresh]
        slots, first, last, left = (np.concatenate([runs[i] for runs in some]) for i in (0, 1, 2, 4))
        states = [tuple(map(np.concatenate, zip(*of, strict=True)))
                  for of in zip(*(runs.states for runs in some), strict=True)]  # fmt: skip
        together = Runs(slots, first, last, states, left).take(np.lexsort((first, slots)))
        begins = self._narrowest.begins(*together[:3])
        self._set(self._reduced(together, np.flatnonzero(begins), self._narrowest))

    def _reduced(self, runs: Runs, starts: Integers, definition: Merging) -> Runs:
        """Return the runs from each of ``starts`` to the next as one."""
        if starts.size == runs.slots.size:
            return runs
        last = np.maximum.reduceat(runs.last, starts)
        try:
            states = States(self._parts).reduced(runs.states, starts)
        except SumOverflowError as error:
            at = int(starts[error.at])
            raise _overflow(definition, runs, last[error.at], error.column, at) from None
        return Runs(runs.slots[starts], runs.first[starts], last, states, runs.left[starts])

    def _note(self, slots: Integers) -> None:
        """Learn that groups have runs."""
        more = int(slots.max(initial=-1)) + 1 - self._open.size
        if more > 0:
            self._open = np.concatenate([self._open, np.zeros(max(more, self._open.size), np.bool_)])
        self._alive += occurring(slots[~self._open[slots]], self._open.size).size
        self._open[slots] = True

    def _set(self, joined: Runs) -> None:
        self._joined, self._fresh, self._fresh_runs = joined, list[Runs](), 0
        self._open, self._alive = np.zeros(0, np.bool_), 0
        self._note(joined.slots)
        self._least = [
            int(self._windows(number).last.min(initial=FOREVER)) for number in range(len(self._definitions))
        ]

    def _windows(self, place: int) -> _Windows:
        """Return the open windows of a definition, sorted by slot, then first.  O(runs)."""
        slots, first, last, _, left = self._joined
        begins = (
            self._definitions[place][1].begins(slots, first, last) if place else np.ones_like(slots, np.bool_)
        )
        starts = np.flatnonzero(begins)
        reach = np.maximum.reduceat(last, starts) if starts.size < slots.size else last
        found = _Windows(starts, np.diff(starts, append=slots.size), slots[starts], first[starts], reach)
        return found.take(left[starts] <= place)

    def due(self, bound: int) -> bool:
        return any(
            least < FOREVER and bool(one.complete(np.array([least]), bound)[0])
            for least, (_, one) in zip(self._least, self._definitions, strict=True)
        )

    def close(self, bound: int) -> list[WindowStates]:
        self._join()
        return self._leave(lambda slots: bound)

    def close_some(self, slots: Integers, bounds: Integers) -> list[WindowStates]:
        self._join()
        of = np.full(max(int(self._joined.slots.max(initial=-1)), int(slots.max(initial=-1))) + 1, NEVER)
        of[slots] = bounds
        return self._leave(lambda of_windows: of[of_windows])

    def _leave(self, bounds: Callable[[Integers], Integers | int]) -> list[WindowStates]:
        """Take out what is complete by ``bounds`` of slots."""
        found = []
        for place, (number, definition) in enumerate(self._definitions):
            windows = self._windows(place)
            complete = windows.take(definition.complete(windows.last, bounds(windows.slots)))
            if complete.starts.size:
                begins = np.cumsum(complete.runs) - complete.runs
                rows = np.repeat(complete.starts - begins, complete.runs) + np.arange(complete.runs.sum())
                self._joined.left[rows] = place + 1
                leaving = self._reduced(self._joined.take(rows), begins, definition)
                ends = definition.ends(leaving.last)
                found.append(WindowStates(leaving.slots, ends, leaving.states, number, leaving.first))
        if found:
            self._set(self._joined.take(self._joined.left < len(self._definitions)))
        return found

    def least_stamp(self, bound: int) -> int:
        everyone = np.empty(0, np.int64)
        if len(self):
            self._join()
            everyone = np.unique(self._joined.slots)
        return int(self.least_stamps(everyone, np.zeros_like(everyone), np.array([bound]))[0])

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        """The end of a later window is that of an open run, or of later tuples alone."""
        self._join()
        row = np.full(max(int(self._joined.slots.max(initial=-1)), int(slots.max(initial=-1))) + 1, -1)
        row[slots] = of
        stamps = bounds.copy() if self._stamp == "start" else self._narrowest.least_end(bounds)
        for place, (_, definition) in enumerate(self._definitions):
            windows = self._windows(place)
            some = np.flatnonzero(row[windows.slots] >= 0)
            open_ = windows.first if self._stamp == "start" else definition.ends(windows.last)
            np.minimum.at(stamps, row[windows.slots[some]], open_[some])
        return stamps

    def most_until(self, bound: int) -> float:
        return 0.0  # windows that leave take no more memory than the runs that they were

    def reach(self, slots: Integers | None, bounds: Integers | int) -> Reach:
        none = np.empty(0, np.int64)
        return none, none, np.empty(0)

    def living(self, groups: int) -> NDArray[np.bool_]:
        self._join()
        living = np.zeros(groups, np.bool_)
        living[self._joined.slots] = True
        return living

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._join()
        self._set(self._joined._replace(slots=slots[self._joined.slots]))

    def successor(self) -> Store:
        return self

    def save(self) -> dict[str, Any]:
        fresh = [_written(runs) for runs in self._fresh]
        return {"joined": _written(self._joined), "fresh": fresh}

    def load(self, saved: Saved, groups: int) -> Store:
        joined = self._loaded(saved.part("joined"), groups)
        if not (np.diff(joined.slots) >= 0).all() or not self._narrowest.begins(*joined[:3]).all():
            msg = (
                f"'joined' must be runs that are disjoint and in order; got {joined.slots.size} that are not"
            )
            raise SnapshotError(msg)
        self._set(joined)
        for runs in saved.parts("fresh"):
            self.merge(self._loaded(runs, groups))
        return self

    def _loaded(self, runs: Saved, groups: int) -> Runs:
        slots = runs.integers(0, (None,), least=0, below=groups)
        first, last = (runs.integers(i, slots.shape) for i in (1, 2))
        left = runs.integers(4, slots.shape, least=0, below=len(self._definitions)).astype(np.int16)
        self._check(first)
        self._check(last)
        if (first > last).any():
            msg = "runs must end behind their beginning"
            raise SnapshotError(msg)
        return Runs(slots, first, last, States(self._parts).loaded(runs.part(3), slots.size), left)

    def _check(self, times: Integers) -> None:
        for _, definition in self._definitions:
            definition.check(times)


class _Windows(NamedTuple):
    """Windows of a definition: the first of their runs, how many there are, slots, first and last times; int64 (n,)."""

    starts: Integers
    runs: Integers
    slots: Integers
    first: Integers
    last: Integers

    def take(self, some: NDArray[np.bool_]) -> _Windows:
        return self if some.all() else _Windows(*(column[some] for column in self))


def _overflow(definition: Merging, runs: Runs, last: int, column: str | None, at: int) -> WindowOverflowError:
    end = definition.ends(np.array([last]))[0]
    return WindowOverflowError(column, runs.slots[at], runs.first[at], end)


def _written(runs: Runs) -> list[Any]:
    """Return runs for a snapshot."""
    states = [list(state) for state in runs.states]
    return [narrow(runs.slots), runs.first, runs.last, states, narrow(runs.left)]
