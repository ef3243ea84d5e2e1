"""Small pages: the feeds of a graph, cut where a result comes, so that delays are those of rows that come one by one.

A result has the moment of the last row of the page that releases it.  Rows one by one give exact moments, and cost
several hundred times as much as pages.  So the plans run over pages of 64 rows first, to see which pages release
results; these are cut into pages of 8 rows, and after a second run into single rows.  A page that releases nothing
stays whole.  Where sources are merged, a result waits for the page of the slowest source: a page of another source
that shares a moment with it is cut too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.graphs.graph import Graph, Plan, Stream
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.units import TIME_UNITS, to_seconds
from oop_engine.lab.corrected import Heard
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim
from oop_engine.runners.feeds.forms import Intake
from oop_engine.runners.replay import replay

__all__ = ["SmallPages"]

Integers = NDArray[np.int64]
_ALONE, _STEPS, _MOST = 2000, (64, 8, 1), 40_000
"""So many rows of each source come one by one; the rest in pages of these sizes, the next smaller one where a page
releases results; a run adds so many pages at most, beyond which it would take minutes."""
_EXACT = "each result comes with the row that releases it, so delays are exact"


class _Pages(NamedTuple):
    """The pages of a source: the row that each begins with, and the arrivals of all rows."""

    starts: Integers
    arrivals: Integers

    @property
    def stops(self) -> Integers:
        """The row behind the last one of each page."""
        return np.append(self.starts[1:], self.arrivals.size)

    @property
    def spans(self) -> tuple[Integers, Integers]:
        """The first and the last arrival of each page."""
        return self.arrivals[self.starts], self.arrivals[self.stops - 1]

    def holding(self, moments: Integers) -> NDArray[np.bool_]:
        """Return which pages span one of the sorted ``moments``, beyond a single one."""
        first, last = self.spans
        inside = np.searchsorted(moments, first) < np.searchsorted(moments, last, "right")
        holds: NDArray[np.bool_] = inside & (first < last)
        return holds

    def beside(self, first: Integers, last: Integers) -> NDArray[np.bool_]:
        """Return which pages share a moment with a stretch; these are sorted by both ends."""
        if not first.size:
            return np.zeros(self.starts.size, np.bool_)
        begin, end = self.spans
        at = np.searchsorted(last, begin)
        beside: NDArray[np.bool_] = (
            (at < last.size) & (first[np.minimum(at, last.size - 1)] <= end) & (begin < end)
        )
        return beside

    def longest(self, which: NDArray[np.bool_]) -> int:
        """Return how long the longest of some pages takes to come."""
        first, last = self.spans
        return int((last - first)[which].max(initial=0))

    def begun_alone(self) -> _Pages:
        """Return the pages with the first rows one by one: then peaks of state are exact in short feeds."""
        return _Pages(np.union1d(self.starts, np.arange(min(_ALONE, self.arrivals.size))), self.arrivals)

    def cut(self, which: NDArray[np.bool_], step: int, most: int) -> _Pages:
        """Return the pages, some of them cut into pages of ``step`` rows: the first, up to ``most`` new pages."""
        rows = (self.stops - self.starts)[which]
        fits = np.cumsum(-(-rows // step)) <= most
        cuts = [
            np.arange(start, start + size, step)
            for start, size in zip(self.starts[which][fits].tolist(), rows[fits].tolist(), strict=True)
        ]
        return _Pages(np.unique(np.concatenate([self.starts, *cuts])), self.arrivals)


class SmallPages:
    """The ``feeds`` of a graph with the plan ``plan``, in pages that end where one of the ``graphs`` has a result.

    Rows without an arrival arrive in their order, each when the largest time so far was there.
    ``keys`` identify a result.  The plans run twice where a source has more than 2,000 rows, at the first ``messages``.
    """

    def __init__(
        self, plan: Plan, feeds: Mapping[str, Any], graphs: Sequence[Graph], keys: Sequence[str]
    ) -> None:
        self._plan, self._feeds, self._graphs, self._keys = plan, feeds, graphs, keys
        self._pages: dict[str, _Pages] | None = None

    def messages(self) -> dict[str, Iterator[Message]]:
        """Return the messages of each source.  O(rows); at first that of two runs of each plan."""
        if self._pages is None:
            self._pages = {name: self._first(name) for name in self._feeds}
            if any(pages.arrivals.size > _ALONE for pages in self._pages.values()):
                for step in _STEPS[1:]:
                    self._refine(self._pages, step)
            self._pages = {name: each.begun_alone() for name, each in self._pages.items()}
        return self._cut(self._pages)

    def claims(self, runs: Sequence[Run]) -> list[Claim]:
        """Return a claim on the moments of results, where a source has more rows than come one by one."""
        pages = self._pages or {}
        if not any(each.arrivals.size > _ALONE for each in pages.values()):
            return []
        moments = np.unique(np.concatenate([np.empty(0, np.int64), *(run.emitted for run in runs)]))
        open_ = _open(pages, moments)
        rows = sum(int((each.stops - each.starts)[open_[name]].sum()) for name, each in pages.items())
        if not rows:
            return [Claim(_EXACT, True, {"rows": sum(each.arrivals.size for each in pages.values())})]
        longest = max(each.longest(open_[name]) for name, each in pages.items())
        unit = runs[0].unit
        figures = {
            "not checked": f"for want of time {rows:,} rows came in pages of several, which release results",
            "delays are too long by at most": f"{to_seconds(longest, unit):g} {'s' if unit in TIME_UNITS else unit}",
        }
        return [Claim(_EXACT, None, figures)]

    def _first(self, name: str) -> _Pages:
        starts, arrivals, row = list[Integers](), [np.empty(0, np.int64)], 0
        for message in self._arriving(name):
            if isinstance(message, Page) and (rows := len(message)):
                assert message.arrival is not None
                starts.append(row + np.arange(0, rows, _STEPS[0]))
                arrivals.append(message.arrival)
                row += rows
        return _Pages(np.concatenate([np.empty(0, np.int64), *starts]), np.concatenate(arrivals))

    def _refine(self, pages: dict[str, _Pages], step: int) -> None:
        """Cut the pages that release a result of a graph into pages of ``step`` rows."""
        moments = np.unique(np.concatenate([self._moments(graph, pages) for graph in self._graphs]))
        open_ = _open(pages, moments)
        for name, each in list(pages.items()):
            pages[name] = each.cut(open_[name], step, _MOST // len(pages))

    def _moments(self, graph: Graph, pages: Mapping[str, _Pages]) -> Integers:
        """Return the moments at which results of a graph come, or become final."""
        plan = graph.plan()
        sink = plan.of_kind("sink")[0]
        revised = Heard.of(plan, sink, self._keys, None)
        came = replay(graph, self._cut(pages), watch=revised).emitted[sink.name]
        return came if revised is None else np.concatenate([came, revised.corrected().final.at])

    def _cut(self, pages: Mapping[str, _Pages]) -> dict[str, Iterator[Message]]:
        return {name: self._sliced(name, each.starts) for name, each in pages.items()}

    def _sliced(self, name: str, starts: Integers) -> Iterator[Message]:
        row = 0
        for message in self._arriving(name):
            if not isinstance(message, Page) or not len(message):
                yield message
                continue
            stop = row + len(message)
            inside = starts[slice(*np.searchsorted(starts, [row, stop]))] - row
            for begin, end in pairwise([*inside.tolist(), len(message)]):
                yield message.slice(begin, end)
            row = stop

    def _arriving(self, name: str) -> Iterator[Message]:
        """Yield the messages of a feed, with the arrival of each row."""
        largest = NEVER
        schema = self._plan.schema(Stream(name))
        for message in Intake(f"source {name!r}", schema, "compare").messages(self._feeds[name]):
            if isinstance(message, Page) and message.arrival is None and len(message):
                arrival = np.maximum(np.maximum.accumulate(message.times), largest)
                largest = int(arrival[-1])
                yield Page(message.schema, message.batch, arrival)
            else:
                yield message


def _open(pages: Mapping[str, _Pages], moments: Integers) -> dict[str, NDArray[np.bool_]]:
    """Return for each source the pages of several moments that release a result, or share a moment with one."""
    masks = [(each, each.holding(moments)) for each in pages.values()]
    stretches = [tuple(ends[which] for ends in each.spans) for each, which in masks]
    return {
        name: np.logical_or.reduce([each.beside(*stretch) for stretch in stretches])
        for name, each in pages.items()
    }
