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

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.sizes import value_bytes
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.values.levels import Levels
from oop_engine.operators.values.page_rows import PageRows
from oop_engine.operators.windows import Extents

__all__ = ["Tail", "Tuples"]

_SLOT = 4  # bytes


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
    """The tuples that are kept; of ``schema`` the progressing attribute and the columns ``read``."""

    def __init__(self, schema: Schema, read: set[str], extents: Extents) -> None:
        names = [name for name in schema.names if name in read or name == schema.progressing]
        self._schema = schema.select(names)
        self._extents = extents
        self._levels = Levels(PageRows.none(self._schema))
        self._came, self._value_bytes = 0, 0.0
        self._width = _SLOT + sum(_width(self._schema.type_of(name)) for name in names)

    def __len__(self) -> int:
        return self._levels.count

    @property
    def nbytes(self) -> int:
        return self._levels.nbytes

    @property
    def tuple_bytes(self) -> float:
        """Bytes of a tuple: the mean of those that are there, or came lately, or else by the types of its columns."""
        if self._came:
            return self._value_bytes / self._came + _SLOT
        return self._width

    def add(self, page: Page, slots: Integers) -> None:
        """Keep the tuples of ``page``, which is a copy and holds no others alive.  O(log tuples) a tuple."""
        if not len(page):
            return
        batch = page.batch.select(self._schema.names)
        self._levels.put(PageRows(Page(self._schema, batch), slots.astype(np.int32)))
        self._came, self._value_bytes = self._came + len(page), self._value_bytes + _bytes_of(batch)

    def tuples(self) -> Tuples:
        """Return everything.  O(tuples) if some are new or over, else O(tuples) for their windows."""
        rows = self._levels.all()
        if self._came != rows.size:
            self._came, self._value_bytes = rows.size, _bytes_of(rows.page.batch)
        return self._tuples(rows)

    def _tuples(self, rows: PageRows) -> Tuples:
        return Tuples(rows.page, rows.slots.astype(np.int64), *self._extents.wids(rows.page.times))

    def of(self, groups: Integers) -> tuple[Tuples, Integers]:
        """Return the tuples of some groups, and where each is.  O(these, and log tuples a group), amortised."""
        places = self._levels.places("slots", groups)
        return self._tuples(self._levels.take(places)), places

    def drop(self, places: Integers) -> None:
        """Forget tuples that ``of`` has found, by where they are.  O(these), amortised."""
        self._levels.drop(places)
        if not len(self):
            self.clear()

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
        self._levels.clear()
        self._came, self._value_bytes = 0, 0.0

    def rename(self, slots: Integers) -> None:
        rows = self._levels.take_all()
        self._levels.put(rows._replace(slots=slots[rows.slots].astype(np.int32)))

    def save(self) -> dict[str, Any]:
        everything = self._levels.all()
        return {"batch": everything.page.batch, "slots": everything.slots}

    def load(self, saved: Saved, groups: int) -> None:
        self.clear()
        page = Page(self._schema, saved.batch("batch", self._schema.fields))
        self._extents.wids(page.times)
        self.add(page, saved.integers("slots", (len(page),), least=0, below=groups))


def _bytes_of(batch: pa.RecordBatch) -> float:
    return float(sum(map(value_bytes, batch.columns)))


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a value, a guess where that differs from value to value."""
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return 16
