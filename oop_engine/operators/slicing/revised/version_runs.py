"""Version runs: versions of results in columns, found by their window without a walk over all of them.

A run never changes, but for the mark of the versions that were dropped.  Its index is the hashes of its windows, in
order.  A search finds all versions of some windows, and a few more where hashes collide: the caller compares extents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.operators.values.columns import Integers, spread

__all__ = ["Front", "VersionRun", "Versioned", "hashes_of"]

Mask = NDArray[np.bool_]
_SLOT, _NUMBER, _START, _MIX = (
    np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xBF58476D1CE4E5B9)
)
_SHIFT = np.uint64(31)


class Versioned(NamedTuple):
    """Versions: group slots, definitions, extents, tuples, version, timing, int64 (n,); triggers' state (n, width)."""

    slots: Integers
    numbers: Integers
    starts: Integers
    ends: Integers
    counts: Integers
    versions: Integers
    timings: Integers
    state: Integers
    rows: pa.RecordBatch

    def take(self, some: Mask | Integers) -> Versioned:
        """Return some of them."""
        if some.dtype == np.bool_ and some.all():
            return self
        mask = np.flatnonzero(some) if some.dtype == np.bool_ else some
        return Versioned._make([*(column[mask] for column in self[:-1]), self.rows.take(pa.array(mask))])

    def joined(self, more: list[Versioned]) -> Versioned:
        """Return these versions, and more behind them."""
        if not more:
            return self
        every = [self, *more]
        columns = [np.concatenate(parts) for parts in zip(*(one[:-1] for one in every), strict=True)]
        return Versioned._make([*columns, pa.concat_batches([one.rows for one in every])])


def hashes_of(slots: Integers, numbers: Integers, starts: Integers) -> NDArray[np.uint64]:
    """Return hashes of windows, uint64 (n,)."""
    mixed = slots.astype(np.uint64) * _SLOT + numbers.astype(np.uint64) * _NUMBER
    mixed += starts.astype(np.uint64) * _START
    mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX
    hashes: NDArray[np.uint64] = mixed ^ (mixed >> _SHIFT)
    return hashes


class Front:
    """Rows in the order of ``values``, of which the first ones have been dropped."""

    def __init__(self, rows: Integers, values: Integers) -> None:
        order = np.argsort(values, kind="stable")
        self._rows, self._values, self._first = rows[order], values[order], 0

    def until(self, bound: int, alive: Mask) -> Integers:
        """Return the rows whose values are at most ``bound`` and that are ``alive``.

        O(rows found + log n), and once O(rows dropped).
        """
        stop = int(self._values.searchsorted(bound, side="right"))
        rows = self._rows[self._first : stop]
        found: Integers = np.flatnonzero(alive[rows])
        self._first = max(self._first, self._first + int(found[0]) if found.size else stop)
        return rows[found]

    def least(self, alive: Mask, none: int) -> int:
        """Return the least value of a row that is ``alive``; ``none`` if no row is.  Amortised O(1)."""
        step = 1
        while self._first < self._rows.size:
            found = np.flatnonzero(alive[self._rows[self._first : self._first + step]])
            if found.size:
                self._first += int(found[0])
                return int(self._values[self._first])
            self._first = min(self._first + step, self._rows.size)
            step *= 2
        return none


class VersionRun:
    """Versions with the ``hashes`` of their windows; ``alive``: which of them were not dropped, ``size``: how many."""

    def __init__(self, versions: Versioned, hashes: NDArray[np.uint64]) -> None:
        self.versions, self.hashes = versions, hashes
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        self.alive = np.ones(hashes.size, np.bool_)
        self.size = int(hashes.size)
        self.fronts: dict[tuple[str, bytes], Front] = {}
        self._by_slot: tuple[Integers, Integers] | None = None  # the slots in order, and their rows
        columns = versions[:-1]
        self.nbytes = sum(column.nbytes for column in columns) + int(versions.rows.get_total_buffer_size())
        self.nbytes += 3 * hashes.nbytes + self.alive.nbytes

    def __len__(self) -> int:
        return int(self.alive.size)

    def find(self, hashes: NDArray[np.uint64]) -> Integers:
        """Return the rows with these hashes, which differ, ascending.  O(log n) each."""
        low = self._sorted.searchsorted(hashes)
        many = self._sorted.searchsorted(hashes, side="right") - low
        some = np.flatnonzero(many)
        if not some.size:
            return some
        _, at = spread(low[some], many[some])
        rows = self._order[at]
        rows = rows[self.alive[rows]]
        rows.sort()
        return rows

    def of_slots(self, slots: Integers) -> tuple[Integers, Integers]:
        """Return the rows that are alive of some groups, each behind the place of its group in ``slots``."""
        if self._by_slot is None:
            order = np.argsort(self.versions.slots, kind="stable")
            self._by_slot = self.versions.slots[order], order
            self.nbytes += 2 * order.nbytes
        held, order = self._by_slot
        low = held.searchsorted(slots)
        of, at = spread(low, held.searchsorted(slots, side="right") - low)
        alive = self.alive[order[at]]
        return of[alive], order[at[alive]]

    def drop(self, rows: Integers) -> None:
        """Mark rows, all of them alive, as dropped."""
        self.alive[rows] = False
        self.size -= int(rows.size)

    def kept(self) -> tuple[Versioned, NDArray[np.uint64]]:
        """Return the versions that are alive, with their hashes."""
        if self.size == len(self):
            return self.versions, self.hashes
        return self.versions.take(self.alive), self.hashes[self.alive]
