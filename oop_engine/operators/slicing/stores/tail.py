"""The tail: the tuples of groups that are too sparse for partial aggregates, the tuple buffer B of AdaptWID.

All lazy groups share it: the columns that the query reads, and the group's slot.  Tuples lie in the order in which they
came.

Source: thesis 6.3.4.2 (figure 6-17).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.sizes import row_bytes, value_bytes
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.values.levels import Levels
from oop_engine.operators.values.page_rows import PageRows

__all__ = ["Tail"]

_SLOT = 4  # bytes


class Tail:
    """The ``rows`` that are kept; of ``schema`` the progressing attribute and the columns ``read``.

    ``tuple_bytes``: bytes of a tuple, the mean of those that are there, about, or by the types of its columns.
    """

    def __init__(self, schema: Schema, read: set[str]) -> None:
        names = [name for name in schema.names if name in read or name == schema.progressing]
        self._schema = schema.select(names)
        self.rows = Levels(PageRows.none(self._schema))
        # Those of values that differ are a guess.
        self.tuple_bytes = float(_SLOT) + sum(
            row_bytes(pa.schema([field])) or 16 for field in self._schema.fields
        )

    def __len__(self) -> int:
        return self.rows.count

    def add(self, page: Page, slots: Integers) -> None:
        """Keep the tuples of ``page``, which is a copy and holds no others alive.  O(log tuples) a tuple."""
        if not len(page):
            return
        batch = page.batch.select(self._schema.names)
        self.rows.put(PageRows(Page(self._schema, batch), slots.astype(np.int32)))
        of_page = sum(map(value_bytes, batch.columns)) / len(page) + _SLOT
        self.tuple_bytes += (of_page - self.tuple_bytes) * len(page) / len(self)

    def keep(self, kept: NDArray[np.bool_]) -> PageRows:
        """Keep only ``kept`` (rows,) of all tuples, as they came; return the others.  O(tuples)."""
        rows = self.rows.all()
        gone = rows.take(np.flatnonzero(~kept))
        if gone.size:
            self.rows.clear()
            self.rows.put(rows.take(np.flatnonzero(kept)))
        return gone

    def rename(self, slots: Integers) -> None:
        rows = self.rows.take_all()
        self.rows.put(rows._replace(slots=slots[rows.slots].astype(np.int32)))

    def save(self) -> dict[str, Any]:
        page, slots = self.rows.all()
        return {"batch": page.batch, "slots": slots, "tuple_bytes": self.tuple_bytes}

    def load(self, saved: Saved, groups: int) -> None:
        page = Page(self._schema, saved.batch("batch", self._schema.fields))
        slots = saved.integers("slots", (len(page),), least=0, below=groups)
        self.rows.clear()
        self.rows.put(PageRows(page, slots.astype(np.int32)))
        self.tuple_bytes = max(saved.floating("tuple_bytes"), 1.0)
