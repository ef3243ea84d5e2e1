"""Windows of brute force that need the order of time or of arrival: ranks, markers, frames, and those of a function.

Each group is put in order and its windows are spelt out one by one, as their definitions read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.lab.brute_force.aggregates import NoTruthError, array_of, ranks_of
from oop_engine.operators.values.expressions import Expression, evaluate, mask_of
from oop_engine.operators.windows import (
    Delimited,
    Frames,
    LastRows,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
    TupleBased,
    UserWindows,
)

__all__ = ["FOLDED", "GroupedTuples", "Window"]

Integers = NDArray[np.int64]


class GroupedTuples(NamedTuple):
    """The tuples of a stream: ``table``, their times, and the number of their group.

    ``arrived``: rows are in order of arrival, else nothing is known of it.
    """

    table: pa.Table
    schema: Schema
    times: Integers
    groups: Integers
    arrived: bool

    def of_groups(self) -> Iterator[Integers]:
        """Yield the rows of each group."""
        for group in np.unique(self.groups):
            yield np.flatnonzero(self.groups == group)

    def arrivals(self, rows: Integers) -> Integers:
        """Return rows as they came; raise ``NoTruthError`` where that is not known."""
        if not self.arrived:
            msg = "windows by arrival behind a union or an aggregate are not evaluated by brute force"
            raise NoTruthError(msg)
        return rows

    def in_time(self, rows: Integers, tie: Sequence[str] = (), *, untied: bool = True) -> Integers:
        """Return rows by time, tie and arrival; ``untied``: equal ones must have an order."""
        keys = [self.times[rows], *(ranks_of(self.table.column(name))[rows] for name in tie)]
        ordered: Integers = rows[np.lexsort(keys[::-1])]
        differ = np.unique(np.stack(keys), axis=1).shape[1]
        return ordered if differ == rows.size or not untied else self.arrivals(ordered)

    def mask(self, predicate: Expression) -> NDArray[np.bool_]:
        """Return for which tuples a predicate is true."""
        batch = pa.RecordBatch.from_arrays(
            [array_of(self.table.column(name)).cast(self.schema.type_of(name)) for name in self.schema.names],
            schema=self.schema.fields,
        )
        return mask_of(evaluate("brute force", [predicate], [pa.bool_()], batch)[0])


class Window(NamedTuple):
    """A window ``[start, end)``, the ``rows`` in it, and values of the columns that results have before extents."""

    rows: Integers
    start: int
    end: int
    more: tuple[Any, ...] = ()


def _ranked(windows: TupleBased | PartitionedTupleBased, tuples: GroupedTuples) -> Iterator[Window]:
    definition: Any = windows.bound(tuples.schema)
    range_, slide, by_time = definition.range, definition.slide, windows.order == "time"
    for rows in (
        tuples.of_groups() if isinstance(windows, PartitionedTupleBased) else [np.arange(tuples.times.size)]
    ):
        ordered = tuples.in_time(rows, windows.tie) if by_time else tuples.arrivals(rows)
        for end in range(slide, ordered.size + range_, slide):
            inside = ordered[max(end - range_, 0) : end]
            if inside.size and by_time:
                first, last = tuples.times[inside[[0, -1]]].tolist()
                yield Window(inside, first, last + 1, (end - range_, end))
            elif inside.size:
                yield Window(inside, end - range_, end)


def _delimited(windows: Delimited, tuples: GroupedTuples) -> Iterator[Window]:
    marked, everyone = tuples.mask(windows.marker), np.arange(tuples.times.size)
    for rows in [everyone] if windows.scope == "stream" else tuples.of_groups():
        if rows.size:
            ends = tuples.times[rows].min(), tuples.times[rows].max() + 1
            yield from _between(np.union1d(ends, tuples.times[rows[marked[rows]]]), rows, tuples)


def _between(edges: Integers, rows: Integers, tuples: GroupedTuples) -> Iterator[Window]:
    for start, end in pairwise(edges.tolist()):
        yield Window(rows[(tuples.times[rows] >= start) & (tuples.times[rows] < end)], start, end)


def _by_tuple(windows: SlideByTuple, tuples: GroupedTuples) -> Iterator[Window]:
    range_ = windows.bound(tuples.schema).range
    columns = [array_of(tuples.table.column(name)) for name in windows.carry]
    for rows in tuples.of_groups():
        ordered = tuples.in_time(rows, untied=windows.of == "rank" and bool(columns))
        times = tuples.times[ordered]
        asking = tuples.arrivals(rows) if windows.of == "arrival" else ordered
        for row in asking[windows.every - 1 :: windows.every].tolist():
            end = int(tuples.times[row]) + 1
            low, high = np.searchsorted(times, (end - range_, end)).tolist()
            start = end - 1 if windows.own else end - range_
            yield Window(ordered[low:high], start, end, tuple(column[row] for column in columns))


def _last(windows: LastRows, tuples: GroupedTuples) -> Iterator[Window]:
    if windows.lulls:
        msg = "windows that leave in lulls follow from punctuation, which is not evaluated by brute force"
        raise NoTruthError(msg)
    definition = windows.bound(tuples.schema)
    origin, every = definition.grid.origin, definition.grid.slide
    for rows in tuples.of_groups():
        ordered = tuples.in_time(rows, windows.tie)
        times = tuples.times[ordered]
        first, last = ((times[[0, -1]] - origin) // every + 1).tolist()
        for end in range(origin + first * every, origin + last * every + 1, every):
            high = int(np.searchsorted(times, end))
            inside = ordered[max(high - windows.rows, 0) : high]
            yield Window(inside, int(tuples.times[inside[0]]), end)


def _between_rows(windows: RowsBetween, tuples: GroupedTuples) -> Iterator[Window]:
    columns = [array_of(tuples.table.column(name)) for name in windows.carry]
    for rows in tuples.of_groups():
        ordered = tuples.in_time(rows, windows.tie)
        for rank, row in enumerate(ordered.tolist()):
            low, high = max(rank + windows.first, 0), max(rank + windows.last + 1, 0)
            time = int(tuples.times[row])
            yield Window(ordered[low:high], time, time + 1, tuple(column[row] for column in columns))


def _frames(windows: Frames, tuples: GroupedTuples) -> Iterator[Window]:
    most = windows.bound(tuples.schema).most
    enter, leave = tuples.mask(windows.enter), tuples.mask(windows.leave)
    for rows in tuples.of_groups():
        frame = list[int]()
        for row in tuples.in_time(rows, windows.tie).tolist():
            if frame and most and tuples.times[row] >= tuples.times[frame[0]] + most:
                yield _frame(frame, tuples)
                frame = []
            frame += [row] if frame or enter[row] else []
            if len(frame) > 1 and leave[row]:
                yield _frame(frame, tuples)
                frame = []
        if frame and (windows.unfinished or most):
            yield _frame(frame, tuples)


def _frame(rows: list[int], tuples: GroupedTuples) -> Window:
    return Window(np.array(rows), int(tuples.times[rows[0]]), int(tuples.times[rows[-1]]) + 1)


def _cut(windows: UserWindows, tuples: GroupedTuples) -> Iterator[Window]:
    for rows in tuples.of_groups():
        ordered = tuples.in_time(rows, untied=bool(windows.reads))
        columns = {
            name: array_of(tuples.table.column(name).take(pa.array(ordered))).cast(
                tuples.schema.type_of(name)
            )
            for name in windows.reads
        }
        times = tuples.times[ordered]
        for start, end in zip(*windows.cut(times, columns, NEVER, FOREVER, True), strict=True):
            inside = ordered[(times >= start) & (times < end)]
            if inside.size:
                yield Window(inside, int(start), int(end))


FOLDED: dict[type, Callable[[Any, GroupedTuples], Iterator[Window]]] = {
    TupleBased: _ranked,
    PartitionedTupleBased: _ranked,
    Delimited: _delimited,
    SlideByTuple: _by_tuple,
    LastRows: _last,
    RowsBetween: _between_rows,
    Frames: _frames,
    UserWindows: _cut,
}
"""How the windows of a kind are spelt out."""
