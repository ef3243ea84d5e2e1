"""BufferingAggregate: window aggregation by keeping the tuples of open windows, in order.

The in-order twin of ``WindowAggregate``, and the usual way: the tuples of a window's
extent are kept until the window is complete, and its aggregates are computed from them then.
A tuple is looked at once for each window it is in, as it is in WID, but it stays meanwhile.

    Pass       results, in the order of their windows' ends; never tuples.
    Keep       every tuple (its columns that the query reads) until the last window it is in
               has closed; landmark windows keep all tuples.
    Propagate  linear, the end (start, by ``stamp``) of the earliest window still open, when
               it has grown: a tuple, its input being sorted, has the effect of a punctuation.
               Group-wise and joint punctuation is dropped, for windows close in order.
    Cost       O(1) a tuple as it comes; O(tuples of the extent) a window that closes, in kernels; a
               punctuation that closes none O(1).  Order needed: yes.

With ``late=True`` there is a second input for the stragglers of a ``Sort`` with the generous
policy: they are added to the extents still open (not emitted, and not below the bound), and are lost for closed
ones.  Counts: ``late_for_some`` stragglers lost for at least one extent, ``late_for_all`` those lost for
all of theirs.

Source: thesis 6.1.5 (the buffering implementation; consistent and generous slack).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page, concat
from oop_engine.core.punctuation import FOREVER, NEVER, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation, Arrays
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.ordering.time_sorted import last_time
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.checks import MOST_WINDOWS, checked
from oop_engine.operators.slicing.explained import retained
from oop_engine.operators.slicing.output import PAGE_ROWS, Output, Stamp, Stamps
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.tagger import bind
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import rows_of
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Extents, Over, Windows, divisible_by, is_grid

__all__ = ["BufferingAggregate"]

Integers = NDArray[np.int64]
_WHAT = "BufferingAggregate"


@checked_arguments
class BufferingAggregate(Operator):
    """Aggregate windows of a sorted input; parameters as of ``WindowAggregate(windows, aggregates, by)``.

    Tuple-based windows are refused: there arrival is the order, and ``WindowAggregate``
    needs no other.  ``empty=True`` goes without ``by`` only, for a group's gap is known
    when later windows have left already.  Raises ``GraphError`` as ``WindowAggregate`` does, and
    ``ContractError`` if the input is not sorted.

    >>> import pyarrow as pa
    >>> from oop_engine import Page, Schema
    >>> from oop_engine.operators.aggregates import Count
    >>> from oop_engine.operators.windows import Tumbling
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> count = BufferingAggregate(Tumbling(10), {"n": Count()}).opened(schema)
    >>> (_, page), punctuation = count.on_page(0, Page.of(schema, {"ts": [3, 7, 12]}))
    >>> page.to_pylist(), punctuation, count.state().tuples
    ([{'window_start': 0, 'window_end': 10, 'n': 2}], (0, Linear(below=20)), 1)
    """

    needs_order = True

    def __init__(
        self, windows: Windows, aggregates: Mapping[str, Aggregation], by: Sequence[str] = (),
        *, empty: bool = False, stamp: Stamp = "end", late: bool = False,
    ) -> None:  # fmt: skip
        self.by = checked(aggregates, by, stamp, _WHAT)
        if empty and self.by:
            msg = f"{_WHAT}: empty=True goes with by=() only, for results leave in order; got by={list(by)}"
            raise GraphError(msg)
        self.windows = windows
        self.aggregates = dict(aggregates)
        self.empty = empty
        self.stamp: Stamp = stamp
        if late:
            self.inputs = ("in", "late")

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        if any(schema != inputs[0] for schema in inputs):
            msg = f"{_WHAT}: stragglers must be of the schema {inputs[0]}; got {inputs[1]}"
            raise GraphError(msg)
        return (self._output(inputs[0])[0].schema,)

    def _output(self, schema: Schema) -> tuple[Output, Extents]:
        extents = bind(self.windows, schema, self.by, _WHAT)
        if extents.over is not Over.ATTRIBUTE:
            on = f"must be on the progressing attribute; got {self.windows}"
            msg = f"{_WHAT}: windows {on}: use WindowAggregate"
            raise GraphError(msg)
        if not is_grid(extents) or extents.lulls:
            on = f"must lie on a grid, and not go on through lulls; got {self.windows}"
            msg = f"{_WHAT}: windows {on}: use WindowAggregate, which keeps order"
            raise GraphError(msg)
        return Output({"": extents}, self.aggregates, schema, self.by, self.stamp, _WHAT), extents

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return [key * len(inputs) for key in divisible_by(self.windows, self.by, inputs[0])]

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        return retained([self._output(inputs[0])[1]], self.by, empty=False)

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in self.by else None,) * len(inputs)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        schema = self.schemas_in[0]
        self._out, self._extents = self._output(schema)
        self._stamps = Stamps([self._extents], self.stamp)
        read = {schema.progressing, *self.by, *(c for a in self.aggregates.values() for c in a.columns)}
        self._schema = schema.select([name for name in schema.names if name in read])
        self._groups = GroupIndex([schema.type_of(name) for name in self.by], IN_KERNELS)
        self._pages: list[Page] = []  # sorted by time, one after the other
        self._slots: list[Integers] = []  # the group of each tuple
        self._tuples = self._nbytes = 0
        self._open = NEVER  # the first window not closed yet
        self._next = FOREVER  # the first window not emitted yet, where every window is
        self._latest = NEVER  # the last window with a tuple
        self._bound = self._reached = NEVER
        self._late = self._dropped = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if not len(page):
            return
        first, last = self._extents.wids(page.times)
        if port == 1:
            self._straggle(page, first, last)
            return
        self._reached = last_time(page, self._reached, f"{_WHAT}: input 'in'")
        self._note(first, last)
        inside = last >= first
        self._keep(page if inside.all() else page.filter(inside))
        yield from self._close(int(self._extents.closed_by(self._reached)))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if port == 0 and isinstance(punctuation, Linear):
            self._reached = max(self._reached, punctuation.below)
            yield from self._close(int(self._extents.closed_by(punctuation.below)))

    def _straggle(self, page: Page, first: Integers, last: Integers) -> None:
        """Put late tuples in their places, for the windows that are open."""
        opened = min(self._open, self._next) if self._every and self._open != FOREVER else self._open
        inside = last >= first
        useful = inside & (last >= opened) & (opened != FOREVER)
        self._late += int(np.count_nonzero(inside & (first < opened)))
        self._dropped += int(np.count_nonzero(inside & ~useful))
        if not useful.any():
            return
        self._note(np.maximum(first, opened)[useful], last[useful])
        self._keep(page.filter(useful))
        buffered, slots = self._buffer()
        order = np.argsort(buffered.times, kind="stable")
        self._hold(buffered.take(order), slots[order])

    def _note(self, first: Integers, last: Integers) -> None:
        """Note that windows ``first[i]`` to ``last[i]`` have a tuple."""
        if (inside := last >= first).any():
            self._next = min(self._next, int(first[inside].min()))
            ends = first if self._extents.landmark else last
            self._latest = max(self._latest, int(ends[inside].max()))

    def _keep(self, page: Page) -> None:
        if not len(page):
            return
        batch = page.batch.select(self._schema.names)
        self._pages.append(Page(self._schema, batch))
        self._slots.append(self._groups.encode([page.column(n) for n in self.by], len(page)))
        self._tuples, self._nbytes = self._tuples + len(page), self._nbytes + int(batch.nbytes)
        pages, slots = (
            self._pages,
            self._slots,
        )  # small ones are put together: each costs as much as many rows
        while len(pages) > 1 and len(pages[-2]) <= 2 * len(pages[-1]) < 2 * PAGE_ROWS:
            pages[-2:], slots[-2:] = [concat(self._schema, pages[-2:])], [np.concatenate(slots[-2:])]

    def _buffer(self) -> tuple[Page, Integers]:
        slots = np.concatenate([np.empty(0, np.int64), *self._slots])
        return concat(self._schema, self._pages), slots

    def _hold(self, page: Page, slots: Integers) -> None:
        """Set the buffer to ``page``; forget the groups that have no tuple in it."""
        if self.by and len(self._groups) > 2 * slots.size:
            present, slots = np.unique(slots, return_inverse=True)
            self._groups.keep(present)
        page = page.owned()
        self._pages, self._slots = [page], [slots]
        self._tuples, self._nbytes = len(page), page.held_bytes

    def _close(self, cut: int) -> Iterator[Emission]:
        """Put out the windows below ``cut``, in order, and the bound that follows."""
        if cut <= self._open:
            return
        stop = min(cut, self._latest + 1) if self._latest != NEVER else NEVER
        if self._next < stop:
            yield from self._windows_below(stop)
        self._open = cut
        if not self._every and self._next != FOREVER:
            self._next = max(self._next, cut)
        if cut == FOREVER:
            nothing = np.empty(0, np.int64)
            self._hold(Page.empty(self._schema), nothing)
            self._groups.keep(nothing)
        if self._every and self._next != FOREVER and cut != FOREVER:
            cut = min(cut, self._next)
        if (bound := self._stamps.of_window(cut)) > self._bound:
            self._bound = bound
            yield 0, Linear(bound)

    @property
    def _every(self) -> bool:
        """Return whether windows that no tuple came in may give results."""
        return self.empty or self._extents.landmark

    def _windows_below(self, stop: int) -> Iterator[Emission]:
        buffered, slots = self._buffer()
        states = States(self._out.parts)
        inputs = states.prepare(buffered, buffered.times)
        wid = self._next
        while wid < stop:
            start, end = (int(side[0]) for side in self._extents.extent(np.array([wid])))
            lo, hi = np.searchsorted(buffered.times, [start, end]).tolist()
            same_until = self._alike(wid, stop, buffered.times, lo, hi)
            if lo < hi or self.empty:
                states = States(self._out.parts, len(self._groups))
                inside = rows_of(inputs, slice(lo, hi))
                yield from self._windows(wid, same_until, states, slots[lo:hi], inside)
            wid = same_until
            if not self._every:
                wid = self._skipped(wid, buffered.times, int(lo))
        self._next = wid
        start = int(self._extents.extent(np.array([wid]))[0][0])
        done = int(np.searchsorted(buffered.times, start))
        if done:
            self._hold(buffered.slice(done, len(buffered)), slots[done:].copy())
        else:
            self._hold(buffered, slots)

    def _skipped(self, wid: int, times: Integers, lo: int) -> int:
        """Return ``wid``, or the first window from there on that has a tuple.

        Tuples before ``lo`` are in no later window.  After a lull this is a long way.
        """
        start = int(self._extents.extent(np.array([wid]))[0][0])
        at = lo + int(np.searchsorted(times[lo:], start))
        if at == times.size:
            return max(wid, self._latest + 1)
        return max(wid, int(self._extents.wids(times[at : at + 1])[0][0]))

    def _alike(self, wid: int, stop: int, times: Integers, lo: int, hi: int) -> int:
        """Return the first window from ``wid`` to ``stop`` that has other tuples than it, ``lo`` to ``hi``."""
        if hi < times.size:
            stop = min(stop, int(self._extents.wids(times[hi : hi + 1])[0][0]))
        if lo < hi and not self._extents.landmark:
            stop = min(stop, int(self._extents.wids(times[lo : lo + 1])[1][0]) + 1)
        if self._every and stop - wid > MOST_WINDOWS:
            raise self._out.gap(self._extents, wid, stop, {})
        return max(stop, wid + 1)

    def _windows(
        self, wid: int, stop: int, states: States, slots: Integers, inputs: Sequence[Arrays]
    ) -> Iterator[Emission]:
        """Compute the aggregates of windows ``wid`` to ``stop`` (exclusive), which have the same tuples."""
        try:
            states.add(slots, inputs)
        except SumOverflowError as error:
            raise self._overflow(error, wid) from None
        there = np.zeros(len(self._groups), np.bool_)
        there[slots] = True
        groups = np.flatnonzero(there | self.empty)
        each = max(PAGE_ROWS // max(groups.size, 1), 1)
        for begin in range(wid, stop, each):
            wids = np.arange(begin, min(begin + each, stop))
            rows = np.tile(groups, wids.size)
            starts, ends = self._extents.extent(np.repeat(wids, groups.size))
            windows = WindowStates(rows, ends, states.take(rows), starts=starts)
            for page in self._out.pages(self._groups.keys(rows), windows):
                yield 0, page

    def _overflow(self, error: SumOverflowError, wid: int) -> ContractError:
        keys = self._groups.keys(np.array([error.at]))
        (start,), (end,) = self._extents.extent(np.array([wid]))
        return self._out.overflow(error.column, int(start), int(end), dict(zip(self.by, keys, strict=True)))

    def state(self) -> State:
        nbytes = self._nbytes + 8 * self._tuples + self._groups.nbytes
        return State(tuples=self._tuples, groups=len(self._groups), nbytes=nbytes)

    def counts(self) -> dict[str, int]:
        return {"late_for_some": self._late, "late_for_all": self._dropped} if len(self.inputs) > 1 else {}

    def save(self) -> dict[str, Any]:
        page, slots = self._buffer()
        numbers = [
            self._open,
            self._next,
            self._latest,
            self._bound,
            self._reached,
            self._late,
            self._dropped,
        ]
        return {"batch": page.batch, "slots": slots, "groups": self._groups.save(), "numbers": numbers}

    def load(self, state: Saved) -> None:
        self._groups.load(state.part("groups"))
        page = Page(self._schema, state.batch("batch", self._schema.fields))
        self._extents.wids(page.times)
        self._hold(page, state.integers("slots", (len(page),), least=0, below=len(self._groups)))
        self._open, self._next, self._latest, *numbers = (state.part("numbers").integer(i) for i in range(7))
        self._bound, self._reached, self._late, self._dropped = numbers

    def describe(self) -> str:
        aggregates = ", ".join(
            f"{name}={describe_value(aggregate)}" for name, aggregate in self.aggregates.items()
        )
        by = f"; by {', '.join(self.by)}" if self.by else ""
        return f"{_WHAT}({describe_value(self.windows)}; {aggregates}{by})"
