"""The tuples that one side of a window join keeps, found by group and time.

Tuples lie in *runs*, each sorted by (slot, time), so that all matches of a tuple are one
range, however many tuples its key has.  A new run is merged with the one before it while
that one is less than twice as large: there are O(log tuples) runs, and a tuple is moved
O(log tuples) times.  What is purged is only marked, until half of a run is dead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.punctuation import FOREVER
from oop_engine.sizes import value_bytes
from operators.kernels.matches import expand, merge_order, ranges

__all__ = ["PAGE_ROWS", "JoinSide"]

PAGE_ROWS = 65_536
"""The most rows of a page of results."""

_ROW_BYTES = 33  # slot, time, alive, and the order by time with its times

Ints = NDArray[np.int64]


class JoinSide:
    """Stored tuples of one side; slots are those of the join's ``GroupIndex``."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    @property
    def tuples(self) -> int:
        """How many tuples can still match something."""
        return sum(run.live for run in self._runs)

    @property
    def nbytes(self) -> int:
        """Bytes of the tuples held and of what finds them."""
        return sum(run.nbytes for run in self._runs)

    def add(self, batch: pa.RecordBatch, slots: Ints, times: Ints) -> None:
        """Store tuples, sorted by (slot, time)."""
        if not len(slots):
            return
        self._runs.append(_Run(batch, slots, times))
        while len(self._runs) > 1 and self._runs[-2].live < 2 * self._runs[-1].live:
            self._runs[-2:] = [_merged(*self._runs[-2:])]

    def matches(self, slots: Ints, low: Ints, high: Ints) -> Iterator[tuple[Ints, pa.RecordBatch]]:
        """Yield the matches of probes sorted by (slot, low): probe rows, and the stored tuples.

        At most ``PAGE_ROWS`` at a time.  O(log(tuples)) a probe, O(1) a match.
        """
        for run in self._runs:
            first, ends = ranges(slots, low, high, run.slots, run.times)
            total = int(ends[-1]) if len(ends) else 0
            for start in range(0, total, PAGE_ROWS):
                probe, stored = expand(first, ends, start, min(start + PAGE_ROWS, total))
                yield probe, run.batch.take(pa.array(stored))

    def purge(self, keep_from: int) -> None:
        """Drop every tuple whose time is below ``keep_from``: O(1) a tuple over its life."""
        if keep_from == FOREVER:
            self._runs = []
        for run in self._runs:
            run.bury_before(keep_from)
        self._compact()

    def purge_groups(self, slots: Ints, low: Ints, keep_from: Ints) -> None:
        """Drop tuples of some groups (sorted) with ``low <= time < keep_from``, for each group."""
        for run in self._runs:
            first, ends = ranges(slots, low, keep_from - 1, run.slots, run.times)
            run.bury(expand(first, ends, 0, int(ends[-1]))[1])
        self._compact()

    def mark_groups(self, used: NDArray[np.bool_]) -> None:
        """Set ``used`` (groups,) for the groups that have tuples here."""
        for run in self._runs:
            used[run.slots] = True

    def renumber_groups(self, slot: Ints) -> None:
        """Give group ``g`` the slot ``slot[g]``, which keeps the order of those in use."""
        for run in self._runs:
            run.slots = slot[run.slots]

    def save(self) -> list[dict[str, Any]]:
        """Return the tuples for a snapshot."""
        return [run.save() for run in self._runs]

    def load(self, saved: list[dict[str, Any]]) -> None:
        """Take what ``save`` returned."""
        self._runs = [_Run.loaded(**run) for run in saved]

    def _compact(self) -> None:
        self._runs = [run.compacted() for run in self._runs if run.live]


class _Run:
    """Tuples sorted by (slot, time), some of them dead."""

    def __init__(self, batch: pa.RecordBatch, slots: Ints, times: Ints) -> None:
        self.batch = batch
        self.slots = slots
        self.times = times
        self.live = len(slots)
        self.nbytes = sum(map(value_bytes, batch.columns)) + _ROW_BYTES * len(slots)
        self._alive = np.ones(len(slots), np.bool_)
        self._by_time: tuple[Ints, Ints] | None = None  # rows, and their times, in time order
        self._buried = 0  # how many of these are dead by time
        self._oldest = int(times.min())

    def bury_before(self, keep_from: int) -> None:
        if keep_from <= self._oldest:
            return
        if self._by_time is None:
            rows = np.argsort(self.times, kind="stable")
            self._by_time = rows, self.times[rows]
        rows, times = self._by_time
        upto = int(np.searchsorted(times, keep_from))
        self.bury(rows[self._buried : upto])
        self._buried = upto
        self._oldest = int(times[upto]) if upto < len(times) else FOREVER

    def bury(self, rows: Ints) -> None:
        self.live -= int(np.count_nonzero(self._alive[rows]))
        self._alive[rows] = False

    def compacted(self) -> _Run:
        """Return the run without its dead, if they are half of it."""
        if 2 * self.live > len(self.slots):
            return self
        return self.only_live()

    def only_live(self) -> _Run:
        if self.live == len(self.slots):
            return self
        rows = np.flatnonzero(self._alive)
        return _Run(self.batch.take(pa.array(rows)), self.slots[rows], self.times[rows])

    def save(self) -> dict[str, Any]:
        return {"batch": self.batch, "slots": self.slots, "times": self.times, "alive": self._alive}

    @classmethod
    def loaded(cls, batch: pa.RecordBatch, slots: Ints, times: Ints, alive: NDArray[np.bool_]) -> _Run:
        run = cls(batch, slots, times)
        run.bury(np.flatnonzero(~alive))
        return run


def _merged(a: _Run, b: _Run) -> _Run:
    a, b = a.only_live(), b.only_live()
    order = merge_order(a.slots, a.times, b.slots, b.times)
    slots, times = np.concatenate([a.slots, b.slots]), np.concatenate([a.times, b.times])
    batch = pa.concat_batches([a.batch, b.batch]).take(pa.array(order))
    return _Run(batch, slots[order], times[order])
