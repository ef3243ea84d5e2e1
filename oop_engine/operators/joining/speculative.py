"""The state of a join that puts unmatched tuples out at a watermark, and takes them back at a late match.

A stored tuple without a match has been emitted if the watermarks have passed it by which it would be purged, were
they punctuation.  Those tuples are not recorded: they follow from their times and the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear, Punctuation, Watermark, passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.as_of import AsOfState, LatestMatches
from oop_engine.operators.joining.bands import AsOf
from oop_engine.operators.joining.bounds import JoinBounds
from oop_engine.operators.joining.index import RunEntries, JoinIndex
from oop_engine.operators.joining.output import in_pages
from oop_engine.operators.joining.purging import purge_groups
from oop_engine.operators.joining.run import Marks, Rows, SortedRun
from oop_engine.operators.joining.state import JoinState
from oop_engine.operators.joining.taking import taken
from oop_engine.operators.joining.terms import JoinTerms

__all__ = ["CHANGE", "SpeculativeAsOfState", "SpeculativeState", "join_state", "with_change"]

Ints = NDArray[np.int64]

CHANGE = "change"
"""The column of changes, the last one of the output."""


class SpeculativeState(JoinState):
    """A ``JoinState`` whose rows have changes.  ``soft``: the larger of watermark and punctuation of each input.

    A watermark that has grown costs O(log tuples) a run, and O(1) a tuple that it passes; one of some of the key
    columns O(tuples).
    """

    def __init__(self, terms: JoinTerms, inputs: tuple[Schema, ...]) -> None:
        super().__init__(terms, inputs)
        self.soft = JoinBounds([terms.names(0), terms.names(1)], [self.bounds.rule])
        self._back: list[pa.RecordBatch] = []  # rows that a page retracts

    def advance(self, port: int, punctuation: Punctuation) -> Iterator[pa.RecordBatch | Punctuation]:
        """Process a punctuation as any join does, and a watermark: yield tuples that expect no match any more."""
        if isinstance(punctuation, Watermark):
            yield from in_pages(self._expect(port, punctuation.of))
        yield from super().advance(port, punctuation)
        if isinstance(punctuation, Linear | GroupWise):
            self._raise(port, punctuation)

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {**super().save(), "soft": self.soft.save()}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        super().load(saved)
        self.soft.load(saved.part("soft"))

    def _expect(self, port: int, watermark: Linear | GroupWise) -> Iterator[pa.RecordBatch]:
        """Put out the unmatched tuples that a watermark of input ``port`` passes."""
        side = 1 - port
        if not self.kind.alone[side]:
            return
        below = np.minimum(watermark.below, FOREVER - 1)  # a group ends with punctuation alone
        index, lone = self._sides[side], list[RunEntries]()
        if isinstance(watermark, Linear):
            watermark, before = Linear(int(below)), self.soft.keep_from(side)
            if watermark.below <= self.soft.linear[port]:
                return
            keep_from = self.soft.keep_from(side, {port: watermark.below})
            lone = index.lone(lambda run: run.between(before, keep_from))
        elif self.bounds.is_on_keys(port, watermark):
            groups = GroupWise(self.bounds.by_position(port, watermark.groups), np.asarray(below))
            columns = partial(self._key_columns, side)
            lone = purge_groups(index.lone, side, port, groups, self.soft, self._codes, columns)
        due = [(run, entries[~self._is_out(side, run, entries)]) for run, entries in lone]
        self._raise(
            port,
            GroupWise(watermark.groups, np.asarray(below)) if isinstance(watermark, GroupWise) else watermark,
        )
        for batch in self._taken(due):
            yield with_change(self._output.alone(side, batch), 1)

    def _raise(self, port: int, bound: Linear | GroupWise) -> None:
        if isinstance(bound, Linear):
            self.soft.linear[port] = max(self.soft.linear[port], bound.below)
            self.soft.grown(port, bound)
        elif self.bounds.is_on_keys(port, bound):
            self.soft.grown(port, GroupWise(self.soft.by_position(port, bound.groups), bound.below))

    def _out(self, side: int, times: Any, batch: pa.RecordBatch) -> Marks:
        """Return which tuples of a side the watermarks have passed."""
        out = passed(times, self.soft.keep_from(side))
        if self.soft.groups:
            out |= passed(times, self.soft.own(side, self.soft.by_position(side, batch)))
        return out

    def _is_out(self, side: int, run: SortedRun, entries: Rows) -> Marks:
        return self._out(side, run.times(entries), run.take(entries))

    def _arrive(self, side: int, page: Page, keep_from: int) -> Iterator[pa.RecordBatch]:
        for batch in super()._arrive(side, page, keep_from):
            yield from self._taken_back()
            yield with_change(batch, 1)
        yield from self._taken_back()

    def _taken_back(self) -> Iterator[pa.RecordBatch]:
        back, self._back = self._back, []
        for batch in back:
            yield with_change(batch, -1)

    def _met(self, side: int, run: SortedRun, entries: Rows) -> None:
        first = run.lone(entries)
        if (out := self._is_out(side, run, first)).any():
            self._back.append(self._output.alone(side, run.take(first[out])))

    def _unmatched(self, side: int, page: Page, stays: Marks, matched: Marks) -> Iterator[pa.RecordBatch]:
        """Emit the stored tuples of a page that have no match, if none is expected any more."""
        lone = stays & ~matched & self._out(side, page.times, page.batch)
        if lone.any():
            yield self._output.alone(side, taken(page.batch, np.flatnonzero(lone).astype(np.int32)))

    def _alone(self, side: int, lone: list[RunEntries]) -> Iterator[pa.RecordBatch]:
        due = [(run, entries[~self._is_out(side, run, entries)]) for run, entries in lone]
        for batch in super()._alone(side, due):
            yield with_change(batch, 1)


class SpeculativeAsOfState(SpeculativeState, AsOfState):
    """An ``AsOfState`` that matches left tuples at once, and again when a later right tuple comes for them.

    A left tuple that waits has left with the latest right tuple of all that are there; these stay as long as it waits.
    So nothing but a mark is kept for it.  O(left tuples of its key that wait from then on) a right tuple.
    """

    def __init__(self, terms: JoinTerms, inputs: tuple[Schema, ...]) -> None:
        super().__init__(terms, inputs)
        width, kind = self.bounds.rule.width, self.kind
        self._sides = [JoinIndex(width, alone=kind.alone[0], marks=kind.marks[0]), JoinIndex(width)]

    def _keep(self, side: int, page: Page) -> Iterator[pa.RecordBatch]:
        if not len(page):
            return
        codes, stays = self._codes_of(side, page), np.ones(len(page), np.bool_)
        latest = LatestMatches(len(page))
        if side == 1:
            yield from self._better(page, codes)
        else:
            yield from (joined for _, joined in self._latest(self._sides[1], page, latest))
            if self.kind.alone[0]:
                yield from self._unmatched(0, page, stays, latest.matched)
        self._store(side, page, codes, stays, latest.matched)

    def _better(self, page: Page, codes: Ints) -> Iterator[pa.RecordBatch]:
        """Match the left tuples that wait with the right ones of a page, where these are later than all before."""
        new = JoinIndex(self.bounds.rule.width)
        new.add(page.batch, np.arange(len(page), dtype=np.int32), codes, page.times)
        for _, run, entries in self._sides[0].matches(*self._stretches(codes, page.times)):
            if (worth := self._worth_while(run, entries, new)).size:
                yield from self._exchanged(run, worth, new)

    def _stretches(self, codes: Ints, times: Ints) -> tuple[Ints, Ints, Ints]:
        """Return each code once, with the first and the last left time that right tuples of it can match."""
        order = np.lexsort((times, codes))
        codes, times = codes[order], times[order]
        ends = np.append(codes[1:] != codes[:-1], True)
        first = np.append(True, ends[:-1])
        _, high = self.bounds.rule.reach(1, times[ends])
        return codes[first], times[first], high

    def _worth_while(self, run: SortedRun, entries: Rows, new: JoinIndex) -> Rows:
        """Return those of some left tuples for which a ``new`` right one may not be before the old ones."""
        codes, times = run.keys(entries).T.copy()
        low, high = self.bounds.rule.reach(0, times)
        best, worth = new.latest(codes, low, high)
        if self._codes.exact:  # else the old one may be of another key
            old, there = self._sides[1].latest(codes, low, high)
            worth &= ~there | (best >= old)
        return entries[worth]

    def _exchanged(self, run: SortedRun, entries: Rows, new: JoinIndex) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of left tuples with ``new`` right ones that are not before the old; retract the old."""
        page = Page(self._inputs[0], run.take(entries))
        before, now = LatestMatches(len(page)), LatestMatches(len(page))
        old = list(self._latest(self._sides[1], page, before))
        pairs = list(self._latest(new, page, now))
        later = now.matched & (~before.matched | (now.at > before.at))
        emitted = later | (now.matched & before.matched & (now.at == before.at))
        if self.kind.alone[0]:
            first = entries[now.matched & ~before.matched]
            self._met(0, run, first)
            run.mark(first)
        self._back += [joined.filter(pa.array(later[rows])) for rows, joined in old]
        yield from (joined.filter(pa.array(emitted[rows])) for rows, joined in pairs)


def join_state(
    terms: JoinTerms, inputs: tuple[Schema, ...], *, speculative: bool = False, late: Schema | None = None
) -> JoinState:
    """Return the state of a join of these terms; ``late``: as of ``JoinState``."""
    if speculative:
        state = SpeculativeAsOfState if isinstance(terms.band, AsOf) else SpeculativeState
        return state(terms, inputs)
    return AsOfState(terms, inputs) if isinstance(terms.band, AsOf) else JoinState(terms, inputs, late)


def with_change(batch: pa.RecordBatch, change: int) -> pa.RecordBatch:
    """Return rows with one change for all of them."""
    column = pa.array(np.full(batch.num_rows, change, np.int8))
    return batch.append_column(pa.field(CHANGE, pa.int8()), column)
