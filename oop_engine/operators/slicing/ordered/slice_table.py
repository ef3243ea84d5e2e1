"""The slice table: partial aggregates of neighbouring tuples, by group and place; windows are ranges of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.values.arrow_data import no_rows
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.runs import numbered as number_runs
from oop_engine.operators.kernels.sliding import bisect, over_ranges
from oop_engine.operators.slicing.accumulator import Accumulator, SumOverflowError, accumulator, result_of
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.ordered.held import Taken
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.window_states import WindowOverflowError, narrow
from oop_engine.operators.values.columns import (
    Integers,
    begins_of,
    bytes_of,
    ends_of,
    joined,
    new_rows,
    rows_of,
    spread,
)
from oop_engine.operators.windows.folding import FinalTuples

__all__ = ["SliceRows", "in_groups", "numbered", "read_ranges", "rows_from"]


class SliceRows(NamedTuple):
    """Slices, by group slot and place: the times of their first and last tuple, int64 (n,), and columns of each part.

    ``kept``: columns of the one tuple that each is of, where the definition keeps some.
    """

    slots: Integers
    places: Integers
    first: Integers
    last: Integers
    states: list[Arrays]
    kept: pa.RecordBatch | None = None

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.slots.size)

    @property
    def nbytes(self) -> int:
        kept = 0 if self.kept is None else int(self.kept.nbytes)
        return bytes_of([self[:4], *self.states]) + kept

    @classmethod
    def none(cls, parts: Sequence[Part], kept: pa.Schema | None) -> SliceRows:
        """Return no slices."""
        nothing = np.empty(0, np.int64)
        batch = None if kept is None else no_rows(kept)
        return cls(nothing, nothing, nothing, nothing, States(parts).columns, batch)

    def take(self, rows: Integers) -> SliceRows:
        """Return some of them."""
        kept = None if self.kept is None else self.kept.take(pa.array(rows))
        (slots, places, first, last), *states = rows_of([self[:4], *self.states], rows)
        return SliceRows(slots, places, first, last, states, kept)

    def joined(self, *others: SliceRows) -> SliceRows:
        """Return these and others, by group, those of one group that came first in front.  O(slices)."""
        if not others:
            return self
        every = [self, *others]
        (slots, places, first, last), *states = joined([[some[:4], *some.states] for some in every])
        kept = [some.kept for some in every if some.kept is not None]
        rows = SliceRows(slots, places, first, last, states, pa.concat_batches(kept) if kept else None)
        sorted_ = (slots[1:] >= slots[:-1]).all()
        return (
            rows if sorted_ else rows.take(np.argsort(slots, kind="stable"))
        )  # several that are sorted are merged

    def with_more(self, more: SliceRows, parts: Sequence[Part]) -> SliceRows:
        """Return these and ``more``, whose places lie behind those of their groups, or go on with the last one.

        O(slices).  Raises ``SumOverflowError`` with the row of ``more``.
        """
        if not self.size:
            return more
        both = self.joined(more)
        again = (~new_rows(both.slots, both.places)).nonzero()[0]
        try:
            return both._joined(again, parts) if again.size else both
        except SumOverflowError as error:
            row = int(np.searchsorted(more.slots, both.slots[again[error.at]]))
            raise SumOverflowError(error.column, row) from None

    def with_tuples(self, page: Page, slots: Integers, places: Integers, parts: Sequence[Part]) -> SliceRows:
        """Return these and the slices of tuples that lie behind, in order of group and place, or go on with the last.

        Raises ``WindowOverflowError`` where a sum does not fit.
        """
        starts = np.empty(places.size, np.int64)
        starts = starts[: number_runs(fixed(slots), fixed(places), starts)].copy()
        states, ends = States(parts, starts.size), ends_of(starts, places.size)
        new = rows_from(slots[starts], places, page.times, starts, ends, states.columns)
        if self.kept is not None:
            new = new._replace(kept=page.batch.select(self.kept.schema.names))
        try:
            states.add_runs(starts, ends, states.prepare(page, page.times))
            return self.with_more(new, parts)
        except SumOverflowError as error:
            at = error.at
            raise WindowOverflowError(error.column, new.slots[at], new.first[at], new.last[at] + 1) from None

    def _joined(self, again: Integers, parts: Sequence[Part]) -> SliceRows:
        """Return the slices with those of rows ``again`` joined to the rows before them."""
        states = States(parts)
        new = states.combine(rows_of(self.states, again - 1), rows_of(self.states, again))
        states.columns = self.states
        states.put(again - 1, new)
        self.last[again - 1] = self.last[again]
        kept = np.ones(self.slots.size, np.bool_)
        kept[again] = False
        return self.take(np.flatnonzero(kept))

    def joined_before(self, below: int, place: int, parts: Sequence[Part]) -> SliceRows:
        """Return these with the slices of each group before the place ``below`` as one, at ``place``.  O(slices)."""
        places = np.where(self.places < below, place, self.places)
        starts = begins_of(self.slots, places)
        behind = ends_of(starts, places.size) - 1
        states = States(parts).reduced(self.states, starts) if starts.size else self.states
        return SliceRows(self.slots[starts], places[starts], self.first[starts], self.last[behind], states)

    def save(self, parts: Sequence[Part]) -> list[Any]:
        columns = [narrow(self.slots), self.places, self.first, self.last]
        return [*columns, States(parts).saved(self.states), self.kept]

    def loaded(self, saved: Saved, parts: Sequence[Part], groups: int) -> SliceRows:
        """Return the slices of a snapshot of so many groups, of the same columns as these."""
        slots = saved.integers(0, (None,), least=0, below=groups)
        places, first, last = (saved.integers(i, slots.shape) for i in (1, 2, 3))
        behind = (slots[1:] > slots[:-1]) | ((slots[1:] == slots[:-1]) & (places[1:] > places[:-1]))
        if not behind.all() or (first > last).any():
            msg = f"slices must be in order of group and place, and of time; got {slots.size} that are not"
            raise SnapshotError(msg)
        kept = None if self.kept is None else saved.batch(5, self.kept.schema, slots.size)
        return SliceRows(slots, places, first, last, States(parts).loaded(saved.part(4), slots.size), kept)


def rows_from(
    slots: Integers, places: Integers, times: Integers, starts: Integers, ends: Integers, states: list[Arrays]
) -> SliceRows:
    """Return the slices of tuples: each from one of ``starts`` to its end, the next one."""
    return SliceRows(slots, places[starts], times[starts], times[ends - 1], states)


def numbered(taken: Taken, slots: Integers, done: Integers, table: SliceRows) -> tuple[FinalTuples, Integers]:
    """Return tuples that are in order with their ranks, and the slot of each group.

    ``slots``, ascending: of the groups that number them; ``done``: how many each had before; ``table``: the slices.
    """
    starts = begins_of(slots) if slots[0] < slots[-1] else np.zeros(1, np.int64)
    of = slots[starts]
    lengths = ends_of(starts, slots.size) - starts
    if of.size == 1:
        ranks, groups = (
            np.arange(int(done[of[0]]), int(done[of[0]]) + slots.size),
            np.zeros(slots.size, np.int64),
        )
    else:
        ranks = np.arange(slots.size) + (done[of] - starts).repeat(lengths)
        groups = np.arange(of.size).repeat(lengths)
    last = table.slots.searchsorted(of, side="right") - 1
    there = (last >= 0) & (table.slots[last] == of) if table.slots.size else np.zeros(of.size, np.bool_)
    opened, since, until = np.full((3, of.size), -1)
    at = last[there]
    opened[there], since[there], until[there] = table.places[at], table.first[at], table.last[at]
    tuples = groups, starts, taken.page.times, ranks, taken.tags, taken.page
    return FinalTuples(*tuples, opened, since, until), of


def in_groups(
    slices: SliceRows, edges: Integers, low: Integers, high: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return windows of the stream, rows ``[low[i], high[i])`` of ``edges``, for each group that has slices in them.

    These are window, slot of the group, and rows of ``slices``, by group, then window.  A slice stands for its group in
    the windows that it is in and the slice before it is not: they begin behind that one.  O((slices + results) log
    slices), if windows by ``low`` are so by ``high``; those inside others cost more.
    """
    order = None if (low[1:] >= low[:-1]).all() else np.argsort(low, kind="stable")
    low, high = (low, high) if order is None else (low[order], high[order])
    at, starts = edges.searchsorted(slices.places), begins_of(slices.slots)
    behind = low.searchsorted(at, side="right")  # windows that begin behind each slice
    since = np.append(0, behind[:-1])
    since[starts] = 0
    since = np.maximum(since, np.maximum.accumulate(high).searchsorted(at, side="right"))
    first, windows = spread(since, np.maximum(behind - since, 0))
    some = high[windows] > at[first]
    first, windows = first[some], windows[some]
    group = np.arange(starts.size).repeat(ends_of(starts, at.size) - starts)[first]
    until = np.empty(first.size, np.int64)
    bisect(at, np.append(starts, at.size), group, high[windows], until)
    if order is not None:
        windows = order[windows]
        again = np.lexsort((windows, group))
        first, windows, until = first[again], windows[again], until[again]
    return windows, slices.slots[first], first, until


def read_ranges(
    parts: Sequence[Part], states: Sequence[Arrays], low: Integers, high: Integers
) -> list[Arrays]:
    """Return the states of windows that are rows ``[low[i], high[i])``, which may be none; nothing is changed.

    By two stacks in compiled loops where both sides ascend, O(rows + windows); else by pairs of neighbours, pairs of
    pairs, ..., O(rows + windows log rows) in whole columns.  Raises ``SumOverflowError`` with the window.
    """
    if not low.size:
        return rows_of(states, slice(0))
    widths = high - low
    if (shortest := int(np.minimum.reduce(widths))) == (longest := int(np.maximum.reduce(widths))) == 1:
        return rows_of(states, low)
    if not shortest:
        filled, found = np.flatnonzero(widths), States(parts, low.size)
        found.put(filled, read_ranges(parts, states, low[filled], high[filled]))
        return found.columns
    least, most = int(np.minimum.reduce(low)), int(np.maximum.reduce(high))
    low, high = low - least, high - least
    some = rows_of(states, slice(least, most))
    ascending = bool((low[1:] >= low[:-1]).all() and (high[1:] >= high[:-1]).all())
    keepers, steps = list(map(accumulator, parts)), np.empty((3, 0), np.int64)
    if ascending:
        steps = np.empty((3, over_ranges(low, high, 0, most - least, steps)), np.int64)
        over_ranges(low, high, 0, most - least, steps)

    def read(of: Accumulator, state: Arrays) -> Arrays:
        if of.ragged:  # the lists of a window together: to take rows for many windows copies no list
            [lists] = rows_of([state], spread(low, widths)[1])
            return of.reduce(lists, np.cumsum(widths) - widths)
        if ascending and of.compiled:
            return _by_stacks(of, state, steps, longest + 1, low.size)
        return _by_pairs(of, state, low, high)

    return list(map(read, keepers, some))


def _by_stacks(of: Accumulator, state: Arrays, steps: Integers, scratch: int, windows: int) -> Arrays:
    room = tuple([np.concatenate([column, np.empty(scratch, column.dtype)]) for column in state])
    try:
        return of.fold_steps(room, steps, windows)
    except SumOverflowError as error:
        raise SumOverflowError(error.column, result_of(steps, error.at)) from None


def _by_pairs(of: Accumulator, level: Arrays, low: Integers, high: Integers) -> Arrays:
    low, high = low.copy(), high.copy()
    left, right = ([np.full(low.size, value) for value in of.identity] for _ in range(2))
    while (open_ := low < high).any():
        for side, odd, rows in (
            (left, open_ & (low % 2 == 1), low),
            (right, open_ & (high % 2 == 1), high - 1),
        ):
            at = np.flatnonzero(odd)
            held, node = tuple(c[at] for c in side), tuple(c[rows[at]] for c in level)
            both = _combined(of, held, node, at) if side is left else _combined(of, node, held, at)
            for column, new in zip(side, both, strict=True):
                column[at] = new
        low, high = (low + 1) // 2, high // 2
        even = level[0].size // 2 * 2
        pairs = of.combine(tuple(c[0:even:2] for c in level), tuple(c[1:even:2] for c in level))
        level = tuple(np.concatenate([new, old[even:]]) for new, old in zip(pairs, level, strict=True))
    return _combined(of, tuple(left), tuple(right), np.arange(low.size))


def _combined(of: Accumulator, a: Arrays, b: Arrays, windows: Integers) -> Arrays:
    try:
        return of.combine(a, b)
    except SumOverflowError as error:
        raise SumOverflowError(error.column, int(windows[error.at])) from None
