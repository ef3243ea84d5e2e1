"""The state of an as-of join: left tuples wait until the latest right tuple before them is known.

That is when a bound of the right input has passed them, which is where a left tuple of any
join is purged.  A right tuple goes when no left tuple can have it for its latest: when it is too long ago
for the band, or one of its key is between it and all left tuples to come.
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
from oop_engine.operators.joining.run import SortedRun
from oop_engine.operators.joining.speculative import SpeculativeState
from oop_engine.operators.joining.state import JoinState
from oop_engine.operators.joining.terms import JoinTerms

__all__ = ["AsOfState", "join_state"]

_FEW = 512
"""Right tuples, among which it is not worth while to look for those that later ones have replaced."""

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


def join_state(
    terms: JoinTerms, inputs: tuple[Schema, ...], *, speculative: bool = False, late: Schema | None = None
) -> JoinState:
    """Return the state of a join of these terms; ``late``: as of ``JoinState``."""
    if speculative:
        return SpeculativeState(terms, inputs)
    return AsOfState(terms, inputs) if isinstance(terms.band, AsOf) else JoinState(terms, inputs, late)


class AsOfState(JoinState):
    """A ``JoinState`` that matches left tuples when they are purged."""

    def __init__(self, terms: JoinTerms, inputs: tuple[Schema, ...]) -> None:
        super().__init__(terms, inputs)
        self._sides = [JoinIndex(alone=True), JoinIndex()]
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
        codes = self._codes.of(self._key_columns(side, page.batch), len(page), source=side)
        self._store(side, page, codes, stays, None)

    def _purge_groups(self, side: int, punctuation: GroupWise) -> list[Found]:
        return [] if side == 1 else super()._purge_groups(side, punctuation)

    def _alone(self, side: int, lone: list[Found]) -> Iterator[pa.RecordBatch]:
        for batch in self._taken(lone):
            yield from self._resolved(batch)

    def _resolved(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield left tuples with the latest right one of each, which is known by now."""
        page = Page(self._inputs[0], batch)
        matched = np.zeros(len(page), np.bool_)
        low, high = self.bounds.rule.reach(0, page.times)
        codes, high = self._codes.of(self._key_columns(0, batch), len(page), source=0), high.copy()
        asked = np.arange(len(page), dtype=np.int32)
        while asked.size:
            best, found = self._sides[1].latest(codes[asked], low[asked], high[asked])
            asked, best = asked[found], best[found]
            for candidates in together(self._sides[1].matches(codes[asked], best, best)):
                of_page = Matches(asked[candidates.probes], candidates.found)
                matches, joined = self._held_to_terms(0, page, of_page)
                matched[matches.probes] = True
                yield joined
            other = ~matched[asked] & (best > low[asked])  # another key has the code: look before its tuple
            asked, best = asked[other], best[other]
            high[asked] = best - 1
        yield from self._without_match(batch.filter(pa.array(~matched)))

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
