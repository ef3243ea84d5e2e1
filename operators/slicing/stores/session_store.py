"""The session store: open runs of sessions, in a list a group (``kernels/sessions.py``).

A run is a partial aggregate of tuples of a group, any two neighbours at most a gap apart.  Sessions of several gaps
share runs: those of the least gap, for a session of a wider one joins neighbouring sessions of a narrower one.  So a
run leaves for the narrower definitions first, and is forgotten when it has left for the widest.

A tuple looks from the newest run of its group on, so most take one step, with no sort.  Where a page would walk far,
as a stream without groups and with very many open runs would, the rest of it is sorted: then a list is walked
through once.  What a page joins is combined behind its tuples, in the order in which they were joined.

A bound looks at one number a group, before which none of its windows ends, and walks along the lists of those groups
alone that may have a complete one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, shift
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.sessions import (
    FOUND,
    FREE,
    FULL,
    OPEN,
    USED,
    RunLists,
    due,
    earliest,
    least,
    leave,
    listed,
    looked,
    place,
    release,
    span,
)
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.compiled import fixed
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
_ROOM = 1 << 20  # steps that are taken together, or three a group


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
        self._put(none, np.empty((0, 2), np.int64), none, self._states.columns, 0)
        self._look()

    def _put(
        self, slots: Integers, times: Integers, left: NDArray[Any], states: list[Arrays], groups: int
    ) -> None:
        """Let these be the runs, by group, the newest of each first."""
        begins = begins_of(slots)
        heads, older = np.full(groups, -1, np.int32), np.arange(1, slots.size + 1, dtype=np.int32)
        until = np.full(groups, NEVER)
        heads[slots[begins]] = begins
        older[begins - 1] = -1  # the oldest of the group before, and of the last one
        counts = np.array([slots.size, begins.size, 0, 0, -1])
        columns = slots.astype(np.int32), left.astype(np.int16)
        self._table = RunLists(heads, until, older, times, *columns, counts)
        self._states.columns = states
        self._grow()

    def _grow(self) -> None:
        """Make room for more runs, when none is free; those that are there keep their numbers."""
        heads, until, older, times, of, left, counts = self._table
        size = left.size
        more = max(size // 2, _LEAST)
        free = np.arange(size + 1, size + more + 1, dtype=np.int32)
        free[-1], counts[FREE] = -1, size
        times, of = filled_up(times, size + more, 0), filled_up(of, size + more, 0)
        left = filled_up(left, size + more, -1)
        self._table = RunLists(heads, until, np.concatenate([older, free]), times, of, left, counts)
        self._states.columns = self._states.resized(np.arange(size), size + more)

    def _room(self, groups: int) -> None:
        heads, until = self._table.heads, self._table.until
        if groups > heads.size:
            room = max(groups, 3 * heads.size // 2)
            heads, until = filled_up(heads, room, -1), filled_up(until, room, FOREVER)
            self._table = self._table._replace(heads=heads, until=until)

    def __len__(self) -> int:
        return int(self._table.counts[USED])

    @property
    def alive(self) -> int:
        return int(self._table.counts[OPEN])

    def state(self) -> State:
        held = sum(column.nbytes for column in self._table) + self._states.row_bytes * self._table.left.size
        return State(0, len(self), self.alive, held)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        if not times.size:
            return
        first, last = span(times)
        self._widest.check_span(first, last)
        self._room(groups)
        of, pairs = self._placed(slots, times)
        self._known = False
        self._least = min(self._least, first + int(self._gaps[0]))
        try:
            self._states.add(of, self._states.prepare(page, times))
        except SumOverflowError as error:
            raise self._overflow(error, error.at) from None
        self._join(pairs)

    def _placed(self, slots: Integers, times: Integers) -> tuple[Integers, Integers]:
        """Return the run of each tuple, and which runs have been joined."""
        of, pairs = np.empty(times.size, np.int64), np.empty((3, times.size), np.int64)
        slots, times = fixed(slots), fixed(times)
        gap, counts = int(self._gaps[0]), self._table.counts
        counts[FOUND], done, order, most, into = 0, 0, None, _STEPS, of
        while (done := place(self._table, slots, times, gap, done, most, into, pairs)) < times.size:
            if counts[FULL]:
                self._grow()
                continue
            order, most = done + order_of(slots[done:], -times[done:]), _ANY
            slots, times = fixed(slots[order]), fixed(times[order])
            into, done = np.empty(order.size, np.int64), 0
        if order is not None:
            of[order] = into
        return of, pairs[:, : counts[FOUND]]

    def _join(self, pairs: Integers) -> None:
        """Combine the states of runs that were joined, ``pairs`` of them in this order, and let the older be free."""
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
            release(self._table, rows)

    def _overflow(self, error: SumOverflowError, run: int) -> WindowOverflowError:
        (first, last), slot = self._table.times[run].tolist(), self._table.of[run]
        return WindowOverflowError(error.column, slot, first, last + self._gaps[self._table.left[run]])

    def _listed(self) -> Integers:
        """Return all runs, by group, the newest first."""
        rows = np.empty(len(self), np.int64)
        listed(self._table, rows)
        return rows

    def due(self, bound: int) -> bool:
        return bool(self._least < bound)

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        if slots is None:
            found = np.empty(self._table.until.size + 1, np.int64)
            slots = found[: due(self._table, bounds, found)]
            bounds = np.full(slots.size, bounds)
        else:
            slots, of = np.unique(slots[slots < self._table.until.size], return_index=True)
            bounds = np.asarray(bounds)[of]
        windows = self._leave(slots, bounds)
        self._known = False
        self._shrink()
        return [WindowStates.ordered(windows, ascending=True)] if windows else []

    def _leave(self, slots: Integers, bounds: Integers) -> list[WindowStates]:
        """Take out the windows that are complete by ``bounds`` of groups, as many at a time as there is room for."""
        found, done = [], 0
        out = np.empty((8, 2 * self._gaps.size + min(3 * slots.size, _ROOM)), np.int64)
        while done < slots.size:
            done, steps, free, windows = leave(self._table, slots, bounds, self._gaps, done, out)
            taken = out[:3, :steps]
            try:
                states = self._states.folded(taken, windows)
            except SumOverflowError as error:
                raise self._overflow(error, int(taken[0, error.at])) from None
            self._states.reset(out[3, :free])
            if windows:
                of, ends, first, numbers = out[4:, :windows].copy()
                found.append(WindowStates(of, ends, states, self._numbers[numbers], first))
        return found

    def _look(self) -> None:
        """Learn the least end of an open window, and where it is asked for the least first time."""
        self._least = least(self._table, self._gaps)
        self._earliest = earliest(self._table) if self._stamp == "start" else FOREVER
        self._known = True

    def _shrink(self) -> None:
        """Give room back, once most of it is free."""
        if 4 * len(self) < self._table.left.size > _LEAST:
            rows, (heads, _, _, times, of, left, _) = self._listed(), self._table
            self._put(of[rows].astype(np.int64), times[rows], left[rows], self._states.take(rows), heads.size)

    def windows_of(self, slots: Integers) -> WindowStates:
        """Return the open windows of some groups as they are now, of a store of one definition.  O(runs)."""
        [(number, definition)] = self._definitions
        rows = self._listed()
        of = self._table.of[rows].astype(np.int64)
        wanted = by_slot(slots, True, max(self._table.heads.size, int(slots.max(initial=-1)) + 1), False)
        rows, of = rows[wanted[of]], of[wanted[of]]
        first, last = self._table.times[rows].T
        return WindowStates(of, definition.ends(last), self._states.take(rows), number, first)

    def least_stamp(self, bound: int) -> int:
        if not self._known:
            self._look()
        if self._stamp == "start":
            return min(bound, self._earliest)
        return min(shift(bound, int(self._gaps[0])), self._least)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        there = np.flatnonzero(slots < self._table.heads.size)
        ends, firsts = found = np.empty((2, there.size), np.int64)
        looked(self._table, slots[there], self._gaps, found)
        start = self._stamp == "start"
        stamps = bounds.copy() if start else self._definitions[0][1].least_end(bounds)
        np.minimum.at(stamps, of[there], firsts if start else ends)
        return stamps

    def living(self, groups: int) -> NDArray[np.bool_]:
        return filled_up(self._table.heads[:groups] >= 0, groups, False)

    def rename(self, kept: Integers, slots: Integers) -> None:
        rows, of = self._listed(), self._table.of
        of[rows] = slots[of[rows]]
        self._room(slots.size)
        heads, until = self._table.heads[kept], self._table.until[kept]
        self._table = self._table._replace(heads=heads, until=until)

    def save(self) -> dict[str, Any]:
        rows = self._listed()
        (first, last), left = self._table.times[rows].T, self._table.left[rows]
        columns = self._table.of[rows], first, last, left
        return {"runs": [*map(narrow, columns)], "states": self._states.saved(self._states.take(rows))}

    def load(self, saved: Saved, groups: int) -> Store:
        runs = saved.part("runs")
        slots = runs.integers(0, (None,), least=0, below=groups)
        times = np.stack([runs.integers(side, slots.shape) for side in (1, 2)], axis=1)
        left = runs.integers(3, slots.shape, least=0, below=len(self._definitions))
        self._widest.check(times)
        newer, same, (first, last) = slots[1:] < slots[:-1], slots[1:] == slots[:-1], times.T
        if (first > last).any() or newer.any() or (same & (last[1:] + self._gaps[0] >= first[:-1])).any():
            msg = f"runs must be by group, the newest first, and apart; got {slots.size} that are not"
            raise SnapshotError(msg)
        self._put(slots, times, left, self._states.loaded(saved.part("states"), slots.size), groups)
        self._look()
        return self
