"""ReorderBuffer: tuples that wait for a bound, and leave sorted when it has passed them.

Each page becomes a sorted run.  Small sorted runs are merged with their neighbours;
large ones are kept by their first time, so that a bound touches only those with tuples
below it, however long the rest still waits.  The rest of a sorted run is copied once it is less than
half of the memory that it keeps alive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.ordering.kept_page import KeptPage
from oop_engine.operators.ordering.time_sorted import merged_pages, sorted_page
from oop_engine.system.knobs import knob

__all__ = ["ReorderBuffer"]

_SMALL = knob(__name__, "_SMALL", 4096)  # rows; runs below it are merged, so that there are few of them

_Part = tuple[int, Page]
"""The serial of a run, and some of its rows."""
_SERIAL = itemgetter(0)


class ReorderBuffer:
    """Holds pages of ``schema``; ``tuples`` and ``nbytes`` tell how much.

    ``owned``: a page is copied where it keeps alive more than twice its bytes (one that is not sorted is made anew).
    """

    def __init__(self, schema: Schema, *, owned: bool = False) -> None:
        self._schema, self._owned = schema, owned
        self._settled: list[KeptPage] = []  # by their first times
        self._recent: list[KeptPage] = []  # small, in the order they came, after all that is settled
        self._serial = 0
        self.tuples = self.nbytes = 0

    def add(self, page: Page) -> None:
        """Add a page's rows.  O(rows), and O(log tuples) a row for merging small pages."""
        if not page.rows:
            return
        page = page.without_arrival()
        ordered = sorted_page(page)
        same, recent = ordered is page, self._recent
        kept = KeptPage.of(page.owned() if self._owned else page) if same else KeptPage.made(ordered)
        kept.serial, self._serial = self._serial, self._serial + 1
        self._count(kept, 1)
        while recent and recent[-1].page.rows <= 2 * kept.page.rows < 2 * _SMALL:
            before, after = recent.pop(), kept
            kept = KeptPage.made(merged_pages(self._schema, [before.page, after.page]), before.serial)
            self.nbytes += kept.nbytes - before.nbytes - after.nbytes
        recent.append(kept)
        if kept.page.rows >= _SMALL:
            self._settle(recent)
            recent.clear()

    def release(self, below: int) -> Page | None:
        """Return the rows with a time below ``below``, all at ``FOREVER``, sorted, equal ones as they came.

        O(log runs), and O(log rows) a row that leaves.
        """
        settled, parts = self._settled, list[_Part]()
        if due := len(settled) if below == FOREVER else bisect_left(settled, below, key=_first):
            ready = settled[:due]
            del settled[:due]
            self._settle(self._cut(ready, below, parts))
        self._recent = self._cut(self._recent, below, parts)
        parts.sort(key=_SERIAL)
        return merged_pages(self._schema, [page for _, page in parts]) if parts else None

    def pages(self) -> list[Page]:
        """Return all rows, in sorted pages."""
        return [run.page for run in (*self._settled, *self._recent)]

    def at(self, bound: int) -> list[Page]:
        """Return the rows right at ``bound``, in sorted pages.  O(runs that begin by then)."""
        runs = [*self._settled[: bisect_right(self._settled, bound, key=_first)], *self._recent]
        pages = [run.page for run in runs]
        ranges = [page.times.searchsorted([bound, bound + 1]).tolist() for page in pages]
        return [page.slice(lo, hi) for page, (lo, hi) in zip(pages, ranges, strict=True) if lo < hi]

    def save(self) -> dict[str, Any]:
        """Return the rows for a snapshot."""
        runs = [*self._settled, *self._recent]
        return {
            "runs": [run.page.batch for run in runs],
            "serials": [run.serial for run in runs],
            "settled": len(self._settled),
            "serial": self._serial,
        }

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned; the buffer is empty."""
        runs, serials = KeptPage.loaded(saved.part("runs"), self._schema), saved.part("serials")
        for i, run in enumerate(runs):
            run.serial = serials.integer(i)
            self._count(run, 1)
        settled = saved.integer("settled", least=0, most=len(runs))
        self._settle(runs[:settled])
        self._recent = runs[settled:]
        self._serial = saved.integer("serial")

    def _settle(self, runs: Sequence[KeptPage]) -> None:
        for run in runs:
            insort(self._settled, run, key=_first)

    def _cut(self, runs: Sequence[KeptPage], below: int, parts: list[_Part]) -> list[KeptPage]:
        """Return the rows of runs that stay, and put those that leave behind ``parts``."""
        stay = list[KeptPage]()
        for run in runs:
            page = run.page
            stop = page.rows if below == FOREVER else int(page.times.searchsorted(below))
            if stop:
                self._count(run, -1)
                parts.append((run.serial, page if stop == page.rows else page.slice(0, stop)))
            if 0 < stop < page.rows:
                run = run.after(stop)
                self._count(run, 1)
            if stop < page.rows:
                stay.append(run)
        return stay

    def _count(self, run: KeptPage, sign: int) -> None:
        self.tuples += sign * run.page.rows
        self.nbytes += sign * run.nbytes


def _first(run: KeptPage) -> int:
    return int(run.page.times[0])
