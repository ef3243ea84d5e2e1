"""The tail: the tuples of groups that are too sparse for partial aggregates, the tuple buffer B of AdaptWID.

All lazy groups share it: the columns that the query reads, and the group's slot.  Tuples lie in the order in which they
came.

Source: thesis 6.3.4.2 (figure 6-17).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page, concat
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.sizes import value_bytes
from oop_engine.operators.kernels.runs import stretches
from oop_engine.operators.values.columns import Integers, spread
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob

__all__ = ["Tail", "Tuples"]

_SLOT = 4  # bytes
_NEW = knob(__name__, "_NEW", 8)  # tuples in the index for each one that came since it was made
_FEW = knob(__name__, "_FEW", 1024)  # tuples that may have come since, however few are in the index
_SMALL = knob(__name__, "_SMALL", 1024)  # tuples; smaller pages are put together


class Tuples(NamedTuple):
    """Tuples, the slot int64 (rows,) of the group of each, and the first and the last of its windows."""

    page: Page
    slots: Integers
    first: Integers
    last: Integers

    def take(self, rows: NDArray[Any]) -> Tuples:
        """Return some of them: ``rows`` are numbers, or booleans (rows,)."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Tuples(self.page.take(at), self.slots[at], self.first[at], self.last[at])


class Tail:
    """The tuples that are kept; of ``schema`` the progressing attribute and the columns ``read``.

    Tuples of some groups are found by an index of most, and a look at the few that came since it was made.  Those that
    are over are marked in the index, and dropped together, once they are half of it.
    """

    def __init__(self, schema: Schema, read: set[str], extents: Extents) -> None:
        names = [name for name in schema.names if name in read or name == schema.progressing]
        self._schema = schema.select(names)
        self._extents = extents
        self._rows = self._gone = self._value_bytes = self._page_bytes = 0
        self.clear()

    _order: NDArray[np.int32]
    """Of the tuples in the first page, by slot; empty: there is no index."""
    _over: NDArray[np.bool_]
    """Which of these are over."""

    def __len__(self) -> int:
        return self._rows - self._gone

    @property
    def nbytes(self) -> int:
        index: int = self._order.nbytes + self._over.nbytes
        return self._page_bytes + _SLOT * self._rows + index

    @property
    def tuple_bytes(self) -> float:
        """Bytes of a tuple: the mean of those that are there, or else by the types of its columns."""
        if self._rows:
            return (self._value_bytes + _SLOT * self._rows) / self._rows
        return _SLOT + sum(_width(self._schema.type_of(name)) for name in self._schema.names)

    def add(self, page: Page, slots: Integers) -> None:
        """Keep the tuples of ``page``, which is a copy and holds no others alive.  O(log tuples) a tuple."""
        if not len(page):
            return
        batch = page.batch.select(self._schema.names)
        self._pages.append(Page(self._schema, batch))
        self._slots.append(slots.astype(np.int32))
        self._rows += len(page)
        self._value_bytes += sum(map(value_bytes, batch.columns))
        self._page_bytes += self._pages[-1].held_bytes
        self._join_small()

    def _join_small(self) -> None:
        """Put small pages behind the index together, for the objects of a page take as much as many rows."""
        pages, indexed = self._pages, int(self._order.size > 0)
        while len(pages) > indexed + 1 and len(pages[-2]) <= 2 * len(pages[-1]) < 2 * _SMALL:
            before = pages[-2].held_bytes + pages[-1].held_bytes
            self._joined(len(pages) - 2)
            self._page_bytes += pages[-1].held_bytes - before

    def tuples(self) -> Tuples:
        """Return everything.  O(tuples) if some are new or over, else O(tuples) for their windows."""
        over = self._over
        self._order, self._over = self._order[:0], over[:0]
        page, slots = self._joined(0)
        if self._gone:
            left = np.append(~over, np.ones(len(page) - over.size, np.bool_))
            self.clear()
            self.add(page.filter(left), slots[left])
            page, slots = self._joined(0)
        self._page_bytes = page.held_bytes
        return Tuples(page, slots.astype(np.int64), *self._extents.wids(page.times))

    def _joined(self, since: int) -> tuple[Page, NDArray[np.int32]]:
        """Return the tuples of the pages from the ``since``-th on, which are one page from now on."""
        if len(self._pages) != since + 1:
            self._pages[since:] = [concat(self._schema, self._pages[since:])]
            self._slots[since:] = [np.concatenate([np.empty(0, np.int32), *self._slots[since:]])]
        return self._pages[since], self._slots[since]

    def of(self, groups: Integers) -> tuple[Tuples, Integers]:
        """Return the tuples of some groups, and where each is.  O(these, and log tuples a group), amortised."""
        known = self._order.size
        if self._rows - known > max(known // _NEW, _FEW) or 2 * self._gone > known:
            known = len(self.tuples().page)
            self._order = np.argsort(self._slots[0], kind="stable").astype(np.int32)
            self._over = np.zeros(known, np.bool_)
        begin, end = np.zeros((2, groups.size), np.int64)
        if known:
            stretches(self._slots[0], self._order, groups, begin, end)
        old = self._order[spread(begin, end - begin)[1]].astype(np.int64)
        old = old[~self._over[old]]
        page, slots = self._joined(1 if known else 0)
        new = np.flatnonzero(np.isin(slots, groups))
        parts, of = [page.take(new)], [slots[new]]
        if old.size:
            parts, of = [self._pages[0].take(old), *parts], [self._slots[0][old], *of]
        found = concat(self._schema, parts)
        at = np.concatenate([old, known + new])
        return Tuples(found, np.concatenate(of).astype(np.int64), *self._extents.wids(found.times)), at

    def drop(self, at: Integers) -> None:
        """Forget tuples that ``of`` has found, by where they are.  O(these, and tuples that came since the index)."""
        known = self._order.size
        old, new = at[at < known], at[at >= known] - known
        self._over[old] = True
        self._gone += old.size
        if new.size:
            since = 1 if known else 0
            page, slots = self._joined(since)
            kept = np.ones(len(page), np.bool_)
            kept[new] = False
            self._pages[since], self._slots[since] = page.filter(kept), slots[kept]
            self._rows -= new.size
            bytes_ = (sum(map(value_bytes, part.batch.columns)) for part in self._pages)
            self._value_bytes = sum(bytes_)
            self._page_bytes = sum(part.held_bytes for part in self._pages)

    def keep(self, tuples: Tuples, kept: NDArray[np.bool_]) -> Tuples:
        """Keep only ``kept`` (rows,) of ``tuples``, which are all there are; return the others."""
        gone = tuples.take(~kept)
        if len(gone.page):
            staying = tuples.take(kept)
            self.clear()
            self.add(staying.page, staying.slots)
        return gone

    def clear(self) -> None:
        """Forget everything."""
        self._pages: list[Page] = []
        self._slots: list[NDArray[np.int32]] = []
        self._rows = self._gone = self._value_bytes = self._page_bytes = 0
        self._order = np.empty(
            0, np.int32
        )  # of the tuples in the first page, by slot; empty: there is no index
        self._over = np.empty(0, np.bool_)  # which of these are over

    def rename(self, slots: Integers) -> None:
        if len(self):
            self.tuples()
        self._slots = [slots[part].astype(np.int32) for part in self._slots]

    def save(self) -> dict[str, Any]:
        everything = self.tuples()
        return {"batch": everything.page.batch, "slots": everything.slots.astype(np.int32)}

    def load(self, saved: Saved, groups: int) -> None:
        self.clear()
        page = Page(self._schema, saved.batch("batch", self._schema.fields))
        self._extents.wids(page.times)
        self.add(page, saved.integers("slots", (len(page),), least=0, below=groups))


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a value, a guess where that differs from value to value."""
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return 16
