"""Versions: results of windows before they are final, and the changes that correct them.

    early     a page touched the window, its end has not been passed by the watermark, and the trigger ``early`` fires
    on_time   a watermark passes its end
    late      a page touched it, behind that, and the trigger ``late`` fires
    final     punctuation passes its end: the window is forgotten

A version leaves if the result differs from that of the last one.  Versions that are out are kept with their rows
(``version_table.py``) until they are final, so the row that is taken back is the one that was put out.  Windows are
read without being taken out (``reading.py``).  Sessions merge: versions of parts of a session are taken back with the
version that replaces them.  A page is one moment: triggers are asked once a page and window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.operator import Emission, State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Count
from oop_engine.operators.slicing.closing import Closing, Integers
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.revised.reading import Readable, closing_between, readable, touched
from oop_engine.operators.slicing.revised.version_table import (
    Versioned,
    VersionTable,
    equal_rows,
    taken,
    within,
)
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.triggers import Emit, WindowView
from oop_engine.operators.windows import Gap

__all__ = ["Versions"]

Mask = NDArray[np.bool_]

TIMINGS = ["early", "on_time", "late", "final"]
_EARLY, _ON_TIME, _LATE, _FINAL = range(4)


class Versions(Closing):
    """Open windows, and the versions of their results that ``emit`` puts out, as pages of ``out``."""

    stores: list[Readable]  # type: ignore[assignment]

    def __init__(
        self, output: Output, schema: Schema, by: tuple[str, ...], make: Callable[[], Sequence[Store]],
        emit: Emit, out: Schema,
    ) -> None:  # fmt: skip
        [tuples] = Count().parts(schema)
        if tuples not in output.parts:
            output.parts.append(tuples)
        self._count = output.parts.index(tuples)
        super().__init__(output, schema, by, readable(make()))
        self._emit, self._out, self._input = emit, out, Progress()
        self._strict = np.array([isinstance(one, Gap) for one in output.definitions])
        self._triggers = emit.early, emit.late
        self._widths = [0 if one is None else one.width for one in self._triggers]
        self._table = VersionTable(output.schema.fields, sum(self._widths))

    def state(self) -> State:
        held = super().state()
        more = self._table.nbytes + self._input.nbytes
        return held + State(partials=len(self._table), nbytes=more)

    def look(self, page: Page) -> Iterator[Emission]:
        """Fold the tuples of a page in, and put out the versions that triggers ask for."""
        self.add(page, page.times)
        if not len(page):
            return
        times, slots = page.times, self._groups.encode(list(map(page.batch.column, self._by)), len(page))
        if self._emit.early is None:  # windows that have not been passed need not be looked at
            behind = times < self._expected(slots)
            times, slots = times[behind], slots[behind]
        if not times.size:
            return
        found = self._output.ordered([touched(store, times, slots) for store in self.stores])
        if not found.slots.size:
            return
        expected = self._expected(found.slots)
        timings = np.where(self._passed(found, expected), _LATE, _EARLY)
        yield from self._review(found, timings, expected, forced=False)

    def take(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Put out the versions that a watermark asks for, or those that punctuation makes final."""
        bound = punctuation.of if isinstance(punctuation, Watermark) else punctuation
        if not isinstance(bound, Linear | GroupWise) or not set(getattr(bound, "attributes", ())) <= set(
            self._by
        ):
            if isinstance(punctuation, Watermark):
                return
            yield from super().take(punctuation)
            return
        if isinstance(punctuation, Watermark):
            slots = np.arange(len(self._groups))
            before = self._expected(slots)
            self._input.advance(0, punctuation)
            yield from self._on_time(slots, before)
            for grown in self._progress.advance(0, Watermark(self._stamped(bound))):
                yield 0, grown
            return
        self._input.advance(0, punctuation)
        yield from super().take(punctuation)

    def _stamped(self, bound: Linear | GroupWise) -> Linear | GroupWise:
        """Return the least stamp of the windows that a watermark has not passed."""
        if isinstance(bound, Linear):
            return Linear(min(store.least_stamp(bound.below) for store in self.stores))
        none = np.empty(0, np.int64)
        least = [store.least_stamps(none, none, bound.below) for store in self.stores]
        return GroupWise(bound.groups, np.minimum.reduce(least))

    def _on_time(self, slots: Integers, before: Integers) -> Iterator[Emission]:
        expected = self._expected(slots)
        grown = np.flatnonzero(expected > before)
        if not (self._emit.on_time and grown.size):
            return
        found = self._output.ordered(
            [closing_between(store, slots[grown], before[grown], expected[grown]) for store in self.stores]
        )
        if found.slots.size:
            timings = np.full(found.slots.size, _ON_TIME)
            yield from self._review(found, timings, self._expected(found.slots), forced=True)

    def _expected(self, slots: Integers) -> Integers:
        """Return the watermark, or punctuation, of the groups of some slots, int64 (n,)."""
        if not self._input.groups:
            return np.full(slots.size, self._input.expected)
        keys = pa.RecordBatch.from_arrays(self._groups.keys(slots), names=list(self._by))
        return self._input.expected_of(keys)

    def _passed(self, found: WindowStates, bounds: Integers) -> Mask:
        """Tell which windows bounds have passed: a session strictly."""
        strict = self._strict[np.broadcast_to(found.number, found.slots.shape)]
        passed: Mask = np.where(strict, found.ends < bounds, found.ends <= bounds) | (bounds == FOREVER)
        return passed

    def _results(self, closed: WindowStates) -> Iterable[Page]:
        timings = np.full(closed.slots.size, _FINAL)
        for _, page in self._review(closed, timings, closed.ends, forced=True):
            assert isinstance(page, Page)
            yield page

    def _review(
        self, found: WindowStates, timings: Integers, expected: Integers, *, forced: bool
    ) -> Iterator[Emission]:
        """Put out the versions of windows whose results differ from the last ones; ``forced``: of all of them."""
        rows, held = self._rows_of(found), self._table.all
        starts, numbers = self._output.starts(found), np.broadcast_to(found.number, found.slots.shape)
        of = within((found.slots, numbers, starts, found.ends), held[:4])
        out = np.flatnonzero(of >= 0)
        last = _Last(found.slots.size, of[out], out, held)
        counts = found.states[self._count][0]
        before = taken(held.rows, last.place)
        view = WindowView(counts - last.counts, starts, found.ends, expected, rows, before)
        fires = np.ones(counts.size, np.bool_) if forced else self._fires(view, last.state, timings)
        leaves = fires & ~self._same(rows, before, last)
        if self._emit.repeat:
            leaves |= fires & (timings == _ON_TIME)
        versions = last.versions + leaves
        if leaves.any():
            gone = held.take(out[leaves[of[out]]])
            new = Versioned(
                found.slots, numbers, starts, found.ends, counts, versions, timings, last.state, rows
            )
            yield 0, self._page(gone, new.take(leaves), taken(before, np.flatnonzero(leaves)))
        done = np.zeros(held.slots.size, np.bool_)
        done[out] = fires[of[out]]
        stays = fires & (timings != _FINAL)
        when = np.where(leaves, timings, last.timings)
        now = Versioned(found.slots, numbers, starts, found.ends, counts, versions, when,
                        self._after(view, last.state), rows)  # fmt: skip
        self._table.replace(done, now.take(stays))

    def _same(self, rows: pa.RecordBatch, before: pa.RecordBatch, last: _Last) -> Mask:
        """Tell for which windows one version is out, and it has these results."""
        one: Mask = last.many == 1
        one[one] = equal_rows(rows.filter(pa.array(one)), before.filter(pa.array(one)))
        return one

    def _fires(self, view: WindowView, state: Integers, timings: Integers) -> Mask:
        fires = np.zeros(timings.size, np.bool_)
        for timing, trigger, part in zip((_EARLY, _LATE), self._triggers, self._parts(state), strict=True):
            if trigger is not None and (timings == timing).any():
                fires |= (timings == timing) & trigger.fires(view, part)
        return fires

    def _after(self, view: WindowView, state: Integers) -> Integers:
        parts = zip(self._triggers, self._parts(state), strict=True)
        after: Integers = np.hstack([part if one is None else one.after(view, part) for one, part in parts])
        return after

    def _parts(self, state: Integers) -> list[Integers]:
        return [state[:, : self._widths[0]], state[:, self._widths[0] :]]

    def _rows_of(self, found: WindowStates) -> pa.RecordBatch:
        pages = self._output.pages(self._groups.keys(found.slots), found)
        return pa.concat_batches([page.batch for page in pages])

    def _page(self, gone: Versioned, new: Versioned, before: pa.RecordBatch) -> Page:
        """Return a page of changes: rows that are taken back, then those that are put out."""
        if self._emit.mode == "retracting":
            rows = pa.concat_batches([gone.rows, new.rows])
            info = [np.concatenate([gone[i], new[i]]) for i in (5, 6)]
            changes = np.repeat([-1, 1], [gone.slots.size, new.slots.size]).astype(np.int8)
        else:
            rows, info, changes = new.rows, [new.versions, new.timings], None
            if self._emit.mode == "discarding":
                rows = _difference(rows, before, self._output.aggregated)
        columns = list(rows.columns)
        if self._emit.info:
            timing = pa.DictionaryArray.from_arrays(pa.array(info[1].astype(np.int8)), pa.array(TIMINGS))
            columns += [pa.array(info[0].astype(np.int32)), timing]
        if changes is not None:
            columns.append(pa.array(changes))
        return Page(self._out, pa.RecordBatch.from_arrays(columns, schema=self._out.fields))

    def ceiling(self, bounds: Any) -> Any:
        """Return how high bounds of the results may be: versions of sessions are taken back at their time."""
        held = self._table.all
        some = self._strict[held.numbers]
        sides = held.ends if self._output.stamp == "end" else held.starts
        return np.minimum(FOREVER, sides[some].min(initial=FOREVER))

    def rename(self, kept: Integers, slots: Integers) -> None:
        super().rename(kept, slots)
        self._table.rename(slots)

    def save(self) -> dict[str, Any]:
        return super().save() | {"table": self._table.save(), "input": self._input.save()}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._table.load(saved.part("table"), len(self._groups))
        self._input.load(saved.part("input"))


class _Last:
    """Of some windows the versions that are out: how many, tuples, last version, timing, state, the place of one."""

    def __init__(self, windows: int, of: Integers, out: Integers, held: Versioned) -> None:
        self.many, self.counts = np.zeros(windows, np.int64), np.zeros(windows, np.int64)
        self.versions, self.place = np.full(windows, -1), np.full(windows, -1)
        self.timings = np.zeros(windows, np.int64)
        self.state = np.zeros((windows, held.state.shape[1]), np.int64)
        np.add.at(self.many, of, 1)
        np.add.at(self.counts, of, held.counts[out])
        np.maximum.at(self.versions, of, held.versions[out])
        np.maximum.at(self.state, of, held.state[out])
        self.place[of], self.timings[of] = out, held.timings[out]


def _difference(rows: pa.RecordBatch, before: pa.RecordBatch, aggregated: int) -> pa.RecordBatch:
    """Return rows with the last columns as the difference to those before."""
    plain = rows.num_columns - aggregated
    columns = rows.columns[:plain]
    for now, last in zip(rows.columns[plain:], before.columns[plain:], strict=True):
        columns.append(pc.subtract(now.fill_null(0), last.fill_null(0)))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
