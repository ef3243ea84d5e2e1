"""Bound tables: the bounds of groups on several inputs, in columns; ``Progress`` has one a set of attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex, occurring
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Punctuation
from oop_engine.core.saved import Saved

__all__ = ["BoundTable"]

Bounds = NDArray[np.int64]
_MANY = 1024  # groups


class BoundTable:
    """Bounds of the groups of one set of attributes: rows are groups, columns inputs."""

    def __init__(self, schema: pa.Schema, inputs: int) -> None:
        self._schema = schema
        self._index = GroupIndex(schema.types)
        self._grouped = np.full((0, inputs), NEVER)  # (capacity, inputs)
        self._out = np.full(0, NEVER)  # (capacity,)  bounds passed on

    def __len__(self) -> int:
        return len(self._index)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that make the groups."""
        return tuple(self._schema.names)

    @property
    def nbytes(self) -> int:
        """Bytes of keys and bounds, with the room there is for more."""
        return self._index.nbytes + self._grouped.nbytes + self._out.nbytes

    def raise_to(self, port: int, punctuation: GroupWise) -> NDArray[np.int64]:
        """Take new bounds; return the slots of their groups."""
        slots = self._index.encode(punctuation.groups.columns)
        self._grow(len(self._index))
        touched = occurring(slots, len(self._index))
        bounds = self._grouped[:, port]
        if touched.size == slots.size:
            bounds[slots] = np.maximum(bounds[slots], punctuation.below)
        else:  # an operator of one's own may name a group twice
            np.maximum.at(bounds, slots, punctuation.below)
        return touched

    def minimum(self, linear: Bounds, slots: NDArray[np.int64]) -> Bounds:
        """Return the minimum of the bounds of all inputs for some groups."""
        least: Bounds = np.maximum(linear, self._grouped[slots]).min(axis=1)
        return least

    def of_input(self, port: int) -> GroupWise:
        """Return the bounds of one input."""
        return self.punctuation(np.arange(len(self)), self._grouped[: len(self), port].copy())

    def propagate(self, linear: Bounds, linear_out: int, slots: NDArray[np.int64]) -> list[Punctuation]:
        """Return the bounds that have grown among ``slots``, and note them as passed on."""
        bounds = self.minimum(linear, slots)
        grown = bounds > np.maximum(self._out[slots], linear_out)
        if not grown.any():
            return []
        slots, bounds = slots[grown], bounds[grown]
        self._out[slots] = bounds
        return [self.punctuation(slots, bounds)]

    def punctuation(self, slots: NDArray[np.int64], below: Bounds) -> GroupWise:
        """Return bounds of some groups as a punctuation."""
        batch = pa.RecordBatch.from_arrays(self._index.keys(slots), schema=self._schema)
        return GroupWise(batch, below)

    def bounds(self, columns: pa.RecordBatch, linear: Bounds, port: int | None) -> Bounds:
        """Return the bound of each row's group, on one input or on all; ``NEVER`` where it is not known."""
        slots = self._index.find([columns.column(n) for n in self._schema.names])
        if port is None:
            of_groups = self.minimum(linear, np.arange(len(self)))
        else:
            of_groups = np.maximum(linear[port], self._grouped[: len(self), port])
        return np.where(slots >= 0, of_groups[slots], NEVER)

    def ended(self, linear: Bounds, slots: NDArray[np.int64]) -> pa.RecordBatch:
        """Return those of some groups that no input has anything of any more."""
        over = slots[self.minimum(linear, slots) == FOREVER]
        return pa.RecordBatch.from_arrays(self._index.keys(over), schema=self._schema)

    def end(self, groups: pa.RecordBatch) -> None:
        """Learn that groups of fewer attributes are over, and so all that are part of them.  O(groups kept)."""
        index = GroupIndex(groups.schema.types)
        index.encode(groups.columns)
        columns = dict(zip(self._schema.names, self._index.keys(np.arange(len(self))), strict=True))
        slots = np.flatnonzero(index.find([columns[name] for name in groups.schema.names]) >= 0)
        self._grouped[slots] = self._out[slots] = FOREVER

    def prune(self, linear: Bounds, *, remember_ended: bool) -> None:
        """Forget the groups whose bound on no input is larger than that of the whole stream.

        Forgetting costs a new index, so of many groups half must go to make it worth while.
        """
        grouped = self._grouped[: len(self)]
        kept = (grouped > linear).any(axis=1)
        if not remember_ended:
            kept &= (np.maximum(grouped, linear) < FOREVER).any(axis=1)
        slots = np.flatnonzero(kept)
        if len(slots) > (len(self) // 2 if len(self) > _MANY else len(self) - 1):
            return
        self._index.keep(slots)
        self._grouped, self._out = self._grouped[slots], self._out[slots]

    def save(self) -> dict[str, Any]:
        """Return the bounds for a snapshot."""
        size = len(self)
        keys = pa.RecordBatch.from_arrays(self._index.keys(np.arange(size)), schema=self._schema)
        return {"keys": keys, "grouped": self._grouped[:size], "out": self._out[:size]}

    @classmethod
    def loaded(cls, saved: Saved, inputs: int) -> BoundTable:
        """Return the table that was saved."""
        keys = saved.batch("keys")
        table = cls(keys.schema, inputs)
        size = len(np.unique(table._index.encode(keys.columns)))
        table._grouped = saved.integers("grouped", (size, inputs))
        table._out = saved.integers("out", (size,))
        return table

    def _grow(self, size: int) -> None:
        if size <= len(self._out):
            return
        more = max(size, 2 * len(self._out)) - len(self._out)
        inputs = self._grouped.shape[1]
        self._grouped = np.vstack([self._grouped, np.full((more, inputs), NEVER)])
        self._out = np.concatenate([self._out, np.full(more, NEVER)])
