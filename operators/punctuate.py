"""Punctuate: makes the promises of a stream, and makes the stream keep to them.

The edge of the graph.  A page with arrivals is cut where the promise grows: no punctuation is ever held
back behind a half-full page.  A page without has come as a whole: nothing would be known sooner, so
it goes on as a whole, and what can be promised by its end follows it.  Inside the graph nobody looks at tuples
to guess progress.

    Pass       every tuple that is not behind a promise, at once, in the order it came.
    Keep       what the policy keeps, and what was promised.  Never a tuple.
    Propagate  the watermark of the policy, each time it passes a multiple of the
               granularity; for groups, all that has grown, in one message, when the fastest
               group has passed one.  Punctuation that comes in is merged: the stronger
               promise goes on.
    Cost       O(1) a tuple, vectorised; O(log n) for ``BoundedCount(n)``; a hash look-up
               a tuple and O(groups) a group-wise promise for ``PerGroup``.
    Source     thesis 8.1 (Gigascope's heartbeat; punctuation closes the batch; granularity
               of the smallest slide).  ``Sort`` is the in-order twin.

A tuple is late if it is behind what was *promised* by then to its stream or group.  With a
granularity that depends on the tuples and the clock alone.  Without one there is one
promise a page, at its end, so what is late depends on where pages end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.errors import LateTuple
from oop_engine.groups import GroupIndex
from oop_engine.operator import Emission, Operator, State
from oop_engine.page import Page
from oop_engine.progress import Progress
from oop_engine.punctuation import FOREVER, NEVER, GroupWise, Linear, Punctuation, shift
from oop_engine.schema import Schema
from oop_engine.units import Length
from operators.kernels.ordering import due, nth_largest
from operators.key_table import KeyTable
from operators.late import Late
from operators.policies import (
    PerGroup,
    Policy,
    Watermark,
    check_policy,
    cut_rows,
    floored,
    length_of,
    promised_after,
)
from operators.spelled import spelled

__all__ = ["Punctuate"]

Ints = NDArray[np.int64]


class Punctuate(Operator):
    """Generator of punctuation after ``policy``.

    ``granularity``: promise only multiples of it (best: the smallest slide behind); None:
    at most one promise a page.  ``late``: what becomes of tuples behind a promise; with
    ``Late.DIVERT`` there is a second output, ``late``, which promises nothing.
    Raises ``GraphError`` if a length or a column does not fit the stream.

    >>> from oop_engine.testing import Driver
    >>> from operators.policies import BoundedDisorder
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> driver = Driver(Punctuate(BoundedDisorder(slack=5), granularity=10), schema)
    >>> driver.feed(0, Page.of(schema, {"ts": [16, 9, 14]}))
    [(0, Page(2 rows of ts)), (0, Linear(below=10))]
    >>> driver.operator.counts()
    {'late': 1}
    """

    makes_progress = True

    def __init__(self, policy: Policy, granularity: Length | None = None, late: Late = Late.DROP) -> None:
        check_policy(policy, "Punctuate")
        self.policy = policy
        self.granularity = granularity
        self.late = late
        self.page_by_page = granularity is None  # a promise at the end of each
        self.outputs = late.ports("late")

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self.policy.watermark(inputs[0], "Punctuate")
        self._granule(inputs[0])
        return super().output_schemas(inputs)

    def _granule(self, schema: Schema) -> int | None:
        if self.granularity is None:
            return None
        return length_of(self.granularity, schema, "Punctuate: granularity", least=1)

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def open(self) -> None:
        schema = self.schemas_in[0]
        self._every = self._granule(schema)
        self._watermark: Watermark = self.policy.watermark(schema, "Punctuate")
        self.clock_every = self._watermark.clock_every
        self._groups: _GroupPromises | None = None
        if isinstance(self.policy, PerGroup):
            self._groups = _GroupPromises(self.policy, schema, self._every)
        self._promised = Progress(1, remember_ended=True)
        self._rows = 0
        self._late_rows = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if page.arrival is None and self._groups is None and self.late is not Late.RAISE:
            yield from self._at_once(page)
            return
        before = self._promised.linear
        linear = promised_after(self._watermark.after(page), before, self._every)
        stops = cut_rows(linear, before)
        if self._groups is not None and len(page):
            stops = np.union1d(stops, self._groups.take(page, before, linear))
        start = 0
        for stop in stops.tolist():
            yield from self._tuples(page, start, stop)
            yield from self._promise(int(linear[stop - 1]))
            start = stop
        yield from self._tuples(page, start, len(page))
        if self._groups is not None:
            self._groups.let_go()
            if self._promised.linear > before:
                self._groups.forget(self._promised.linear)

    def _at_once(self, page: Page) -> Iterator[Emission]:
        below, late = self._watermark.over(page, self._promised.linear, self._every)
        if self._promised.groups:
            behind = page.times < self._promised.bounds(page.batch)
            late = behind if late is None else behind | late
        if late is None:
            yield 0, page
        else:
            yield from self._refuse(page, late)
        self._rows += len(page)
        if below > self._promised.linear:
            yield from self._promise(below)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        before = self._promised.linear
        for said in self._promised.advance(0, punctuation):
            yield 0, said
        if self._groups is not None and self._promised.linear > before:
            yield from self._promise(self._promised.linear)
            self._groups.overtaken(self._promised.linear)

    def on_clock(self, now: int) -> Iterator[Emission]:
        below = int(floored(np.array([self._watermark.on_clock(now)]), self._every)[0])
        if below > self._promised.linear:
            yield from self._promise(below)
            if self._groups is not None:
                self._groups.overtaken(below)

    def _tuples(self, page: Page, start: int, stop: int) -> Iterator[Emission]:
        if start == stop:
            return
        part = page if stop - start == len(page) else page.slice(start, stop)
        if self._groups is not None:
            self._groups.note(start, stop)
        late = part.times < self._bounds(part)
        if late.any():
            yield from self._refuse(part, late)
        else:
            yield 0, part
        self._rows += len(part)

    def _bounds(self, part: Page) -> int | Ints:
        return self._promised.bounds(part.batch) if self._promised.groups else self._promised.linear

    def _refuse(self, part: Page, late: NDArray[np.bool_]) -> Iterator[Emission]:
        if self.late is Late.RAISE:
            raise self._error(part, int(np.argmax(late)))
        self._late_rows += int(late.sum())
        sides = [(1, late)] if self.late is Late.DIVERT else []
        if not late.all():
            sides.insert(0 if late[-1] else 1, (0, ~late))  # the last to come tells the moment
        for port, rows in sides:
            yield port, part.filter(rows)

    def _error(self, part: Page, row: int) -> LateTuple:
        name, unit = part.schema.progressing, part.schema.unit
        below = self._promised.bounds(part.batch)[row]
        return LateTuple(
            f"Punctuate: tuple {name}={part.times[row]} (row {self._rows + row} of the stream) came behind "
            f"the promise {name} >= {below} (unit {unit}): allow for more disorder, or set late=Late.DIVERT"
        )

    def _promise(self, below: int) -> Iterator[Emission]:
        promises: list[Punctuation] = [Linear(below)]
        if self._groups is not None and (grown := self._groups.grown(below)) is not None:
            promises.append(grown)
        for promise in promises:
            for said in self._promised.advance(0, promise):
                yield 0, said

    def state(self) -> State:
        nbytes = self._watermark.nbytes + self._promised.nbytes
        groups = self._promised.groups
        if self._groups is not None:
            groups, nbytes = max(groups, len(self._groups)), nbytes + self._groups.nbytes
        return State(groups=groups, nbytes=nbytes)

    def counts(self) -> dict[str, int]:
        return {"late": self._late_rows}

    def save(self) -> dict[str, Any]:
        return {
            "watermark": self._watermark.save(),
            "groups": None if self._groups is None else self._groups.save(),
            "promised": self._promised.save(),
            "rows": [self._rows, self._late_rows],
        }

    def load(self, state: dict[str, Any]) -> None:
        self._watermark.load(state["watermark"])
        if self._groups is not None:
            self._groups.load(state["groups"])
        self._promised.load(state["promised"])
        self._rows, self._late_rows = state["rows"]

    def describe(self) -> str:
        return f"Punctuate({spelled(self.policy)})"


_SEEN, _GREW, _NOW, _TOLD = range(4)


class _GroupPromises:
    """What each group can promise, and when it is time to say so."""

    def __init__(self, policy: PerGroup, schema: Schema, granularity: int | None) -> None:
        self._count, self._slack = policy.lag(schema, "Punctuate")
        self.granularity = granularity
        self._fields = pa.schema([schema.fields.field(name) for name in policy.by])
        self._index = GroupIndex(self._fields.types, KeyTable)
        self._largest = np.full((0, self._count + 1), NEVER)  # (capacity, count + 1)  min-heaps
        self._table = np.full((4, 0), NEVER)  # (4, capacity)
        self._last = np.array([0, -1])  # the epoch, and who made the last cut
        self._slots = self._bounds = np.empty(0, np.int64)  # of the page at hand

    def __len__(self) -> int:
        return len(self._index)

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + self._largest.nbytes + self._table.nbytes

    def take(self, page: Page, before: int, linear: Ints) -> Ints:
        """Take in a page; return the rows after which promises of groups are due."""
        self._slots = self._index.encode([page.column(name) for name in self._fields.names])
        self._grow(len(self._index))
        trailing = np.minimum(nth_largest(page.times, self._slots, self._largest), FOREVER - 1)
        self._bounds = floored(shift(trailing, -self._slack), self.granularity)
        if self.granularity is None:
            return np.array([len(page)])
        promised = np.concatenate([[before], linear])
        return np.flatnonzero(due(self._bounds, self._slots, promised, self._table, self._last)) + 1

    def note(self, start: int, stop: int) -> None:
        """Let rows of the page at hand pass: their bounds hold from now on."""
        self._table[_NOW, self._slots[start:stop]] = self._bounds[start:stop]  # the last one stays

    def let_go(self) -> None:
        """Let go of the page at hand."""
        self._slots = self._bounds = np.empty(0, np.int64)

    def grown(self, linear: int) -> GroupWise | None:
        """Return all that can be promised and has not been; it is then said."""
        size = len(self._index)
        now, told = self._table[_NOW, :size], self._table[_TOLD, :size]
        slots = np.flatnonzero(now > np.maximum(told, linear))
        if not slots.size:
            return None
        told[slots] = now[slots]
        keys = pa.RecordBatch.from_arrays(self._index.keys(slots), schema=self._fields)
        return GroupWise(keys, now[slots])

    def overtaken(self, linear: int) -> None:
        """Learn that something else than a page has moved the whole stream."""
        self._last[0] += 1
        self.forget(linear)

    def forget(self, linear: int) -> None:
        """Let go of groups of which the stream promises as much, once they are the most.

        Nothing can be told from outside: where they come again, they start behind ``linear``.
        """
        size = len(self._index)
        kept = shift(self._largest[:size].max(axis=1), -self._slack) > linear
        if (leader := int(self._last[1])) >= 0:
            kept[leader] = linear < FOREVER
        slots = np.flatnonzero(kept)
        if 2 * slots.size > size or slots.size == size:
            return
        self._index.keep(slots)
        self._largest, self._table = self._largest[slots], self._table[:, slots]
        self._last[1] = np.searchsorted(slots, leader) if leader >= 0 and slots.size else -1

    def _grow(self, size: int) -> None:
        capacity = self._table.shape[1]
        if size > capacity:
            more = max(size, 2 * capacity) - capacity
            self._largest = np.vstack([self._largest, np.full((more, self._count + 1), NEVER)])
            self._table = np.hstack([self._table, np.full((4, more), NEVER)])

    def save(self) -> dict[str, Any]:
        size = len(self._index)
        return {
            "index": self._index.save(),
            "largest": self._largest[:size],
            "table": self._table[:, :size],
            "last": self._last,
        }

    def load(self, saved: dict[str, Any]) -> None:
        self._index.load(saved["index"])
        self._largest, self._table, self._last = saved["largest"], saved["table"], saved["last"]
