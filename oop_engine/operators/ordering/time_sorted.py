"""Pages put in the order of the progressing attribute, for all operators that sort."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.page import Page, concat
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.schema import Schema
from oop_engine.operators.kernels.time_order import time_order

__all__ = ["last_time", "merged_pages", "reordered", "sorted_page"]


def sorted_page(page: Page) -> Page:
    """Return the rows by time, equal ones as they come; where they are sorted nothing is copied.

    O(rows) where the page does not span too much (see the kernel).
    """
    return page if _is_sorted(page) else reordered(page, time_order(page.times))


def merged_pages(schema: Schema, pages: Sequence[Page]) -> Page:
    """Return the rows of sorted pages by time, equal ones in the order of the pages.

    O(rows x log pages): NumPy's stable sort finds the stretches that are sorted and merges them.
    """
    page = concat(schema, pages)
    return page if _is_sorted(page) else reordered(page, np.argsort(page.times, kind="stable"))


def reordered(page: Page, order: NDArray[np.int64]) -> Page:
    """Return the rows in an order, which names rows that there are: that is not checked."""
    arrival = None if page.arrival is None else page.arrival[order]
    return Page(page.schema, pc.take(page.batch, pa.array(order), boundscheck=False), arrival)


def last_time(page: Page, bound: int, place: str) -> int:
    """Return how far an input has come with a page: its last time, or ``bound`` if it is empty.

    The largest integer may be a time; that does not end the stream, so its progress is one less.

    Raises ``ContractError`` in the name of ``place`` if it is not sorted, or behind ``bound``.
    """
    if not len(page):
        return bound
    times = page.times
    if times[0] < bound or (times[1:] < times[:-1]).any():
        before = np.concatenate([[bound], times[:-1]])
        back = int(np.argmax(times < before))
        late, after = times[back], before[back]
        name, unit = page.schema.progressing, page.schema.unit
        got = f"got {late} after {after} {unit} (row {back} of the page)"
        msg = f"{place} must be sorted by {name!r}; {got}: put a Sort before it"
        raise ContractError(msg)
    return max(min(int(times[-1]), FOREVER - 1), bound)


def _is_sorted(page: Page) -> bool:
    return page.rows < 2 or bool((page.times[1:] >= page.times[:-1]).all())
