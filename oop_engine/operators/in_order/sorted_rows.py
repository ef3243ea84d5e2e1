"""Rows held in the order of the progressing attribute, for the in-order joins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.index import PAGE_ROWS
from oop_engine.operators.ordering.kept_page import KeptPage
from oop_engine.operators.ordering.time_sorted import merged_pages, sorted_page

__all__ = ["SortedRows"]


class SortedRows:
    """Rows in sorted pages, each less than half as large as the one before it.

    So there are O(log rows) of them, and a row is moved O(log rows) times.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._pages: list[KeptPage] = []
        self.nbytes = 0

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(len(stored.page) for stored in self._pages)

    @property
    def first(self) -> int:
        """The least time held, ``FOREVER`` if nothing is."""
        return min((int(stored.page.times[0]) for stored in self._pages), default=FOREVER)

    def add(self, page: Page) -> None:
        """Take rows, in any order."""
        if not len(page):
            return
        self._pages.append(KeptPage.of(sorted_page(page.without_arrival())))
        while len(self._pages) > 1 and len(self._pages[-2].page) < 2 * len(self._pages[-1].page):
            merged = merged_pages(self._schema, [stored.page for stored in self._pages[-2:]])
            self._pages[-2:] = [KeptPage.made(merged)]
        self._measure()

    def release(self, below: int, rows: int = PAGE_ROWS) -> Iterator[Page]:
        """Take out the rows with times below ``below``: sorted pages of at most ``rows``."""
        cuts = [_cut(stored.page, below) for stored in self._pages]
        due = [stored.page.slice(0, cut) for stored, cut in zip(self._pages, cuts, strict=True) if cut]
        if not due:
            return
        cut_off = zip(self._pages, cuts, strict=True)
        self._pages = [
            stored.after(cut) if cut else stored for stored, cut in cut_off if cut < len(stored.page)
        ]
        self._measure()
        ready = merged_pages(self._schema, due)
        for start in range(0, len(ready), rows):
            yield ready.slice(start, min(start + rows, len(ready)))

    def save(self) -> list[Any]:
        """Return the rows for a snapshot."""
        return [stored.page.batch for stored in self._pages]

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        self._pages = KeptPage.loaded(saved, self._schema)
        self._measure()

    def _measure(self) -> None:
        self.nbytes = sum(stored.nbytes for stored in self._pages)


def _cut(page: Page, below: int) -> int:
    return len(page) if below == FOREVER else int(np.searchsorted(page.times, below))
