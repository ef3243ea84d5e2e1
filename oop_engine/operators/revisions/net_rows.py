"""Net rows: a revision stream without the retracted rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.groups.group_index import GroupIndex, occurring
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.groups.timers import Timers
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear
from oop_engine.core.punctuation import passed as passed_by
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.behind import Behind
from oop_engine.operators.keys.group_match import GroupMatch
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.system.knobs import knob

__all__ = ["NetRows", "changes_of"]

Integers = NDArray[np.int64]

_FEW = knob(__name__, "_FEW", 1024)  # rows that came to nothing and may stay


class NetCounts(NamedTuple):
    """Rows that a page touched, and how often they were there before it and are behind it, int64 (n,)."""

    slots: Integers
    before: Integers
    after: Integers


def changes_of(page: Page) -> Integers:
    """Return the change of each row, int64 (rows,): +1 emits it, -1 retracts it; +1 in a plain stream."""
    if page.schema.change is None:
        return np.ones(len(page), np.int64)
    column = page.column(page.schema.change)
    if column.null_count:
        msg = f"a revision stream: {page.schema.change!r} must be +1 or -1; got null"
        raise ContractError(msg)
    changes: Integers = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return changes


class NetRows:
    """How often each distinct row of a stream of ``schema`` is there, ``change`` left out; ``plain`` is the rest.

    O(rows) a page, and O(rows that it passes) a bound, amortised; one of groups looks at the rows of these.
    Rows that are there no more, or that a bound has passed, are forgotten once they are most of all; those that come
    ``behind`` a bound that has passed them change nothing.
    """

    def __init__(self, schema: Schema) -> None:
        self.plain = schema.plain()
        self._index = GroupIndex(self.plain.fields.types, IN_KERNELS)
        self._match = GroupMatch(self._index, self.plain.names)
        self._counts = np.zeros(0, np.int64)  # (room,)
        self._times = np.zeros(0, np.int64)  # (room,)
        self._tuples = 0  # rows that are there, each once
        self._timers = Timers()
        self.behind = Behind()

    def add(self, page: Page) -> NetCounts:
        """Count the changes of a page; return the rows it touched."""
        page = self.behind.timely(page)
        changes = changes_of(page)
        known = self._index.size
        slots = self._index.encode([page.column(name) for name in self.plain.names], len(page))
        more = self._index.size - self._counts.size
        if more > 0:
            none = np.zeros(max(more, self._counts.size), np.int64)
            self._counts, self._times = np.concatenate([self._counts, none]), np.append(self._times, none)
        self._times[slots] = page.times
        self._timers.set(self._times[known : self._index.size], np.arange(known, self._index.size))
        touched = occurring(slots, self._index.size)
        before = self._counts[touched]
        self._match.again(touched)
        np.add.at(self._counts, slots, changes)
        after = self._counts[touched]
        self._tuples += int(np.count_nonzero(after)) - int(np.count_nonzero(before))
        return NetCounts(touched, before, after)

    def distinct(self, page: Page) -> Page | None:
        """Count the changes of a page; return which rows are there now and were not, +1, and the other way, -1."""
        slots, before, after = self.add(page)
        turned = (before > 0) != (after > 0)
        if not turned.any():
            return None
        rows = self.rows(slots[turned])
        changes = pa.array(np.where(after[turned] > 0, 1, -1).astype(np.int8))
        columns = [changes if name == page.schema.change else rows.column(name) for name in page.schema.names]
        self.tidy()
        return Page(page.schema, pa.RecordBatch.from_arrays(columns, schema=page.schema.fields))

    def rows(self, slots: Integers) -> pa.RecordBatch:
        """Return the rows of some slots, in their order."""
        return pa.RecordBatch.from_arrays(self._index.keys(slots), schema=self.plain.fields)

    def there(self) -> tuple[Page, Integers, Integers]:
        """Return the rows that are there, each once, with their slots and how often each is there.  O(rows)."""
        slots = np.flatnonzero(self._counts[: self._index.size] > 0)
        return Page(self.plain, self.rows(slots)), slots, self._counts[slots]

    def drop(self, slots: Integers) -> None:
        """Remove the rows of some slots; slots change."""
        self._drop(slots)

    def content(self) -> Page:
        """Return the rows that are there, by time, each as often as it is.  O(rows log rows)."""
        counts = np.maximum(self._counts[: self._index.size], 0)
        order = np.argsort(self._times[: self._index.size], kind="stable")
        return Page(self.plain, self.rows(np.repeat(order, counts[order])))

    def tidy(self) -> None:
        """Forget the rows that came to nothing, if they are most of all; slots change."""
        if self._index.size > 2 * self._tuples + _FEW:
            self._keep(self._counts[: self._index.size] != 0)

    def take(self, bound: Linear | GroupWise) -> Page | None:
        """Remove and return the rows that a punctuation passes, by time, with their multiplicity; None: there are none.

        Raises ``ContractError`` if one was retracted more often than it was emitted.
        """
        passed_slots = self._passed(bound)
        self.behind.hear(bound)
        counts = self._counts[passed_slots]
        if (counts < 0).any():
            row = rows_of(self.rows(passed_slots[counts < 0][:1]))
            msg = f"a revision stream: a row is retracted at most as often as it is emitted; got one more of {row}"
            raise ContractError(msg)
        by_time = passed_slots[np.argsort(self._times[passed_slots], kind="stable")]
        by_time = np.repeat(by_time, self._counts[by_time])
        net = Page(self.plain, self.rows(by_time)) if by_time.size else None
        self._drop(passed_slots)
        return net

    def forget(self, bound: Linear | GroupWise) -> None:
        """Forget the rows that a punctuation passes."""
        self.behind.hear(bound)
        self._drop(self._passed(bound))

    def knows(self, bound: Linear | GroupWise) -> bool:
        """Return whether a punctuation is about columns that rows have."""
        return isinstance(bound, Linear) or set(bound.attributes) <= set(self.plain.names)

    def _passed(self, bound: Linear | GroupWise) -> Integers:
        """Return the slots of the rows that a punctuation passes, ascending, and maybe some that were dropped."""
        if isinstance(bound, Linear):
            return np.sort(
                self._timers.due(bound.below) if bound.below < FOREVER else np.arange(self._index.size)
            )
        slots, rows = self._match.of(bound)
        return slots[passed_by(self._times[slots], bound.below[rows])]

    def _drop(self, slots: Integers) -> None:
        """Remove rows."""
        self._tuples -= int(np.count_nonzero(self._counts[slots]))
        self._counts[slots] = 0
        self._match.leave(slots)
        if self._tuples:
            self.tidy()
        elif self._index.size:
            self._keep(self._counts[: self._index.size] != 0)

    def _keep(self, stays: NDArray[np.bool_]) -> None:
        slots = np.flatnonzero(stays)
        self._index.keep(slots)
        self._counts, self._times = self._counts[slots], self._times[slots]
        self._set_timers()

    def _set_timers(self) -> None:
        waiting = np.flatnonzero(self._times >= self.behind.linear)
        self._timers = Timers()
        self._timers.set(self._times[waiting], waiting)

    def state(self) -> State:
        """Return the state: the rows that are there."""
        nbytes = (
            self._index.nbytes
            + self._match.nbytes
            + self._counts.nbytes
            + self._times.nbytes
            + self._timers.nbytes
        )
        return State(tuples=self._tuples, nbytes=nbytes)

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        known = self._index.size
        columns = {"counts": self._counts[:known], "times": self._times[:known]}
        return {"rows": self._index.save(), "behind": self.behind.save(), **columns}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        self._index.load(saved.part("rows"))
        shape = (self._index.size,)
        self._counts, self._times = saved.integers("counts", shape), saved.integers("times", shape)
        self.behind.load(saved.part("behind"))
        self._tuples = int(np.count_nonzero(self._counts))
        self._set_timers()
