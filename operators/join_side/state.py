"""The state of a window join: what both sides keep, and what both inputs have promised.

Both sides number their groups by one ``GroupIndex``, so equal keys have equal slots.
Promises are held in one ``Progress`` of two inputs, in terms of the *left* timestamp of
results: the left input's bound as it is, and of the right input's bound the least left
timestamp that is still kept.  Their minimum, linear or of a group, is the output's promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.groups import GroupIndex
from oop_engine.operator import State
from oop_engine.page import Page
from oop_engine.progress import Progress
from oop_engine.punctuation import NEVER, GroupWise, Linear, Punctuation
from oop_engine.schema import Schema
from operators.join_side.stored import PAGE_ROWS, JoinSide
from operators.join_side.terms import JoinTerms

__all__ = ["JoinState"]

_SPARE_GROUPS = 1024

Ints = NDArray[np.int64]


class JoinState:
    """Sides are 0 (left) and 1 (right); ``out`` is the schema of the joined tuples."""

    def __init__(self, terms: JoinTerms, inputs: tuple[Schema, ...], out: Schema) -> None:
        self.bounds = [NEVER, NEVER]
        self.rule = terms.band.fitted(inputs[0], terms.operator)
        self._terms = terms
        self._out = out
        self._keys = [terms.names(0), terms.names(1)]
        self._index = GroupIndex([inputs[0].type_of(name) for name in self._keys[0]])
        self._sides = [JoinSide(), JoinSide()]
        self._progress = Progress(inputs=2)
        self._own = np.full((2, 0), NEVER)  # (sides, groups)  keep_from by the group's own promises

    def keep_from(self, side: int) -> int:
        """Return the least timestamp with which a tuple of ``side`` can still match something."""
        return self.rule.keep_from(side, self.bounds[1 - side])

    def arrive(self, side: int, page: Page, keep_from: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the joined tuples of a page, then store what can match something later.

        ``keep_from`` overrides the rule of the same name; with ``FOREVER`` nothing is stored.
        """
        page = self.without_null_keys(side, page)
        stays = page.times >= (self.keep_from(side) if keep_from is None else keep_from)
        slots = self._slots(side, page.batch, add=bool(stays.any()))
        order = np.lexsort((page.times, slots))
        slots, times, stays = slots[order], page.times[order], stays[order]
        batch = page.batch.take(pa.array(order))
        yield from _pages(self._joined(side, batch, slots, times))
        if stays.any():
            stays &= times >= self._own[side, slots]
            kept = batch if stays.all() else batch.filter(pa.array(stays))
            self._sides[side].add(kept, slots[stays], times[stays])
        self._forget_groups()

    def advance(self, port: int, punctuation: Punctuation) -> list[Punctuation]:
        """Take a promise of input ``port`` and purge; return what is newly promised on the left time.

        Of group-wise promises only those on key columns are of use; joint ones are of none.
        """
        match punctuation:
            case Linear(below) if below > self.bounds[port]:
                self.bounds[port] = below
                self.purge(1 - port, self.keep_from(1 - port))
                linear = below if port == 0 else self.rule.keep_from(0, below)
                return self._said(self._progress.advance(port, Linear(linear)))
            case GroupWise() if self._is_on_keys(port, punctuation):
                return self._advance_groups(port, self._by_position(port, punctuation))
        return []

    def purge(self, side: int, keep_from: int) -> None:
        """Drop the tuples of a side whose timestamp is below ``keep_from``."""
        self._sides[side].purge(keep_from)
        self._forget_groups()

    def without_null_keys(self, side: int, page: Page) -> Page:
        """Return the tuples that can match anything at all."""
        columns = [_plain(page.column(name)) for name in self._keys[side]]
        if not any(column.null_count for column in columns):
            return page
        valid = reduce(pc.and_, [column.is_valid() for column in columns])
        return page.filter(valid.to_numpy(zero_copy_only=False))

    def state(self) -> State:
        """Return what is held."""
        nbytes = self._index.nbytes + self._own.nbytes + self._progress.nbytes
        return State(
            tuples=sum(side.tuples for side in self._sides),
            groups=len(self._index) + self._progress.groups,
            nbytes=nbytes + sum(side.nbytes for side in self._sides),
        )

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {
            "bounds": self.bounds,
            "index": self._index.save(),
            "own": self._own,
            "progress": self._progress.save(),
            "sides": [side.save() for side in self._sides],
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take what ``save`` returned."""
        self.bounds = saved["bounds"]
        self._index.load(saved["index"])
        self._own = saved["own"]
        self._progress.load(saved["progress"])
        for side, tuples in zip(self._sides, saved["sides"], strict=True):
            side.load(tuples)

    def _slots(self, side: int, batch: pa.RecordBatch, *, add: bool) -> Ints:
        columns = [batch.column(name) for name in self._keys[side]]
        if not add:
            return self._index.find(columns, rows=batch.num_rows)
        known = len(self._index)
        slots = self._index.encode(columns, rows=batch.num_rows)
        if len(self._index) > known:
            self._own = np.hstack([self._own, self._promised(np.arange(known, len(self._index)))])
        return slots

    def _promised(self, slots: Ints) -> Ints:
        """Return ``keep_from`` (sides, slots) of groups new here that were promised before."""
        if not self._progress.groups:
            return np.full((2, len(slots)), NEVER)
        keys = self._key_batch(slots)
        left = self._progress.bounds(keys, port=1)  # is keep_from of the left side already
        right = self.rule.keep_from(1, self._progress.bounds(keys, port=0))
        return np.vstack([left, right])

    def _key_batch(self, slots: Ints) -> pa.RecordBatch:
        columns = self._index.keys(slots)
        return pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])

    def _joined(self, side: int, batch: pa.RecordBatch, slots: Ints, times: Ints) -> Iterator[pa.RecordBatch]:
        low, high = self.rule.reach(side, times)
        for probe, stored in self._sides[1 - side].matches(slots, low, high):
            own = batch.take(pa.array(probe))
            left, right = (own, stored) if side == 0 else (stored, own)
            columns = [*left.columns, *right.columns]
            yield self._terms.passing(pa.RecordBatch.from_arrays(columns, schema=self._out.fields))

    def _is_on_keys(self, port: int, punctuation: GroupWise) -> bool:
        return 0 < len(set(punctuation.attributes) & set(self._keys[port])) == len(punctuation.attributes)

    def _by_position(self, port: int, punctuation: GroupWise) -> GroupWise:
        """Return the promise on key positions, which both sides share, instead of names."""
        names = [name for name in self._keys[port] if name in punctuation.attributes]
        positions = [str(self._keys[port].index(name)) for name in names]
        columns = [punctuation.groups.column(name) for name in names]
        return GroupWise(pa.RecordBatch.from_arrays(columns, names=positions), punctuation.below)

    def _advance_groups(self, port: int, promise: GroupWise) -> list[Punctuation]:
        self._purge_groups(1 - port, promise)
        left = promise if port == 0 else GroupWise(promise.groups, self.rule.keep_from(0, promise.below))
        return self._said(self._progress.advance(port, left))

    def _purge_groups(self, side: int, promise: GroupWise) -> None:
        slots, below = self._known(promise)
        keep_from = self.rule.keep_from(side, below)
        grown = keep_from > self._own[side, slots]
        if not grown.any():
            return
        slots, keep_from = slots[grown], keep_from[grown]
        self._sides[side].purge_groups(slots, self._own[side, slots], keep_from)
        self._own[side, slots] = keep_from
        self._forget_groups()

    def _known(self, promise: GroupWise) -> tuple[Ints, Ints]:
        """Return the slots (sorted) of which a promise speaks, and its bound for each.

        O(its groups); if it is on some of the key columns only, O(all groups).
        """
        if len(promise.attributes) < len(self._keys[0]):
            alone = Progress(remember_ended=True)
            alone.advance(0, promise)
            everything = np.arange(len(self._index))
            return everything, alone.bounds(self._key_batch(everything))
        slots = self._index.find(promise.groups.columns)
        order = np.argsort(slots, kind="stable")
        order = order[np.searchsorted(slots[order], 0) :]
        return slots[order], promise.below[order]

    def _said(self, promises: list[Punctuation]) -> list[Punctuation]:
        return [self._by_name(p) if isinstance(p, GroupWise) else p for p in promises]

    def _by_name(self, promise: GroupWise) -> GroupWise:
        names = [self._keys[0][int(position)] for position in promise.attributes]
        return GroupWise(promise.groups.rename_columns(names), promise.below)

    def _forget_groups(self) -> None:
        """Forget groups without tuples, once they are most of all: O(1) a group, over time."""
        stored = sum(side.tuples for side in self._sides)
        if len(self._index) <= (4 * stored + _SPARE_GROUPS if stored else 0):
            return
        used = np.zeros(len(self._index), np.bool_)
        for side in self._sides:
            side.mark_groups(used)
        kept = np.flatnonzero(used)
        self._index.keep(kept)
        self._own = self._own[:, kept]
        for side in self._sides:
            side.renumber_groups(np.cumsum(used) - 1)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


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
