"""Version tables: the versions of results that are out and not final, in columns.

Log-structured: runs of versions, oldest first.  A version that is replaced is marked, and goes when its run is merged,
or when more are marked than not.  So a page costs the versions of its own windows, times the runs.
"""

# Layout      Runs, oldest first; rows of a run are versions in the order in which they came.  The place of a version is
#             its row, counted through all runs; it holds until the next `put` or `drop`.
# Invariant   A run never changes, but for `alive`; each run has less than half as many rows alive as the run before.
#             An order of a run is made when it is first asked for, and has all rows, alive or not.
# Not obvious Windows are found by hashes; where these collide, more versions are found: the caller compares extents.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.core.values.arrow_data import no_rows
from oop_engine.operators.slicing.revised.extents import Extents
from oop_engine.operators.values.columns import Integers, spread
from oop_engine.system.knobs import knob

__all__ = ["LastVersions", "VersionTable", "Versioned", "hashes_of"]

Mask = NDArray[np.bool_]
_COLUMNS = 7
_FEW = knob(__name__, "_FEW", 64)  # versions that may be marked as dropped, however few there are
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

    @property
    def extents(self) -> Extents:
        """The windows that they are of."""
        return self.slots, self.numbers, self.starts, self.ends

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


def hashes_of(slots: Integers, numbers: Integers, starts: Integers) -> Integers:
    """Return hashes of windows, int64 (n,)."""
    mixed = slots.astype(np.uint64) * _SLOT + numbers.astype(np.uint64) * _NUMBER
    mixed += starts.astype(np.uint64) * _START
    mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX
    hashes: Integers = (mixed ^ (mixed >> _SHIFT)).view(np.int64)
    return hashes


class _Order:
    """The rows of a run in the order of ``values``; those before ``_first`` have been dropped."""

    def __init__(self, values: Integers, alive: Mask) -> None:
        self._rows = np.argsort(values, kind="stable")
        self._values, self._alive, self._first = values[self._rows], alive, 0
        self.nbytes = self._rows.nbytes + self._values.nbytes

    def equal(self, wanted: Integers) -> tuple[Integers, Integers]:
        """Return the rows with the values ``wanted``, behind which of these each has.  O(log rows) each."""
        low = self._values.searchsorted(wanted)
        which, at = spread(low, self._values.searchsorted(wanted, side="right") - low)
        rows = self._rows[at]
        alive = self._alive[rows]
        return which[alive], rows[alive]

    def until(self, bound: int) -> Integers:
        """Return the rows with values of at most ``bound``.  O(rows found + log rows), and once O(rows dropped)."""
        stop = int(self._values.searchsorted(bound, side="right"))
        rows = self._rows[self._first : stop]
        found: Integers = np.flatnonzero(self._alive[rows])
        self._first = max(self._first, self._first + int(found[0]) if found.size else stop)
        return rows[found]

    def least(self) -> int:
        """Return the least value; ``FOREVER``: no row is there.  Amortised O(1)."""
        step = 1
        while self._first < self._rows.size:
            found = np.flatnonzero(self._alive[self._rows[self._first : self._first + step]])
            if found.size:
                self._first += int(found[0])
                return int(self._values[self._first])
            self._first, step = min(self._first + step, self._rows.size), 2 * step
        return FOREVER


class _Run:
    """Versions; ``alive``: which of them were not dropped, ``size``: how many."""

    def __init__(self, versions: Versioned, hashes: Integers) -> None:
        self.versions, self.size = versions, int(hashes.size)
        self.alive = np.ones(hashes.size, np.bool_)
        self._orders = {"hashes": _Order(hashes, self.alive)}

    @property
    def nbytes(self) -> int:
        columns = sum(column.nbytes for column in (*self.versions[:-1], self.alive))
        orders = sum(order.nbytes for order in self._orders.values())
        return columns + orders + int(self.versions.rows.get_total_buffer_size())

    def order(self, column: str) -> _Order:
        """Return the order by a column of the versions, or by the "hashes" of their windows."""
        if column not in self._orders:
            self._orders[column] = _Order(getattr(self.versions, column), self.alive)
        return self._orders[column]

    def drop(self, rows: Integers) -> None:
        """Mark rows, all of them alive, as dropped."""
        self.alive[rows] = False
        self.size -= int(rows.size)


class VersionTable:
    """The versions of results with the columns ``fields``; ``width``: of the state of triggers.

    ``by_start`` bool (definitions,): whether windows are found by their start; else by their group, as sessions merge.
    """

    def __init__(self, fields: pa.Schema, width: int, by_start: Mask) -> None:
        none = np.empty(0, np.int64)
        self.none = Versioned._make([*[none] * _COLUMNS, np.empty((0, width), np.int64), no_rows(fields)])
        self._by_start, self._runs = by_start, list[_Run]()

    def __len__(self) -> int:
        return sum(run.size for run in self._runs)

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        return sum(run.nbytes for run in self._runs)

    def _hold(self, versions: Versioned) -> None:
        """Have these versions alone."""
        self._runs = [self._run(versions)] if versions.slots.size else []

    def _run(self, versions: Versioned) -> _Run:
        return _Run(versions, self._hashes(versions.extents))

    def _hashes(self, windows: Extents) -> Integers:
        slots, numbers, starts, _ = windows
        return hashes_of(slots, numbers, np.where(self._by_start[numbers], starts, 0))

    def all(self) -> Versioned:
        """Return all versions, in the order in which they came; places are theirs.  O(versions)."""
        if len(self._runs) > 1 or any(run.size < run.alive.size for run in self._runs):
            first, *more = (run.versions.take(run.alive) for run in self._runs)
            self._hold(first.joined(more))
        return self._runs[0].versions if self._runs else self.none

    def near(self, windows: Extents) -> tuple[Versioned, Integers]:
        """Return the versions that may be of ``windows``, with their places, in the order in which they came.

        All that are of them are there.  O(windows log versions); of sessions O(versions of their groups).
        """
        hashes = np.unique(self._hashes(windows))
        return self._found([run.order("hashes").equal(hashes)[1] for run in self._runs])

    def within(self, slots: Integers | None, bound: int) -> Versioned:
        """Return the versions of some groups; None: those of all groups whose windows end by ``bound``.

        O(versions found), amortised, and O(log versions) a group.
        """
        if slots is None:
            return self._found([run.order("ends").until(bound) for run in self._runs])[0]
        return self._found([run.order("slots").equal(slots)[1] for run in self._runs])[0]

    def least(self, side: str) -> int:
        """Return the least ``side``, "starts" or "ends", of all versions; ``FOREVER``: there is none.

        Amortised O(runs).
        """
        return min((run.order(side).least() for run in self._runs), default=FOREVER)

    def least_of(self, slots: Integers, side: str) -> Integers:
        """Return the least ``side`` of the versions of each group, int64 (n,); ``FOREVER``: it has none.

        Amortised O(log versions) a group, and O(versions of these groups).
        """
        found = np.full(slots.size, FOREVER)
        for run in self._runs:
            which, rows = run.order("slots").equal(slots)
            np.minimum.at(found, which, getattr(run.versions, side)[rows])
        return found

    def _found(self, rows: list[Integers]) -> tuple[Versioned, Integers]:
        """Return the versions in rows of each run, and their places."""
        parts, places, first = [], [self.none.slots], 0
        for run, found in zip(self._runs, rows, strict=True):
            if found.size:
                found.sort()
                parts.append(run.versions.take(found))
                places.append(found + first)
            first += run.alive.size
        return self.none.joined(parts) if len(parts) != 1 else parts[0], np.concatenate(places)

    def drop(self, places: Integers) -> None:
        """Let go of the versions at ``places``, ascending, as ``near`` or ``all`` gave them.  Amortised O(places)."""
        if not places.size:
            return
        first = 0
        for run in self._runs:
            low, high = places.searchsorted([first, first + run.alive.size])
            run.drop(places[low:high] - first)
            first += run.alive.size
        self._runs = [run for run in self._runs if run.size]
        if sum(run.alive.size for run in self._runs) > 2 * len(self) + _FEW:
            self.all()

    def put(self, new: Versioned) -> None:
        """Take in versions.  Amortised O(log versions) each."""
        if not new.slots.size:
            return
        parts, size = [new], new.slots.size
        while self._runs and self._runs[-1].size < 2 * size:
            run = self._runs.pop()
            parts.insert(0, run.versions.take(run.alive))
            size += run.size
        self._runs.append(self._run(parts[0].joined(parts[1:])))

    def rename(self, slots: Integers) -> None:
        held = self.all()
        self._hold(held._replace(slots=slots[held.slots]))

    def save(self) -> dict[str, Any]:
        held = self.all()
        return {"columns": np.stack(held[:_COLUMNS]), "state": held.state, "rows": held.rows}

    def load(self, saved: Saved, groups: int) -> None:
        columns = saved.integers("columns", (_COLUMNS, None))
        size = columns.shape[1]
        state = saved.integers("state", (size, self.none.state.shape[1]), least=0)
        rows = saved.batch("rows", self.none.rows.schema, size)
        if size:
            Saved({"slots": columns[0]}).integers("slots", (size,), least=0, below=groups)
            Saved({"numbers": columns[1]}).integers("numbers", (size,), least=0, below=self._by_start.size)
        self._hold(Versioned._make([*columns, state, rows]))


class LastVersions:
    """Of ``windows`` the versions out: how many, tuples, last version, timing, state of triggers, the place of one.

    ``out``: places of versions in ``held``; ``of``: the window of each.  ``added``: which columns of state add up where
    windows merge; of the others the largest counts, bool (width,).
    """

    def __init__(self, windows: int, window: Integers, out: Integers, held: Versioned, added: Mask) -> None:
        self.many, self.counts, self.timings = np.zeros((3, windows), np.int64)
        self.versions, self.place = np.full((2, windows), -1)
        self.state = np.zeros((windows, held.state.shape[1]), np.int64)
        np.add.at(self.many, window, 1)
        np.add.at(self.counts, window, held.counts[out])
        np.maximum.at(self.versions, window, held.versions[out])
        sums = self.state.copy()
        np.maximum.at(self.state, window, held.state[out])
        np.add.at(sums, window, held.state[out])
        self.state[:, added] = sums[:, added]
        self.place[window], self.timings[window] = out, held.timings[out]
