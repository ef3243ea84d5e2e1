"""The session store: open runs of sessions, in a list a group (``kernels/sessions.py``).

A run is a partial aggregate of tuples of a group, any two neighbours at most a gap apart.  Sessions of several gaps
share runs: those of the least gap, for a session of a wider one joins neighbouring sessions of a narrower one.  So a
run leaves for the narrower definitions first, and is forgotten when it has left for the widest.

A tuple looks from the newest run of its group on, so most take one step, with no sort.  Where a page would walk far,
as a stream without groups and with very many open runs would, the rest of it is sorted: then a list is walked
through once.  What a page joins is combined behind its tuples, in the order in which they were joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.sessions import (
    FOUND,
    FULL,
    OPEN,
    USED,
    RunLists,
    leave,
    listed,
    place,
    settle,
)
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import OnTime, Store
from oop_engine.operators.slicing.stores.runs import order_of
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates, narrow
from oop_engine.operators.values.columns import Integers, begins_of, by_slot, filled_up
from oop_engine.operators.windows import Gap

__all__ = ["SessionStore"]

_LEAST = 16  # runs there is room for
_STEPS = 8  # a tuple along a list, on the average, before the rest of a page is sorted
_ANY = 1 << 40
_PAIRS = 1 << 20  # of open runs and definitions that are looked at together, or one definition


class SessionStore(OnTime):
    """Open runs of sessions by their numbers, the narrowest first; states of ``parts`` are no lists."""

    def __init__(self, definitions: Mapping[int, Gap], parts: Sequence[Part], stamp: Stamp) -> None:
        self._definitions, self._stamp = list(definitions.items()), stamp
        self._widest = self._definitions[-1][1]
        self._gaps = np.array([one.gap for one in definitions.values()])
        self._numbers = np.array(list(definitions))
        self._least = self._earliest = FOREVER
        self._states = States(parts)
        none = np.empty(0, np.int64)
        self._put(none, none, none, none, self._states.columns, 0)
        self._look()

    def _put(
        self, slots: Integers, first: Integers, last: Integers, left: NDArray[Any], states: list[Arrays], groups: int
    ) -> None:  # fmt: skip
        """Let these be the runs, by group, the newest of each first."""
        begins = begins_of(slots)
        heads, older = np.full(groups, -1, np.int32), np.arange(1, slots.size + 1, dtype=np.int32)
        heads[slots[begins]] = begins
        older[begins - 1] = -1  # the oldest of the group before, and of the last one
        counts = np.array([slots.size, begins.size, 0, 0])
        free = np.empty(slots.size, np.int32)  # none is: room for them
        self._table = RunLists(heads, older, first, last, left.astype(np.int16), free, counts)
        self._states.columns = states
        self._grow()

    def _grow(self) -> None:
        """Make room for more runs; those that are there keep their numbers."""
        heads, older, first, last, left, free, counts = self._table
        size = first.size
        more = max(size // 2, _LEAST)
        free = np.append(np.arange(size, size + more, dtype=np.int32)[::-1], free)
        older, left = np.pad(older, (0, more)), np.pad(left, (0, more))
        first, last = np.pad(first, (0, more)), np.pad(last, (0, more))
        self._table = RunLists(heads, older, first, last, left, free, counts)
        self._states.columns = self._states.resized(np.arange(size), size + more)

    def _room(self, groups: int) -> None:
        heads = self._table.heads
        if groups > heads.size:
            more = max(groups - heads.size, heads.size // 2)
            self._table = self._table._replace(heads=np.pad(heads, (0, more), constant_values=-1))

    def __len__(self) -> int:
        return int(self._table.counts[USED])

    @property
    def alive(self) -> int:
        return int(self._table.counts[OPEN])

    def state(self) -> State:
        held = sum(column.nbytes for column in self._table) + self._states.row_bytes * self._table.first.size
        return State(0, len(self), self.alive, held)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        if not times.size:
            return
        span = np.array([times.min(), times.max()])
        self._widest.check(span)
        self._room(groups)
        of, pairs = self._placed(slots, times)
        self._known = False
        self._least = min(self._least, int(span[0] + self._gaps[0]))
        try:
            self._states.add(of, self._states.prepare(page, times))
        except SumOverflowError as error:
            raise self._overflow(error, error.at) from None
        self._join(pairs)

    def _placed(self, slots: Integers, times: Integers) -> tuple[Integers, Integers]:
        """Return the run of each tuple, and which runs have been joined."""
        of, pairs = np.empty(times.size, np.int64), np.empty((3, times.size), np.int64)
        gap, counts = int(self._gaps[0]), self._table.counts
        counts[FOUND], done, order, most, into = 0, 0, None, _STEPS, of
        while (done := place(self._table, slots, times, gap, done, most, into, pairs)) < times.size:
            if counts[FULL]:
                self._grow()
                continue
            order, most = done + order_of(slots[done:], -times[done:]), _ANY
            slots, times, into, done = slots[order], times[order], np.empty(order.size, np.int64), 0
        if order is not None:
            of[order] = into
        return of, pairs[:, : counts[FOUND]]

    def _join(self, pairs: Integers) -> None:
        """Combine the states of runs that were joined, ``pairs`` of them in this order."""
        if not pairs.size:
            return
        try:
            self._states.folded(pairs)
        except SumOverflowError as error:
            raise self._overflow(error, int(pairs[0, error.at])) from None
        self._release(pairs[1])

    def _release(self, rows: Integers) -> None:
        """Let runs be free."""
        if rows.size:
            self._states.reset(rows)
            at = self._table.first.size - int(self._table.counts[USED])
            self._table.free[at : at + rows.size] = rows
            self._table.counts[USED] -= rows.size

    def _overflow(self, error: SumOverflowError, run: int) -> WindowOverflowError:
        rows, slots = self._listed()
        of, first, last = slots[rows == run], self._table.first[run], self._table.last[run]
        return WindowOverflowError(error.column, int(of.max(initial=0)), first, last + self._gaps[0])

    def _listed(self) -> tuple[Integers, Integers]:
        """Return all runs, and the group of each, by group, the newest first."""
        rows, slots = np.empty((2, len(self)), np.int64)
        listed(self._table, rows, slots)
        return rows, slots

    def due(self, bound: int) -> bool:
        return bool(self._least < bound)

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        known = self._table.heads.size
        if slots is None:
            found = self._leave(np.arange(known), np.full(known, bounds))
            self._look()
            return found
        slots, of = np.unique(slots[slots < known], return_index=True)
        if found := self._leave(slots, np.asarray(bounds)[of]):
            self._settle(slots)
            self._known = False
            self._shrink()
        return found

    def _leave(self, slots: Integers, bounds: Integers) -> list[WindowStates]:
        """Return the windows that are complete by ``bounds`` of groups, and mark their runs."""
        found, step = [], min(max(_PAIRS // max(len(self), 1), 1), self._gaps.size)
        rows, out = np.empty(step * len(self), np.int64), np.empty((5, step * len(self)), np.int64)
        for at in range(0, self._gaps.size, step):
            gaps = self._gaps[at : at + step]
            windows, runs = leave(self._table, slots, bounds, gaps, at, rows, out)
            if windows:
                starts, of, first, last, numbers = out[:, :windows].copy()
                states, ends = self._states.take(rows[:runs]), last + self._gaps[numbers]
                try:
                    states = self._states.reduced(states, starts) if windows < runs else states
                except SumOverflowError as e:
                    raise WindowOverflowError(e.column, of[e.at], first[e.at], ends[e.at]) from None
                found.append(WindowStates(of, ends, states, self._numbers[numbers], first))
        return found

    def _settle(self, slots: Integers) -> Integers:
        """Forget and join runs that have left; return the least end and first time of those that are open, (2, n)."""
        rows, pairs = np.empty(len(self), np.int64), np.empty((3, len(self)), np.int64)
        out = np.empty((2, slots.size), np.int64)
        gone, joined = settle(self._table, slots, self._gaps, rows, pairs, out)
        self._release(rows[:gone])
        self._join(pairs[:, :joined])
        return out

    def _look(self) -> None:
        """Learn the least end of an open window, and the least first time, once the windows that are complete left."""
        ends, firsts = self._settle(np.arange(self._table.heads.size))
        self._least, self._earliest = int(ends.min(initial=FOREVER)), int(firsts.min(initial=FOREVER))
        self._known = True
        self._shrink()

    def _shrink(self) -> None:
        """Give room back, once most of it is free."""
        if 4 * len(self) < self._table.first.size > _LEAST:
            (rows, slots), (heads, _, first, last, left, *_) = self._listed(), self._table
            self._put(slots, first[rows], last[rows], left[rows], self._states.take(rows), heads.size)

    def windows_of(self, slots: Integers) -> WindowStates:
        """Return the open windows of some groups as they are now, of a store of one definition.  O(runs)."""
        [(number, definition)] = self._definitions
        rows, of = self._listed()
        wanted = by_slot(slots, True, max(self._table.heads.size, int(slots.max(initial=-1)) + 1), False)
        rows, of = rows[wanted[of]], of[wanted[of]]
        ends = definition.ends(self._table.last[rows])
        return WindowStates(of, ends, self._states.take(rows), number, self._table.first[rows])

    def least_stamp(self, bound: int) -> int:
        if not self._known:
            self._look()
        if self._stamp == "start":
            return min(bound, self._earliest)
        return min(int(self._definitions[0][1].least_end(np.array([bound]))[0]), self._least)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        there = np.flatnonzero(slots < self._table.heads.size)
        ends, firsts = self._settle(slots[there])
        start = self._stamp == "start"
        stamps = bounds.copy() if start else self._definitions[0][1].least_end(bounds)
        np.minimum.at(stamps, of[there], firsts if start else ends)
        return stamps

    def living(self, groups: int) -> NDArray[np.bool_]:
        return filled_up(self._table.heads[:groups] >= 0, groups, False)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._room(slots.size)
        self._table = self._table._replace(heads=self._table.heads[kept])

    def save(self) -> dict[str, Any]:
        rows, slots = self._listed()
        columns = (column[rows] for column in (self._table.first, self._table.last, self._table.left))
        states = self._states.saved(self._states.take(rows))
        return {"runs": [*map(narrow, (slots, *columns))], "states": states}

    def load(self, saved: Saved, groups: int) -> Store:
        runs = saved.part("runs")
        slots = runs.integers(0, (None,), least=0, below=groups)
        first, last = (runs.integers(side, slots.shape) for side in (1, 2))
        left = runs.integers(3, slots.shape, least=0, below=len(self._definitions))
        self._widest.check(first)
        self._widest.check(last)
        newer, same = slots[1:] < slots[:-1], slots[1:] == slots[:-1]
        if (first > last).any() or newer.any() or (same & (last[1:] + self._gaps[0] >= first[:-1])).any():
            msg = f"runs must be by group, the newest first, and apart; got {slots.size} that are not"
            raise SnapshotError(msg)
        self._put(slots, first, last, left, self._states.loaded(saved.part("states"), slots.size), groups)
        self._look()
        return self
