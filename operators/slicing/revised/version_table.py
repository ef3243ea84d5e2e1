"""Version tables: the versions of results that are out and not final, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex, comparable
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.core.values.arrow_data import no_rows
from oop_engine.operators.keys.key_table import KeyTable
from oop_engine.operators.slicing.tagger import ranks
from oop_engine.operators.values.columns import Integers

__all__ = [
    "Extents",
    "LastVersions",
    "VersionTable",
    "Versioned",
    "alike",
    "before_each",
    "exactly",
    "same_results",
    "same_rows",
    "taken",
    "within",
]

Mask = NDArray[np.bool_]
Extents = tuple[Integers, Integers, Integers, Integers]
_COLUMNS = 7


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


class VersionTable:
    """The versions of results with the columns ``fields``; ``width``: of the state of triggers."""

    def __init__(self, fields: pa.Schema, width: int) -> None:
        none, rows = np.empty(0, np.int64), no_rows(fields)
        self._hold(Versioned._make([*[none] * _COLUMNS, np.empty((0, width), np.int64), rows]))

    def _hold(self, versions: Versioned) -> None:
        self.all, columns = versions, versions[:-1]
        self.nbytes = sum(column.nbytes for column in columns) + int(versions.rows.get_total_buffer_size())

    def __len__(self) -> int:
        return int(self.all.slots.size)

    def drop(self, gone: Mask) -> None:
        """Let go of some versions.  O(versions)."""
        self._hold(self.all.take(~gone))

    def put(self, new: Versioned) -> None:
        """Take in versions.  O(versions)."""
        if new.slots.size:
            columns = map(np.concatenate, zip(self.all[:-1], new[:-1], strict=True))
            self._hold(Versioned._make([*columns, pa.concat_batches([self.all.rows, new.rows])]))

    def rename(self, slots: Integers) -> None:
        self._hold(self.all._replace(slots=slots[self.all.slots]))

    def save(self) -> dict[str, Any]:
        columns = np.stack(self.all[:_COLUMNS])
        return {"columns": columns, "state": self.all.state, "rows": self.all.rows}

    def load(self, saved: Saved, groups: int) -> None:
        columns = saved.integers("columns", (_COLUMNS, None))
        size = columns.shape[1]
        state = saved.integers("state", (size, self.all.state.shape[1]), least=0)
        rows = saved.batch("rows", self.all.rows.schema, size)
        if size:
            Saved({"slots": columns[0]}).integers("slots", (size,), least=0, below=groups)
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


def within(windows: Extents, some: Extents) -> Integers:
    """Return for each of some extents the window that it lies in, -1: none.

    Both are slots, definitions, starts and ends, int64 (n,).  Windows of a group and definition are apart, or all of
    one length.  O(n log n).
    """
    count = windows[0].size
    slots, numbers, starts, ends = (np.concatenate(pair) for pair in zip(windows, some, strict=True))
    is_window = np.arange(slots.size) < count
    order = np.lexsort((~is_window, starts, numbers, slots))
    ranked = order[is_window[order]]  # the windows, in order
    before = np.empty(slots.size, np.int64)
    before[order] = np.cumsum(is_window[order]) - 1
    at = before[count:]
    if not count:
        return np.full(at.size, -1)
    of = ranked[at]
    same = (slots[of] == slots[count:]) & (numbers[of] == numbers[count:])
    return np.where((at >= 0) & same & (ends[of] >= ends[count:]), of, -1)


def alike(windows: Extents, some: Extents) -> Integers:
    """Return for each of some extents of a grid the window that it is, -1: none.

    ``windows`` are by end, then definition, then group.  O(log windows) for each of ``some``.
    """
    least, groups = int(windows[3][0]), int(windows[0].max()) + 1
    numbers = int(windows[1].max()) + 1
    if (int(windows[3][-1]) - least + 1) * groups * numbers > FOREVER:
        return within(windows, some)
    each = windows, some
    codes, wanted = (((ends - least) * numbers + of) * groups + slots for slots, of, _, ends in each)
    at = np.minimum(np.searchsorted(codes, wanted), codes.size - 1)
    same = (windows[0][at] == some[0]) & (windows[1][at] == some[1]) & (windows[3][at] == some[3])
    return np.where(same, at, -1)


def exactly(windows: Extents, some: Extents) -> Integers:
    """Return for each of some extents the window that is the same, -1: none; of several the first for the first.

    Both are slots, definitions, starts and ends, int64 (n,).
    """
    count, columns = windows[0].size, [np.concatenate(pair) for pair in zip(windows, some, strict=True)]
    same = GroupIndex([pa.int64()] * 4, KeyTable).encode(list(map(pa.array, columns)), columns[0].size)
    pairs = GroupIndex([pa.int64()] * 2, KeyTable)
    pairs.encode([pa.array(same[:count]), pa.array(ranks(same[:count]))], count)
    return pairs.find([pa.array(same[count:]), pa.array(ranks(same[count:]))], some[0].size)


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
