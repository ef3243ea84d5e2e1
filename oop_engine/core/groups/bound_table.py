"""Bound tables: the bounds of groups on several inputs, in columns; ``Progress`` has one a set of attributes.

The minimum over the inputs for a group grows when a bound of the group does, or when a whole input passes the bound
that the minimum is *stuck* at: that of one input, the lowest.  A group is over when each whole input is past its bound,
so while one input is not, no other matters.  A table of many groups has a timer for each group on the input where it is
stuck, and one on an input where it is *ahead* of the whole stream: two watched inputs, as solvers of SAT watch two
literals.  A linear bound looks at those groups alone whose timer it passes.  Of few groups it looks at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import IN_NUMPY, GroupIndex, KeyTables, occurring
from oop_engine.core.groups.timers import Timers
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.sizes import room_for
from oop_engine.system.knobs import knob

__all__ = ["BoundTable"]

Bounds = NDArray[np.int64]
_MANY = knob(__name__, "_MANY", 1024)  # groups
_NOWHERE = -1
_MOST_TIMERS = knob(__name__, "_MOST_TIMERS", 3)  # for each group, before they are set anew
_MANY_ENDINGS = knob(__name__, "_MANY_ENDINGS", 16)  # groups there may be for each that waits to be ended


class BoundTable:
    """Bounds of the groups of one set of attributes: rows are groups, columns inputs."""

    def __init__(self, schema: pa.Schema, inputs: int, tables: KeyTables = IN_NUMPY) -> None:
        self._schema, self._tables = schema, tables
        self._index = GroupIndex(schema.types, tables)
        self._grouped = np.full((0, inputs), NEVER)  # (capacity, inputs)
        self._out = np.full(0, NEVER)  # (capacity,)  bounds passed on
        self._over = np.zeros(0, np.bool_)  # (capacity,)  groups to forget
        self._gone = 0  # how many are over
        self._on = self._without_timers(0)  # inputs with a timer: where stuck, where ahead
        self._timers: list[Timers] | None = None  # of each input, where there are many groups
        self._endings: list[pa.RecordBatch] = []  # groups of fewer attributes that are over

    def __len__(self) -> int:
        return len(self._index)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that make the groups."""
        return tuple(self._schema.names)

    @property
    def nbytes(self) -> int:
        """Bytes of keys and bounds, with the room there is for more."""
        columns = (self._grouped, self._out, self._over, self._on)
        timers = sum(timers.nbytes for timers in self._timers or ())
        return self._index.nbytes + sum(column.nbytes for column in columns) + timers

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
        if self._gone:
            self._gone -= int(np.count_nonzero(self._over[touched]))
            self._over[touched] = False
        return touched

    def passed_by(self, port: int, linear: Bounds) -> NDArray[np.int64]:
        """Return the groups that a larger bound of a whole input may change; all of few."""
        if self._timers is None:
            return np.arange(len(self))
        slots = self._timers[port].due_at(int(linear[port]))
        on = self._on[slots]
        here = on == port
        on[here] = _NOWHERE
        self._on[slots] = on
        return occurring(slots[here.any(axis=1) & ~self._over[slots]], len(self))

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
        of_one = None if port is None else np.maximum(linear[port], self._grouped[slots, port])
        return np.where(slots >= 0, self.minimum(linear, slots) if of_one is None else of_one, NEVER)

    def ended(self, linear: Bounds, slots: NDArray[np.int64]) -> pa.RecordBatch:
        """Return those of some groups that no input has anything of any more."""
        over = slots[self.minimum(linear, slots) == FOREVER]
        return pa.RecordBatch.from_arrays(self._index.keys(over), schema=self._schema)

    def end(self, groups: pa.RecordBatch) -> None:
        """Learn that groups of fewer attributes are over, and so all that are part of them.

        Finding the parts takes a walk over all groups, so of many it waits for more endings; until then the parts stay,
        which does no harm: no tuple of theirs comes.
        """
        self._endings.append(groups)
        if len(self) <= _MANY or sum(each.num_rows for each in self._endings) >= len(self) // _MANY_ENDINGS:
            self._end_parts()

    def _end_parts(self) -> None:
        keys = self._index.keys(np.arange(len(self)))
        columns = dict(zip(self._schema.names, keys, strict=True))
        for schema in {each.schema for each in self._endings}:
            index = GroupIndex(schema.types, self._tables)
            for groups in self._endings:
                if groups.schema == schema:
                    index.encode(groups.columns)
            self._forget(np.flatnonzero(index.find([columns[name] for name in schema.names]) >= 0))
        self._endings = []

    def _forget(self, slots: NDArray[np.int64]) -> None:
        """Let some groups be over."""
        self._gone += int(np.count_nonzero(~self._over[slots]))
        self._over[slots] = True

    def settle(self, linear: Bounds, slots: NDArray[np.int64], *, remember_ended: bool) -> None:
        """Forget those of some groups whose bound on no input is beyond that of the whole; watch the others.

        Forgetting costs a new index, so of many groups half must go to make it worth while.
        """
        grouped = self._grouped[slots]
        kept = (grouped > linear).any(axis=1)
        if not remember_ended:
            kept &= (np.maximum(grouped, linear) < FOREVER).any(axis=1)
        if not kept.all():
            self._forget(slots[~kept])
        if self._gone > (len(self) // 2 if len(self) > _MANY else 0):
            left = np.flatnonzero(~self._over[: len(self)])
            self._index.keep(left)
            self._grouped, self._out = self._grouped[left], self._out[left]
            self._over, self._gone = np.zeros(left.size, np.bool_), 0
            self._on, self._timers = self._without_timers(left.size), None
            slots = left[:0]
        self.watch(linear, slots)

    def watch(self, linear: Bounds, slots: NDArray[np.int64]) -> None:
        """Set timers for those of some groups that have none on the input where they are stuck now, or are ahead."""
        if len(self) <= _MANY:
            return
        inputs = self._grouped.shape[1]
        if self._timers is None or sum(map(len, self._timers)) > _MOST_TIMERS * len(self):
            self._timers = [Timers() for _ in range(inputs)]
            self._on[:] = _NOWHERE
            slots = np.arange(len(self))
        slots = slots[~self._over[slots]]
        if inputs == 1:
            slots = slots[self._on[slots, 0] == _NOWHERE]
            self._set(0, slots, self._grouped[slots, 0])
            self._on[slots, 0] = 0
            return
        grouped = self._grouped[slots]
        ahead, bounds = grouped > linear, np.maximum(linear, grouped)
        stuck = bounds.argmin(axis=1).astype(np.int16)
        first = ahead.argmax(axis=1).astype(np.int16)
        rows = np.arange(slots.size)
        anchored = np.where(ahead[rows, stuck], stuck, first)
        kept = self._on[slots, 1]  # an input that it is ahead of still does
        anchored = np.where((kept >= 0) & ahead[rows, kept], kept, anchored)
        self._set_at(slots, stuck, bounds, self._on[slots, 0] != stuck)
        self._on[slots, 0] = stuck
        self._set_at(slots, anchored, bounds, (kept != anchored) & (anchored != stuck))
        self._on[slots, 1] = anchored

    def _set_at(
        self, slots: NDArray[np.int64], ports: NDArray[np.int16], bounds: Bounds, anew: NDArray[np.bool_]
    ) -> None:
        """Set a timer for some groups, ``anew``, each on an input of its own."""
        for port in range(bounds.shape[1]):
            rows = np.flatnonzero(anew & (ports == port))
            self._set(port, slots[rows], bounds[rows, port])

    def _set(self, port: int, slots: NDArray[np.int64], times: Bounds) -> None:
        assert self._timers is not None
        self._timers[port].set(times, slots)

    def save(self) -> dict[str, Any]:
        """Return the bounds for a snapshot."""
        if self._endings:
            self._end_parts()
        size = len(self)
        keys = pa.RecordBatch.from_arrays(self._index.keys(np.arange(size)), schema=self._schema)
        return {"keys": keys, "grouped": self._grouped[:size], "out": self._out[:size]}

    @classmethod
    def loaded(cls, saved: Saved, inputs: int, tables: KeyTables = IN_NUMPY) -> BoundTable:
        """Return the table that was saved."""
        keys = saved.batch("keys")
        table = cls(keys.schema, inputs, tables)
        size = len(np.unique(table._index.encode(keys.columns)))
        table._grouped = saved.integers("grouped", (size, inputs))
        table._out = saved.integers("out", (size,))
        table._over, table._on = np.zeros(size, np.bool_), table._without_timers(size)
        return table

    def _grow(self, size: int) -> None:
        if size <= len(self._out):
            return
        more = room_for(size, len(self._out)) - len(self._out)
        inputs = self._grouped.shape[1]
        self._grouped = np.vstack([self._grouped, np.full((more, inputs), NEVER)])
        self._out = np.concatenate([self._out, np.full(more, NEVER)])
        self._over = np.concatenate([self._over, np.zeros(more, np.bool_)])
        self._on = np.vstack([self._on, self._without_timers(more)])

    def _without_timers(self, groups: int) -> NDArray[np.int16]:
        return np.full((groups, min(self._grouped.shape[1], 2)), _NOWHERE, np.int16)
