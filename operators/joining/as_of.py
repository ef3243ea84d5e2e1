"""The state of an as-of join: left tuples wait until the latest right tuple before them is known.

That is when a bound of the right input has passed them, which is where a left tuple of any
join is purged.  A right tuple goes when no left tuple can have it for its latest: when it is too long ago
for the band, or one of its key is between it and all left tuples to come.

A speculative one does not wait: a left tuple leaves with the latest right one so far, which a later one replaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Punctuation, passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.bands import AsOf
from oop_engine.operators.joining.index import Found, JoinIndex
from oop_engine.operators.joining.matches import Matches, together
from oop_engine.operators.joining.output import in_pages
from oop_engine.operators.joining.run import SortedRun
from oop_engine.operators.joining.speculative import SpeculativeState
from oop_engine.operators.joining.state import JoinState
from oop_engine.operators.joining.terms import JoinTerms

__all__ = ["AsOfState", "SpeculativeAsOfState", "join_state"]

_FEW = 512
"""Right tuples, among which it is not worth while to look for those that later ones have replaced."""

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


def join_state(
    terms: JoinTerms, inputs: tuple[Schema, ...], *, speculative: bool = False, late: Schema | None = None
) -> JoinState:
    """Return the state of a join of these terms; ``late``: as of ``JoinState``."""
    if speculative:
        of = SpeculativeAsOfState if isinstance(terms.band, AsOf) else SpeculativeState
        return of(terms, inputs)
    return AsOfState(terms, inputs) if isinstance(terms.band, AsOf) else JoinState(terms, inputs, late)


class _Latest:
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
        """Take a punctuation as any join does; right tuples go behind the left ones that waited for them."""
        yield from super().advance(port, punctuation)
        self.purge_right(self._next_left())

    def purge(self, side: int, keep_from: int) -> Iterator[pa.RecordBatch]:
        """Return the left tuples below ``keep_from`` with the right ones they match; right ones go in ``advance``."""
        return super().purge(side, keep_from) if side == 0 else iter(())

    def purge_right(self, next_left: int) -> Iterator[pa.RecordBatch]:
        """Drop the right tuples that no left tuple from ``next_left`` on can match."""
        right = self._sides[1]
        right.purge(self.keep_right(next_left))
        if right.tuples > 2 * self._looked_at:
            self._drop_replaced(next_left)
            self._looked_at = max(right.tuples, _FEW)
        return iter(())

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {**super().save(), "looked_at": self._looked_at}

    def load(self, saved: Saved) -> None:
        """Take the state that ``save`` returned."""
        super().load(saved)
        self._looked_at = saved.integer("looked_at", least=_FEW)

    def _next_left(self) -> int:
        """Return the least left timestamp that is still to be joined."""
        return min(self.bounds.linear[0], self._sides[0].first)

    def _arrive(self, side: int, page: Page, keep_from: int) -> Iterator[pa.RecordBatch]:
        valid = self._valid(side, page)
        if not valid.all():
            if side == 0:
                yield from self._without_match(page.batch.filter(pa.array(~valid)))
            page = page.filter(valid)
        if side == 1:  # bounds of left keys do not count: tuples of theirs may wait
            stays = ~passed(page.times, min(self.keep_right(self._next_left()), keep_from))
        else:
            stays = self._stays(0, page, keep_from)
            yield from self._resolved(page.batch.filter(pa.array(~stays)))
        yield from self._keep(side, page if stays.all() else page.filter(stays))

    def _keep(self, side: int, page: Page) -> Iterator[pa.RecordBatch]:
        """Store tuples that can match something later; yield the rows that leave with them, which are none here."""
        self._store(side, page, self._codes_of(side, page), np.ones(len(page), np.bool_), None)
        return iter(())

    def _codes_of(self, side: int, page: Page) -> Ints:
        return self._codes.of(self._key_columns(side, page.batch), len(page), source=side)

    def _purge_groups(self, side: int, punctuation: GroupWise) -> list[Found]:
        return [] if side == 1 else super()._purge_groups(side, punctuation)

    def _alone(self, side: int, lone: list[Found]) -> Iterator[pa.RecordBatch]:
        for batch in in_pages(self._taken(lone)):  # to look into all runs costs more than a few rows
            yield from self._resolved(batch)

    def _resolved(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield left tuples with the latest right one of each, which is known by now."""
        page = Page(self._inputs[0], batch)
        latest = _Latest(len(page))
        yield from (joined for _, joined in self._latest(self._sides[1], page, latest))
        yield from self._without_match(batch.filter(pa.array(~latest.matched)))

    def _latest(self, index: JoinIndex, page: Page, latest: _Latest) -> Iterator[tuple[Rows, pa.RecordBatch]]:
        """Yield the pairs of left tuples and the latest right ones in an index, with the rows of the left ones."""
        low, high = self.bounds.rule.reach(0, page.times)
        codes, high = self._codes_of(0, page), high.copy()
        asked = np.arange(len(page), dtype=np.int32)
        while asked.size:
            best, found = index.latest(codes[asked], low[asked], high[asked])
            asked, best = asked[found], best[found]
            latest.at[asked] = best
            for candidates in together(index.matches(codes[asked], best, best)):
                of_page = Matches(asked[candidates.probes], candidates.found)
                matches, joined = self._held_to_terms(0, page, of_page)
                latest.matched[matches.probes] = True
                yield matches.probes, joined
            other = ~latest.matched[asked] & (
                best > low[asked]
            )  # another key has the code: look before its tuple
            asked, best = asked[other], best[other]
            high[asked] = best - 1

    def _without_match(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if batch.num_rows and self.kind.alone[0]:
            yield self._output.alone(0, batch)

    def _drop_replaced(self, next_left: int) -> None:
        """Drop right tuples that have a later one of their key before all left tuples to come.  O(n log n)."""
        runs, numbers, entries, codes, times = self._sides[1].living()
        known = np.flatnonzero(times <= next_left)
        if not known.size:
            return
        order = known[np.lexsort((times[known], codes[known]))]
        ends = np.append(codes[order][1:] != codes[order][:-1], True)  # the last of each code
        last = order[np.flatnonzero(ends)[np.cumsum(ends) - ends]]
        replaced = times[order] < times[last]
        gone, by = order[replaced], last[replaced]
        if not self._codes.exact:
            mine, others = (self._keys_of(runs, numbers[which], entries[which]) for which in (gone, by))
            gone = gone[self._codes.equal(mine, others)]
        of_run = {id(run): entries[gone[numbers[gone] == number]] for number, run in enumerate(runs)}
        self._sides[1].purge_entries(lambda run: of_run[id(run)])

    def _keys_of(self, runs: list[SortedRun], numbers: Ints, entries: Rows) -> list[pa.Array]:
        """Return the key columns of some right tuples, in order."""
        order = np.argsort(numbers, kind="stable")
        parts = [run.take(entries[numbers == number]) for number, run in enumerate(runs)]
        back = pa.array(np.argsort(order, kind="stable"))
        together = pa.concat_batches(parts)
        return [column.take(back) for column in self._key_columns(1, together)]


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
        latest = _Latest(len(page))
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
        best, found = new.latest(codes, low, high)
        if self._codes.exact:  # else the old one may be of another key
            old, there = self._sides[1].latest(codes, low, high)
            found &= ~there | (best >= old)
        return entries[found]

    def _exchanged(self, run: SortedRun, entries: Rows, new: JoinIndex) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of left tuples with ``new`` right ones that are not before the old; take back the old."""
        page = Page(self._inputs[0], run.take(entries))
        before, now = _Latest(len(page)), _Latest(len(page))
        old = list(self._latest(self._sides[1], page, before))
        pairs = list(self._latest(new, page, now))
        later = now.matched & (~before.matched | (now.at > before.at))
        leave = later | (now.matched & before.matched & (now.at == before.at))
        if self.kind.alone[0]:
            first = entries[now.matched & ~before.matched]
            self._met(0, run, first)
            run.mark(first)
        self._back += [joined.filter(pa.array(later[rows])) for rows, joined in old]
        yield from (joined.filter(pa.array(leave[rows])) for rows, joined in pairs)
