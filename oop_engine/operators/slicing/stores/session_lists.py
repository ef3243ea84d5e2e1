"""Session lists: open runs of sessions in a list a group (``kernels/sessions/lists.py``), wherever in time they are.

A tuple looks from the newest run of its group on, so most take one step, with no sort.  Where tuples walk far, as in a
group with very many open runs, every 16th run becomes a *finger*, at which a tuple begins that is not near the newest
run.  Fingers are made anew when as many steps have been taken as that costs; in between, a page that walks far is
sorted, so that a list is walked through once.

What a page joins is combined behind its tuples, in the order in which they were joined.

A bound looks at one number a group, before which none of its windows ends, and walks along the lists of those groups
alone that may have a complete one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.sessions.lists import (
    FOUND,
    FREE,
    FULL,
    OPEN,
    USED,
    WALKED,
    Fingers,
    RunLists,
    assign_runs,
    emit_closed,
    fingers_of,
    list_runs,
    open_bounds,
    release,
)
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.runs.runs import order_of
from oop_engine.operators.slicing.slot_times import SlotTimes
from oop_engine.operators.slicing.window_states import WindowOverflowError, narrow
from oop_engine.operators.values.columns import Integers, begins_of, filled_up
from oop_engine.operators.windows import Gap
from oop_engine.system.knobs import knob

__all__ = ["OpenRuns", "SessionLists"]

_LEAST = knob(__name__, "_LEAST", 16)  # runs there is room for
_STEPS = knob(
    __name__, "_STEPS", 8
)  # a tuple along a list, on the average, before the rest of a page is sorted
_ANY = 1 << 40
_NO_FINGERS = Fingers(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32))


class OpenRuns(NamedTuple):
    """Runs by group, the newest first: ``slots`` int64 (n,), first and last ``times`` int64 (n, 2).

    ``left``: how many definitions have put them out, integers (n,).
    """

    slots: Integers
    times: Integers
    left: NDArray[Any]
    states: list[Arrays]


class SessionLists:
    """Open runs of ``parts``; of sessions with ``gaps``, the narrowest first."""

    def __init__(self, gaps: Integers, parts: Sequence[Part]) -> None:
        self._gaps, self.states = gaps, States(parts)
        none = np.empty(0, np.int64)
        self.put(OpenRuns(none, np.empty((0, 2), np.int64), none, self.states.columns), 0)

    def put(self, runs: OpenRuns, groups: int) -> None:
        """Let these be the runs, of so many groups."""
        slots, times, left, states = runs
        begins = begins_of(slots)
        heads, older = np.full(groups, -1, np.int32), np.arange(1, slots.size + 1, dtype=np.int32)
        self.ends = SlotTimes.of(np.full(groups, NEVER))  # no open window of the group ends before
        heads[slots[begins]] = begins
        older[begins - 1] = -1  # the oldest of the group before, and of the last one
        counts = np.array([slots.size, begins.size, 0, 0, -1, 0])
        columns = slots.astype(np.int32), left.astype(np.int16)
        self._table = RunLists(heads, self.ends.times, self.ends.least, older, times, *columns, counts)
        self.states.columns, self._fingers = states, _NO_FINGERS
        self._grow()

    def _grow(self) -> None:
        """Make room for more runs, when none is free; those that are there keep their numbers."""
        heads, until, least, older, times, of, left, counts = self._table
        size = left.size
        more = max(size // 2, _LEAST)
        free = np.arange(size + 1, size + more + 1, dtype=np.int32)
        free[-1], counts[FREE] = -1, size
        times, of = filled_up(times, size + more, 0), filled_up(of, size + more, 0)
        left = filled_up(left, size + more, -1)
        older = np.concatenate([older, free])
        self._table = RunLists(heads, until, least, older, times, of, left, counts)
        self.states.columns = self.states.resized(np.arange(size), size + more)

    def room(self, groups: int) -> None:
        """Make room for so many groups."""
        heads, until = self._table.heads, self._table.until
        if groups > heads.size:
            room = max(groups, 3 * heads.size // 2)
            heads, until = filled_up(heads, room, -1), filled_up(until, room, FOREVER)
            self._lay(heads, until)

    def _lay(self, heads: NDArray[np.int32], until: Integers) -> None:
        """Let groups be others, or more; blocks are looked into when they are asked next."""
        self.ends = SlotTimes.of(until)
        self._table = self._table._replace(heads=heads, until=until, least=self.ends.least)

    def __len__(self) -> int:
        return int(self._table.counts[USED])

    @property
    def alive(self) -> int:
        """How many groups have a run."""
        return int(self._table.counts[OPEN])

    @property
    def nbytes(self) -> int:
        """Bytes of the lists and states, with the room there is for more."""
        held = sum(column.nbytes for column in (*self._table, *self._fingers))
        return held + self.states.row_bytes * self._table.left.size

    @property
    def steps(self) -> int:
        """How many steps ``leave`` needs room for at least."""
        return 2 * self._gaps.size

    def add(self, slots: Integers, times: Integers, inputs: list[Arrays]) -> None:
        """Put tuples where they belong."""
        of, pairs = self._placed(slots, times)
        try:
            self.states.add(of, inputs)
        except SumOverflowError as error:
            raise self._overflow(error, error.at) from None
        self._join(pairs)

    def _placed(self, slots: Integers, times: Integers) -> tuple[Integers, Integers]:
        """Return the run of each tuple, and which runs have been joined."""
        of, pairs = np.empty(times.size, np.int64), np.empty((3, times.size), np.int64)
        slots, times = fixed(slots), fixed(times)
        gap, counts = int(self._gaps[0]), self._table.counts
        counts[FOUND], done, order, most, into = 0, 0, None, _STEPS, of
        fingers = self._fingers
        while (
            done := assign_runs(self._table, slots, times, gap, done, most, into, pairs, fingers)
        ) < times.size:
            if counts[FULL]:
                self._grow()
                continue
            if 4 * counts[WALKED] > len(self) + self._table.heads.size:
                self._fingers = fingers = Fingers(*fingers_of(self._table))
                counts[WALKED] = 0
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
            self.states.folded(pairs)
        except SumOverflowError as error:
            raise self._overflow(error, int(pairs[0, error.at])) from None
        self.states.reset(pairs[1])
        release(self._table, pairs[1])

    def leave(
        self, slots: Integers, bounds: Integers, begin: int, out: Integers
    ) -> tuple[int, int, int, int]:
        """Take out complete windows, as the kernel does."""
        found: tuple[int, int, int, int] = emit_closed(self._table, slots, bounds, self._gaps, begin, out)
        return found

    def misfit(self, error: SumOverflowError, out: Integers) -> WindowOverflowError:
        """Return the error of a step that the kernel has written into ``out``."""
        return self._overflow(error, int(out[0, error.at]))

    def _overflow(self, error: SumOverflowError, run: int) -> WindowOverflowError:
        (first, last), slot = self._table.times[run].tolist(), self._table.of[run]
        return WindowOverflowError(error.column, slot, first, last + self._gaps[self._table.left[run]])

    def runs(self, slots: Integers | None = None) -> OpenRuns:
        """Return the runs of some groups, ascending, or of all."""
        rows = self._listed(slots)
        times, of, left = self._table.times, self._table.of, self._table.left
        return OpenRuns(of[rows].astype(np.int64), times[rows], left[rows], self.states.take(rows))

    def _listed(self, slots: Integers | None = None) -> Integers:
        """Return the numbers of the runs of some groups, or of all, the newest first of each."""
        of = np.arange(self._table.heads.size) if slots is None else slots
        rows = np.empty(len(self), np.int64)
        return rows[: list_runs(self._table, of, rows)]

    def lags(self, bound: int) -> bool:
        """Tell whether room can be given back once no tuple comes below a bound; O(1)."""
        return False

    def shrink(self, bound: int) -> None:
        """Give room back, once most of it is free; no tuple comes below a bound any more."""
        if 4 * len(self) < self._table.left.size > _LEAST:
            self.put(self.runs(), self._table.heads.size)

    def look(self, slots: Integers, out: Integers) -> tuple[int, int]:
        """Return the least end of an open window of some groups, and the least first time, as the kernel does."""
        least: tuple[int, int] = open_bounds(self._table, slots, self._gaps, out)
        return least

    def living(self, groups: int) -> NDArray[np.bool_]:
        """Tell which groups have a run."""
        return filled_up(self._table.heads[:groups] >= 0, groups, False)

    def rename(self, kept: Integers, slots: Integers) -> None:
        rows, of = self._listed(), self._table.of
        of[rows] = slots[of[rows]]
        self.room(slots.size)
        heads, until = self._table.heads[kept], self._table.until[kept]
        self._lay(heads, until)
        self._fingers = _NO_FINGERS

    def save(self) -> dict[str, Any]:
        slots, times, left, states = self.runs()
        columns = slots.astype(np.int32), *times.T, left
        return {"runs": [*map(narrow, columns)], "states": self.states.saved(states)}

    def load(self, saved: Saved, groups: int) -> None:
        runs = saved.part("runs")
        slots = runs.integers(0, (None,), least=0, below=groups)
        times = np.stack([runs.integers(side, slots.shape) for side in (1, 2)], axis=1)
        left = runs.integers(3, slots.shape, least=0, below=self._gaps.size)
        Gap(int(self._gaps[-1])).check(times)
        newer, same, (first, last) = slots[1:] < slots[:-1], slots[1:] == slots[:-1], times.T
        if (first > last).any() or newer.any() or (same & (last[1:] + self._gaps[0] >= first[:-1])).any():
            msg = f"runs must be by group, the newest first, and apart; got {slots.size} that are not"
            raise SnapshotError(msg)
        self.put(OpenRuns(slots, times, left, self.states.loaded(saved.part("states"), slots.size)), groups)
