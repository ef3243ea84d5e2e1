"""The state of a window join: the tuples of both sides, and the bounds of both inputs.

Bounds are held in one ``Progress`` of two inputs, in terms of the *left* timestamp of
results: the left input's bound as it is, and of the right input's bound the least left
timestamp that is still kept.  Their minimum, linear or of a group, is the output's bound.
Key columns go by their position there, which both sides share, instead of by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import NEVER, GroupWise, Linear, Punctuation, passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.index import PAGE_ROWS, JoinIndex
from oop_engine.operators.joining.key_codes import KeyCodes
from oop_engine.operators.joining.run import SortedRun
from oop_engine.operators.joining.terms import JoinTerms

__all__ = ["JoinState"]

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


class JoinState:
    """Sides are 0 (left) and 1 (right); ``out`` is the schema of the joined tuples."""

    def __init__(self, terms: JoinTerms, inputs: tuple[Schema, ...], out: Schema) -> None:
        self.bounds = [NEVER, NEVER]
        self.rule = terms.band.fitted(inputs[0], terms.operator)
        self._terms = terms
        self._out = out
        self._fields = [schema.fields for schema in inputs]
        self._keys = [terms.names(0), terms.names(1)]
        self._codes = KeyCodes([inputs[0].type_of(name) for name in self._keys[0]])
        self._sides = [JoinIndex(), JoinIndex()]
        self._progress = Progress(inputs=2)

    def keep_from(self, side: int) -> int:
        """Return the least timestamp with which a tuple of ``side`` can still match something."""
        return self.rule.keep_from(side, self.bounds[1 - side])

    def arrive(self, side: int, page: Page, keep_from: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the joined tuples of a page, then store the tuples that can match something later.

        ``keep_from`` overrides the rule of the same name; with ``FOREVER`` nothing is stored.
        """
        page = self.without_null_keys(side, page)
        stays = self._stays(side, page, self.keep_from(side) if keep_from is None else keep_from)
        if not (stays.size or self._sides[1 - side].tuples):
            return
        codes = self._codes.of(self._key_columns(side, page.batch), len(page), source=side)
        yield from _pages(self._joined(side, page, codes))
        if stays.size == len(page):
            self._sides[side].add(page.batch, stays, codes, page.times)
        else:
            self._sides[side].add(page.batch, stays, codes[stays], page.times[stays])

    def advance(self, port: int, punctuation: Punctuation) -> list[Punctuation]:
        """Take a punctuation of input ``port`` and purge; return the punctuation on the left time that has grown.

        Of group-wise punctuation only that on key columns is of use; joint punctuation is of none.
        """
        match punctuation:
            case Linear(below) if below > self.bounds[port]:
                self.bounds[port] = below
                self.purge(1 - port, self.keep_from(1 - port))
                linear = below if port == 0 else self.rule.keep_from(0, below)
                return self._named(self._progress.advance(port, Linear(linear)))
            case GroupWise() if self._is_on_keys(port, punctuation):
                groups = self._by_position(port, punctuation.groups)
                return self._advance_groups(port, GroupWise(groups, punctuation.below))
        return []

    def purge(self, side: int, keep_from: int) -> None:
        """Drop the tuples of a side whose timestamp is below ``keep_from``."""
        self._sides[side].purge(keep_from)

    def without_null_keys(self, side: int, page: Page) -> Page:
        """Return the tuples that can match anything at all."""
        valid = _all_valid(self._key_columns(side, page.batch), len(page))
        return page if valid.all() else page.filter(valid)

    def state(self) -> State:
        """Return the state; a group of both sides, or of several runs of one, counts for each."""
        return State(
            tuples=sum(side.tuples for side in self._sides),
            groups=sum(side.groups for side in self._sides) + self._progress.groups,
            nbytes=self._progress.nbytes + self._codes.nbytes + sum(side.nbytes for side in self._sides),
        )

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {
            "bounds": self.bounds,
            "progress": self._progress.save(),
            "sides": [side.save() for side in self._sides],
        }

    def load(self, saved: Saved) -> None:
        """Take the state that ``save`` returned."""
        bounds, sides = saved.part("bounds"), saved.part("sides")
        self.bounds = [bounds.integer(0), bounds.integer(1)]
        self._progress.load(saved.part("progress"))
        for number, side in enumerate(self._sides):
            side.load(sides.parts(number), self._fields[number])

    def _stays(self, side: int, page: Page, keep_from: int) -> Rows:
        """Return the rows of a page that can match something later."""
        stays = ~passed(page.times, keep_from)
        if self._progress.groups and stays.any():
            stays &= ~passed(page.times, self._own(side, self._by_position(side, page.batch)))
        return np.flatnonzero(stays).astype(np.int32)

    def _own(self, side: int, keys: pa.RecordBatch) -> Ints:
        """Return ``keep_from`` of each key, by the bounds of that key and of all."""
        if side == 0:
            return self._progress.bounds(keys, port=1)
        return self.rule.keep_from(1, self._progress.bounds(keys, port=0))

    def _key_columns(self, side: int, batch: pa.RecordBatch) -> list[pa.Array]:
        return [batch.column(name) for name in self._keys[side]]

    def _by_position(self, side: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return those key columns that ``batch`` has, each named by its position."""
        names = [name for name in self._keys[side] if name in batch.schema.names]
        positions = [str(self._keys[side].index(name)) for name in names]
        return pa.RecordBatch.from_arrays([batch.column(name) for name in names], names=positions)

    def _joined(self, side: int, page: Page, codes: Ints) -> Iterator[pa.RecordBatch]:
        low, high = self.rule.reach(side, page.times)
        for probe, stored in self._sides[1 - side].matches(codes, low, high):
            own = page.batch.take(pa.array(probe))
            left, right = (own, stored) if side == 0 else (stored, own)
            columns = [*left.columns, *right.columns]
            joined = pa.RecordBatch.from_arrays(columns, schema=self._out.fields)
            yield self._terms.passing(self._of_equal_keys(left, right, joined))

    def _of_equal_keys(
        self, left: pa.RecordBatch, right: pa.RecordBatch, joined: pa.RecordBatch
    ) -> pa.RecordBatch:
        if self._codes.exact:
            return joined
        same = self._codes.equal(self._key_columns(0, left), self._key_columns(1, right))
        return joined if same.all() else joined.filter(pa.array(same))

    def _is_on_keys(self, port: int, punctuation: GroupWise) -> bool:
        return 0 < len(set(punctuation.attributes) & set(self._keys[port])) == len(punctuation.attributes)

    def _advance_groups(self, port: int, punctuation: GroupWise) -> list[Punctuation]:
        """Take a punctuation on key positions."""
        side = 1 - port
        before, keep_from = self._own(side, punctuation.groups), self.rule.keep_from(side, punctuation.below)
        grown = keep_from > before
        if grown.any():
            self._purge_groups(side, punctuation.filter(grown), before[grown], keep_from[grown])
        left = (
            punctuation
            if port == 0
            else GroupWise(punctuation.groups, self.rule.keep_from(0, punctuation.below))
        )
        return self._named(self._progress.advance(port, left))

    def _purge_groups(self, side: int, punctuation: GroupWise, before: Ints, keep_from: Ints) -> None:
        """Drop the tuples of the groups of a punctuation with ``before <= time < keep_from``."""
        if len(punctuation.attributes) < len(self._keys[side]):
            self._purge_some_keys(side, GroupWise(punctuation.groups, keep_from))
            return
        groups = [punctuation.groups.column(str(i)) for i in range(len(self._keys[side]))]
        valid = _all_valid(groups, len(punctuation))
        groups = [column.filter(pa.array(valid)) for column in groups]
        self._purge_keys(side, groups, before[valid], keep_from[valid])

    def _purge_keys(self, side: int, groups: list[pa.Array], before: Ints, keep_from: Ints) -> None:
        if not before.size:
            return
        codes = self._codes.of(groups, len(before), source=2)

        def due(run: SortedRun) -> Rows:
            found = list(run.matches(codes, before, keep_from - 1, PAGE_ROWS))
            group, entries = (np.concatenate(part) for part in zip(*found, strict=True))
            if self._codes.exact or not entries.size:
                return entries
            wanted = [column.take(pa.array(group)) for column in groups]
            return entries[self._codes.equal(self._key_columns(side, run.take(entries)), wanted)]

        self._sides[side].purge_entries(due)

    def _purge_some_keys(self, side: int, keep_from: GroupWise) -> None:
        """Drop the same where the groups are of some of the key columns only: O(tuples)."""
        alone = Progress(remember_ended=True)
        alone.advance(0, keep_from)

        def due(run: SortedRun) -> Rows:
            entries: Rows = run.alive()
            bounds = alone.bounds(self._by_position(side, run.take(entries)))
            return entries[run.times[entries] < bounds]

        self._sides[side].purge_entries(due)

    def _named(self, punctuation: list[Punctuation]) -> list[Punctuation]:
        return [self._by_name(p) if isinstance(p, GroupWise) else p for p in punctuation]

    def _by_name(self, punctuation: GroupWise) -> GroupWise:
        names = [self._keys[0][int(position)] for position in punctuation.attributes]
        return GroupWise(punctuation.groups.rename_columns(names), punctuation.below)


def _all_valid(columns: Sequence[pa.Array], rows: int) -> NDArray[np.bool_]:
    """Return in which of ``rows`` no column is null, bool (rows,)."""
    valid = np.ones(rows, np.bool_)
    for column in columns:
        if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
            column = column.dictionary_decode()
        if column.null_count:
            valid &= column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _pages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all ``batches`` in batches of ``PAGE_ROWS``, the last one smaller."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= PAGE_ROWS:
            together = pa.concat_batches(waiting)
            yield together.slice(0, PAGE_ROWS)
            waiting, rows = [together.slice(PAGE_ROWS)], rows - PAGE_ROWS
    if rows:
        yield pa.concat_batches(waiting)
