"""Reviewing: the versions that are out, set against the results of windows as they are now.

Of a window one version is out at most, but where windows merge; it is taken back when another one leaves, or its
window is there no more.  Final results leave where they differ from the versions that are out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.operator import Emission, State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Count
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.revised.emitted import TIMINGS, AskedTriggers, ChangePages, Waiting
from oop_engine.operators.slicing.revised.extents import Extents, alike, exactly, within
from oop_engine.operators.slicing.revised.netting import Netting
from oop_engine.operators.slicing.revised.reading import Readable, readable
from oop_engine.operators.slicing.revised.version_runs import Versioned
from oop_engine.operators.slicing.revised.version_table import LastVersions, VersionTable, same_rows, taken
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.triggers import AfterCount, Emit, Trigger, WindowView
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.windows import Gap

__all__ = ["EARLY", "FINAL", "LATE", "ON_TIME", "Mask", "Reviewing"]

Mask = NDArray[np.bool_]
Looked = Callable[[Integers, Integers, Integers], Mask]
"""Which windows were looked at, by slots, definitions, ends."""

EARLY, ON_TIME, LATE, FINAL = range(len(TIMINGS))


class Reviewing(Netting):
    """Open windows, and the versions of their results that ``emit`` puts out, as pages of ``out``.

    ``make`` makes the stores for a schema and columns to read: those of the triggers are among them.
    """

    def __init__(
        self, output: Output, schema: Schema, by: tuple[str, ...],
        make: Callable[[Schema, Sequence[str]], Sequence[Store]], emit: Emit, out: Schema,
    ) -> None:  # fmt: skip
        self._asks = AskedTriggers(emit, schema)
        schema = self._asks.schema
        [tuples] = Count().parts(schema)
        parts = [tuples, *self._asks.parts]
        output.parts += [part for part in parts if part not in output.parts]
        self._counts = [output.parts.index(part) for part in parts]
        self._make = partial(make, schema.plain(), self._asks.columns)
        super().__init__(output, schema, by, self._make())
        self._emit, self._input = emit, Progress(tables=IN_KERNELS)
        self._pages = ChangePages(emit, out, output)
        self._in_place = [one for one in self.stores if self._net is None and readable(one)]
        self._is_copied = np.array([self._net is not None or not readable(one) for one in self.stores])
        self._copied = np.flatnonzero(self._is_copied).tolist()
        self._whole = np.array([one.whole_stream for one in output.definitions])
        self._strict = np.array([isinstance(one, Gap) for one in output.definitions])
        self._vanishing = self._strict | self._is_copied  # a window may be none any more with a version out
        self._waiting = Waiting(active=self._asks.delays)
        lean = emit.early is None and emit.on_time and not self._waiting.active
        self._is_grid = np.array([type(one) is WindowStore for one in self.stores]) & ~self._is_copied
        by_start = self._is_grid | self._is_copied
        self._table = VersionTable(output.schema.fields, self._asks.width, by_start)
        self._is_lean = self._is_grid & lean  # versions on time are not in the table
        self._lean = [one for one in self._in_place if lean and type(one) is WindowStore]
        self._others = [one for one in self._in_place if not any(one is its for its in self._lean)]
        # Nor late ones, where nobody asks for more than their results.
        self._is_settled = self._is_lean & (not emit.info and not self._asks.width)
        self._prompt = bool(self._is_settled.all()) and emit.late == AfterCount(1)

    def state(self) -> State:
        tuples, partials, groups, nbytes = super().state()
        return State(
            tuples, partials + len(self._table), groups, nbytes + self._table.nbytes + self._input.nbytes
        )

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

    def _review(
        self, found: WindowStates, timings: Integers, expected: Integers, *, forced: bool,
        looked: Looked | None = None,
    ) -> Iterator[Emission]:  # fmt: skip
        """Put out the versions of windows whose results differ from the last ones; ``forced``: of all of them.

        ``looked``: tells the versions that are taken back if their window is not among those.
        """
        rows, extents = self._rows_of(found), self._extents(found)
        held, places = self._near(extents, everywhere=looked is not None)
        of, (_, numbers, starts, _) = self._match(extents, held[:4]), extents
        out = np.flatnonzero(of >= 0)
        last = LastVersions(found.slots.size, of[out], out, held, self._asks.adds)
        counts = found.states[self._counts[0]][0]
        before = taken(held.rows, last.place)
        compared = self._output.aggregated if self._is_grid.all() else rows.num_columns
        same = same_rows(rows, before, last, compared)
        came = np.abs(counts - last.counts)
        came[self._is_copied[numbers] & ~same & (came == 0)] = 1  # another tuple took the place of one
        since = self._waiting.since(extents, self._match)
        view = WindowView(
            came, starts, found.ends, expected, rows, before, self._asks.schema,
            self._matches(found), self._waiting.now - since, self._asks.asked,
        )  # fmt: skip
        fires = np.ones(counts.size, np.bool_)
        if not forced:  # the clock looks at windows without a new tuple as well: they are not asked
            fires = self._asks.fires(view, last.state, timings) & (self._asks.asked | (came > 0))
        leaves = fires & ~same
        if self._emit.repeat:
            leaves |= fires & (timings == ON_TIME)
        if looked is not None:
            self._waiting.forget(looked)
        waits = ~fires & (came > 0)
        self._waiting.put([column[waits] for column in (*extents, since)])
        versions = last.versions + leaves
        lost = np.zeros(of.size, np.bool_)
        if looked is not None:
            lost = looked(held.slots, held.numbers, held.ends) & (of < 0)
        gone = lost.copy()
        gone[out] |= leaves[of[out]]
        if leaves.any() or lost.any():
            new = Versioned(*extents, counts, versions, timings, last.state, rows)
            out_before = gone & (held.versions >= 0)
            yield 0, self._pages.page(held.take(out_before), new.take(leaves), before, leaves)
        done = lost
        done[out] = fires[of[out]]
        stays = fires & (timings != FINAL) & ~self._is_settled[numbers]
        when = np.where(leaves, timings, last.timings)
        now = Versioned(*extents, counts, versions, when, self._asks.after(view, last.state, timings), rows)
        self._table.drop(places[done])
        self._table.put(now.take(stays))
        if (new := self._is_lean[numbers] & ~fires & (last.many == 0) & (timings == LATE)).any():
            none = Versioned(*extents, np.zeros_like(counts), last.versions, timings, last.state, before)
            self._table.put(none.take(new))

    def _extents(self, found: WindowStates) -> Extents:
        """Return the groups, definitions and extents of windows."""
        numbers = np.broadcast_to(found.number, found.slots.shape)
        return found.slots, numbers, self._output.starts(found), found.ends

    def _matches(self, found: WindowStates) -> Mapping[Trigger, Integers]:
        return self._asks.matches([found.states[at][0] for at in self._counts[1:]])

    def _read(
        self, stores: Sequence[Readable], windows: Callable[[Readable], WindowStates]
    ) -> list[WindowStates]:
        """Return ``windows`` of each store; a sum of a window in panes and in the table may not fit."""
        try:
            return [windows(store) for store in stores]
        except WindowOverflowError as error:
            raise self._overflow(error) from None

    def _first(self, found: WindowStates, timing: int) -> Iterator[Page]:
        """Put out versions of windows that have had none."""
        if found.slots.size:
            for columns in self._columns_of(found):
                yield self._pages.first(columns, timing)

    def _known(self, windows: WindowStates) -> Mask:
        """Tell which windows have a version in the table."""
        known = np.zeros(windows.slots.size, np.bool_)
        if not len(self._table):
            return known
        extents = self._extents(windows)
        of = self._match(extents, self._table.near(extents)[0][:4])
        known[of[of >= 0]] = True
        return known

    def _near(self, windows: Extents, *, everywhere: bool = False) -> tuple[Versioned, Integers]:
        """Return the versions that may be of ``windows``, or those ``everywhere``, and their places in the table."""
        if not everywhere:
            return self._table.near(windows)
        return self._table.all(), np.arange(len(self._table))

    def _take_back(self, looked: Looked) -> Iterator[Emission]:
        """Take versions back whose windows are there no more."""
        held, none = self._table.all(), self._table.none
        gone = looked(held.slots, held.numbers, held.ends)
        if gone.any():
            yield 0, self._pages.page(held.take(gone), none, none.rows, np.empty(0, np.bool_))
            self._table.drop(np.flatnonzero(gone))
        self._waiting.forget(looked)

    def _match(self, windows: Extents, some: Extents) -> Integers:
        """Return for each of some extents the window that it is, or has become a part of; -1: none."""
        of = np.full(some[0].size, -1)
        if not windows[0].size or not of.size:
            return of
        near = np.flatnonzero((some[3] > windows[2].min()) & (some[2] < windows[3].max()))
        slots, numbers, starts, ends = some
        few = slots[near], numbers[near], starts[near], ends[near]
        of[near] = alike(windows, few) if self._is_grid.all() else within(windows, few)
        if (copied := self._is_copied[some[1]]).any():
            of[copied] = exactly(windows, some)[copied]
        return of

    def _columns_of(self, found: WindowStates) -> Iterable[list[pa.Array]]:
        return self._output.columns(self._groups.keys(found.slots), found)

    def _rows_of(self, found: WindowStates) -> pa.RecordBatch:
        fields = self._output.schema.fields
        batches = [pa.RecordBatch.from_arrays(one, schema=fields) for one in self._columns_of(found)]
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)

    def living(self, groups: int) -> Mask:
        living = super().living(groups)
        living[self._table.all().slots] = True
        return living

    def rename(self, kept: Integers, slots: Integers) -> None:
        super().rename(kept, slots)
        self._table.rename(slots)
        self._waiting.rename(slots)

    def save(self) -> dict[str, Any]:
        own = {"table": self._table.save(), "input": self._input.save(), "waiting": self._waiting.save()}
        return super().save() | own

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._table.load(saved.part("table"), len(self._groups))
        self._input.load(saved.part("input"))
        if self._waiting.active:
            self._waiting.load(saved.part("waiting"), len(self._groups))
