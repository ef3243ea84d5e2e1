"""The state of a window join: the tuples of both sides, and the bounds of both inputs.

A tuple meets all partners that are there when it comes, and is met by later ones until it is
purged.  So it has matched nothing if it has not by then, and leaves alone, if the kind of
join wants that, before the punctuation that follows from its purging.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear, Punctuation, Watermark, passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.bounds import JoinBounds
from oop_engine.operators.joining.foreseen import Foreseen
from oop_engine.operators.joining.index import PAGE_ROWS, RunEntries, JoinIndex, Match
from oop_engine.operators.joining.late_pairs import late_pairs
from oop_engine.operators.joining.matches import Matches, together
from oop_engine.operators.joining.output import JoinOutput, in_pages
from oop_engine.operators.joining.purging import purge_groups
from oop_engine.operators.joining.run import Marks, SortedRun
from oop_engine.operators.joining.taking import MANY, taken
from oop_engine.operators.joining.terms import JoinTerms, all_valid, without_nulls
from oop_engine.operators.keys.key_codes import KeyCodes

__all__ = ["JoinState"]

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


class JoinState:
    """Sides are 0 (left) and 1 (right).

    ``late``: the schema of the output, where pages of many pairs may copy columns when they are read; else None.
    """

    def __init__(self, terms: JoinTerms, inputs: tuple[Schema, ...], late: Schema | None = None) -> None:
        rule = terms.band.fitted(inputs[0], terms.operator)
        self.bounds = JoinBounds([terms.names(0), terms.names(1)], [rule], earlier=all(terms.kind.alone))
        self.kind = terms.kind
        self._terms = terms
        self._output = JoinOutput(terms, (inputs[0], inputs[1]))
        self._inputs = inputs
        self._keys = [[inputs[side].names.index(name) for name in terms.names(side)] for side in (0, 1)]
        self._codes = KeyCodes([inputs[0].type_of(name) for name in terms.names(0)])
        self._known = self._codes.exact or self._codes.in_place  # keys are compared before rows are copied
        at_once = terms.residual is not None or not (self._known and self.kind.pairs)
        self._late = None if at_once else late
        self._late_from = MANY if any(self.kind.alone) else 1  # few rows go out with those that have no match
        sides = zip(self.kind.alone, self.kind.marks, strict=True)
        self._sides = [JoinIndex(rule.width, alone=alone, marks=marks) for alone, marks in sides]
        self._foreseen: Foreseen | None = None

    @property
    def foresees(self) -> bool:
        """Whether it is of use to ``foresee`` pages."""
        return self._late is not None and not any(self.kind.alone)

    def foresee(self, side: int, pages: Sequence[Page]) -> None:
        """Announce the pages that come next of a source of a side, and find their matches."""
        if self._foreseen is None:
            same = None if self._codes.exact else self._of_equal_keys
            self._foreseen = Foreseen(self.bounds.rule, self._sides, self._codes_of, same)
        self._foreseen.expect(side, pages)

    def arrive(self, side: int, page: Page, keep_from: int | None = None) -> Iterator[pa.RecordBatch | Page]:
        """Yield the rows that leave with a page, then store those that can match something later.

        ``keep_from`` overrides the rule of the same name; with ``FOREVER`` nothing is stored.
        """
        keep_from = self.bounds.keep_from(side) if keep_from is None else keep_from
        yield from in_pages(self._arrive(side, page, keep_from))

    def advance(self, port: int, punctuation: Punctuation) -> Iterator[pa.RecordBatch | Punctuation]:
        """Process a punctuation of input ``port`` and purge: yield tuples that matched nothing, then grown bounds.

        Of group-wise punctuation only that on key columns is of use; joint punctuation is of none.
        """
        match punctuation:
            case Linear(below) if below > self.bounds.linear[port]:
                self.bounds.linear[port] = below
                yield from self.purge(1 - port, self.bounds.keep_from(1 - port))
                yield from self.bounds.grown(port, punctuation)
            case GroupWise() if self.bounds.is_on_keys(port, punctuation):
                groups = self.bounds.by_position(port, punctuation.groups)
                by_position = GroupWise(groups, punctuation.below)
                yield from in_pages(self._alone(1 - port, self._purge_groups(1 - port, by_position)))
                yield from self.bounds.grown(port, by_position)
            case Watermark(Linear()):
                yield from self.bounds.grown(port, punctuation)
            case Watermark(GroupWise() as group_bounds) if self.bounds.is_on_keys(port, group_bounds):
                groups = self.bounds.by_position(port, group_bounds.groups)
                yield from self.bounds.grown(port, Watermark(GroupWise(groups, group_bounds.below)))

    def purge(self, side: int, keep_from: int) -> Iterator[pa.RecordBatch]:
        """Drop the tuples of a side whose timestamp is below ``keep_from``; return those that leave alone."""
        return in_pages(self._alone(side, self._sides[side].purge(keep_from)))

    def keep_right(self, next_left: int) -> int:
        """Return the least right timestamp that a left tuple from ``next_left`` on can match."""
        return FOREVER if next_left == FOREVER else min(self.bounds.rule.keep_from(1, next_left), FOREVER - 1)

    def purge_right(self, next_left: int) -> Iterator[pa.RecordBatch]:
        """Drop the right tuples that no left tuple from ``next_left`` on can match, as ``purge`` does."""
        return self.purge(1, self.keep_right(next_left))

    def without_null_keys(self, side: int, page: Page) -> Page:
        """Return the tuples that can match anything at all."""
        valid = self._valid(side, page)
        return page if valid.all() else page.filter(valid)

    def state(self) -> State:
        """Return the state; a group of both sides, or of several runs of one, counts for each."""
        left, right = self._sides
        own = self.bounds.nbytes + self._codes.nbytes
        groups = left.groups + right.groups + self.bounds.groups
        return State(left.tuples + right.tuples, 0, groups, own + left.nbytes + right.nbytes)

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {"bounds": self.bounds.save(), "sides": [side.save() for side in self._sides]}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        self.bounds.load(saved.part("bounds"))
        sides = saved.part("sides")
        for number, side in enumerate(self._sides):
            side.load(sides.parts(number), self._inputs[number].fields)

    def _arrive(self, side: int, page: Page, keep_from: int) -> Iterator[pa.RecordBatch | Page]:
        columns, alone = self._key_columns(side, page.batch), self.kind.alone[side]
        whole = without_nulls(columns)  # who counts nulls decides whether Arrow copies their bitmap
        if self._foreseen is not None and (foreseen := self._foreseen.take(side, page)) is not None:
            yield from self._of_foreseen(side, page, keep_from, *foreseen)
            return
        if not whole:
            valid = all_valid(columns, len(page))
            if alone:
                yield self._output.alone(side, page.filter(~valid).batch)
            page = page.filter(valid)
            columns = self._key_columns(side, page.batch)
        stays = self._stays(side, page, keep_from)
        matched = np.zeros(len(page), np.bool_) if self.kind.asks(side) else None
        others = self._sides[1 - side].tuples
        if others or np.count_nonzero(stays):
            codes = self._codes.of(columns, len(page), source=side)
            if others:
                yield from self._pairs(side, page, codes, matched)
            if matched is not None:
                yield from self._matched_once(page, matched, stays)
            self._store(side, page, codes, stays, matched)
        if alone and matched is not None and not (known := matched | stays).all():
            yield self._output.alone(side, page.filter(~known).batch)
        if alone and matched is not None:
            yield from self._unmatched(side, page, stays, matched)

    def _of_foreseen(
        self, side: int, page: Page, keep_from: int, codes: Ints, matches: list[Match]
    ) -> Iterator[Page]:
        """Yield the pairs of a page whose ``codes`` and matches are ``matches``, and store its tuples."""
        assert self._late is not None
        for page_matches in together(matches):
            yield late_pairs(self._late, side, page, page_matches)
        self._store(side, page, codes, self._stays(side, page, keep_from), None)

    def _met(self, side: int, run: SortedRun, entries: Rows) -> None:
        """Note that stored tuples of a side have matched something, before the run does."""

    def _unmatched(self, side: int, page: Page, stays: Marks, matched: Marks) -> Iterator[pa.RecordBatch]:
        """Yield those tuples of a page that have been stored without a match, and leave at once all the same."""
        return iter(())

    def _matched_once(self, page: Page, matched: Marks, stays: Marks) -> Iterator[pa.RecordBatch]:
        """Drop a left tuple that has matched, where no second match matters."""
        if self.kind.pairs:
            return
        stays &= ~matched
        if not self.kind.alone[0]:
            yield page.batch.filter(pa.array(matched))

    def _store(self, side: int, page: Page, codes: Ints, stays: Marks, matched: Marks | None) -> None:
        marks = matched if self.kind.marks[side] else None
        stay = np.count_nonzero(stays)
        if stay == len(stays):
            rows = np.arange(stay, dtype=np.int32)
            self._sides[side].add(page.batch, rows, codes, page.times, marks)
        elif stay:
            rows = np.flatnonzero(stays).astype(np.int32)
            marks = None if marks is None else marks[stays]
            self._sides[side].add(page.batch, rows, codes[stays], page.times[stays], marks)

    def _stays(self, side: int, page: Page, keep_from: int) -> Marks:
        """Return which rows of a page can match something later, bool (rows,)."""
        stays = ~passed(page.times, keep_from)
        if self.bounds.groups and np.count_nonzero(stays):
            stays &= ~passed(page.times, self.bounds.own(side, self.bounds.by_position(side, page.batch)))
        return stays

    def _valid(self, side: int, page: Page) -> Marks:
        return all_valid(self._key_columns(side, page.batch), len(page))

    def _codes_of(self, side: int, page: Page) -> Ints | None:
        columns = self._key_columns(side, page.batch)
        return self._codes.of(columns, len(page), source=side) if without_nulls(columns) else None

    def _key_columns(self, side: int, batch: pa.RecordBatch) -> list[pa.Array]:
        return [batch.column(place) for place in self._keys[side]]

    def _pairs(
        self, side: int, page: Page, codes: Ints, matched: Marks | None
    ) -> Iterator[pa.RecordBatch | Page]:
        """Yield the rows that matches of a page make; note in ``matched``, and in the index, which tuples matched."""
        low, high = self.bounds.rule.reach(side, page.times)
        stored = self._sides[1 - side]
        for candidates in together(stored.matches(codes, low, high)):
            matches, joined = self._held_to_terms(side, page, candidates)
            if matched is not None:
                matched[matches.probes] = True
            if joined is not None and self.kind.pairs:
                if self.kind.marks[1 - side]:
                    for run, entries in matches.by_run:
                        self._met(1 - side, run, entries)
                        run.mark(entries)
                yield joined
            elif side == 1:
                yield from self._matched_left(matches.by_run)
        if side == 1 and not self.kind.pairs:
            stored.compact()

    def _matched_left(self, by_run: list[RunEntries]) -> Iterator[pa.RecordBatch]:
        """Drop stored left tuples at their first match; yield them for a semi join."""
        for run, entries in by_run:
            first = run.lone(entries)
            self._met(0, run, first)
            run.bury(first)
            if not self.kind.alone[0]:
                yield run.take(first)

    def _held_to_terms(
        self, side: int, page: Page, matches: Matches
    ) -> tuple[Matches, pa.RecordBatch | Page | None]:
        """Return those matches by code and time whose keys are equal and residual holds, joined if anyone asks."""
        if self._known and not self._codes.exact:
            matches = self._of_equal_keys(side, page, matches)
        if not self.kind.pairs and self._known and self._terms.residual is None:
            return matches, None
        if self._late is not None and len(matches.probes) >= self._late_from:
            return matches, late_pairs(self._late, side, page, matches)
        own, stored = taken(page.batch, matches.probes), matches.stored()
        left, right = (own, stored) if side == 0 else (stored, own)
        holds = self._equal_keys(left, right)
        joined = (
            self._output.pairs(left, right) if self.kind.pairs or self._terms.residual is not None else None
        )
        if joined is not None and (of_residual := self._terms.holds(joined)) is not None:
            holds = of_residual if holds is None else holds & of_residual
        if holds is None or holds.all():
            return matches, joined
        return matches.where(holds), None if joined is None else joined.filter(pa.array(holds))

    def _of_equal_keys(self, side: int, page: Page, matches: Matches) -> Matches:
        """Return those matches by code whose keys are equal, which are compared where they lie."""
        same, begin = np.ones(len(matches.probes), np.bool_), 0
        own = self._codes.flat(self._key_columns(side, page.batch))
        for run, entries in matches.by_run:
            part = slice(begin, begin + len(entries))
            if run.flat_keys is None:
                run.flat_keys = self._codes.flat(self._key_columns(1 - side, run.batch))
            self._codes.equal_at(own, matches.probes[part], run.flat_keys, run.rows(entries), same[part])
            begin = part.stop
        return matches if same.all() else matches.where(same)

    def _equal_keys(self, left: pa.RecordBatch, right: pa.RecordBatch) -> Marks | None:
        if self._known:
            return None
        return self._codes.equal(self._key_columns(0, left), self._key_columns(1, right))

    def _alone(self, side: int, lone: list[RunEntries]) -> Iterator[pa.RecordBatch]:
        for batch in self._taken(lone):
            yield self._output.alone(side, batch)

    def _taken(self, by_run: list[RunEntries]) -> Iterator[pa.RecordBatch]:
        for run, entries in by_run:
            for start in range(0, len(entries), PAGE_ROWS):
                yield run.take(entries[start : start + PAGE_ROWS])

    def _purge_groups(self, side: int, punctuation: GroupWise) -> list[RunEntries]:
        """Drop the tuples that group-wise punctuation of the other side lets go; return those that leave alone."""
        take, columns = self._sides[side].purge_entries, partial(self._key_columns, side)
        return purge_groups(take, side, 1 - side, punctuation, self.bounds, self._codes, columns)
