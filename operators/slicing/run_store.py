"""The run store: window state of definitions whose windows merge, such as sessions.

A run is a partial aggregate of some tuples of a group with their first and last time; runs that the definition says
belong together are joined.  A page's tuples are sorted into runs first.  Runs held are in two parts, one in which no
two can be joined any more and one of what has come since; when the second outgrows the first both are joined, so a run
is joined O(log runs) times.  What is complete is asked of the definition alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.group_index import occurring
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import Reach, Store
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates, narrow

__all__ = ["Merging", "RunStore", "Runs"]

Integers = NDArray[np.int64]

_LEAST = 64  # runs; fewer are not worth joining


@runtime_checkable
class Merging(Protocol):
    """A definition whose windows merge.  Runs are given by first and last time, int64 (n,) each."""

    def check(self, times: Integers) -> None:
        """Raise ``ContractError`` if the windows of these times would not fit 64 bits."""
        ...

    def begins(self, slots: Integers, first: Integers, last: Integers) -> NDArray[np.bool_]:
        """Tell which runs, sorted by slot, then first, begin a window; the others join the one before."""
        ...

    def ends(self, last: Integers) -> Integers:
        """Return the ends of windows, by their last times."""
        ...

    def complete(self, last: Integers, bounds: Integers | int) -> NDArray[np.bool_]:
        """Tell which runs no later tuple can join, by the bounds of their groups."""
        ...

    def least_end(self, bounds: Integers) -> Integers:
        """Return the least end of a window of later tuples alone; sentinels stay."""
        ...


class Runs(NamedTuple):
    """Runs: slots of groups, first and last time, int64 (n,), and columns (n,) of each part."""

    slots: Integers
    first: Integers
    last: Integers
    states: list[Arrays]

    def take(self, rows: NDArray[Any]) -> Runs:
        """Return some of them."""
        states = [tuple(column[rows] for column in state) for state in self.states]
        return Runs(self.slots[rows], self.first[rows], self.last[rows], states)

    @property
    def nbytes(self) -> int:
        """Bytes of the runs."""
        columns = (column for state in self.states for column in state)
        return sum(column.nbytes for column in (self.slots, self.first, self.last, *columns))


class RunStore:
    """Open runs of ``definition``, which has the ``number``; ``stamp`` is what results are stamped with."""

    tuples = 0

    def __init__(self, number: int, definition: Merging, parts: Sequence[Part], stamp: Stamp) -> None:
        self._number, self._definition, self._parts, self._stamp = number, definition, list(parts), stamp
        self._open = np.zeros(0, np.bool_)  # (slots,) which groups have runs
        self._set(self._nothing())

    _alive: int
    _least: int

    def _nothing(self) -> Runs:
        none = np.empty(0, np.int64)
        return Runs(none, none, none, States(self._parts).columns)

    def __len__(self) -> int:
        return int(self._joined.slots.size) + self._fresh_runs

    @property
    def nbytes(self) -> int:
        return self._joined.nbytes + sum(runs.nbytes for runs in self._fresh) + self._open.nbytes

    @property
    def alive(self) -> int:
        return self._alive

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        self._definition.check(times)
        self.merge(self._runs_of(page, times, slots))

    def _runs_of(self, page: Page, times: Integers, slots: Integers) -> Runs:
        """Return the tuples of a page as runs.  O(tuples log tuples)."""
        order = np.lexsort((times, slots))
        of, at = slots[order], times[order]
        starts = np.flatnonzero(self._definition.begins(of, at, at))
        run = np.zeros(order.size, np.int64)
        run[starts[1:]] = 1
        of_tuple = np.empty_like(order)
        of_tuple[order] = np.cumsum(run)
        behind = np.append(starts[1:], order.size) - 1
        states = States(self._parts, starts.size)
        runs = Runs(of[starts], at[starts], at[behind], states.columns)
        try:
            states.add(of_tuple, states.prepare(page, times))
        except SumOverflowError as error:
            raise self._overflow(runs, error.column, error.at) from None
        return runs

    def merge(self, runs: Runs) -> None:
        """Take in runs, whoever made them.  O(log runs) a run, amortized."""
        self._fresh.append(runs)
        self._fresh_runs += runs.slots.size
        self._note(runs.slots)
        self._least = min(self._least, int(runs.last.min(initial=FOREVER)))
        if self._fresh_runs > max(self._joined.slots.size, _LEAST):
            self._join()

    def _join(self) -> None:
        """Join all runs that belong together."""
        if not self._fresh:
            return
        some = [self._joined, *self._fresh]
        slots, first, last = (np.concatenate([runs[i] for runs in some]) for i in range(3))
        states = [tuple(map(np.concatenate, zip(*of, strict=True)))
                  for of in zip(*(runs.states for runs in some), strict=True)]  # fmt: skip
        together = Runs(slots, first, last, states).take(np.lexsort((first, slots)))
        begins = self._definition.begins(*together[:3])
        starts = np.flatnonzero(begins)
        if starts.size == begins.size:
            self._set(together)
            return
        last = np.maximum.reduceat(together.last, starts)
        try:
            states = States(self._parts).reduced(together.states, starts)
        except SumOverflowError as error:
            raise self._overflow(together, error.column, int(starts[error.at])) from None
        self._set(Runs(together.slots[starts], together.first[starts], last, states))

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
        self._least = int(joined.last.min(initial=FOREVER))

    def due(self, bound: int) -> bool:
        return self._least < FOREVER and bool(self._definition.complete(np.array([self._least]), bound)[0])

    def close(self, bound: int) -> list[WindowStates]:
        self._join()
        return self._leave(self._definition.complete(self._joined.last, bound))

    def close_some(self, slots: Integers, bounds: Integers) -> list[WindowStates]:
        self._join()
        joined = self._joined
        known = np.isin(joined.slots, slots)
        of = np.zeros(max(int(joined.slots.max(initial=-1)), int(slots.max(initial=-1))) + 1, np.int64)
        of[slots] = bounds
        return self._leave(known & self._definition.complete(joined.last, of[joined.slots]))

    def _leave(self, complete: NDArray[np.bool_]) -> list[WindowStates]:
        if not complete.any():
            return []
        leaving = self._joined.take(complete)
        self._set(self._joined.take(~complete))
        ends = self._definition.ends(leaving.last)
        return [WindowStates(leaving.slots, ends, leaving.states, self._number, leaving.first)]

    def least_stamp(self, bound: int) -> int:
        none = np.empty(0, np.int64)
        return (
            int(self.least_stamps(none, none, np.array([bound]))[0])
            if not len(self)
            else self._held_back(bound)
        )

    def _held_back(self, bound: int) -> int:
        self._join()
        everyone = np.unique(self._joined.slots)
        return int(self.least_stamps(everyone, np.zeros_like(everyone), np.array([bound]))[0])

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        """The end of a later window is that of an open run, or of later tuples alone."""
        self._join()
        stamps = bounds.copy() if self._stamp == "start" else self._definition.least_end(bounds)
        joined = self._joined
        row = np.full(max(int(joined.slots.max(initial=-1)), int(slots.max(initial=-1))) + 1, -1)
        row[slots] = of
        some = np.flatnonzero(row[joined.slots] >= 0)
        open_ = joined.first if self._stamp == "start" else self._definition.ends(joined.last)
        np.minimum.at(stamps, row[joined.slots[some]], open_[some])
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
        sorted_ = (np.diff(joined.slots) >= 0).all()
        if not sorted_ or not self._definition.begins(*joined[:3]).all():
            msg = (
                f"'joined' must be runs that are disjoint and in order; got {joined.slots.size} that are not"
            )
            raise SnapshotError(msg)
        self._set(joined)
        for runs in saved.parts("fresh"):
            self._fresh.append(self._loaded(runs, groups))
            self._fresh_runs += self._fresh[-1].slots.size
            self._note(self._fresh[-1].slots)
            self._least = min(self._least, int(self._fresh[-1].last.min(initial=FOREVER)))
        return self

    def _loaded(self, runs: Saved, groups: int) -> Runs:
        slots = runs.integers(0, (None,), least=0, below=groups)
        first, last = (runs.integers(i, slots.shape) for i in (1, 2))
        self._definition.check(first)
        self._definition.check(last)
        if (first > last).any():
            msg = "runs must end behind their beginning"
            raise SnapshotError(msg)
        return Runs(slots, first, last, States(self._parts).loaded(runs.part(3), slots.size))

    def _overflow(self, runs: Runs, column: str | None, at: int) -> WindowOverflowError:
        end = self._definition.ends(runs.last[[at]])[0]
        return WindowOverflowError(column, runs.slots[at], runs.first[at], end)


def _written(runs: Runs) -> list[Any]:
    """Return runs for a snapshot."""
    return [narrow(runs.slots), runs.first, runs.last, [list(state) for state in runs.states]]
