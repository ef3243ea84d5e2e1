"""Held tuples: those that no bound has passed yet, of which a store keeps the columns that are read, and the group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.ordering.reorder_buffer import ReorderBuffer
from oop_engine.operators.ordering.time_sorted import reordered
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.values.columns import Integers, filled_up
from oop_engine.operators.windows import Folding, Over

__all__ = ["Held", "Taken", "columns_of", "shared_tuples"]

_EVERY = np.iinfo(np.int64).max


class Taken(NamedTuple):
    """Tuples by time, equal ones as they came: the columns that are read, slots of groups, tags or none (0,)."""

    page: Page
    slots: Integers
    tags: NDArray[np.int8]

    def in_order(self, tie: tuple[str, ...], *, by_group: bool) -> Taken:
        """Return them by (group), time, tie and arrival.  O(n), with a tie O(n log n)."""
        page, slots = self.page, self.slots
        grouped = by_group and bool((slots[1:] != slots[:-1]).any())
        if tie:
            ranks = [pc.rank(page.column(name), tiebreaker="dense").to_numpy() for name in tie]
            order = np.lexsort((*ranks[::-1], page.times, *([slots] if grouped else [])))
        elif grouped:
            order = time_order(slots)
        else:
            return self
        return Taken(reordered(page, order), slots[order], self.tags[order] if self.tags.size else self.tags)


def columns_of(definition: Folding, read: Collection[str], tie: Collection[str]) -> set[str]:
    """Return the columns that are held for a definition, beside the progressing attribute."""
    return {*read, *tie, *definition.tie, *definition.reads, *definition.keeps}


class Held:
    """Tuples of ``schema``: the progressing attribute and the columns ``read``; ``tagged``: with tags.

    They lie in sorted pages, with the slot (if they are ``grouped``) and the tag of each as columns behind its own.
    Where windows are ``over`` rows, the number of a tuple is its time.

    Several stores may be ``readers``, that take the same, one after the other: all that one of them takes is left for
    the others.
    """

    def __init__(
        self, schema: Schema, read: Collection[str], over: Over, *, tagged: bool, grouped: bool
    ) -> None:
        numbered = over is not Over.ATTRIBUTE
        times = () if numbered else (schema.progressing,)
        self._names = [name for name in schema.names if name in read or name in times]
        self._schema, self._numbered = schema if numbered else schema.select(self._names), numbered
        if numbered:
            fields = [*map(schema.fields.field, self._names), pa.field("\0number", pa.int64())]
            self._schema = Schema(pa.schema(fields), "\0number", "rows")
        own = [("slot", pa.int32())] * grouped + [("tag", pa.int8())] * tagged
        fields = [*self._schema.fields, *(pa.field(f"\0{name}", kind) for name, kind in own)]
        self._whole = Schema(pa.schema(fields), self._schema.progressing, self._schema.unit)
        self._tagged, self._grouped = tagged, grouped
        self._buffer = ReorderBuffer(self._whole, owned=True)
        self._of = np.zeros(0, np.int64)  # (slots,) how many each group has
        self._left: list[Taken | None] = []  # for each reader

    def reader(self) -> int:
        """Return the number of one more reader."""
        self._left.append(None)
        return len(self._left) - 1

    def __len__(self) -> int:
        return self._buffer.tuples

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes + self._of.nbytes

    def of(self, groups: int) -> Integers:
        """Return how many tuples each of so many groups has."""
        if groups > (size := self._of.size):
            self._of = filled_up(self._of, max(groups, 3 * size // 2), 0)
        return self._of[:groups]

    def add(self, page: Page, times: Integers, slots: Integers, tags: NDArray[np.int8], groups: int) -> None:
        """Keep the tuples of a page, of groups that are among ``groups``.  O(tuples), sorted in bulk."""
        self.of(groups)
        self._count(slots, 1)
        columns = [page.column(name) for name in self._names]
        columns += [pa.array(times)] * self._numbered
        if self._grouped:
            columns.append(pa.array(slots.astype(np.int32)))
        if self._tagged:
            columns.append(pa.array(tags))
        batch = pa.RecordBatch.from_arrays(columns, schema=self._whole.fields)
        self._buffer.add(Page(self._whole, batch))

    def take(self, reader: int, bound: int) -> Taken | None:
        """Take out the tuples that a bound of all groups has passed.  O(taken + log held)."""
        return self._given(reader, self._buffer.release(bound))

    def take_some(self, reader: int, slots: Integers, below: Integers) -> Taken | None:
        """Take out those of ``slots``, ascending, that their bounds ``below`` have passed.  O(held)."""
        if not self._have(slots):
            return self._given(reader, None)
        everything = self._buffer.release(_EVERY)
        assert everything is not None
        row, there = _rows_in(slots, self._slots(everything))
        gone = there & passed(everything.times, below[row])
        self._buffer.add(everything.filter(~gone))
        return self._given(reader, everything.filter(gone) if gone.any() else None)

    def tagged_at(self, bound: int) -> Integers:
        """Return the slots of the tuples with a tag right at a bound of all groups.  O(runs that begin there)."""
        return self._tagged_in(self._buffer.at(bound), lambda slots: bound)

    def tagged_of(self, slots: Integers, below: Integers) -> Integers:
        """Return those of ``slots``, ascending, with such a tuple right at their bounds ``below``.  O(held)."""
        pages = self._buffer.pages() if self._have(slots) else []

        def bounds(of: Integers) -> Integers:
            row, there = _rows_in(slots, of)
            return np.where(there, below[row], _EVERY)

        return self._tagged_in(pages, bounds)

    def _tagged_in(self, pages: list[Page], bounds: Callable[[Integers], Integers | int]) -> Integers:
        found = [np.empty(0, np.int64)]
        for page in pages:
            slots = self._slots(page)
            found.append(slots[(page.times == bounds(slots)) & (page.column("\0tag").to_numpy() != 0)])
        return np.concatenate(found)

    def _have(self, slots: Integers) -> bool:
        """Tell whether a tuple of some groups is held."""
        return bool(self._of[slots[slots < self._of.size]].any())

    def _slots(self, page: Page) -> Integers:
        """Return the slot of each tuple of a page."""
        if not self._grouped:
            return np.zeros(len(page), np.int64)
        slots: Integers = page.column("\0slot").to_numpy().astype(np.int64)
        return slots

    def _given(self, reader: int, page: Page | None) -> Taken | None:
        """Give a reader the tuples of a page, or, of none, those that another one has left for it."""
        if page is not None:
            slots = self._slots(page)
            self._count(slots, -1)
            tags = page.column("\0tag").to_numpy() if self._tagged else np.empty(0, np.int8)
            taken = Taken(Page(self._schema, page.batch.select(self._schema.names)), slots, tags)
            self._left = [taken] * len(self._left)
        given, self._left[reader] = self._left[reader], None
        return given

    def rename(self, kept: Integers, slots: Integers) -> None:
        everything = self._buffer.release(_EVERY)
        self._of = self.of(slots.size)[kept]
        if everything is None:
            return
        if not self._grouped:
            self._buffer.add(everything)
            return
        place = everything.batch.schema.get_field_index("\0slot")
        renamed = pa.array(slots[self._slots(everything)].astype(np.int32))
        self._buffer.add(Page(self._whole, everything.batch.set_column(place, "\0slot", renamed)))

    def save(self) -> dict[str, Any]:
        return self._buffer.save()

    def load(self, saved: Saved, groups: int) -> None:
        self._buffer = ReorderBuffer(self._whole, owned=True)
        self._buffer.load(saved)
        self._of = np.zeros(groups, np.int64)
        for page in self._buffer.pages():
            known = not (self._grouped and page.column("\0slot").null_count)
            if not known or not 0 <= (slots := self._slots(page)).min() <= slots.max() < groups:
                msg = f"held tuples must be of the {groups} groups there are; got slots that are not"
                raise SnapshotError(msg)
            self._count(slots, 1)

    def _count(self, slots: Integers, sign: int) -> None:
        if self._of.size == 1:
            self._of += sign * slots.size
        elif 16 * slots.size > self._of.size:
            self._of += sign * np.bincount(slots, minlength=self._of.size)
        else:
            np.add.at(self._of, slots, sign)


def _rows_in(slots: Integers, wanted: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Return the row of each of ``wanted`` in ``slots``, ascending and not none, and whether it is there."""
    row = np.minimum(slots.searchsorted(wanted), slots.size - 1)
    return row, slots[row] == wanted


def shared_tuples(
    definitions: Mapping[int, Folding], schema: Schema, read: Collection[str], output: Output
) -> dict[int, Held]:
    """Return where tuples are held once for several definitions, by the numbers of those that can share them.

    Those with tags of their own hold their own; those that wait for tuples of all groups share with such alone.
    """
    found = dict[int, Held]()
    for whole in (False, True):
        some = {n: one for n, one in definitions.items() if one.whole_stream is whole and not one.tagged}
        if len(some) > 1:
            names = set[str]().union(*(columns_of(one, read, output.tie) for one in some.values()))
            over = next(iter(some.values())).over
            found |= dict.fromkeys(some, Held(schema, names, over, tagged=False, grouped=output.grouped))
    return found
