"""Held tuples: those that no bound has passed yet, of which a store keeps the columns that are read, and the group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.snapshot import changing
from oop_engine.operators.ordering.reorder_buffer import ReorderBuffer
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.values.columns import filled_up
from oop_engine.operators.windows import Folding, Over

__all__ = ["Held", "Share", "Taken", "columns_of", "shares", "without_slots"]

Integers = NDArray[np.int64]

_EVERY = np.iinfo(np.int64).max


class Taken(NamedTuple):
    """Tuples by time, equal ones as they came: the columns that are read, slots of groups, tags or none (0,)."""

    page: Page
    slots: Integers
    tags: NDArray[np.int8]


def columns_of(definition: Folding, read: Collection[str], tie: Collection[str]) -> set[str]:
    """Return the columns that are held for a definition, beside the progressing attribute."""
    return {*read, *tie, *definition.tie, *definition.reads, *definition.keeps}


class Held:
    """Tuples of ``schema``: the progressing attribute and the columns ``read``; ``tagged``: with tags.

    They lie in sorted pages, with the slot (if they are ``grouped``) and the tag of each as columns behind its own.
    Where windows are ``over`` rows, the number of a tuple is its time.
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

    def __len__(self) -> int:
        return self._buffer.tuples

    @property
    def tuples(self) -> int:
        """How many tuples are held."""
        return len(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the tuples, slots and tags, and of the numbers of groups."""
        return self._buffer.nbytes + self._of.nbytes

    def of(self, groups: int) -> Integers:
        """Return how many tuples each of so many groups has."""
        self._of = filled_up(self._of, groups, 0)
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

    def take(self, bound: int) -> Taken | None:
        """Take out the tuples that a bound of all groups has passed.  O(taken + log held)."""
        return self._taken(self._buffer.release(bound))

    def take_some(self, slots: Integers, bounds: Integers) -> Taken | None:
        """Take out those of ``slots[i]`` that ``bounds[i]`` has passed.  O(held)."""
        if not self._of[slots[slots < self._of.size]].any():
            return None
        everything = self._buffer.release(_EVERY)
        assert everything is not None
        of = self._slots(everything)
        below = np.full(self._of.size, -_EVERY - 1)
        below[slots] = bounds
        gone = passed(everything.times, below[of])
        self._buffer.add(everything.filter(~gone))
        return self._taken(everything.filter(gone)) if gone.any() else None

    def tagged_at(self, bound: int) -> Integers:
        """Return the slots of the tuples with a tag right at a bound of all groups.  O(runs that begin there)."""
        return self._tagged_of((page, bound) for page in self._buffer.at(bound))

    def tagged_at_some(self, below: Integers) -> Integers:
        """Do so for bounds of groups, (slots,).  O(held)."""
        pages = self._buffer.pages()
        return self._tagged_of((page, below[self._slots(page)]) for page in pages)

    def _tagged_of(self, pages: Iterable[tuple[Page, Any]]) -> Integers:
        found = [np.empty(0, np.int64)]
        for page, bounds in pages:
            some = (page.times == bounds) & (page.column("\0tag").to_numpy() != 0)
            found.append(self._slots(page)[some])
        return np.concatenate(found)

    def _slots(self, page: Page) -> Integers:
        """Return the slot of each tuple of a page."""
        if not self._grouped:
            return np.zeros(len(page), np.int64)
        slots: Integers = page.column("\0slot").to_numpy().astype(np.int64)
        return slots

    def _taken(self, page: Page | None) -> Taken | None:
        if page is None:
            return None
        slots = self._slots(page)
        self._count(slots, -1)
        tags = page.column("\0tag").to_numpy() if self._tagged else np.empty(0, np.int8)
        return Taken(Page(self._schema, page.batch.select(self._schema.names)), slots, tags)

    def rename(self, kept: Integers, slots: Integers) -> None:
        """Let only the groups ``kept`` stay; group ``g`` gets the slot ``slots[g]``."""
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
        """Return the tuples for a snapshot."""
        return self._buffer.save()

    def load(self, saved: Saved, groups: int) -> None:
        """Restore a snapshot of so many groups."""
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


class Share:
    """The part of a store in ``held``, which others of ``shares`` have too: each is given all that one of them takes.

    They take the same, one after the other.  The first of them adds and saves, and counts the tuples as its own.
    """

    def __init__(self, held: Held, shares: list[Share]) -> None:
        self._held, self._shares, self._first = held, shares, not shares
        self._left: Taken | None = None  # taken by another one
        shares.append(self)

    def __len__(self) -> int:
        return len(self._held)

    @property
    def tuples(self) -> int:
        """How many tuples are held, but for those that another store counts."""
        return len(self._held) if self._first else 0

    @property
    def nbytes(self) -> int:
        """Bytes of the tuples, but for those that another store counts."""
        return self._held.nbytes if self._first else 0

    def of(self, groups: int) -> Integers:
        """Return how many tuples each of so many groups has."""
        return self._held.of(groups)

    def add(self, page: Page, times: Integers, slots: Integers, tags: NDArray[np.int8], groups: int) -> None:
        """Keep the tuples of a page, once."""
        if self._first:
            self._held.add(page, times, slots, tags, groups)

    def take(self, bound: int) -> Taken | None:
        """Take out the tuples that a bound of all groups has passed."""
        return self._given(self._held.take(bound))

    def take_some(self, slots: Integers, bounds: Integers) -> Taken | None:
        """Take out those of ``slots[i]`` that ``bounds[i]`` has passed."""
        return self._given(self._held.take_some(slots, bounds))

    def _given(self, taken: Taken | None) -> Taken | None:
        if taken is not None:
            for share in self._shares:
                share._left = taken
        taken, self._left = self._left, None
        return taken

    def tagged_at(self, bound: int) -> Integers:
        """Return the slots of the tuples with a tag right at a bound of all groups."""
        return self._held.tagged_at(bound)

    def tagged_at_some(self, below: Integers) -> Integers:
        """Do so for bounds of groups, (slots,)."""
        return self._held.tagged_at_some(below)

    def rename(self, kept: Integers, slots: Integers) -> None:
        """Let only the groups ``kept`` stay; group ``g`` gets the slot ``slots[g]``."""
        if self._first:
            self._held.rename(kept, slots)

    def save(self) -> dict[str, Any]:
        """Return the tuples for a snapshot, once."""
        return self._held.save() if self._first else {}

    def load(self, saved: Saved, groups: int) -> None:
        """Restore a snapshot of so many groups."""
        if self._first:
            self._held.load(saved, groups)


def shares(
    definitions: Mapping[int, Folding], schema: Schema, read: Collection[str], output: Output
) -> dict[int, Share]:
    """Return shares in tuples that are held once, for the definitions (by number) that can share them.

    Those with tags of their own hold their own; those that wait for tuples of all groups share with such alone.
    """
    found = dict[int, Share]()
    for whole in (False, True):
        some = {n: one for n, one in definitions.items() if one.whole_stream is whole and not one.tagged}
        if len(some) > 1:
            names = set[str]().union(*(columns_of(one, read, output.tie) for one in some.values()))
            over = next(iter(some.values())).over
            held, of = Held(schema, names, over, tagged=False, grouped=output.grouped), list[Share]()
            found |= {number: Share(held, of) for number in some}
    return found


def without_slots(closing: dict[Any, Any]) -> dict[Any, Any]:
    """Return a state of stores whose held tuples have no slot where there are no groups (a ``Migration``)."""
    if closing["groups"]["keys"] is not None:
        return closing
    return {**closing, "stores": [changing(_without_slots, "held")(store) for store in closing["stores"]]}


def _without_slots(held: dict[Any, Any]) -> dict[Any, Any]:
    runs = held.get("runs", ())  # of tuples that stores share, one has them
    bare = [run.select([name for name in run.schema.names if name != "\0slot"]) for run in runs]
    return {**held, "runs": bare} if bare else held
