"""The state of an as-of join: left tuples wait until the latest right tuple before them is known.

That is when a bound of the right input has passed them, which is where a left tuple of any
join is purged.  A right tuple is dropped when no left tuple of its key, stored or to come, can have it for its latest:
it is too long ago for the band, the key has ended, or a later one of the key is not after any of these left tuples.
The first two follow from the messages that raise a bound of the key or emit its left tuples (``_asking``), at once;
the third one, and all that a linear bound decides, at a sweep each time the right tuples have doubled.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Linear, Punctuation, passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrow_data import no_rows
from oop_engine.operators.joining.index import RunEntries, JoinIndex
from oop_engine.operators.joining.matches import Matches, together
from oop_engine.operators.joining.output import in_pages
from oop_engine.operators.joining.purging import Asking, purge_keys
from oop_engine.operators.joining.run import Marks, SortedRun
from oop_engine.operators.joining.state import JoinState
from oop_engine.operators.joining.terms import JoinTerms, all_valid
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.system.knobs import knob

__all__ = ["AsOfState", "LatestMatches"]

_FEW = knob(__name__, "_FEW", 512)
"""Right tuples, among which it is not worth while to look for those that later ones have replaced."""

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


class LatestMatches:
    """Of left tuples whether they have a match, bool (rows,), and its time ``at``, int64 (rows,), where they do."""

    def __init__(self, rows: int) -> None:
        self.matched, self.at = np.zeros(rows, np.bool_), np.empty(rows, np.int64)


class AsOfState(JoinState):
    """A ``JoinState`` that matches left tuples when they are purged."""

    def __init__(self, terms: JoinTerms, inputs: tuple[Schema, ...]) -> None:
        super().__init__(terms, inputs)
        width = self.bounds.rule.width
        self._sides = [JoinIndex(width, alone=True), JoinIndex(width)]
        self._looked_at = _FEW  # right tuples that were left when replaced ones were last dropped

    def advance(self, port: int, punctuation: Punctuation) -> Iterator[pa.RecordBatch | Punctuation]:
        """Process a punctuation as any join does; right tuples are purged after the left ones that waited for them."""
        asking = self._asking(port, punctuation)
        yield from super().advance(port, punctuation)
        self._sides[1].purge(self.keep_right(self._next_left()))
        if asking is not None:
            self._purge_of_keys(asking)
        self._sweep(FOREVER)

    def purge_right(self, next_left: int) -> Iterator[pa.RecordBatch]:
        """Drop the right tuples that no left tuple from ``next_left`` on can match; those before wait elsewhere."""
        self._sides[1].purge(self.keep_right(next_left))
        self._sweep(next_left)
        return iter(())

    def _sweep(self, waits: int) -> None:
        """Drop unneeded right tuples once their number has doubled; no left tuple before ``waits`` waits elsewhere."""
        if self._sides[1].tuples > 2 * self._looked_at:
            self._drop_unneeded(waits)
            self._looked_at = max(self._sides[1].tuples, _FEW)

    def purge(self, side: int, keep_from: int) -> Iterator[pa.RecordBatch]:
        """Return the left tuples below ``keep_from`` with the right ones they match; right ones go in ``advance``."""
        return super().purge(side, keep_from) if side == 0 else iter(())

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {**super().save(), "looked_at": self._looked_at}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        super().load(saved)
        self._looked_at = saved.integer("looked_at", least=0)

    def _next_left(self) -> int:
        """Return the least left timestamp that is still to be joined."""
        return min(self.bounds.linear[0], self._sides[0].first)

    def _kept_from(self, codes: Ints, left: Ints, emitted: Ints) -> Ints:
        """Return the least right timestamp that left tuples of each key can match.

        ``left``: the bound of the left input; ``emitted``: no stored left tuple of the key is below.
        """
        keep_from: Ints = self.bounds.rule.keep_from(
            1, np.minimum(left, self._sides[0].earliest(codes, emitted))
        )
        return keep_from

    def _asking(self, port: int, punctuation: Punctuation) -> Asking | None:
        """Return the keys of which right tuples may be of no use once a punctuation is taken, before it is."""
        if isinstance(punctuation, Linear) and port == 1 and self.bounds.groups:
            return self._emitted(self._sides[0].before(punctuation.below))
        if not isinstance(punctuation, GroupWise) or not self.bounds.is_on_keys(port, punctuation):
            return None
        keys, below = self.bounds.by_position(port, punctuation.groups), punctuation.below
        if keys.num_columns < self._codes.columns:
            keys, below = self._stored_keys(GroupWise(keys, below))
        columns = self._by_place(keys)
        valid = all_valid(columns, len(below))
        if not valid.all():
            keys, below = keys.filter(pa.array(valid)), below[valid]
            columns = self._by_place(keys)
        codes = self._codes.of(columns, len(below), source=-1)
        left, emitted = (self.bounds.of(side, keys) for side in (0, 1))
        before = self._kept_from(codes, left, emitted)
        raised = np.maximum(emitted if port else left, below)
        left, emitted = (left, raised) if port else (raised, emitted)
        return Asking(columns, codes, left, emitted, before)

    def _by_place(self, keys: pa.RecordBatch) -> list[pa.Array]:
        return [keys.column(str(place)) for place in range(self._codes.columns)]

    def _stored_keys(self, punctuation: GroupWise) -> tuple[pa.RecordBatch, Ints]:
        """Return the keys of stored right tuples that are in groups of some of the key columns, with their bounds."""
        runs, numbers, entries, codes, _ = self._sides[1].living()
        rows = np.unique(codes, return_index=True)[1]
        columns = self._keys_of(runs, numbers[rows], entries[rows])
        names = [str(place) for place in range(len(columns))]
        keys = pa.RecordBatch.from_arrays(columns, names=names)
        alone = Progress(remember_ended=True, tables=IN_KERNELS)
        alone.advance(0, punctuation)
        below = alone.bounds(keys)
        return keys.filter(pa.array(below > NEVER)), below[below > NEVER]

    def _emitted(self, by_run: list[RunEntries]) -> Asking | None:
        """Return the keys of left tuples that are about to be emitted: of each, until its next tuple asks."""
        if not (batches := list(self._taken(by_run))):
            return None
        page = Page(self._inputs[0], pa.concat_batches(batches))
        codes, times = self._codes_of(0, page), page.times
        order = np.lexsort((times, codes))
        ends = np.flatnonzero(np.append(codes[order][1:] != codes[order][:-1], True))
        first, last = order[np.append(0, ends[:-1] + 1)], order[ends]
        keys = page.batch.take(pa.array(last))
        left = self.bounds.of(0, self.bounds.by_position(0, keys))
        before = self.bounds.rule.keep_from(1, np.minimum(left, times[first]))
        return Asking(self._key_columns(0, keys), codes[last], left, times[last] + 1, before)

    def _purge_of_keys(self, asking: Asking) -> None:
        keep_from = self._kept_from(asking.codes, asking.left, asking.emitted)
        grown = keep_from > asking.before
        columns = [column.filter(pa.array(grown)) for column in asking.columns]
        of_right = partial(self._key_columns, 1)
        purge_keys(
            self._sides[1].purge_entries,
            columns,
            asking.before[grown],
            keep_from[grown],
            self._codes,
            of_right,
        )

    def _arrive(self, side: int, page: Page, keep_from: int) -> Iterator[pa.RecordBatch]:
        valid = self._valid(side, page)
        if not valid.all():
            if side == 0:
                yield from self._without_match(page.batch.filter(pa.array(~valid)))
            page = page.filter(valid)
        if side == 1:
            stays = self._right_stays(page, keep_from)
        else:
            stays = self._stays(0, page, keep_from)
            yield from self._resolved(page.batch.filter(pa.array(~stays)))
        yield from self._keep(side, page if stays.all() else page.filter(stays))

    def _right_stays(self, page: Page, keep_from: int) -> Marks:
        """Return which right tuples can match a left one that is stored, or to come, bool (rows,)."""
        stays = ~passed(page.times, min(self.keep_right(self._next_left()), keep_from))
        if self.bounds.groups and len(page):
            keys = self.bounds.by_position(1, page.batch)
            overtaken = np.flatnonzero(stays & passed(page.times, self.bounds.own(1, keys)))
            if overtaken.size:  # the bound of its key has passed it; a left tuple may wait all the same
                overtaken_page = page.take(overtaken)
                keys, codes = keys.take(pa.array(overtaken)), self._codes_of(1, overtaken_page)
                own_keep_from = self._kept_from(codes, *(self.bounds.of(port, keys) for port in (0, 1)))
                stays[overtaken] = ~passed(overtaken_page.times, own_keep_from)
        return stays

    def _keep(self, side: int, page: Page) -> Iterator[pa.RecordBatch]:
        """Store tuples that can match something later; yield the rows that leave with them, which are none here."""
        self._store(side, page, self._codes_of(side, page), np.ones(len(page), np.bool_), None)
        return iter(())

    def _codes_of(self, side: int, page: Page) -> Ints:
        return self._codes.of(self._key_columns(side, page.batch), len(page), source=side)

    def _purge_groups(self, side: int, punctuation: GroupWise) -> list[RunEntries]:
        return [] if side == 1 else super()._purge_groups(side, punctuation)

    def _alone(self, side: int, lone: list[RunEntries]) -> Iterator[pa.RecordBatch]:
        for batch in in_pages(self._taken(lone)):  # to look into all runs costs more than a few rows
            yield from self._resolved(batch)

    def _resolved(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield left tuples with the latest right one of each, which is known by now."""
        page = Page(self._inputs[0], batch)
        latest = LatestMatches(len(page))
        yield from (joined for _, joined in self._latest(self._sides[1], page, latest))
        yield from self._without_match(batch.filter(pa.array(~latest.matched)))

    def _latest(
        self, index: JoinIndex, page: Page, latest: LatestMatches
    ) -> Iterator[tuple[Rows, pa.RecordBatch]]:
        """Yield the pairs of left tuples and the latest right ones in an index, with the rows of the left ones."""
        low, high = self.bounds.rule.reach(0, page.times)
        codes, high = self._codes_of(0, page), high.copy()
        probes = np.arange(len(page), dtype=np.int32)
        while probes.size:
            best, has_match = index.latest(codes[probes], low[probes], high[probes])
            probes, best = probes[has_match], best[has_match]
            latest.at[probes] = best
            for candidates in together(index.matches(codes[probes], best, best)):
                of_page = Matches(probes[candidates.probes], candidates.by_run)
                matches, joined = self._held_to_terms(0, page, of_page)
                latest.matched[matches.probes] = True
                yield matches.probes, joined
            other = ~latest.matched[probes] & (
                best > low[probes]
            )  # another key has the code: look before its tuple
            probes, best = probes[other], best[other]
            high[probes] = best - 1

    def _without_match(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if batch.num_rows and self.kind.alone[0]:
            yield self._output.alone(0, batch)

    def _drop_unneeded(self, waits: int) -> None:
        """Drop right tuples that are too long ago for all left tuples of their key, or that a later one replaces.

        O(n log n) of n right tuples; called when their number has doubled.
        """
        runs, numbers, entries, codes, times = self._sides[1].living()
        keys = self._keys_of(runs, numbers, entries) if self.bounds.groups or not self._codes.exact else []
        if self.bounds.groups:
            of_keys = pa.RecordBatch.from_arrays(keys, names=[str(place) for place in range(len(keys))])
            left, emitted = (self.bounds.of(port, of_keys) for port in (0, 1))
        else:
            left, emitted = (np.full(times.size, bound) for bound in self.bounds.linear)
        next_left = np.minimum(np.minimum(left, waits), self._sides[0].earliest(codes, emitted))
        purged = passed(times, self.bounds.rule.keep_from(1, next_left))
        known = np.flatnonzero((times <= next_left) & ~purged)
        order = known[np.lexsort((times[known], codes[known]))]
        ends = np.append(codes[order][1:] != codes[order][:-1], True)[: order.size]  # the last of each code
        last = order[np.flatnonzero(ends)[np.cumsum(ends) - ends]]
        replaced = times[order] < times[last]
        if keys:
            mine, others = ([column.take(pa.array(at)) for column in keys] for at in (order, last))
            replaced &= self._codes.equal(mine, others)
        purged[order[replaced]] = True
        of_run = {id(run): entries[purged & (numbers == number)] for number, run in enumerate(runs)}
        self._sides[1].purge_entries(lambda run: of_run[id(run)])

    def _keys_of(self, runs: list[SortedRun], numbers: Ints, entries: Rows) -> list[pa.Array]:
        """Return the key columns of some right tuples, in order."""
        order = np.argsort(numbers, kind="stable")
        parts = [run.take(entries[numbers == number]) for number, run in enumerate(runs)]
        back = pa.array(np.argsort(order, kind="stable"))
        together = pa.concat_batches(parts) if parts else no_rows(self._inputs[1].fields)
        return [column.take(back) for column in self._key_columns(1, together)]
