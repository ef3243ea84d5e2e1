"""GroupProgress: the bounds of each group by itself, for ``PerGroup``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.groups.group_index import GroupIndex, occurring
from oop_engine.core.groups.looks import Looks
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, shift
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.sizes import room_for
from oop_engine.operators.kernels.ordering import due, nth_largest
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.policies.policies import PerGroup
from oop_engine.operators.policies.running_bound import floored
from oop_engine.system.knobs import knob

__all__ = ["GroupProgress"]

Ints = NDArray[np.int64]
_SEEN, _GREW, _NOW, _SENT = range(4)
_EPOCHS = 1 << 62  # more than there can ever be
_FEW = knob(__name__, "_FEW", 64)  # so few groups are all looked at, each time


class GroupProgress:
    """The bound of each group, and when a punctuation for it is due.

    ``bounds``: of the page at hand, the bound of each row's group after it, int64 (rows,).

    A page costs its rows, amortised, however many groups are asleep: a punctuation looks at the groups that have moved
    since the last one, and the stream looks now and then for groups that it has reached (``Looks``).
    """

    def __init__(self, policy: PerGroup, schema: Schema, granularity: int | None, place: str) -> None:
        self._count, self._slack = policy.lag(schema, place)
        self.granularity = granularity
        self._fields = pa.schema([schema.fields.field(name) for name in policy.by])
        self._index = GroupIndex(self._fields.types, IN_KERNELS)
        self._largest = np.full((0, self._count + 1), NEVER)  # (capacity, count + 1)  min-heaps
        self._table = np.full((4, 0), NEVER)  # (4, capacity)
        self._last = np.array([0, -1])  # the epoch, and who made the last cut
        self._slots = self.bounds = np.empty(0, np.int64)  # of the page at hand
        self._moved: list[
            Ints
        ] = []  # groups whose bound has grown since the last punctuation, and maybe others
        self._looks = Looks(_FEW)  # for groups that the stream has reached

    def __len__(self) -> int:
        return len(self._index)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return self._index.nbytes + self._largest.nbytes + self._table.nbytes

    def take(self, page: Page, before: int, linear: Ints) -> Ints:
        """Take in a page; return the rows after which punctuation of groups is due."""
        self._slots = self._index.encode([page.column(name) for name in self._fields.names])
        self._grow(len(self._index))
        trailing = np.minimum(nth_largest(page.times, self._slots, self._largest), FOREVER - 1)
        self.bounds = floored(shift(trailing, -self._slack), self.granularity)
        if self.granularity is None:
            return np.array([len(page)])
        stream = np.concatenate([[before], linear])
        return np.flatnonzero(due(self.bounds, self._slots, stream, self._table, self._last)) + 1

    def note(self, start: int, stop: int) -> None:
        """Advance past rows of the current page: their bounds apply from now on."""
        slots = self._slots[start:stop]
        self._table[_NOW, slots] = self.bounds[start:stop]  # the last one stays
        self._moved.append(slots)
        if sum(slots.size for slots in self._moved) > 2 * len(self._index):
            self._moved = [self._all_moved()]

    def _all_moved(self) -> Ints:
        return occurring(np.concatenate([*self._moved, np.empty(0, np.int64)]), len(self._index))

    def let_go(self) -> None:
        """Release the current page."""
        self._slots = self.bounds = np.empty(0, np.int64)

    def grown(self, linear: int) -> GroupWise | None:
        """Return the punctuation of all groups whose bound has grown since the last one."""
        slots, self._moved = self._all_moved(), []
        now, sent = self._table[_NOW, slots], self._table[_SENT, slots]
        grown = now > np.maximum(sent, linear)
        if not grown.any():
            return None
        slots, now = slots[grown], now[grown]
        self._table[_SENT, slots] = now
        keys = pa.RecordBatch.from_arrays(self._index.keys(slots), schema=self._fields)
        return GroupWise(keys, now)

    def overtaken(self, linear: int) -> None:
        """Record that something else than a page has advanced the whole stream."""
        self._last[0] += 1
        self.forget(linear)

    def forget(self, linear: int) -> None:
        """Drop groups whose bound the stream has reached, once they are the majority.

        That cannot be seen from outside: where they come again, they start behind ``linear``.
        """
        size = len(self._index)
        if not self._looks.due(size, linear):
            return
        bounds = shift(self._largest[:size].max(axis=1), -self._slack)
        self._looks.note(bounds)
        remaining = bounds > linear
        if (leader := int(self._last[1])) >= 0:
            remaining[leader] = linear < FOREVER
        slots = np.flatnonzero(remaining)
        if 2 * slots.size > size or slots.size == size:
            return
        moved = self._all_moved()
        self._moved = [np.searchsorted(slots, moved[remaining[moved]])]
        self._looks.note(bounds[slots])
        self._index.keep(slots)
        self._largest, self._table = self._largest[slots], self._table[:, slots]
        self._last[1] = np.searchsorted(slots, leader) if leader >= 0 and slots.size else -1

    def _grow(self, size: int) -> None:
        capacity = self._table.shape[1]
        if size > capacity:
            more = room_for(size, capacity) - capacity
            self._largest = np.vstack([self._largest, np.full((more, self._count + 1), NEVER)])
            self._table = np.hstack([self._table, np.full((4, more), NEVER)])

    def save(self) -> dict[str, Any]:
        size = len(self._index)
        return {
            "index": self._index.save(),
            "largest": self._largest[:size],
            "table": self._table[:, :size],
            "last": self._last,
            "looks": self._looks.save(),
        }

    def load(self, saved: Saved) -> None:
        self._index.load(saved.part("index"))
        size = len(self._index)
        self._largest = saved.integers("largest", (size, self._count + 1))
        self._table = saved.integers("table", (4, size))
        self._moved = [np.flatnonzero(self._table[_NOW] > self._table[_SENT])]
        self._looks.load(saved.integers("looks", (2,)))
        self._last = saved.integers("last", (2,), least=-1, below=_EPOCHS)
        if self._last[1] >= size:
            msg = f"'last' must name one of {size} groups; got {self._last[1]}"
            raise SnapshotError(msg)
