"""Version tables: the versions of results that are out and not final, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import comparable
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.core.values.arrow_data import no_rows
from oop_engine.operators.slicing.revised.extents import Extents
from oop_engine.operators.slicing.revised.version_runs import Front, Versioned, VersionRun, hashes_of
from oop_engine.operators.values.columns import Integers
from oop_engine.system.knobs import knob

__all__ = [
    "LastVersions",
    "VersionTable",
    "before_each",
    "same_results",
    "same_rows",
    "taken",
]

Mask = NDArray[np.bool_]
_COLUMNS = 7
_FEW = knob(__name__, "_FEW", 64)  # versions that may be marked as dropped, however few there are


class VersionTable:
    """The versions of results with the columns ``fields``; ``width``: of the state of triggers.

    ``by_start`` bool (definitions,): whether windows are found by their start; else by their group, as sessions merge.
    The place of a version holds until the next ``put`` or ``drop``.

    Log-structured: runs of versions, oldest first, each less than half as long as the run before it.  A version that is
    replaced is marked, and goes when its run is merged, or when more are marked than not.  So a page costs the versions
    of its own windows, times the runs.
    """

    def __init__(self, fields: pa.Schema, width: int, by_start: Mask) -> None:
        none = np.empty(0, np.int64)
        self.none = Versioned._make([*[none] * _COLUMNS, np.empty((0, width), np.int64), no_rows(fields)])
        self._by_start, self._runs = by_start, list[VersionRun]()
        self._size = self._rows = self.nbytes = 0

    def __len__(self) -> int:
        return self._size

    def _hold(self, versions: Versioned) -> None:
        """Have these versions alone."""
        self._runs = [self._run(versions)] if versions.slots.size else []
        self._count()

    def _run(self, versions: Versioned) -> VersionRun:
        return VersionRun(versions, self._hashes(versions.slots, versions.numbers, versions.starts))

    def _count(self) -> None:
        self._size = sum(run.size for run in self._runs)
        self._rows = sum(map(len, self._runs))
        self.nbytes = sum(run.nbytes for run in self._runs)

    def _hashes(self, slots: Integers, numbers: Integers, starts: Integers) -> NDArray[np.uint64]:
        return hashes_of(slots, numbers, np.where(self._by_start[numbers], starts, 0))

    def all(self) -> Versioned:
        """Return all versions, in the order in which they came; places are theirs.  O(versions)."""
        if self._rows > self._size or len(self._runs) > 1:
            first, *more = [run.kept()[0] for run in self._runs]
            self._hold(first.joined(more))
        return self._runs[0].versions if self._runs else self.none

    def near(self, windows: Extents) -> tuple[Versioned, Integers]:
        """Return the versions that may be of ``windows``, with their places, in the order in which they came.

        All that are of them are there.  O(windows log versions); of sessions O(versions of their groups).
        """
        hashes = np.unique(self._hashes(*windows[:3]))
        return self._found([run.find(hashes) for run in self._runs])

    def ended(self, bound: int, numbers: Mask) -> Versioned:
        """Return the versions of windows of some definitions, bool (definitions,), that end by ``bound``.

        O(versions found), amortised.
        """
        every = (self._front(run, "ends", numbers) for run in self._runs)
        rows = [front.until(bound, run.alive) for run, front in zip(self._runs, every, strict=True)]
        return self._found(list(map(np.sort, rows)))[0]

    def least(self, side: str, numbers: Mask) -> int:
        """Return the least ``side``, "starts" or "ends", of versions of some definitions, or ``FOREVER``.

        Amortised O(runs).
        """
        fronts = [(run, self._front(run, side, numbers)) for run in self._runs]
        return min((front.least(run.alive, FOREVER) for run, front in fronts), default=FOREVER)

    def least_of(self, slots: Integers, side: str, numbers: Mask) -> Integers:
        """Return the least ``side`` of such versions of each group, int64 (n,); ``FOREVER``: it has none.

        Amortised O(log versions) a group, and O(versions of these groups).
        """
        found = np.full(slots.size, FOREVER)
        for run in self._runs:
            of, rows = run.of_slots(slots)
            some = np.flatnonzero(numbers[run.versions.numbers[rows]])
            np.minimum.at(found, of[some], getattr(run.versions, side)[rows[some]])
        self.nbytes = sum(run.nbytes for run in self._runs)
        return found

    @staticmethod
    def _front(run: VersionRun, side: str, numbers: Mask) -> Front:
        name = side, numbers.tobytes()
        if name not in run.fronts:
            rows = np.flatnonzero(numbers[run.versions.numbers])
            run.fronts[name] = Front(rows, getattr(run.versions, side)[rows])
        return run.fronts[name]

    def _found(self, rows: list[Integers]) -> tuple[Versioned, Integers]:
        parts, places, first = [], [self.none.slots], 0
        for run, some in zip(self._runs, rows, strict=True):
            if some.size:
                parts.append(run.versions.take(some))
                places.append(some + first)
            first += len(run)
        if not parts:
            return self.none, places[0]
        return parts[0].joined(parts[1:]), np.concatenate(places)

    def drop(self, places: Integers) -> None:
        """Let go of the versions at ``places``, ascending, as ``near`` or ``all`` gave them.  Amortised O(places)."""
        if not places.size:
            return
        first = 0
        for run in self._runs:
            low, high = places.searchsorted([first, first + len(run)])
            run.drop(places[low:high] - first)
            first += len(run)
        self._runs = [run for run in self._runs if run.size]
        self._count()
        if self._rows > 2 * self._size + _FEW:
            self.all()

    def put(self, new: Versioned) -> None:
        """Take in versions.  Amortised O(log versions) each."""
        if not new.slots.size:
            return
        run, older = self._run(new), list[VersionRun]()
        while self._runs and self._runs[-1].size < 2 * sum(one.size for one in (run, *older)):
            older.append(self._runs.pop())
        if older:
            (first, hashes), *more = [one.kept() for one in (*older[::-1], run)]
            run = VersionRun(
                first.joined([one for one, _ in more]), np.concatenate([hashes, *(its for _, its in more)])
            )
        self._runs.append(run)
        self._count()

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

    def __init__(
        self, windows: int, of: Integers, out: Integers, held: Versioned, added: NDArray[np.bool_]
    ) -> None:
        self.many, self.counts = np.zeros(windows, np.int64), np.zeros(windows, np.int64)
        self.versions, self.place = np.full(windows, -1), np.full(windows, -1)
        self.timings = np.zeros(windows, np.int64)
        self.state = np.zeros((windows, held.state.shape[1]), np.int64)
        np.add.at(self.many, of, 1)
        np.add.at(self.counts, of, held.counts[out])
        np.maximum.at(self.versions, of, held.versions[out])
        sums = self.state.copy()
        np.maximum.at(self.state, of, held.state[out])
        np.add.at(sums, of, held.state[out])
        self.state[:, added] = sums[:, added]
        self.place[of], self.timings[of] = out, held.timings[out]


def same_rows(
    rows: pa.RecordBatch, before: pa.RecordBatch, last: LastVersions, columns: int
) -> NDArray[np.bool_]:
    """Tell for which windows one version is out, and it has these results in the last ``columns``."""
    one: NDArray[np.bool_] = last.many == 1
    if one.all():
        return _equal_rows(rows, before, columns)
    one[one] = _equal_rows(rows.filter(pa.array(one)), before.filter(pa.array(one)), columns)
    return one


def same_results(columns: Sequence[pa.Array], many: int, at: Integers, compared: int) -> Mask:
    """Tell which of the first rows, ``many``, have the results of the ``at[i]``-th behind them, in the last columns.

    ``compared``: how many columns these are.
    """
    same: Mask = np.ones(many, np.bool_)
    for column in columns[-compared:]:
        if pa.types.is_integer(column.type) and not column.null_count:
            values = column.to_numpy()
            same &= values[:many] == values[many:][at]
        else:
            same &= _equal(column[:many], column[many:].take(pa.array(at)))
    return same


def before_each(columns: Sequence[pa.Array], at: Integers, leaves: Mask | None) -> list[pa.Array]:
    """Return for each row that ``leaves`` (None: all do) the one that was before it, null where there is none.

    Row ``i`` of the columns was before the ``at[i]``-th one of the rows behind these.
    """
    places = np.full(len(columns[0]) - at.size, -1)
    places[at] = np.arange(at.size)
    places = places if leaves is None else places[leaves]
    return [column.take(pa.array(places, mask=places < 0)) for column in columns]


def _equal_rows(one: pa.RecordBatch, other: pa.RecordBatch, columns: int) -> Mask:
    """Tell which rows are the same in the last ``columns``, bool (rows,)."""
    same = np.ones(one.num_rows, np.bool_)
    for a, b in zip(one.columns[-columns:], other.columns[-columns:], strict=True):
        same &= _equal(a, b)
    return same


def _equal(a: pa.Array, b: pa.Array) -> Mask:
    """Tell which values are the same: null is null, NaN is NaN."""
    a, b = comparable(a), comparable(b)
    equal = pc.equal(a, b)
    if a.null_count or b.null_count:
        equal = pc.or_(equal.fill_null(False), pc.and_(a.is_null(), b.is_null()))
    same: Mask = equal.to_numpy(zero_copy_only=False)
    return same


def taken(rows: pa.RecordBatch, at: Sequence[int] | Integers) -> pa.RecordBatch:
    """Return rows by their places, null where that is -1."""
    places = np.asarray(at, np.int64)
    return rows.take(pa.array(places, mask=places < 0))
