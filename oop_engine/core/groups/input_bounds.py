"""Input bounds: the bounds of groups on one input; ``Progress`` has one table a set of attributes.

With one input there is no minimum to keep: a bound is passed on where it has grown, and a group is over when the whole
stream has reached its bound.  So a group takes its key and its bound alone.  (``bound_table.py``: of several inputs.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.endings import Endings
from oop_engine.core.groups.group_index import IN_NUMPY, GroupIndex, KeyTables, occurring
from oop_engine.core.groups.looks import Looks
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.sizes import room_for
from oop_engine.system.knobs import knob

__all__ = ["InputBounds"]

Bounds = NDArray[np.int64]
_MANY = knob(__name__, "_MANY", 1024)  # groups; of fewer those that are over go at once


class InputBounds:
    """Bounds of the groups of one set of attributes."""

    def __init__(self, schema: pa.Schema, tables: KeyTables = IN_NUMPY) -> None:
        self._schema = schema
        self._index = GroupIndex(schema.types, tables)
        self._bounds = np.full(0, NEVER)  # (capacity,); NEVER: over
        self._over = 0  # how many are
        self._looks = Looks(_MANY)
        self._endings = Endings(schema, tables)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that make the groups."""
        return tuple(self._schema.names)

    @property
    def nbytes(self) -> int:
        """Bytes of keys and bounds, with the room there is for more."""
        return self._index.nbytes + self._bounds.nbytes

    def advance(
        self, port: int, punctuation: GroupWise, linear: Bounds, linear_out: int, *, remember_ended: bool
    ) -> tuple[list[Punctuation], pa.RecordBatch | None]:
        """Take bounds beyond that of the stream; return those that have grown, and the groups that are over now."""
        known = len(self)
        slots = self._index.encode(punctuation.groups.columns)
        self._grow(len(self))
        touched = occurring(slots, len(self))
        before = self._bounds[touched]
        self._over -= int(np.count_nonzero(before[touched < known] == NEVER))
        np.maximum.at(
            self._bounds, slots, punctuation.below
        )  # an operator of one's own may name a group twice
        below = self._bounds[touched]
        grown, ended = below > before, below == FOREVER
        out: list[Punctuation] = [self.punctuation(touched[grown], below[grown])] if grown.any() else []
        if remember_ended or not ended.any():
            return out, None
        over = self.punctuation(touched[ended], below[ended]).groups
        self._forget(touched[ended])
        return out, over

    def passed(
        self, port: int, was: int, linear: Bounds, linear_out: int, *, remember_ended: bool
    ) -> list[Punctuation]:
        """Forget groups that the stream has reached, in time (``Looks``); nothing follows of it."""
        if self._looks.due(len(self), below := int(linear[0])):
            self._keep(self._bounds[: len(self)] > below)
        return []

    def all_bounds(self, linear: Bounds) -> tuple[NDArray[np.int64], Bounds]:
        """Return all groups, and their bounds."""
        return np.arange(len(self)), self._bounds[: len(self)]

    def of_input(self, port: int) -> GroupWise:
        """Return the bounds of the input."""
        there = np.flatnonzero(self._bounds[: len(self)] > NEVER)
        return self.punctuation(there, self._bounds[there])

    def punctuation(self, slots: NDArray[np.int64], below: Bounds) -> GroupWise:
        """Return bounds of some groups as a punctuation."""
        batch = pa.RecordBatch.from_arrays(self._index.keys(slots), schema=self._schema)
        return GroupWise.unchecked(batch, below)

    def bounds(self, columns: pa.RecordBatch, linear: Bounds, port: int | None) -> Bounds:
        """Return the bound of each row's group; ``NEVER`` where it is not known."""
        slots = self._index.find([columns.column(n) for n in self._schema.names])
        return np.where(slots >= 0, np.maximum(self._bounds[slots], linear[0]), NEVER)

    def end(self, groups: pa.RecordBatch, linear: Bounds) -> None:
        """End groups of fewer attributes, and so all that are part of them."""
        self._endings.add(groups)
        if self._endings.due(len(self)):
            self._forget(self._endings.parts(self._index))

    def _forget(self, slots: NDArray[np.int64]) -> None:
        """End some groups: each one of few at once, of many when half of them have ended."""
        self._over += int(np.count_nonzero(self._bounds[slots] > NEVER))
        self._bounds[slots] = NEVER
        if self._over > (len(self) // 2 if len(self) > _MANY else 0):
            self._keep(self._bounds[: len(self)] > NEVER)

    def _keep(self, remain: NDArray[np.bool_]) -> None:
        """Keep some groups alone, if the others are a third or these are few: a new index costs O(groups)."""
        left = np.flatnonzero(remain)
        if left.size < remain.size and (3 * left.size <= 2 * remain.size or remain.size <= _MANY):
            self._index.keep(left)
            self._bounds, self._over = self._bounds[left], 0
        self._looks.note(self._bounds[: len(self)])

    def save(self) -> dict[str, Any]:
        """Return the bounds for a snapshot."""
        self._forget(self._endings.parts(self._index))
        keys = pa.RecordBatch.from_arrays(self._index.keys(np.arange(len(self))), schema=self._schema)
        return {"keys": keys, "bounds": self._bounds[: len(self)], "looks": self._looks.save()}

    @classmethod
    def loaded(cls, saved: Saved, tables: KeyTables = IN_NUMPY) -> InputBounds:
        """Return the table that was saved."""
        keys = saved.batch("keys")
        table = cls(keys.schema, tables)
        table._bounds = saved.integers("bounds", (len(np.unique(table._index.encode(keys.columns))),))
        table._over = int(np.count_nonzero(table._bounds == NEVER))
        table._looks.load(saved.integers("looks", (2,)))
        return table

    def _grow(self, size: int) -> None:
        if size > (room := self._bounds.size):
            more = np.full(room_for(size, room) - room, NEVER)
            self._bounds = np.concatenate([self._bounds, more])
