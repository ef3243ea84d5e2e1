"""ReorderBuffer: tuples that wait for a bound, and leave sorted when it has passed them.

Each page becomes a sorted run.  Small sorted runs are merged with their neighbours;
large ones are kept by their first time, so that a bound touches only those with tuples
below it, however long the rest still waits.  The rest of a sorted run is copied once it is less than
half of the memory that it keeps alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sortedcontainers import SortedKeyList

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


@dataclass(slots=True, eq=False)
class _Run:
    """Rows sorted by time.  ``serial``: smaller for earlier rows."""

    serial: int
    kept: KeptPage

    @property
    def rows(self) -> int:
        return self.kept.page.rows

    @property
    def first(self) -> int:
        return int(self.kept.page.times[0])


class ReorderBuffer:
    """Holds pages of ``schema``; ``tuples`` and ``nbytes`` tell how much.

    ``owned``: a page is copied where it keeps alive more than twice its bytes (one that is not sorted is made anew).
    """

    def __init__(self, schema: Schema, *, owned: bool = False) -> None:
        self._schema, self._owned = schema, owned
        self._settled = SortedKeyList(key=_first)
        self._recent: list[_Run] = []  # small, in the order they came, after all that is settled
        self._serial = 0
        self.tuples = self.nbytes = 0

    def add(self, page: Page) -> None:
        """Take a page's rows.  O(rows), and O(log tuples) a row for merging small pages."""
        if not page.rows:
            return
        page = page.without_arrival()
        ordered = sorted_page(page)
        same = ordered is page
        kept = KeptPage.of(page.owned() if self._owned else page) if same else KeptPage.made(ordered)
        self._recent.append(self._run(self._serial, kept))
        self._serial += 1
        while len(self._recent) > 1 and self._recent[-2].rows <= 2 * self._recent[-1].rows < 2 * _SMALL:
            after, before = self._recent.pop(), self._recent.pop()
            self._count(before, -1)
            self._count(after, -1)
            merged = merged_pages(self._schema, [before.kept.page, after.kept.page])
            self._recent.append(self._run(before.serial, KeptPage.made(merged)))
        if self._recent[-1].rows >= _SMALL:
            self._settled.update(self._recent)
            self._recent = []

    def release(self, below: int) -> Page | None:
        """Return the rows with a time below ``below``, all at ``FOREVER``, sorted, equal ones as they came.

        O(log runs), and O(log rows) a row that leaves.
        """
        due = len(self._settled) if below == FOREVER else self._settled.bisect_key_left(below)
        ready: list[_Run] = self._settled[:due]
        del self._settled[:due]
        going = [self._cut(run, below) for run in ready]
        self._settled.update(rest for _, rest in going if rest is not None)
        recent = [self._cut(run, below) for run in self._recent]
        self._recent = [rest for _, rest in recent if rest is not None]
        parts = sorted(((serial, page) for (serial, page), _ in going + recent if page.rows), key=_serial)
        return merged_pages(self._schema, [page for _, page in parts]) if parts else None

    def pages(self) -> list[Page]:
        """Return all rows, in sorted pages."""
        return [run.kept.page for run in (*self._settled, *self._recent)]

    def at(self, bound: int) -> list[Page]:
        """Return the rows right at ``bound``, in sorted pages.  O(runs that begin by then)."""
        runs = [*self._settled[: self._settled.bisect_key_right(bound)], *self._recent]
        pages = [run.kept.page for run in runs]
        ranges = [page.times.searchsorted([bound, bound + 1]).tolist() for page in pages]
        return [page.slice(lo, hi) for page, (lo, hi) in zip(pages, ranges, strict=True) if lo < hi]

    def save(self) -> dict[str, Any]:
        """Return the rows for a snapshot."""
        runs = [*self._settled, *self._recent]
        return {
            "runs": [run.kept.page.batch for run in runs],
            "serials": [run.serial for run in runs],
            "settled": len(self._settled),
            "serial": self._serial,
        }

    def load(self, saved: Saved) -> None:
        """Take the state that ``save`` returned; the buffer is empty."""
        pages, serials = KeptPage.loaded(saved.part("runs"), self._schema), saved.part("serials")
        runs = [self._run(serials.integer(i), page) for i, page in enumerate(pages)]
        settled = saved.integer("settled", least=0, most=len(runs))
        self._settled.update(runs[:settled])
        self._recent = runs[settled:]
        self._serial = saved.integer("serial")

    def _cut(self, run: _Run, below: int) -> tuple[_Part, _Run | None]:
        """Return the rows of a run that leave, and those that stay."""
        page = run.kept.page
        stop = page.rows if below == FOREVER else int(page.times.searchsorted(below))
        if stop == 0:
            return (run.serial, page.slice(0, 0)), run
        self._count(run, -1)
        if stop == page.rows:
            return (run.serial, page), None
        rest = _Run(run.serial, run.kept.after(stop))
        self._count(rest, 1)
        return (run.serial, page.slice(0, stop)), rest

    def _run(self, serial: int, kept: KeptPage) -> _Run:
        run = _Run(serial, kept)
        self._count(run, 1)
        return run

    def _count(self, run: _Run, sign: int) -> None:
        self.tuples += sign * run.kept.page.rows
        self.nbytes += sign * run.kept.nbytes


def _serial(part: _Part) -> int:
    return part[0]


def _first(run: _Run) -> int:
    return run.first
