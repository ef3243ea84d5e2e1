"""Version tables: the versions of results that are out and not final, in columns, by level.

A page costs the versions of its own windows.  Windows are found by hashes; where these collide, more versions are
found: the caller compares extents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.saved import Saved
from oop_engine.core.values.arrow_data import no_rows
from oop_engine.operators.slicing.revised.extents import Extents
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.values.levels import Levels

__all__ = ["LastVersions", "VersionTable", "Versioned", "hashes_of"]

Mask = NDArray[np.bool_]
_COLUMNS = 7
_SLOT, _NUMBER, _START, _MIX = (
    np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xBF58476D1CE4E5B9)
)
_SHIFT, _SPARE = np.uint64(31), np.uint64(24)


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
    def size(self) -> int:
        """How many there are."""
        return int(self.slots.size)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(column.nbytes for column in self[:-1]) + int(self.rows.get_total_buffer_size())

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

    def joined(self, *more: Versioned) -> Versioned:
        """Return these versions, and more behind them."""
        if not more:
            return self
        every = [self, *more]
        columns = [np.concatenate(parts) for parts in zip(*(one[:-1] for one in every), strict=True)]
        return Versioned._make([*columns, pa.concat_batches([one.rows for one in every])])


def hashes_of(slots: Integers, numbers: Integers, starts: Integers) -> Integers:
    """Return hashes of windows, int64 (n,), of 40 bits: to sort wider ones takes longer."""
    mixed = slots.astype(np.uint64) * _SLOT + numbers.astype(np.uint64) * _NUMBER
    mixed += starts.astype(np.uint64) * _START
    mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX
    hashes: Integers = ((mixed ^ (mixed >> _SHIFT)) >> _SPARE).view(np.int64)
    return hashes


class VersionTable:
    """The versions of results with the columns ``fields``; ``width``: of the state of triggers.

    ``by_start`` bool (definitions,): whether windows are found by their start; else by their group, as sessions merge.
    """

    def __init__(self, fields: pa.Schema, width: int, by_start: Mask) -> None:
        none = np.empty(0, np.int64)
        self.none = Versioned._make([*[none] * _COLUMNS, np.empty((0, width), np.int64), no_rows(fields)])
        self._by_start, self._levels = by_start, Levels(self.none, self._column)

    def __len__(self) -> int:
        return len(self._levels)

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        return self._levels.nbytes

    def _column(self, versions: Versioned, name: str) -> Integers:
        """Return a column of versions, or the "hashes" of their windows."""
        column: Integers = self._hashes(versions.extents) if name == "hashes" else getattr(versions, name)
        return column

    def _hashes(self, windows: Extents) -> Integers:
        slots, numbers, starts, _ = windows
        return hashes_of(slots, numbers, np.where(self._by_start[numbers], starts, 0))

    def all(self) -> Versioned:
        """Return all versions, in the order in which they came; places are theirs.  O(versions)."""
        return self._levels.all()

    def near(self, windows: Extents) -> tuple[Versioned, Integers]:
        """Return the versions that may be of ``windows``, with their places, in the order in which they came.

        All that are of them are there.  O(windows log versions); of sessions O(versions of their groups).
        """
        places = self._levels.places("hashes", np.unique(self._hashes(windows)))
        return self._levels.take(places), places

    def within(self, slots: Integers | None, bound: int) -> Versioned:
        """Return the versions of some groups; None: those of all groups whose windows end by ``bound``.

        O(versions found), amortised, and O(log versions) a group.
        """
        levels = self._levels
        return levels.take(levels.until("ends", bound) if slots is None else levels.places("slots", slots))

    def least(self, side: str) -> int:
        """Return the least ``side``, "starts" or "ends", of all versions; ``FOREVER``: there is none.

        Amortised O(levels).
        """
        return self._levels.least(side)

    def least_of(self, slots: Integers, side: str) -> Integers:
        """Return the least ``side`` of the versions of each group, int64 (n,); ``FOREVER``: it has none.

        Amortised O(log versions) a group, and O(versions of these groups).
        """
        return self._levels.least_of("slots", slots, side)

    def drop(self, places: Integers) -> None:
        """Let go of the versions at ``places``, ascending, as ``near`` or ``all`` gave them.  Amortised O(places)."""
        self._levels.drop(places)

    def put(self, new: Versioned) -> None:
        """Take in versions.  Amortised O(log versions) each."""
        self._levels.put(new)

    def rename(self, slots: Integers) -> None:
        held = self._levels.take_all()
        self.put(held._replace(slots=slots[held.slots]))

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
        self._levels.clear()
        self.put(Versioned._make([*columns, state, rows]))


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
