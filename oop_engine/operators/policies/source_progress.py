"""SourceProgress: the bounds of a stream under a policy, and which of its tuples are late.

``Punctuate`` and ``Sort`` share it: a tuple is late in both or in none.

A tuple is late if it is behind the bound that held for its stream or its group when it came.  With a granularity that
is the bound *emitted*: at its multiples, at once.  Without one it is the bound that follows from the tuples before it,
row by row, while punctuation goes out once a page, at its end.  So lateness depends on the tuples and the clock, never
on where pages end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, Linear, Punctuation, Watermark, passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.policies.group_progress import GroupProgress
from oop_engine.operators.policies.own_bound import running_of
from oop_engine.operators.policies.policies import PerGroup
from oop_engine.operators.policies.running_bound import Policy, cut_rows, floored, length_of

__all__ = ["PagePart", "SourceProgress"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class PagePart(NamedTuple):
    """Rows of a page between two punctuations.

    ``late``: which ones are, bool (rows,); None: none is.  ``bounds``: the bound for each, int64 (rows,) or
    one for all; None where the page was taken as a whole.
    """

    page: Page
    late: Mask | None
    bounds: int | Ints | None = None


class SourceProgress:
    """Punctuation of one stream under ``policy``, at multiples of ``granularity`` (None: at the end of each page).

    Raises ``GraphError`` in the name of ``place`` if a length or a column does not fit ``schema``.
    """

    def __init__(self, policy: Policy, granularity: Length | None, schema: Schema, place: str) -> None:
        self._running = running_of(policy, schema, place)
        self._every: int | None = None
        if granularity is not None:
            self._every = length_of(granularity, schema, f"{place}: granularity", least=1)
        self._groups: GroupProgress | None = None
        if isinstance(policy, PerGroup):
            self._groups = GroupProgress(policy, schema, self._every, place)
        self._progress = Progress(1, remember_ended=True, tables=IN_KERNELS)

    @property
    def clock_every(self) -> int | None:
        """How often ``clock`` is wanted; None: never."""
        return self._running.clock_every

    def take(self, page: Page, *, apart: bool = False) -> Iterable[PagePart | Punctuation]:
        """Return the parts of a page, and behind each the punctuation that holds then.

        A page with arrivals is cut where a multiple of the granularity is passed.  Others stay whole, unless there
        are groups, or the bound before each late tuple must be known (``apart``).
        """
        if self._groups is not None or apart or not (page.arrival is None or self._every is None):
            return self._cut(page, apart=apart)
        before = self._progress.linear
        (below, _), late, _ = self._running.over(page, (before, before), self._every)
        if self._progress.groups or before == FOREVER:
            late_in_group = passed(page.times, self._progress.bounds(page.batch))
            late = late_in_group if late is None else late_in_group | late
        return [PagePart(page, late), *(self._progress.advance_linear(0, below) if below > before else ())]

    def takes_with(self, soft: SourceProgress, page: Page) -> bool:
        """Return whether ``take_with`` does for a page: it comes as a whole, and there are no bounds of groups."""
        mine, theirs = self._progress, soft._progress
        if self._groups is not None or soft._groups is not None or mine.groups or theirs.groups:
            return False
        return max(mine.linear, theirs.linear) < FOREVER and (page.arrival is None or self._every is None)

    def take_with(self, soft: SourceProgress, page: Page) -> tuple[PagePart, int, list[Punctuation]]:
        """Take a page as a whole for this progress and for the watermarks of ``soft``.

        Returns it, how many of its rows are behind a watermark alone, and the punctuation behind it.
        """
        before = self._progress.linear, soft._progress.linear
        reached = self._running.over(page, before, self._every, soft._running)
        (below, expected), late, allowed = reached
        messages = self._progress.advance_linear(0, below) if below > before[0] else []
        if expected > before[1]:
            soft._progress.advance_linear(0, expected)
            messages += self._progress.advance(0, Watermark(Linear(expected)))
        return PagePart(page, late), allowed, messages

    def _cut(self, page: Page, *, apart: bool) -> Iterator[PagePart | Punctuation]:
        before = self._progress.linear
        linear = np.maximum(floored(self._running.after(page), self._every), before)
        group_bounds, stops = self._held(page, before, linear)
        if group_bounds is not None and apart:
            stops = np.union1d(stops, _before_late(page, group_bounds, before, linear))
        start = 0
        for stop in stops.tolist():
            yield from self._part(page, start, stop, group_bounds)
            yield from self._advance(int(linear[stop - 1]))
            start = stop
        yield from self._part(page, start, len(page), group_bounds)
        if self._groups is not None:
            self._groups.let_go()
            if self._progress.linear > before:
                self._groups.forget(self._progress.linear)

    def _held(self, page: Page, before: int, linear: Ints) -> tuple[Ints | None, Ints]:
        """Return the bound for each row, if that grows within a part; and where punctuation is due."""
        stops = cut_rows(linear, before)
        row_bounds = None
        if self._every is None:
            stops = np.full(min(stops.size, 1), len(page))
            row_bounds = np.concatenate([[before], linear[:-1]])[: len(page)]
        if self._groups is not None and len(page):
            stops = np.union1d(stops, self._groups.take(page, before, linear))
            if row_bounds is not None:  # a row that is behind its group does not move it
                np.maximum(row_bounds, self._groups.bounds, out=row_bounds)
        return row_bounds, stops

    def _part(self, page: Page, start: int, stop: int, row_bounds: Ints | None) -> Iterator[PagePart]:
        if start == stop:
            return
        part = page if stop - start == len(page) else page.slice(start, stop)
        if self._groups is not None:
            self._groups.note(start, stop)
        bounds: int | Ints = self._progress.linear
        if self._progress.groups:
            bounds = self._progress.bounds(part.batch)
        if row_bounds is not None:
            bounds = np.maximum(bounds, row_bounds[start:stop])
        late = passed(part.times, bounds)
        yield PagePart(part, late if np.count_nonzero(late) else None, bounds)

    def upstream(self, punctuation: Punctuation) -> Iterator[Punctuation]:
        """Take a punctuation of the source itself; yield the bounds that grow by it."""
        before = self._progress.linear
        yield from self._progress.advance(0, punctuation)
        if self._groups is not None and self._progress.linear > before:
            yield from self._advance(self._progress.linear)
            self._groups.overtaken(self._progress.linear)

    def clock(self, now: int) -> Iterator[Punctuation]:
        """Process a tick of the arrival clock at ``now``; yield the punctuation that follows."""
        below = self._running.on_clock(now)
        if not self._running.exact_ticks:
            below = int(floored(np.array([below]), self._every)[0])
        if below > self._progress.linear:
            yield from self._advance(below)
            if self._groups is not None:
                self._groups.overtaken(below)

    def _advance(self, below: int) -> Iterator[Punctuation]:
        yield from self._progress.advance_linear(0, below)
        if self._groups is not None and (grown := self._groups.grown(below)) is not None:
            yield from self._progress.advance(0, grown)

    def state(self) -> State:
        """Return the state: groups, and bytes."""
        nbytes = self._running.nbytes + self._progress.nbytes
        groups = self._progress.groups
        if self._groups is not None:
            groups, nbytes = max(groups, len(self._groups)), nbytes + self._groups.nbytes
        return State(groups=groups, nbytes=nbytes)

    def save(self) -> dict[str, Any]:
        """Return the state for a snapshot."""
        return {
            "running": self._running.save(),
            "groups": None if self._groups is None else self._groups.save(),
            "progress": self._progress.save(),
        }

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        self._running.load(saved.part("running"))
        if self._groups is not None:
            self._groups.load(saved.part("groups"))
        self._progress.load(saved.part("progress"))


def _before_late(page: Page, row_bounds: Ints, before: int, linear: Ints) -> Ints:
    """Return the rows that are late behind a bound not emitted yet: its punctuation has to go first."""
    rows = np.flatnonzero(page.times < row_bounds)
    rows = rows[rows > 0]
    return rows[cut_rows(linear[rows - 1], before) - 1]
