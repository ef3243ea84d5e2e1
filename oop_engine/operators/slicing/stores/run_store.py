"""The run store: window state of definitions whose windows merge, and of sessions of lists of values.

A run is a partial aggregate of some tuples of a group with their first and last time; runs that belong
together by the definition are merged (``slicing/runs/runs.py``).  The definition alone tells which are complete.

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
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.runs import OPEN_FIRST, OPEN_START, open_windows
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.runs.first_windows import FirstWindows
from oop_engine.operators.slicing.runs.held_runs import HeldRuns
from oop_engine.operators.slicing.runs.runs import Runs, Sides, overlapping
from oop_engine.operators.slicing.store import OnTime, bounds_of
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, begins_of, filled_up, spread
from oop_engine.operators.windows import Merging
from oop_engine.system.knobs import knob

__all__ = ["RunStore"]

_MANY = knob(
    __name__, "_MANY", 4
)  # groups with runs, for each that a bound concerns: with fewer, all are merged


class RunStore(OnTime):
    """Open runs of nested ``definitions``, the narrowest first, by their numbers; ``stamp`` is that of results.

    A bound costs the groups whose first window it completes, and their runs; those of others are not looked at.
    """

    def __init__(self, definitions: Mapping[int, Merging], parts: Sequence[Part], stamp: Stamp) -> None:
        self._definitions, self._narrowest = list(definitions.items()), next(iter(definitions.values()))
        self._stamp = stamp
        # A run is marked with how many definitions have put out the window that it is in, the narrowest first.
        marks, sides = (np.int16(0),), _sides(self._narrowest)
        self._runs = HeldRuns(parts, overlapping(self._narrowest.begins), sides, marks)
        alone = self._narrowest if len(definitions) == 1 else None
        # The last time of a window of a wider definition counts as if it were one of the narrowest that ends there.
        self._first = FirstWindows(-1 if alone is None or alone.distance is None else alone.distance)

    @property
    def alive(self) -> int:
        return self._first.alive

    def state(self) -> State:
        return State(0, len(self._runs), self.alive, self._runs.nbytes + self._first.nbytes)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        self._first.grow(groups)
        if not times.size:
            return
        self.check(*page.reach_of(times))
        runs = self.runs_of(page, times, slots)
        self._runs.add(runs)
        self._first.note(runs.slots, runs.first, runs.last)

    def runs_of(self, page: Page, times: Integers, slots: Integers) -> Runs:
        """Return the tuples of a page as runs.  O(tuples), and a sort if the definition does not assign runs."""
        assign = self._narrowest.assign or self._runs.assigned
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

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        return float(
            self._complete(
                np.array([self._first.lowest]), int(bounds if slots is None else np.asarray(bounds).max())
            )[0]
        )

    def _complete(self, until: Integers, bounds: Integers | int) -> NDArray[np.bool_]:
        """Tell which windows of the narrowest definition are complete, by last times; FOREVER: there is none."""
        done: NDArray[np.bool_] = until < FOREVER
        some = np.flatnonzero(done)
        by = bounds[some] if isinstance(bounds, np.ndarray) else bounds
        done[some] = self._narrowest.complete(until[some], by)
        return done

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        closing, bounds = self._closing(slots, bounds)
        if not closing.size:
            self._first.settle()
            return []
        held, found = self._taken(closing), list[WindowStates]()
        [left] = held.marks
        for place, (number, definition) in enumerate(self._definitions):
            starts, runs, of_windows, last, _ = self._windows(held, place)
            complete = definition.complete(
                last, bounds_of(of_windows, None if slots is None else closing, bounds)
            )
            if complete.any():
                of, rows = spread(starts[complete], runs[complete])
                left[rows] = place + 1
                leaving = self._runs.reduced(held.take(rows), begins_of(of), _sides(definition))
                ends = definition.ends(leaving.last)
                found.append(WindowStates(leaving.slots, ends, leaving.states, number, leaving.first))
        self._put_back(self._rejoined(held.take(np.flatnonzero(left < len(self._definitions)))), closing)
        self._first.settle()
        return found

    def _closing(self, slots: Integers | None, bounds: Integers | int) -> tuple[Integers, Integers | int]:
        """Return the groups whose first window may be complete, ascending, and their bounds."""
        until = self._first.until
        if slots is None:
            slots = self._first.in_blocks(self._complete(self._first.least_until, bounds))
            return slots[self._complete(until[slots], bounds)], bounds
        slots, of = np.unique(slots, return_index=True)
        of = of[: slots.searchsorted(until.size)]
        slots, bounds = slots[: of.size], np.asarray(bounds)[of]
        some = self._complete(until[slots], bounds)
        return slots[some], bounds[some]

    def _taken(self, slots: Integers) -> Runs:
        """Take out the runs of some groups, or where these are many those of all, merged."""
        if _MANY * slots.size < self.alive:
            return self._runs.take_out(slots)
        runs = self._runs.merged()
        self._runs.put(runs.take(slice(0, 0)))
        return runs

    def _put_back(self, runs: Runs, slots: Integers) -> None:
        """Put runs back that were taken out for some groups, and learn their first windows."""
        if _MANY * slots.size < self.alive:
            self._runs.add(runs)
            self._first.forget(slots)
        else:
            self._runs.put(runs)
            self._first.clear()
        self._learn(runs)

    def _learn(self, runs: Runs) -> None:
        """Learn the first windows of groups that have none, all of whose runs these are.  O(runs)."""
        for place, (_, definition) in enumerate(self._definitions):
            _, _, slots, last, first = self._windows(runs, place)
            until = last + definition.ends(last) - self._narrowest.ends(last) if place else last
            self._first.note_windows(slots, first, until)

    def _rejoined(self, runs: Runs) -> Runs:
        """Return runs of which those that have left for the narrower definitions join as the wider ones do."""
        for place, (_, definition) in enumerate(self._definitions[1:], 1):
            begins, [left] = self._begins(runs, place), runs.marks
            begins[1:] |= np.minimum(left[1:], left[:-1]) < place
            runs = self._runs.reduced(runs, np.flatnonzero(begins), _sides(definition))
        return runs

    def _look(self, slots: Integers) -> None:
        """Find out where the first windows of some groups end, ascending."""
        if slots.size:
            self._put_back(self._taken(slots), slots)

    def least_stamp(self, bound: int) -> int:
        """The end of a later window is that of an open run, or of later tuples alone."""
        if self._stamp == "start":
            return min(bound, self._first.earliest())
        [least], looked = self._narrowest.least_end(np.array([bound])).tolist(), False
        while (until := self._first.soonest()) < FOREVER:
            [end] = self._narrowest.ends(np.array([until])).tolist()
            if end >= least or not (slots := self._first.unsure_at(until)).size:
                return min(int(least), int(end))
            # Most often those next to it tell.  Where they do not, each that has runs since it was looked at last is.
            self._look(self._first.unsure() if looked else slots)
            looked = True
        return int(least)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        some = np.flatnonzero(slots < self._first.until.size)
        some = some[self._first.until[slots[some]] < FOREVER]
        slots, of = slots[some], of[some]
        if self._stamp == "start":
            stamps, open_ = bounds.copy(), self._first.first[slots]
        else:
            self._look(self._first.unsure(np.unique(slots)))
            stamps = self._narrowest.least_end(bounds)
            open_ = self._narrowest.ends(self._first.until[slots])
        np.minimum.at(stamps, of, open_)
        return stamps

    def living(self, groups: int) -> NDArray[np.bool_]:
        return filled_up(self._first.until[:groups] < FOREVER, groups, False)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._runs.rename(slots)
        self._first.grow(slots.size)
        self._first.keep(kept)

    def copied(self, slots: Integers) -> RunStore:
        other = RunStore(dict(self._definitions), self._runs.parts, self._stamp)
        runs = self._runs.together_of(slots)
        other._first.grow(slots.size)
        other._put_back(runs._replace(slots=slots.searchsorted(runs.slots)), slots)
        return other

    def save(self) -> dict[str, Any]:
        return {"runs": self._runs.save()}

    def load(self, saved: Saved, groups: int) -> None:
        self._runs.load(saved.parts("runs"), groups, self._check_runs)
        self._first.grow(groups)
        self._first.clear()
        merged, *fresh = self._runs.levels()
        self._learn(merged)
        for runs in fresh:
            self._first.note(runs.slots, runs.first, runs.last)
        self._first.settle()

    def _check_runs(self, runs: Runs) -> None:
        if runs.size:
            self.check(*(int(side(times)) for times in runs[1:3] for side in (np.min, np.max)))
        [left] = runs.marks
        if (runs.first > runs.last).any() or (left < 0).any() or (left >= len(self._definitions)).any():
            msg = "runs must end behind their beginning, and have windows that are open"
            raise SnapshotError(msg)

    def check(self, *times: int) -> None:
        """Raise ``ContractError`` if windows of these times would not fit 64 bits."""
        for _, definition in self._definitions:
            definition.check(np.array(times))


def _sides(definition: Merging) -> Sides:
    return lambda first, last: (first, int(definition.ends(np.array([last]))[0]))
