"""Page rows: rows of pages with the slot of the group or key of each, as ``Levels`` hold them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page, concat
from oop_engine.core.schema import Schema
from oop_engine.operators.values.columns import Integers

__all__ = ["PageRows"]


class PageRows(NamedTuple):
    """Rows of ``page``, and ``slots`` int32 (rows,)."""

    page: Page
    slots: NDArray[np.int32]

    @classmethod
    def none(cls, schema: Schema) -> PageRows:
        """Return no rows."""
        return cls(Page.empty(schema), np.empty(0, np.int32))

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.page)

    @property
    def nbytes(self) -> int:
        """Bytes that they keep alive."""
        return self.page.held_bytes + self.slots.nbytes

    def take(self, rows: Integers) -> PageRows:
        """Return some of them."""
        return PageRows(self.page.take(rows), self.slots[rows])

    def joined(self, *others: PageRows) -> PageRows:
        """Return these and others behind them."""
        if not others:
            return self
        pages, slots = zip(self, *others, strict=True)
        return PageRows(concat(self.page.schema, list(pages)), np.concatenate(slots))
