"""Kept pages: tuples that in-order operators hold until they are due, and the bytes that keeps alive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema

__all__ = ["KeptPage"]


@dataclass(slots=True, eq=False)
class KeptPage:
    """A ``page`` that is kept, whose rows leave from the front.

    A slice keeps all it was cut from alive: ``rows`` and ``nbytes`` are of that.  ``serial``: smaller for rows that
    came earlier, where somebody numbers pages.

    >>> import pyarrow as pa
    >>> from oop_engine import Schema
    >>> kept = KeptPage.of(Page.of(Schema({"ts": pa.int64()}, "ts", "s"), {"ts": range(1000)}))
    >>> [(len(rest.page), rest.nbytes) for rest in (kept, kept.after(400), kept.after(600))]
    [(1000, 8000), (600, 8000), (400, 3200)]
    """

    page: Page
    rows: int
    nbytes: int
    serial: int = 0

    @classmethod
    def of(cls, page: Page) -> Self:
        """Keep a page as it came: of memory that others share, its own rows count."""
        return cls(page, page.rows, int(page.batch.nbytes))

    @classmethod
    def made(cls, page: Page, serial: int = 0) -> Self:
        """Keep a page that was made to be kept, and shares no memory."""
        return cls(page, page.rows, page.held_bytes, serial)

    @classmethod
    def loaded(cls, saved: Saved, schema: Schema) -> list[Self]:
        """Return the pages of a snapshot, a list of record batches; each has rows, sorted by time."""
        pages = [Page(schema, saved.batch(number, schema.fields)) for number in range(len(saved))]
        for page in pages:
            if not len(page) or (np.diff(page.times) < 0).any():
                msg = f"kept pages must have rows sorted by {schema.progressing!r}; got {page}"
                raise SnapshotError(msg)
        return [cls.of(page) for page in pages]

    def after(self, start: int) -> KeptPage:
        """Return the rows from ``start`` on, copied once they are less than half of the bytes they keep alive.

        So a row is copied once at most over its life.
        """
        rest = self.page.slice(start, self.page.rows)
        if 2 * rest.rows >= self.rows:
            return KeptPage(rest, self.rows, self.nbytes, self.serial)
        return KeptPage.made(rest.copied(), self.serial)
