"""The tail: tuples of groups too sparse to be aggregated before their windows close.

The tuple buffer B of AdaptWID, shared by all lazy groups: the columns that the query reads, and
the group's slot.  Tuples lie in the order in which they came.

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
from oop_engine.operators.windows import Extents

__all__ = ["Tail", "Tuples"]

Integers = NDArray[np.int64]
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
        self._pages: list[Page] = []
        self._slots: list[NDArray[np.int32]] = []
        self._rows = self._value_bytes = self._page_bytes = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of the tuples and their slots."""
        return self._page_bytes + _SLOT * self._rows

    @property
    def tuple_bytes(self) -> float:
        """Bytes of a tuple: the mean of those that are there, or else by the types of its columns."""
        if self._rows:
            return (self._value_bytes + _SLOT * self._rows) / self._rows
        return _SLOT + sum(_width(self._schema.type_of(name)) for name in self._schema.names)

    def add(self, page: Page, slots: Integers) -> None:
        """Keep the tuples of ``page``, which is a copy and holds no others alive.  O(tuples)."""
        if not len(page):
            return
        batch = page.batch.select(self._schema.names)
        self._pages.append(Page(self._schema, batch))
        self._slots.append(slots.astype(np.int32))
        self._rows += len(page)
        self._value_bytes += sum(map(value_bytes, batch.columns))
        self._page_bytes += batch.get_total_buffer_size()

    def tuples(self) -> Tuples:
        """Return everything.  O(tuples) if some are new, else O(tuples) for their windows."""
        self._pages = [concat(self._schema, self._pages)]
        self._page_bytes = self._pages[0].held_bytes
        slots = np.concatenate([np.empty(0, np.int32), *self._slots])
        self._slots = [slots]
        return Tuples(self._pages[0], slots.astype(np.int64), *self._extents.wids(self._pages[0].times))

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
        self._pages, self._slots = [], []
        self._rows = self._value_bytes = self._page_bytes = 0

    def rename(self, slots: Integers) -> None:
        """Give group ``g`` the slot ``slots[g]``."""
        self._slots = [slots[part].astype(np.int32) for part in self._slots]

    def save(self) -> dict[str, Any]:
        """Return the tuples for a snapshot."""
        everything = self.tuples()
        return {"batch": everything.page.batch, "slots": everything.slots.astype(np.int32)}

    def load(self, saved: Saved, groups: int) -> None:
        """Restore a snapshot of so many groups."""
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
