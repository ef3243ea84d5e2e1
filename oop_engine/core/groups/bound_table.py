"""Bound tables: the bounds of groups on several inputs, in columns; ``Progress`` has one a set of attributes.

(``input_bounds.py``: on one input.)

The minimum over the inputs for a group grows when a bound of the group does, or when a whole input passes the bound
that the minimum is *stuck* at: that of one input, the lowest.  A group is over when each whole input is past its bound,
so while one input is not, no other matters.  A table of many groups has a timer for each group on the input where it is
stuck, and one on an input where it is *ahead* of the whole stream: two watched inputs, as solvers of SAT watch two
literals.  A linear bound looks at those groups alone whose timer it passes.  Of few groups it looks at all.

A group has one timer an input at most.  A timer that a group has on an input serves it there again, for bounds only
grow: it is never too late, and if it is due early, the group is looked at once more.

Bytes of a group with bounds on two inputs and an integer key: 8 of its key, 8 to 16 of its places in the index, 16 of
its bounds, 2 of the inputs with a timer, 24 of two timers (12 each); and up to a quarter more of all but places and
timers, the room for new groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.endings import Endings
from oop_engine.core.groups.group_index import IN_NUMPY, GroupIndex, KeyTables, occurring
from oop_engine.core.groups.timers import Timers
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.sizes import room_for
from oop_engine.system.knobs import knob

__all__ = ["BoundTable"]

Bounds = NDArray[np.int64]
_MANY = knob(__name__, "_MANY", 1024)  # groups
_MOST_TIMERS = knob(__name__, "_MOST_TIMERS", 3)  # for each group, before they are set anew


class BoundTable:
    """Bounds of the groups of one set of attributes: rows are groups, columns inputs."""

    def __init__(self, schema: pa.Schema, inputs: int, tables: KeyTables = IN_NUMPY) -> None:
        self._schema, self._tables = schema, tables
        self._index = GroupIndex(schema.types, tables)
        self._grouped = np.full((0, inputs), NEVER)  # (capacity, inputs); all NEVER: over
        self._gone = 0  # how many are over
        self._on = np.zeros((0, inputs), np.bool_)  # (capacity, inputs); whether there is a timer
        self._timers: list[Timers] | None = None  # of each input, where there are many groups
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
        timers = sum(timers.nbytes for timers in self._timers or ())
        return self._index.nbytes + self._grouped.nbytes + self._on.nbytes + timers

    def advance(
        self, port: int, punctuation: GroupWise, linear: Bounds, linear_out: int, *, remember_ended: bool
    ) -> tuple[list[Punctuation], pa.RecordBatch | None]:
        """Take bounds of an input; return those of all inputs that have grown, and the groups that are over on all."""
        known = len(self)
        slots = self._index.encode(punctuation.groups.columns)
        self._grow(len(self))
        touched = occurring(slots, len(self))
        before = self._minimum(linear, touched)
        self._gone -= int(np.count_nonzero(self._is_over(touched[touched < known])))
        np.maximum.at(self._grouped[:, port], slots, punctuation.below)  # a group may come twice
        out = self._grown(touched, before, linear, linear_out)
        if remember_ended or not (punctuation.below == FOREVER).any():
            self._watch(linear, touched)
            return out, None
        ended = self._ended(linear, touched)
        self._settle(linear, touched, remember_ended=False)
        return out, ended

    def passed(
        self, port: int, was: int, linear: Bounds, linear_out: int, *, remember_ended: bool
    ) -> list[Punctuation]:
        """Return the bounds of groups that a larger bound of an input brings; forget those that are passed."""
        slots = self._passed_by(port, linear)
        if not slots.size:
            return []
        earlier = linear.copy()
        earlier[port] = was
        out = self._grown(slots, self._minimum(earlier, slots), linear, linear_out)
        self._settle(linear, slots, remember_ended=remember_ended)
        return out

    def all_bounds(self, linear: Bounds) -> tuple[NDArray[np.int64], Bounds]:
        """Return all groups, and their bounds on all inputs."""
        slots = np.arange(len(self))
        return slots, self._minimum(linear, slots)

    def _is_over(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        over: NDArray[np.bool_] = (self._grouped[slots] == NEVER).all(axis=1)
        return over

    def _passed_by(self, port: int, linear: Bounds) -> NDArray[np.int64]:
        """Return the groups that a larger bound of a whole input may change; all of few."""
        if self._timers is None:
            return np.arange(len(self))
        slots = self._timers[port].due_at(int(linear[port]))
        if not slots.size:
            return slots
        self._on[slots, port] = False
        passed = self._grouped[slots, port] <= linear[port]
        if not passed.all():  # a bound has grown since the timer was set
            self._watch(linear, slots[~passed])
        return np.sort(slots[passed])

    def _minimum(self, linear: Bounds, slots: NDArray[np.int64]) -> Bounds:
        """Return the minimum of the bounds of all inputs for some groups."""
        lowest: Bounds = np.maximum(linear, self._grouped[slots]).min(axis=1)
        return lowest

    def of_input(self, port: int) -> GroupWise:
        """Return the bounds of one input."""
        return self.punctuation(np.arange(len(self)), self._grouped[: len(self), port].copy())

    def _grown(
        self, slots: NDArray[np.int64], before: Bounds, linear: Bounds, linear_out: int
    ) -> list[Punctuation]:
        """Return the bounds of some groups that have grown beyond those ``before``, and that of the whole stream."""
        bounds = self._minimum(linear, slots)
        grown = bounds > np.maximum(before, linear_out)
        return [self.punctuation(slots[grown], bounds[grown])] if grown.any() else []

    def punctuation(self, slots: NDArray[np.int64], below: Bounds) -> GroupWise:
        """Return bounds of some groups as a punctuation."""
        batch = pa.RecordBatch.from_arrays(self._index.keys(slots), schema=self._schema)
        return GroupWise(batch, below)

    def bounds(self, columns: pa.RecordBatch, linear: Bounds, port: int | None) -> Bounds:
        """Return the bound of each row's group, on one input or on all; ``NEVER`` where it is not known."""
        slots = self._index.find([columns.column(n) for n in self._schema.names])
        of_one = None if port is None else np.maximum(linear[port], self._grouped[slots, port])
        return np.where(slots >= 0, self._minimum(linear, slots) if of_one is None else of_one, NEVER)

    def _ended(self, linear: Bounds, slots: NDArray[np.int64]) -> pa.RecordBatch:
        """Return those of some groups that no input has anything of any more."""
        over = slots[self._minimum(linear, slots) == FOREVER]
        return pa.RecordBatch.from_arrays(self._index.keys(over), schema=self._schema)

    def end(self, groups: pa.RecordBatch, linear: Bounds) -> None:
        """End groups of fewer attributes, and so all that are part of them."""
        self._endings.add(groups)
        if self._endings.due(len(self)):
            self._forget(self._endings.parts(self._index))
        self._settle(linear, np.empty(0, np.int64), remember_ended=False)

    def _left(self) -> NDArray[np.int64]:
        """Return the groups that are not over."""
        return np.flatnonzero(~self._is_over(np.arange(len(self))))

    def _forget(self, slots: NDArray[np.int64]) -> None:
        """End some groups."""
        self._gone += int(np.count_nonzero(~self._is_over(slots)))
        self._grouped[slots] = NEVER

    def _settle(self, linear: Bounds, slots: NDArray[np.int64], *, remember_ended: bool) -> None:
        """Forget those of some groups whose bound on no input is beyond that of the whole; watch the others.

        Forgetting costs a new index, so of many groups half must go to make it worth while.
        """
        grouped = self._grouped[slots]
        remaining = (grouped > linear).any(axis=1)
        if not remember_ended:
            remaining &= (np.maximum(grouped, linear) < FOREVER).any(axis=1)
        if not remaining.all():
            self._forget(slots[~remaining])
        if self._gone > (len(self) // 2 if len(self) > _MANY else 0):
            left = self._left()
            self._index.keep(left)
            self._grouped, self._gone = self._grouped[left], 0
            self._on, self._timers = np.zeros_like(self._grouped, np.bool_), None
            slots = left[:0]
        self._watch(linear, slots)

    def _watch(self, linear: Bounds, slots: NDArray[np.int64]) -> None:
        """Set timers for those of some groups that have none on the input where they are stuck now, or are ahead."""
        if len(self) <= _MANY:
            return
        inputs = self._grouped.shape[1]
        if self._timers is None or sum(map(len, self._timers)) > _MOST_TIMERS * len(self):
            self._timers = [Timers() for _ in range(inputs)]
            self._on[:] = False
            slots = np.arange(len(self))
        slots = slots[~self._is_over(slots)]
        grouped = self._grouped[slots]
        ahead, bounds = grouped > linear, np.maximum(linear, grouped)
        self._set(slots, bounds.argmin(axis=1), bounds)
        none = np.flatnonzero(~(self._on[slots] & ahead).any(axis=1))
        self._set(slots[none], ahead[none].argmax(axis=1), bounds[none])

    def _set(self, slots: NDArray[np.int64], ports: NDArray[np.int64], bounds: Bounds) -> None:
        """Set a timer for some groups, each on an input of its own, where it has none there."""
        assert self._timers is not None
        anew = ~self._on[slots, ports]
        for port in range(bounds.shape[1]):
            rows = np.flatnonzero(anew & (ports == port))
            self._timers[port].set(bounds[rows, port], slots[rows])
        self._on[slots, ports] = True

    def save(self) -> dict[str, Any]:
        """Return the bounds for a snapshot."""
        self._forget(self._endings.parts(self._index))
        slots = np.arange(len(self))
        keys = pa.RecordBatch.from_arrays(self._index.keys(slots), schema=self._schema)
        return {"keys": keys, "grouped": self._grouped[slots]}

    @classmethod
    def loaded(cls, saved: Saved, inputs: int, tables: KeyTables = IN_NUMPY) -> BoundTable:
        """Return the table that was saved."""
        keys = saved.batch("keys")
        table = cls(keys.schema, inputs, tables)
        size = len(np.unique(table._index.encode(keys.columns)))
        table._grouped = saved.integers("grouped", (size, inputs))
        table._on, table._gone = np.zeros((size, inputs), np.bool_), size - table._left().size
        return table

    def _grow(self, size: int) -> None:
        room, inputs = self._grouped.shape
        if size <= room:
            return
        more = room_for(size, room) - room
        self._grouped = np.vstack([self._grouped, np.full((more, inputs), NEVER)])
        self._on = np.vstack([self._on, np.zeros((more, inputs), np.bool_)])
