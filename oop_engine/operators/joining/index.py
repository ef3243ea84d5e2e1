"""The tuples that one side of a window join keeps, found by key and time.

Tuples lie in *runs*.  A run has a directory from the key's bucket to entries sorted by key and time, so all matches
of a tuple are one range, however many tuples its key has and wherever in time they are.  The last few tuples are one
run, the young one, which is made anew with each small page: to ask a run costs more than to index a thousand tuples.

Four runs of a size (eight young ones, if pages are large) become one, or one for each *stretch* of time: tuples of a
stretch die together, so that hardly any run has dead tuples beside living ones, and a tuple meets the runs of two
stretches, for a stretch is no shorter than its band.  There are ``_STRETCHES`` at most, so O(log tuples) runs, and a
tuple is indexed O(log tuples) times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.operators.joining.run import FEW, Marks, SortedRun
from oop_engine.operators.joining.taking import Living, is_full, joined
from oop_engine.operators.kernels import join_index
from oop_engine.system.knobs import knob

__all__ = ["PAGE_ROWS", "JoinIndex", "Match", "RunEntries"]

PAGE_ROWS = knob(__name__, "PAGE_ROWS", 65_536)
"""The most rows of a page of results."""

_FAN_IN = knob(__name__, "_FAN_IN", 4, least=2)
_YOUNG = knob(__name__, "_YOUNG", 1024)
"""The most tuples of the young run."""
_LARGE = knob(__name__, "_LARGE", 256)
"""Tuples of a page that is matched with a few more runs in less time than these become one."""
_STRETCHES = knob(__name__, "_STRETCHES", 16)
"""The most stretches of time that tuples lie in, but for one more."""

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
RunEntries = tuple[SortedRun, Rows]
"""Some entries of a run."""
Match = tuple[Rows, SortedRun, Rows]
"""Some probes of a page, and the entry of a run that each has met."""


class JoinIndex:
    """Stored tuples of one side; a tuple's key is known by its code, see ``KeyCodes``.

    ``width``: about how many of their timestamps a tuple of the other side can match;
    ``alone``: tuples that die without a match are asked for; ``marks``: which those are has to
    be remembered, for matched ones are kept.
    """

    def __init__(self, width: int, *, alone: bool = False, marks: bool = False) -> None:
        self._width = min(width, FOREVER)
        self._alone, self._marks = alone, marks
        self._runs: list[SortedRun] = []
        self.tuples = 0
        """How many tuples can still match something."""
        self.groups = 0
        """How many keys they have, those of each run by themselves."""
        self.nbytes = 0
        """Bytes of the tuples held and of their index."""

    def add(
        self, batch: pa.RecordBatch, rows: Rows, codes: Ints, times: Ints, matched: Marks | None = None
    ) -> None:
        """Store some ``rows`` of a batch, copied; ``codes``, ``times`` and marks are of these."""
        if not rows.size:
            return
        last = self._runs[-1] if self._runs else None
        if last is not None and last.live + rows.size <= _YOUNG:
            self._runs[-1] = last.extended(batch, rows, codes, times, matched)
        else:
            made = SortedRun.young if rows.size <= _YOUNG else SortedRun
            self._runs.append(made(batch, rows, codes, times, matched))
        patient = rows.size >= _LARGE
        while (
            len(self._runs) >= _FAN_IN
            and (same := self._alike(length := self._stretch(), patient=patient)) is not None
        ):
            self._runs = [run for run in self._runs if run not in same]
            self._runs += _apart([run.living() for run in same], length)
        self._measure()

    def matches(self, codes: Ints, low: Ints, high: Ints) -> Iterator[Match]:
        """Yield the matches of probes: their numbers, and the entries of a run.

        Dead tuples may match: they have to be out of reach.  At most ``PAGE_ROWS`` at a time.  O(log tuples) a probe
        and run, O(1) a match.
        """
        for run in self._reached(low, high):
            for probes, entries in run.matches(codes, low, high, PAGE_ROWS):
                if entries.size:
                    yield probes, run, entries

    @property
    def first(self) -> int:
        """No tuple is older than this; ``FOREVER``: there is none."""
        return min((run.first for run in self._runs), default=FOREVER)

    def latest(self, codes: Ints, low: Ints, high: Ints) -> tuple[Ints, Marks]:
        """Return the largest time of each code from ``low`` to ``high``, and whether there is one.

        Dead tuples count: they have to be out of reach, or older than one that is alive.
        """
        best, has_match = np.empty(codes.size, np.int64), np.zeros(codes.size, np.bool_)
        for run in self._reached(low, high):
            run.latest(codes, low, high, best, has_match)
        return best, has_match

    def earliest(self, codes: Ints, low: Ints) -> Ints:
        """Return the least time of each code from ``low`` on, ``FOREVER`` where there is none; dead tuples count."""
        best = np.full(codes.size, FOREVER)
        for run in self._reached(low, best):
            run.earliest(codes, low, best)
        return best

    def before(self, keep_from: int) -> list[RunEntries]:
        """Return the tuples that ``purge`` would drop now."""
        by_run = [(run, run.before(keep_from)) for run in self._runs]
        return [(run, run.living_of(entries)) for run, entries in by_run if entries.size]

    def living(self) -> tuple[list[SortedRun], Ints, Rows, Ints, Ints]:
        """Return all tuples: runs, and of each tuple the run's number, the entry, the code and the time."""
        entries = [run.alive() for run in self._runs]
        numbers = np.repeat(np.arange(len(entries)), [len(of_run) for of_run in entries])
        pairs = [run.keys(of_run) for run, of_run in zip(self._runs, entries, strict=True)]
        codes, times = np.concatenate([np.empty((0, 2), np.int64), *pairs]).T
        return self._runs, numbers, np.concatenate([np.empty(0, np.int32), *entries]), codes, times

    def purge(self, keep_from: int) -> list[RunEntries]:
        """Drop every tuple whose time is below ``keep_from``: O(1) a tuple over its life.

        Return those of them that have matched nothing, if they are asked for.
        """
        reached = [run for run in self._runs if run.first < keep_from or keep_from == FOREVER]
        if not reached:
            return []
        lone = [(run, run.lone(run.before(keep_from))) for run in reached] if self._alone else []
        for run in reached:
            run.bury_before(keep_from)
        self.compact()
        return lone

    def purge_entries(self, entries_of: Callable[[SortedRun], Rows]) -> list[RunEntries]:
        """Drop of each run the entries that ``entries_of`` finds in it; return as ``purge`` does."""
        lone = list[RunEntries]()
        for run in self._runs:
            if (entries := entries_of(run)).size:
                if self._alone:
                    lone.append((run, run.lone(entries)))
                run.bury(entries)
        self.compact()
        return lone

    def lone(self, entries_of: Callable[[SortedRun], Rows]) -> list[RunEntries]:
        """Return those that have matched nothing of the entries that ``entries_of`` finds in each run."""
        by_run = [(run, entries_of(run)) for run in self._runs]
        return [(run, run.lone(entries)) for run, entries in by_run if entries.size]

    def compact(self) -> None:
        """Drop runs of which all tuples are dead, and copy those of which a fifth are.

        But not a small one that will have died within a band, unless a fifth of all tuples are dead.
        """
        self._runs = runs = [run for run in self._runs if run.live]
        if not all(is_full(run.live, run.size) for run in runs):
            full = is_full(sum(run.live for run in runs), sum(run.size for run in runs))
            self._runs = [
                run if full and run.size <= FEW and run.last - run.first <= self._width else run.compacted()
                for run in runs
            ]
        self._measure()

    def save(self) -> list[dict[str, Any]]:
        """Return the tuples for a snapshot."""
        return [run.save() for run in self._runs]

    def load(self, saved: Sequence[Saved], fields: pa.Schema) -> None:
        """Restore the state that ``save`` returned of tuples with these columns."""
        self._runs = [SortedRun.loaded(run, fields, marks=self._marks) for run in saved]
        self._measure()

    def _reached(self, low: Ints, high: Ints) -> Iterator[SortedRun]:
        """Yield the runs that probes from ``low`` to ``high`` can meet a tuple of."""
        if not low.size:
            return iter(())
        lowest, _, _, highest = join_index.spans(low, high)
        return (run for run in self._runs if lowest <= run.last and run.first <= highest)

    def _stretch(self) -> int:
        """Return how long stretches are: the band's width, doubled until few of them hold all tuples."""
        length, whole = self._width, max(run.last for run in self._runs) - self.first
        while length * _STRETCHES < whole:
            length *= 2
        return length

    def _alike(self, length: int, *, patient: bool) -> list[SortedRun] | None:
        """Return the runs of one size in one stretch, or in several of them, if they are enough to become one.

        ``patient``: of young ones in one stretch, which die together, twice as many.
        """
        alike = defaultdict(list)
        for run in self._runs:
            stretch = run.first // length
            alike[run.live.bit_length() // 2, stretch if run.last // length == stretch else None].append(run)
        for (size, within), runs in alike.items():
            waits = patient and within is not None and size <= _YOUNG.bit_length() // 2
            if len(runs) >= (2 * _FAN_IN if waits else _FAN_IN):
                return runs
        return None

    def _measure(self) -> None:
        self.tuples = self.groups = self.nbytes = 0
        for run in self._runs:
            self.tuples += run.live
            self.groups += min(run.groups, run.live)
            self.nbytes += run.nbytes


def _apart(living: Sequence[Living], length: int) -> Iterator[SortedRun]:
    """Yield a run of the entries of several for each stretch that they lie in."""
    batch, rows, codes, times, marks = joined(living)
    first_stretch, last_stretch = int(times.min()) // length, int(times.max()) // length
    if first_stretch == last_stretch:
        yield SortedRun(batch, rows, codes, times, marks)
        return
    stretches = (times // length - first_stretch).astype(np.intp)
    for stretch in np.flatnonzero(np.bincount(stretches)):
        members = np.flatnonzero(stretches == stretch)
        member_marks = None if marks is None else marks[members]
        yield SortedRun(batch, rows[members], codes[members], times[members], member_marks)
