"""The run store: window state of definitions whose windows merge, and of sessions of lists of values.

A run is a partial aggregate of some tuples of a group with their first and last time; runs that belong
together by the definition are merged (``slicing/stores/runs.py``).  The definition alone tells which are complete.

Several definitions share the runs if they are nested, as sessions of several gaps are: a window of a wider definition
joins neighbouring windows of a narrower one.  Runs are those of the narrowest.  A window closes in the narrower ones
first, so how many definitions a run has left for tells which; it is forgotten when it has left for the widest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.groups.group_index import occurring
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.runs import OPEN_FIRST, OPEN_START, open_windows
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.store import OnTime, Store, bounds_of
from oop_engine.operators.slicing.stores.runs import HeldRuns, Runs, Sides, overlapping
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, begins_of, by_slot, filled_up, spread
from oop_engine.operators.windows import Gap, Merging

__all__ = ["RunStore"]


class RunStore(OnTime):
    """Open runs of nested ``definitions``, the narrowest first, by their numbers; ``stamp`` is that of results."""

    def __init__(self, definitions: Mapping[int, Merging], parts: Sequence[Part], stamp: Stamp) -> None:
        self._definitions, self._narrowest = list(definitions.items()), next(iter(definitions.values()))
        self._stamp = stamp
        # A run is marked with how many definitions have put out the window that it is in, the narrowest first.
        marks, sides = (np.int16(0),), _sides(self._narrowest)
        self._runs = HeldRuns(parts, overlapping(self._narrowest.begins), sides, marks)
        self._begin()

    def _begin(self, least: list[int] | None = None) -> None:
        """Learn which groups have runs, bool (slots,), and the ``least`` last time of an open window, by definition."""
        merged, *fresh = self._runs.levels()
        self._known = merged
        self._open, self.alive = np.zeros(0, np.bool_), 0
        if least is None:
            lasts = (self._windows(merged, place)[3] for place in range(len(self._definitions)))
            least = [int(last.min(initial=FOREVER)) for last in lasts]
        self._least = least
        for runs in (merged._replace(last=merged.last[:0]), *fresh):  # its last times are those of windows
            self._note(runs)

    def _note(self, runs: Runs) -> None:
        """Learn that there are more runs."""
        slots = runs.slots
        if (groups := int(slots.max(initial=-1)) + 1) > self._open.size:
            self._open = filled_up(self._open, max(groups, 2 * self._open.size), False)
        new = slots[~self._open[slots]]
        if 16 * new.size > self._open.size:
            self._open[new] = True
            self.alive = int(np.count_nonzero(self._open))
        elif new.size:
            self._open[new] = True
            self.alive += occurring(new, self._open.size).size
        least = int(runs.last.min(initial=FOREVER))
        self._least = [min(least, known) for known in self._least]

    def state(self) -> State:
        return State(0, len(self._runs), self.alive, self._runs.nbytes + self._open.nbytes)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        self._check(times)
        runs = self.runs_of(page, times, slots)
        self._check(runs.last)
        self._runs.add(runs)
        self._note(runs)

    def runs_of(self, page: Page, times: Integers, slots: Integers) -> Runs:
        """Return the tuples of a page as runs.  O(tuples), and a sort if the definition does not assign runs."""
        assign = self._narrowest.assign if isinstance(self._narrowest, Gap) else self._runs.assigned
        return self._runs.of_page(page, times, assign(slots, times))

    def _windows(self, runs: Runs, place: int) -> Integers:
        """Return the open windows of a definition, sorted by slot, then first, int64 (5, n).  O(runs).

        The first of their runs, how many there are, slots, last and first times.
        """
        slots, first, last, _, (left,) = runs
        begins = self._begins(runs, place) if place else np.ones(slots.size, np.bool_)
        out = np.empty((5, slots.size), np.int64)
        windows = out[:, : open_windows(begins, slots, last, left, place, out)]
        windows[OPEN_FIRST] = first[windows[OPEN_START]]
        return windows

    def _begins(self, runs: Runs, place: int) -> NDArray[np.bool_]:
        return self._definitions[place][1].begins(*runs[:3])

    def due(self, bound: int) -> bool:
        return any(
            least < FOREVER and bool(one.complete(np.array([least]), bound)[0])
            for least, (_, one) in zip(self._least, self._definitions, strict=True)
        )

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        found, held = [], self._runs.merged()
        [left], least = held.marks, list[int]()
        for place, (number, definition) in enumerate(self._definitions):
            starts, runs, of_windows, last, _ = self._windows(held, place)
            complete = definition.complete(last, bounds_of(of_windows, slots, bounds))
            least.append(int(np.where(complete, FOREVER, last).min(initial=FOREVER)))
            if complete.any():
                of, rows = spread(starts[complete], runs[complete])
                left[rows] = place + 1
                leaving = self._runs.reduced(held.take(rows), begins_of(of), _sides(definition))
                ends = definition.ends(leaving.last)
                found.append(WindowStates(leaving.slots, ends, leaving.states, number, leaving.first))
        if found:
            self._put(held.take(np.flatnonzero(left < len(self._definitions))))
            self._begin(least)
        return found

    def _put(self, runs: Runs) -> None:
        """Let these be the runs: those that have left for the narrower definitions join as the wider ones do."""
        for place, (_, definition) in enumerate(self._definitions[1:], 1):
            begins, [left] = self._begins(runs, place), runs.marks
            begins[1:] |= np.minimum(left[1:], left[:-1]) < place
            runs = self._runs.reduced(runs, np.flatnonzero(begins), _sides(definition))
        self._runs.put(runs)

    def least_stamp(self, bound: int) -> int:
        """The end of a later window is that of an open run, or of later tuples alone."""
        if self._stamp == "start":
            return min(bound, int(self._runs.merged().first.min(initial=bound)))
        if self._runs.merged() is not self._known:
            self._begin()
        ends = [int(self._narrowest.least_end(np.array([bound]))[0])]
        for least, (_, definition) in zip(self._least, self._definitions, strict=True):
            ends += definition.ends(np.array([least])).tolist() if least < FOREVER else []
        return min(ends)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        held = self._runs.merged()
        row = by_slot(slots, of, 1 + max(int(held.slots.max(initial=-1)), int(slots.max(initial=-1))), -1)
        stamps = bounds.copy() if self._stamp == "start" else self._narrowest.least_end(bounds)
        for place, (_, definition) in enumerate(self._definitions):
            _, _, of_windows, last, first = self._windows(held, place)
            some = np.flatnonzero(row[of_windows] >= 0)
            open_ = first if self._stamp == "start" else definition.ends(last)
            np.minimum.at(stamps, row[of_windows[some]], open_[some])
        return stamps

    def living(self, groups: int) -> NDArray[np.bool_]:
        return filled_up(self._open[:groups], groups, False)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._runs.rename(slots)
        self._begin()

    def save(self) -> dict[str, Any]:
        return {"runs": self._runs.save()}

    def load(self, saved: Saved, groups: int) -> Store:
        self._runs.load(saved.parts("runs"), groups, self._check_runs)
        self._begin()
        return self

    def _check_runs(self, runs: Runs) -> None:
        self._check(runs.first)
        self._check(runs.last)
        [left] = runs.marks
        if (runs.first > runs.last).any() or (left < 0).any() or (left >= len(self._definitions)).any():
            msg = "runs must end behind their beginning, and have windows that are open"
            raise SnapshotError(msg)

    def _check(self, times: Integers) -> None:
        ends = np.array([times.min(), times.max()]) if times.size else times
        for _, definition in self._definitions:
            definition.check(ends)


def _sides(definition: Merging) -> Sides:
    return lambda first, last: (first, int(definition.ends(np.array([last]))[0]))
