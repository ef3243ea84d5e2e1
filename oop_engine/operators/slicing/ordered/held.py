"""Held tuples: those that no bound has passed yet, of which a store keeps the columns that are read, and the group.

They lie by time, in a ``ReorderBuffer``, while bounds are of all groups.  A bound of single groups moves them to a
``GroupBuffer``, where it finds those of its groups.  They go back once as many tuples as are held came without such
a bound, so a tuple that comes pays for one that moves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import column_of
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.ordering.reorder_buffer import ReorderBuffer
from oop_engine.operators.ordering.time_sorted import reordered
from oop_engine.operators.slicing.ordered.group_buffer import GroupBuffer, slots_of
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.values.columns import Integers, filled_up
from oop_engine.operators.windows import Folding, Over

__all__ = ["Held", "Taken", "columns_of", "shared_tuples"]


class Taken(NamedTuple):
    """Tuples, of each group by time, equal ones as they came: the columns that are read, slots, tags or none (0,).

    Where windows are of the whole stream, they are so in all groups together.
    """

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
        elif grouped and (slots[1:] < slots[:-1]).any():
            order = time_order(slots)
        else:
            return self
        return Taken(reordered(page, order), slots[order], self.tags[order] if self.tags.size else self.tags)


def columns_of(definition: Folding, read: Collection[str], tie: Collection[str]) -> set[str]:
    """Return the columns that are held for a definition, beside the progressing attribute."""
    return {*read, *tie, *definition.tie, *definition.reads, *definition.keeps}


class Held:
    """Tuples of ``schema``: the progressing attribute and the columns ``read``; ``tagged``: with tags.

    They lie in pages, with the slot (if they are ``grouped``) and the tag of each as columns behind its own.
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
        self._buffer: ReorderBuffer | GroupBuffer = ReorderBuffer(self._whole, owned=True)
        self._came = 0  # tuples since the last bound of single groups
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
        """Keep the tuples of a page, of groups that are among ``groups``.  O(log held) a tuple, amortised."""
        self.of(groups)
        self._count(slots, 1)
        columns = list(map(page.column, self._names))
        if self._numbered:
            columns.append(column_of(times, pa.int64()))
        if self._grouped:
            columns.append(column_of(slots.astype(np.int32), pa.int32()))
        if self._tagged:
            columns.append(column_of(tags, pa.int8()))
        batch = pa.RecordBatch.from_arrays(columns, schema=self._whole.fields)
        self._came += page.rows
        if isinstance(self._buffer, GroupBuffer) and self._came > len(self):
            self._move_to(ReorderBuffer(self._whole, owned=True))
        self._buffer.add(Page(self._whole, batch))

    def take(self, reader: int, bound: int) -> Taken | None:
        """Take out the tuples that a bound of all groups has passed.  O(taken + log held)."""
        return self._given(reader, self._buffer.release(bound))

    def take_some(self, reader: int, slots: Integers, below: Integers) -> Taken | None:
        """Take out those of ``slots``, ascending, that their bounds ``below`` have passed.

        O(log held) a group and tuple taken, and O(1) for each tuple that has come, amortised.
        """
        return self._given(reader, self._by_group().take(slots, below) if self._have(slots) else None)

    def tagged_at(self, bound: int) -> Integers:
        """Return the slots of the tuples with a tag right at a bound of all groups, which has taken those before.

        O(runs that begin there); by group, O(log held) for each tuple there.
        """
        return _tagged(self._buffer.at(bound))

    def tagged_of(self, slots: Integers, below: Integers) -> Integers:
        """Return those of ``slots``, ascending, with such a tuple right at their bounds.  Costs as ``take_some``."""
        return _tagged(self._by_group().right_at(slots, below) if self._have(slots) else [])

    def _by_group(self) -> GroupBuffer:
        """Return the tuples by group."""
        self._came, buffer = 0, self._buffer
        if not isinstance(buffer, GroupBuffer):
            buffer = GroupBuffer(self._whole)
            self._move_to(buffer)
        return buffer

    def _move_to(self, buffer: ReorderBuffer | GroupBuffer) -> None:
        """Move all tuples to another buffer.  O(held)."""
        if (everything := self._buffer.release(FOREVER)) is not None:
            buffer.add(everything)
        self._buffer = buffer

    def _have(self, slots: Integers) -> bool:
        """Tell whether a tuple of some groups is held."""
        return bool(self._of[slots[slots < self._of.size]].any())

    def _given(self, reader: int, page: Page | None) -> Taken | None:
        """Give a reader the tuples of a page, or, of none, those that another one has left for it."""
        if page is not None:
            slots = slots_of(page).astype(np.int64)
            self._count(slots, -1)
            tags = page.column("\0tag").to_numpy() if self._tagged else np.empty(0, np.int8)
            taken = Taken(Page(self._schema, page.batch.select(self._schema.names)), slots, tags)
            self._left = [taken] * len(self._left)
        given, self._left[reader] = self._left[reader], None
        return given

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._of = self.of(slots.size)[kept]
        if self._grouped and (everything := self._buffer.release(FOREVER)) is not None:
            self._buffer.add(self._with_slots(everything, slots[slots_of(everything)]))

    def _with_slots(self, page: Page, slots: Integers) -> Page:
        """Return tuples as those of other groups."""
        place = page.batch.schema.get_field_index("\0slot")
        return Page(self._whole, page.batch.set_column(place, "\0slot", pa.array(slots.astype(np.int32))))

    def copied(self, slots: Integers) -> Held:
        """Return the tuples of some groups, ascending, as those of the groups 0, 1, ...; nobody reads them yet."""
        other = copy(self)
        other._buffer, other._came, other._left = ReorderBuffer(self._whole, owned=True), 0, []
        other._of = np.zeros(slots.size, np.int64)
        page = self._by_group().of(slots) if self._have(slots) else None
        if page is not None:
            renamed = slots.searchsorted(slots_of(page))
            other._buffer.add(self._with_slots(page, renamed) if self._grouped else page)
            other._count(renamed, 1)
        return other

    def save(self) -> dict[str, Any]:
        return self._buffer.save()

    def load(self, saved: Saved, groups: int) -> None:
        self._buffer = buffer = ReorderBuffer(self._whole, owned=True)
        buffer.load(saved)
        self._of = np.zeros(groups, np.int64)
        for page in buffer.pages():
            known = not (self._grouped and page.column("\0slot").null_count)
            if not known or not 0 <= (slots := slots_of(page)).min() <= slots.max() < groups:
                msg = f"held tuples must be of the {groups} groups there are; got slots that are not"
                raise SnapshotError(msg)
            self._count(slots.astype(np.int64), 1)

    def _count(self, slots: Integers, sign: int) -> None:
        if self._of.size == 1:
            self._of += sign * slots.size
        elif 16 * slots.size > self._of.size:
            self._of += sign * np.bincount(slots, minlength=self._of.size)
        else:
            np.add.at(self._of, slots, sign)


def _tagged(pages: list[Page]) -> Integers:
    """Return the slots of the tuples that have a tag."""
    found = [slots_of(page)[page.column("\0tag").to_numpy() != 0] for page in pages]
    return np.concatenate([np.empty(0, np.int64), *found])


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
