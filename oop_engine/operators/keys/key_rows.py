"""Key rows: the rows that each key has now, without a look at those of other keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.values.columns import Integers, by_slot, looked_up
from oop_engine.operators.values.levels import Levels
from oop_engine.operators.values.page_rows import PageRows
from oop_engine.system.knobs import knob

__all__ = ["KeyRows"]

_DEAD = knob(__name__, "_DEAD", 4096)  # keys without a row that may stay known


class KeyRows:
    """Rows of ``schema`` by the columns ``by``: ``take`` those of some keys out, ``put`` others in their place.

    Both cost O(log n) a row, amortised, whatever other keys have.
    """

    def __init__(self, schema: Schema, by: Sequence[str]) -> None:
        self._schema, self._by = schema, by
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self._index = GroupIndex([self._schema.type_of(name) for name in self._by], IN_KERNELS)
        self._levels = Levels(PageRows.none(self._schema))

    def __len__(self) -> int:
        return len(self._levels)

    @property
    def nbytes(self) -> int:
        """Bytes of rows, of those among them that were taken, and of keys."""
        return self._levels.nbytes + self._index.nbytes

    def slots(self, page: Page) -> Integers:
        """Return a number for the key of each row, good until the next ``put``."""
        slots: Integers = self._index.encode([page.column(name) for name in self._by], len(page))
        return slots

    def take(self, slots: Integers) -> Page:
        """Remove and return the rows of some keys, each given once, in their order."""
        entries = self._levels.take_out("slots", slots)
        rank = looked_up(entries.slots.astype(np.int64), slots, np.arange(slots.size), -1)
        return entries.page.take(np.argsort(rank, kind="stable"))

    def put(self, page: Page, slots: Integers) -> None:
        """Put rows in, of keys that have none."""
        self._levels.put(PageRows(page.owned(), slots.astype(np.int32)))
        if len(self._index) > 2 * len(self) + _DEAD:
            self._forget_keys()

    def page(self) -> Page:
        """Return all rows.  O(n)."""
        return self._levels.all().page

    def _forget_keys(self) -> None:
        """Forget the keys without a row."""
        page, slots = self._levels.take_all()
        remaining = np.unique(slots).astype(np.int64)
        renamed = by_slot(remaining, np.arange(remaining.size), len(self._index), -1)
        self._index.keep(remaining)
        self._levels.put(PageRows(page, renamed[slots].astype(np.int32)))
