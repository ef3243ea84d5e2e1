"""ReorderBuffer: tuples that wait for a bound, and leave sorted when it has passed them.

What comes is sorted page by page into runs.  Small runs are merged with their neighbours;
large ones are kept by their first time, so that a bound touches only the runs that have
something to let go of, however long the rest still waits.  That is copied once it is less than
half of what it was cut from, which it would keep alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sortedcontainers import SortedKeyList

from oop_engine.page import Page
from oop_engine.schema import Schema
from operators.time_sorted import merged_pages, sorted_page

__all__ = ["ReorderBuffer"]

_SMALL = 4096  # rows; runs below it are merged, so that there are few of them


@dataclass(frozen=True, eq=False)
class _Run:
    """Rows sorted by time.  ``serial``: what came earlier has a smaller one."""

    serial: int
    page: Page

    @property
    def first(self) -> int:
        return int(self.page.times[0])


class ReorderBuffer:
    """Holds pages of ``schema``; ``tuples`` and ``nbytes`` tell how much."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._settled = SortedKeyList(key=_first)
        self._recent: list[_Run] = []  # small, in the order they came, after all that is settled
        self._serial = 0
        self.tuples = self.nbytes = 0

    def add(self, page: Page) -> None:
        """Take a page's rows.  O(rows), and O(log tuples) a row for merging small pages."""
        if not len(page):
            return
        run = _Run(self._serial, sorted_page(page.without_arrival()).owned())
        self._serial += 1
        self._count(run.page, 1)
        self._recent.append(run)
        while (
            len(self._recent) > 1
            and len(self._recent[-2].page) <= 2 * len(self._recent[-1].page) < 2 * _SMALL
        ):
            after, before = self._recent.pop(), self._recent.pop()
            merged = merged_pages(self._schema, [before.page, after.page])
            self.nbytes += merged.held_bytes - before.page.held_bytes - after.page.held_bytes
            self._recent.append(_Run(before.serial, merged))
        if len(self._recent[-1].page) >= _SMALL:
            self._settled.update(self._recent)
            self._recent = []

    def release(self, below: int) -> Page | None:
        """Return the rows with a time below ``below``, sorted, equal ones as they came.

        O(log runs), and O(log rows) a row that leaves.
        """
        due = self._settled.bisect_key_left(below)
        ready: list[_Run] = self._settled[:due]
        del self._settled[:due]
        going = [self._cut(run, below) for run in ready]
        self._settled.update(rest for _, rest in going if rest is not None)
        recent = [self._cut(run, below) for run in self._recent]
        self._recent = [rest for _, rest in recent if rest is not None]
        parts = sorted((part for part, _ in going + recent if len(part.page)), key=lambda run: run.serial)
        if not parts:
            return None
        return merged_pages(self._schema, [part.page for part in parts])

    def save(self) -> dict[str, Any]:
        """Return the rows for a snapshot."""
        runs = [*self._settled, *self._recent]
        return {
            "runs": [run.page.batch for run in runs],
            "serials": [run.serial for run in runs],
            "settled": len(self._settled),
            "serial": self._serial,
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take what ``save`` returned; the buffer is empty."""
        pages = [Page(self._schema, batch) for batch in saved["runs"]]
        runs = [_Run(serial, page) for serial, page in zip(saved["serials"], pages, strict=True)]
        self._settled.update(runs[: saved["settled"]])
        self._recent = runs[saved["settled"] :]
        self._serial = saved["serial"]
        for page in pages:
            self._count(page, 1)

    def _cut(self, run: _Run, below: int) -> tuple[_Run, _Run | None]:
        """Return what leaves of a run, and what stays of it."""
        stop = int(run.page.times.searchsorted(below))
        if stop == 0:
            return _Run(run.serial, run.page.slice(0, 0)), run
        self._count(run.page, -1)
        if stop == len(run.page):
            return run, None
        rest = run.page.slice(stop, len(run.page)).owned()
        self._count(rest, 1)
        return _Run(run.serial, run.page.slice(0, stop)), _Run(run.serial, rest)

    def _count(self, page: Page, sign: int) -> None:
        self.tuples += sign * len(page)
        self.nbytes += sign * page.held_bytes


def _first(run: _Run) -> int:
    return run.first
