"""W6: least or mean value of the last 1 024 tuples, after every 1, 64 or 1 024 tuples."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pyarrow as pa

from benchmarks.data import Columns, numbers
from benchmarks.workload import Workload, values
from oop_engine import Graph, Schema
from oop_engine.operators import Avg, Min, WindowAggregate
from oop_engine.windows import TupleBased

__all__ = ["LastTuples"]

RANGE = 1024


class LastTuples(Workload):
    """Windows that are not full count too: the first ones, and those after the last tuple."""

    keys = ("window_end",)
    ours = ("floor", "engine")  # tuple-based windows are in order of arrival: there is no other plan
    schema = Schema({"row": pa.int64(), "v": pa.int32(), "f": pa.float32()}, "row", "rows")

    def __init__(self, name: str, kind: str, slide: int) -> None:
        super().__init__(name)
        self.kind, self.slide = kind, slide
        self.column = "v" if kind == "min" else "f"

    @property
    def question(self) -> str:  # type: ignore[override]
        """What is asked."""
        return f"{self.kind} of the last {RANGE} tuples, every {self.slide}"

    def data(self, rows: int) -> Columns:
        return numbers(rows)

    def reference(self, columns: Columns) -> Columns:
        rows = columns["row"].size
        ends = self._ends(rows)
        given = columns[self.column]
        if self.kind == "avg":
            before = np.concatenate([[0.0], np.cumsum(given, dtype=np.float64)])
            high, low = np.minimum(ends, rows), np.maximum(ends - RANGE, 0)
            return {"window_end": ends, "value": (before[high] - before[low]) / (high - low)}
        least = self._padded(given).reshape(-1, RANGE)
        ahead = np.minimum.accumulate(least, axis=1).ravel()
        back = np.minimum.accumulate(least[:, ::-1], axis=1)[:, ::-1].ravel()
        return {"window_end": ends, "value": np.minimum(ahead[ends - 1 + RANGE], back[ends])}

    def _padded(self, given: np.ndarray) -> np.ndarray:
        """Return ``given`` after RANGE values that are never the least, and before as many and more."""
        most = np.iinfo(np.int32).max
        tail = np.full(2 * RANGE - given.size % RANGE, most, np.int32)
        return np.concatenate([np.full(RANGE, most, np.int32), given, tail])

    def _ends(self, rows: int) -> np.ndarray:
        return np.arange(1, (rows + RANGE - 1) // self.slide + 1) * self.slide

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        ends = self._ends(columns["row"].size)
        found = np.empty(ends.size, np.int32 if self.kind == "min" else np.float64)
        loop = least_of_last if self.kind == "min" else mean_of_last

        def run() -> Columns:
            loop(columns[self.column], RANGE, self.slide, found)
            return {"window_end": ends, "value": found}

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        aggregate = Min("v") if self.kind == "min" else Avg("f")
        windows = WindowAggregate(TupleBased(RANGE, self.slide), {"value": aggregate})
        graph.sink("results", graph.add("windows", windows, tuples))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        return {name: values(found["results"], name) for name in ("window_end", "value")}


@numba.njit(cache=True)
def least_of_last(given, length, slide, least):
    """Two stacks: the least of each pane, from the front on in a block of panes, and from its back.

    ``least``: int32 (windows,), written.  ``length`` is a multiple of ``slide``.
    """
    most = np.int32(2**31 - 1)
    panes = length // slide
    front, back = np.full(panes + 1, most), np.full(panes, most)
    ahead = most
    for window in range(least.size):
        at = window % panes
        if at == 0:  # the block of panes is full: stack it the other way round
            for place in range(panes - 1, -1, -1):
                front[place] = min(front[place + 1], back[place])
            ahead = most
        pane = most
        for row in range(window * slide, min((window + 1) * slide, given.size)):
            pane = min(pane, given[row])
        back[at] = pane
        ahead = min(ahead, pane)
        least[window] = min(front[at + 1], ahead)


@numba.njit(cache=True)
def mean_of_last(given, length, slide, mean):
    """Subtract on evict: a running sum takes a slide's values in and puts as many out.

    ``mean``: float64 (windows,), written.
    """
    total, rows = 0.0, given.size
    for window in range(mean.size):
        end = (window + 1) * slide
        for row in range(end - slide, min(end, rows)):
            total += np.float64(given[row])
        for row in range(max(end - length - slide, 0), min(max(end - length, 0), rows)):
            total -= np.float64(given[row])
        mean[window] = total / (min(end, rows) - max(end - length, 0))
