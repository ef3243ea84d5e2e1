"""Review: the versions that are out, set against the results of windows as they are now.

A version leaves if the result differs from that of the last one.  Versions that are out are kept with their rows
(``version_table.py``) until they are final, so the row that is taken back is the one that was put out.  Of a window
one is out at most, but where windows merge: versions of parts of a session are taken back with the version that
replaces them.  One that is no result any more is taken back.

Where no version comes early, a window of a grid that the watermark has passed has one version out, that on time, and as
long as no tuple comes to it, its rows follow from the window.  So it need not be kept a second time.  Right before the
first tuple that comes behind the watermark the version is *noted*: put into the table.  Of most windows none ever is.
A window in which there was no tuple on time is noted with the version -1: none is out.  Once a trigger has fired rows
follow from the window again; where nobody asks for numbers of versions, it leaves the table.  If the trigger fires for
every tuple, none comes there: windows are read before and behind the tuples of a page.
"""

# Invariant   A window has versions out: those in the table; else, of a lean definition, its result as it is now, if the
#             watermark has passed it; else none.
#             `Waiting` has the windows with tuples that no trigger has fired for, where one asks for delays.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.operator import Emission
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.revised.change_pages import TIMINGS, ChangePages, equal_rows, taken
from oop_engine.operators.slicing.revised.emitted import AskedTriggers, Waiting
from oop_engine.operators.slicing.revised.extents import Extents, Matching
from oop_engine.operators.slicing.revised.reading import Expected, Reading
from oop_engine.operators.slicing.revised.version_table import LastVersions, Versioned, VersionTable
from oop_engine.operators.slicing.store import bounds_of
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.triggers import AfterCount, Emit, WindowView
from oop_engine.operators.values.columns import Integers

__all__ = ["EARLY", "LATE", "ON_TIME", "Looked", "Mask", "Review"]

Mask = NDArray[np.bool_]
Looked = Callable[[Integers, Integers, Integers], Mask]
"""Which windows were looked at, by slots, definitions, ends."""
EARLY, ON_TIME, LATE, FINAL = range(len(TIMINGS))


class Review:
    """The versions of results that are out, in pages of ``out``, of the windows that ``reading`` reads."""

    def __init__(
        self, output: Output, groups: GroupIndex, asks: AskedTriggers, emit: Emit, out: Schema, reading: Reading,
        expected: Expected,
    ) -> None:  # fmt: skip
        self._output, self._groups, self._asks, self._emit = output, groups, asks, emit
        self._reading, self._expected = reading, expected
        self._pages = ChangePages(emit, out, output.aggregated)
        self._counts = [output.parts.index(part) for part in asks.parts]  # of tuples, and of those that match
        self.waiting = Waiting(active=asks.delays)
        # Of windows of grids, versions on time are not in the table.
        self.lean = emit.early is None and emit.on_time and not asks.delays
        self._is_copied, self._is_grid = np.zeros((2, len(output.definitions)), np.bool_)
        self._is_copied[reading.copied] = self._is_grid[[store.grid.number for store in reading.grids]] = True
        self._matching = Matching(self._is_grid, self._is_copied)
        self._vanishing = bool((~self._is_grid).any())  # a window may be none any more with a version out
        self.table = VersionTable(output.schema.fields, asks.width, self._is_grid | self._is_copied)
        self._is_lean = self._is_grid & self.lean
        # Nor late ones, where nobody asks for more than their results.
        self._is_settled = self._is_lean & (not emit.info and not asks.width)
        self._prompt = bool(self._is_settled.all()) and emit.late == AfterCount(1)

    @property
    def prompt(self) -> bool:
        """Tell whether all windows on time have one version out, their result, and each late tuple brings another."""
        return self._prompt and not len(self.table)

    def first(self, found: WindowStates, timing: int) -> Iterator[Page]:
        """Put out versions of windows that have had none."""
        if found.slots.size:
            for columns in self._columns_of(found):
                yield self._pages.first(columns, timing)

    def corrected(self, windows: WindowStates, at: Integers, *, grown: bool = False) -> Iterator[Page]:
        """Put out changes: the first windows are out, and have become the ``at[i]``-th behind them.

        ``grown``: all have more tuples now, so where they are counted no result is the same.
        """
        if windows.slots.size:
            parts = list(self._columns_of(windows))
            columns = parts[0] if len(parts) == 1 else list(map(pa.concat_arrays, zip(*parts, strict=True)))
            if (
                page := self._pages.corrected(columns, at, differ=grown and self._output.counted)
            ) is not None:
                yield page

    def note(self, windows: WindowStates, expected: Integers) -> None:
        """Put the versions on time of windows into the table, where the bounds ``expected`` have passed them."""
        new = np.flatnonzero((windows.ends <= expected) & ~self.known(windows))
        if not new.size:
            return
        found, none, width = windows.take(new), np.zeros(new.size, np.int64), self._asks.width
        rows, counts, state = (
            self._rows_of(found),
            found.states[self._counts[0]][0],
            np.zeros((new.size, width), int),
        )
        if width:
            view = self._view(found, rows, taken(self.table.none.rows, none - 1), counts, none, expected[new])
            state = self._asks.after(view, state, none + ON_TIME)
        self.table.put(Versioned(*self._extents(found), counts, none, none + ON_TIME, state, rows))

    def review(
        self, found: WindowStates, timings: Integers, expected: Integers, *, forced: bool = False, asked: bool = False,
        looked: Looked | None = None,
    ) -> Iterator[Page]:  # fmt: skip
        """Put out the versions of windows whose results differ from the last ones; ``forced``: of all of them.

        ``asked``: a request is being answered.  ``looked``: tells the versions that are taken back if their window is
        not among those.
        """
        rows, extents = self._rows_of(found), self._extents(found)
        if looked is None:
            held, places = self.table.near(extents)
        else:
            held, places = self.table.all(), np.arange(len(self.table))
        window, numbers = self._matching(extents, held.extents), extents[1]
        out = np.flatnonzero(window >= 0)
        last = LastVersions(numbers.size, window[out], out, held, self._asks.adds)
        counts, before = found.states[self._counts[0]][0], taken(held.rows, last.place)
        same = self._same(rows, before, last.many == 1)
        came = np.abs(counts - last.counts)
        came[self._is_copied[numbers] & ~same & (came == 0)] = 1  # another tuple took the place of one
        since = self.waiting.since(extents, self._matching)
        view = self._view(found, rows, before, came, self.waiting.now - since, expected, asked=asked)
        fires = np.ones(counts.size, np.bool_)
        if not forced:  # the clock looks at windows without a new tuple as well: they are not asked
            fires = self._asks.fires(view, last.state, timings) & (asked | (came > 0))
        leaves = fires & ~same
        if self._emit.repeat:
            leaves |= fires & (timings == ON_TIME)
        lost = np.zeros(window.size, np.bool_)
        if looked is not None:
            self.waiting.forget(looked)
            lost = looked(held.slots, held.numbers, held.ends) & (window < 0)
        waits = ~fires & (came > 0)
        self.waiting.put([column[waits] for column in (*extents, since)])
        replaced, done = lost.copy(), lost
        replaced[out] |= leaves[window[out]]
        done[out] = fires[window[out]]
        now = Versioned(*extents, counts, last.versions + leaves, timings, last.state, rows)
        if leaves.any() or replaced.any():
            yield self._changes(held.take(replaced & (held.versions >= 0)), now.take(leaves), before, leaves)
        when, after = np.where(leaves, timings, last.timings), self._asks.after(view, last.state, timings)
        stays = fires & (timings != FINAL) & ~self._is_settled[numbers]
        self.table.drop(places[done])
        self.table.put(now._replace(timings=when, state=after).take(stays))
        if (new := self._is_lean[numbers] & ~fires & (last.many == 0) & (timings == LATE)).any():
            self.table.put(now._replace(counts=0 * counts, rows=before).take(new))

    def _view(
        self, found: WindowStates, rows: pa.RecordBatch, before: pa.RecordBatch, came: Integers, waited: Integers,
        expected: Integers, *, asked: bool = False,
    ) -> WindowView:  # fmt: skip
        matches = self._asks.matches([found.states[at][0] for at in self._counts[1:]])
        starts, schema = self._output.starts(found), self._asks.schema
        return WindowView(came, starts, found.ends, expected, rows, before, schema, matches, waited, asked)

    def _same(self, rows: pa.RecordBatch, before: pa.RecordBatch, one: Mask) -> Mask:
        """Tell of which windows one version is out, bool (windows,), and has the results there are now."""
        columns = self._output.aggregated if self._is_grid.all() else rows.num_columns
        some, others = (batch if one.all() else batch.filter(pa.array(one)) for batch in (rows, before))
        same = one.copy()
        same[one] = equal_rows(some.columns[-columns:], others.columns[-columns:])
        return same

    def _changes(self, gone: Versioned, new: Versioned, before: pa.RecordBatch, leaves: Mask) -> Page:
        info = (np.concatenate([getattr(gone, name), getattr(new, name)]) for name in ("versions", "timings"))
        rows = pa.concat_batches([gone.rows, new.rows])
        return self._pages.page(
            rows.columns, gone.slots.size, lambda: before.filter(pa.array(leaves)).columns, *info
        )

    def take_back(self, looked: Looked) -> Iterator[Page]:
        """Take versions back whose windows are there no more: all of those that were looked at."""
        held, none = self.table.all(), self.table.none
        gone = looked(held.slots, held.numbers, held.ends)
        if gone.any():
            yield self._changes(held.take(gone), none, none.rows, np.empty(0, np.bool_))
            self.table.drop(np.flatnonzero(gone))
        self.waiting.forget(looked)

    def settle(self, slots: Integers | None, bounds: Any) -> Iterator[Emission]:
        """Forget windows whose version on time is out, unread, but for those in the table."""
        if not self.lean:
            return
        if slots is None and not self._expected.bounds.groups:
            bounds = min(bounds, self._expected.bounds.expected)
        else:
            slots = np.arange(len(self._groups)) if slots is None else slots
            bounds = np.minimum(bounds, self._expected(slots))
        if len(self.table) and self._reading.grids:
            held = self.table.within(slots, bounds)
            ended = held.ends <= bounds_of(held.slots, slots, bounds)
            looks = []
            for store in self._reading.grids:
                its = ended & (held.numbers == store.grid.number)
                wids = store.grid.extents.closed_by(held.ends[its]) - 1
                order = np.lexsort((held.slots[its], wids))
                looks.append(partial(store.read, held.slots[its][order], wids[order]))
            for page in self.results(self._output.ordered(self._reading.read(looks))):
                yield 0, page
        for store in self._reading.grids:
            store.forget(slots, bounds)

    def results(self, closed: WindowStates) -> Iterator[Page]:
        """Put out final results that differ from the versions that are out, which are forgotten."""
        if not len(self.table):
            yield from self.first(closed, FINAL)
            return
        extents = self._extents(closed)
        held, places = self.table.near(extents)
        window = self._matching(extents, held.extents)
        out = np.flatnonzero(window >= 0)
        counts, many = np.full(closed.slots.size, -1), np.bincount(window[out], minlength=closed.slots.size)
        counts[window[out]] = held.counts[out]
        # A window that is read in place only grows: with the same count its result is the same, and is not made.
        grown = counts != closed.states[self._counts[0]][0]
        settled: Mask = ~grown & ~self._is_copied[extents[1]] & (many == 1)
        self.table.drop(places[out[settled[window[out]]]])
        yield from self.first(closed.take(np.flatnonzero(many == 0)), FINAL)
        changed = closed.take(np.flatnonzero(~settled & (many > 0)))
        if changed.slots.size:
            yield from self.review(changed, np.full(changed.slots.size, FINAL), changed.ends, forced=True)

    def passed(self, found: WindowStates, bounds: Integers) -> Mask:
        """Tell which windows, read in place, bounds have passed: sessions strictly, for a tuple there joins them."""
        passed: Mask = (found.ends < bounds) | (bounds == FOREVER)
        passed |= (found.ends == bounds) & self._is_grid[found.number]
        return passed

    def known(self, windows: WindowStates) -> Mask:
        """Tell which windows have a version in the table."""
        known = np.zeros(windows.slots.size, np.bool_)
        if len(self.table):
            extents = self._extents(windows)
            window = self._matching(extents, self.table.near(extents)[0].extents)
            known[window[window >= 0]] = True
        return known

    def _extents(self, found: WindowStates) -> Extents:
        """Return the groups, definitions and extents of windows."""
        numbers = np.broadcast_to(found.number, found.slots.shape)
        return found.slots, numbers, self._output.starts(found), found.ends

    def _columns_of(self, found: WindowStates) -> Iterable[list[pa.Array]]:
        return self._output.columns(self._groups.keys(found.slots), found)

    def _rows_of(self, found: WindowStates) -> pa.RecordBatch:
        fields = self._output.schema.fields
        batches = [pa.RecordBatch.from_arrays(one, schema=fields) for one in self._columns_of(found)]
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)

    def least_stamp(self, bound: int) -> int:
        """Return the least stamp of a version; those of sessions, and of copies, are taken back at their time."""
        return self.table.least(self._side) if self._vanishing else FOREVER

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        """Return the same of groups: each by its own versions, however slow others are.  O(these versions)."""
        found = np.full(bounds.shape, FOREVER)
        if self._vanishing and len(self.table):
            np.minimum.at(found, of, self.table.least_of(slots, self._side))
        return found

    @property
    def _side(self) -> str:
        return "ends" if self._output.stamp == "end" else "starts"

    def living(self, groups: int) -> Mask:
        living = np.zeros(groups, np.bool_)
        living[self.table.all().slots] = True
        return living

    def rename(self, kept: Integers, slots: Integers) -> None:
        self.table.rename(slots)
        self.waiting.rename(slots)

    def save(self) -> dict[str, Any]:
        return {"table": self.table.save(), "waiting": self.waiting.save()}

    def load(self, saved: Saved) -> None:
        self.table.load(saved.part("table"), len(self._groups))
        self.waiting.load(saved, len(self._groups))
