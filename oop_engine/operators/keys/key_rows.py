"""Key rows: the rows that each key has now, without a look at those of other keys.

Rows lie in pages, each at least twice as long as the one behind it, those of a key side by side in one of them.  So a
row is moved O(log n) times, and rows of some keys are found by where they begin and how many they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.page import Page, concat
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.values.columns import Integers, begins_of, by_slot, filled_up, spread
from oop_engine.system.knobs import knob

__all__ = ["KeyRows"]

_DEAD = knob(__name__, "_DEAD", 4096)  # keys without a row that may stay known
_MANY, _LEVEL = range(1, 3)  # columns of the places, behind where rows begin


class _Level(NamedTuple):
    page: Page
    slots: Integers


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
        self._places = np.empty((0, 3), np.int64)  # (keys or more,)  begin, number and level of its rows
        self._levels: list[_Level] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of rows, of those among them that were taken, and of keys."""
        held = sum(page.held_bytes + slots.nbytes for page, slots in self._levels)
        return held + self._places.nbytes + self._index.nbytes

    def slots(self, page: Page) -> Integers:
        """Return a number for the key of each row, good until the next ``put``."""
        slots: Integers = self._index.encode([page.column(name) for name in self._by], len(page))
        if len(self._index) > len(self._places):
            self._places = filled_up(self._places, max(len(self._index), 2 * len(self._places)), 0)
        return slots

    def take(self, slots: Integers) -> Page:
        """Take the rows of some keys out, each named once, in the order of these."""
        parts, rank = list[Page](), list[Integers]()
        for number, level in enumerate(self._levels):
            at = np.flatnonzero((self._places[slots, _LEVEL] == number) & (self._places[slots, _MANY] > 0))
            begin, many, _ = self._places[slots[at]].T
            of, rows = spread(begin, many)
            if rows.size:
                parts.append(level.page.take(rows))
                rank.append(at[of])
        self._places[slots, _MANY] = 0
        if not parts:
            return Page.empty(self._schema)
        found = concat(self._schema, parts).take(np.argsort(np.concatenate(rank), kind="stable"))
        self._rows -= len(found)
        return found

    def put(self, page: Page, slots: Integers) -> None:
        """Put rows in, of keys that have none."""
        self._rows += len(page)
        level = _Level(page, slots)
        while self._levels and len(self._levels[-1].page) < 2 * len(level.page):
            level = self._joined(self._alive(len(self._levels) - 1), level)
            self._levels.pop()
        if len(level.page) or not self._rows:
            self._push(level)
        if 2 * self._rows + _DEAD < sum(len(one.page) for one in self._levels):
            self._push(self._all())
        if len(self._index) > 2 * self._rows + _DEAD:
            self._forget_keys()

    def page(self) -> Page:
        """Return all rows.  O(n)."""
        return self._all().page

    def _alive(self, number: int) -> _Level:
        """Return the rows of a level that were not taken."""
        page, slots = self._levels[number]
        begin, many, level = self._places[slots].T
        rows = np.arange(slots.size)
        stay = (level == number) & (begin <= rows) & (rows < begin + many)
        return _Level(page, slots) if stay.all() else _Level(page.filter(stay), slots[stay])

    def _all(self) -> _Level:
        """Return all rows as one level."""
        together = _Level(Page.empty(self._schema), np.empty(0, np.int64))
        for number in range(len(self._levels)):
            together = self._joined(together, self._alive(number))
        return together

    def _joined(self, one: _Level, other: _Level) -> _Level:
        page = concat(self._schema, [one.page, other.page])
        return _Level(page, np.concatenate([one.slots, other.slots]))

    def _push(self, level: _Level) -> None:
        """Let a level be the last one, its rows by key."""
        order = np.argsort(level.slots, kind="stable")
        slots = level.slots[order]
        if slots.size == self._rows:
            self._levels = []  # nothing of them is alive
        self._append(_Level(level.page.take(order).owned(), slots))

    def _append(self, level: _Level) -> None:
        """Note where the rows of a level are, which lie by key."""
        begins = begins_of(level.slots)
        many, number = np.diff(begins, append=level.slots.size), len(self._levels)
        self._places[level.slots[begins]] = np.stack([begins, many, np.full(begins.size, number)], axis=1)
        self._levels.append(level)

    def _forget_keys(self) -> None:
        """Forget the keys without a row."""
        known = len(self._index)
        kept = np.flatnonzero(self._places[:known, _MANY])
        slots = by_slot(kept, np.arange(kept.size), known, -1)
        alive = [self._alive(number) for number in range(len(self._levels))]
        self._index.keep(kept)
        self._places, self._levels = np.zeros((kept.size, 3), np.int64), []
        for page, of in alive:
            self._append(_Level(page, slots[of]))
