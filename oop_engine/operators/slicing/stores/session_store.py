"""The session store: open runs of sessions, in cells of time, or in a list a group.

A run is a partial aggregate of tuples of a group, any two neighbours at most a gap apart.  Sessions of several gaps
share runs: those of the least gap, for a session of a wider one joins neighbouring sessions of a narrower one.  So a
run leaves for the narrower definitions first, and is forgotten when it has left for the widest.

Runs are in cells (``session_cells.py``) as long as all that are open are close together in time, for many a gap; else
in lists (``session_lists.py``), until none is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, shift
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.sessions.leaving import order_windows, rank_windows
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.store import OnTime, bounds_of
from oop_engine.operators.slicing.slot_times import SlotTimes
from oop_engine.operators.slicing.stores.session_cells import SessionCells
from oop_engine.operators.slicing.stores.session_lists import SessionLists
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, rows_of
from oop_engine.operators.windows import Gap
from oop_engine.system.knobs import knob

__all__ = ["SessionStore"]

_ROOM = knob(__name__, "_ROOM", 1 << 20)  # steps that are taken together, or those of ``_RUNS`` a group
_RUNS = knob(__name__, "_RUNS", 16)  # windows that are put in order twice: some group has more
_NONE = np.empty((2, 0), np.int64)


class SessionStore(OnTime):
    """Open runs of sessions by their numbers, the narrowest first; states of ``parts`` are no lists."""

    def __init__(self, definitions: Mapping[int, Gap], parts: Sequence[Part], stamp: Stamp) -> None:
        self._definitions, self._stamp = list(definitions.items()), stamp
        self._widest = self._definitions[-1][1]
        self._gaps = np.array([one.gap for one in definitions.values()])
        self._numbers = np.array(list(definitions))
        self._parts, self._least = parts, FOREVER
        self._begins = SlotTimes()  # by stamps that are starts: no run of the group begins before
        self._held: SessionCells | SessionLists = SessionCells(self._gaps, parts)
        self._look()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def alive(self) -> int:
        return self._held.alive

    def state(self) -> State:
        return State(0, len(self), self.alive, self._held.nbytes)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        if not times.size:
            return
        first, last = page.reach_of(times)
        self._widest.check_span(first, last)
        self._suit(first, last, times.size, groups)
        self._known = False
        self._least = min(self._least, first + int(self._gaps[0]))
        self._held.add(slots, times, self._held.states.prepare(page, times))
        if self._stamp == "start":
            self._begins.reserve(self._held.ends.times.size)
            self._begins.lower(slots, times)

    def _suit(self, first: int, last: int, tuples: int, groups: int) -> None:
        """Keep runs so that there is room for so many tuples of such times, and for so many groups."""
        if isinstance(self._held, SessionLists) and not len(self._held):
            self._held, self._begins = SessionCells(self._gaps, self._parts), SlotTimes()
        if isinstance(self._held, SessionCells) and not self._held.reach(first, last, tuples, groups):
            lists, runs = SessionLists(self._gaps, self._parts), self._held.runs()
            lists.put(runs, self._held.ends.times.size)
            self._held = lists
        self._held.room(groups)

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        bound = int(bounds if slots is None else np.asarray(bounds).max())
        return float(self._least < bound or self._held.lags(bound))

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        passed = NEVER
        if slots is None:
            passed = int(bounds)
            slots = self._held.ends.until(max(passed - 1, NEVER))
            bounds = np.full(slots.size, bounds)
        else:
            slots, of = np.unique(slots[slots < self._held.ends.times.size], return_index=True)
            bounds = np.asarray(bounds)[of]
        windows = self._leave(slots, bounds)
        self._held.shrink(passed)
        self._known = False
        return [WindowStates.ordered(windows)] if windows else []

    def _leave(self, slots: Integers, bounds: Integers) -> list[WindowStates]:
        """Take out the windows that are complete by ``bounds`` of groups, as many at a time as there is room for."""
        found, done, held = [], 0, self._held
        runs = min(len(held), _RUNS * slots.size)
        out = np.empty((8, held.steps + min(2 * self._gaps.size * runs, _ROOM)), np.int64)
        while done < slots.size:
            done, steps, free, windows = held.leave(slots, bounds, done, out)
            taken = out[:3, :steps]
            try:
                states = held.states.folded(taken, windows)
            except SumOverflowError as error:
                raise held.misfit(error, out[:, :steps]) from None
            held.states.reset(out[3, :free])
            if windows:
                found.append(self._in_order(out[4:, :windows], states))
        return found

    def _in_order(self, windows: Integers, states: list[Arrays]) -> WindowStates:
        """Return windows, as the kernel has them, by end, then definition, then group."""
        rank, sorted_ = np.empty(windows.shape[1], np.int64), np.empty_like(windows)
        if not rank_windows(windows, self._numbers, rank):
            of, ends, first, levels = windows.copy()
            return WindowStates(of, ends, states, self._numbers[levels], first)
        order = time_order(rank)
        order_windows(windows, self._numbers, rank, order, sorted_)
        of, ends, first, numbers = sorted_
        return WindowStates(of, ends, rows_of(states, order), numbers, first, in_order=True)

    def _look(self) -> None:
        """Learn the least end of an open window, and where it is asked for the least first time."""
        self._least = _least_of(self._held.ends, lambda slots: self._held.look(slots, _NONE)[0])
        self._earliest = _least_of(self._begins, self._first_of) if self._stamp == "start" else FOREVER
        self._known = True

    def _first_of(self, slots: Integers) -> int:
        """Return the least first time of some groups, and correct ``_begins``."""
        found = np.empty((2, slots.size), np.int64)
        least = self._held.look(slots, found)[1]
        self._begins.put(slots, found[1])
        return least

    def between(self, slots: Integers | None, after: Integers | int, until: Integers | int) -> WindowStates:
        """Return the open windows of ``slots[i]`` that ``until[i]`` completes and ``after[i]`` does not, as they are.

        None: of all groups.  Of a store of one definition.  O(their runs).
        """
        [(number, definition)] = self._definitions
        known = None if slots is None else np.unique(slots[slots < self._held.ends.times.size])
        groups, times, _, states = self._held.runs(known)
        first, last = times.T
        ends = definition.ends(last)
        bounds = (one if isinstance(one, int) else bounds_of(groups, slots, one) for one in (after, until))
        gone, done = (ends < bound for bound in bounds)
        rows = np.flatnonzero(done & ~gone)
        return WindowStates(groups[rows], ends[rows], rows_of(states, rows), number, first[rows])

    def least_stamp(self, bound: int) -> int:
        if not self._known:
            self._look()
        if self._stamp == "start":
            return min(bound, self._earliest)
        return min(shift(bound, int(self._gaps[0])), self._least)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        there = np.flatnonzero(slots < self._held.ends.times.size)
        ends, firsts = found = np.empty((2, there.size), np.int64)
        self._held.look(slots[there], found)
        start = self._stamp == "start"
        stamps = bounds.copy() if start else self._definitions[0][1].least_end(bounds)
        np.minimum.at(stamps, of[there], firsts if start else ends)
        return stamps

    def living(self, groups: int) -> NDArray[np.bool_]:
        return self._held.living(groups)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._held.rename(kept, slots)
        self._begins = self._begins.kept(kept) if self._stamp == "start" else self._begins

    def save(self) -> dict[str, Any]:
        return self._held.save()

    def load(self, saved: Saved, groups: int) -> None:
        kind = SessionCells if "cells" in saved else SessionLists
        self._held = kind(self._gaps, self._parts)
        self._held.load(saved, groups)
        if self._stamp == "start":
            self._begins = SlotTimes.of(np.full(groups, NEVER))
        self._look()


def _least_of(times: SlotTimes, look: Callable[[Integers], int]) -> int:
    """Return the least of what ``look`` finds of groups; ``times`` are that, or less, and ``look`` corrects them."""
    least = look(times.first_block())
    return min(least, look(times.until(least - 1)))
