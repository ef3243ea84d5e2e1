"""W1: packets of the last five minutes, every minute; no key, so that only time matters."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pyarrow as pa

from benchmarks.data import ORIGIN, SECOND, Columns, links
from benchmarks.workload import Workload, values
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Sliding, WindowAggregate

__all__ = ["PacketsOfFiveMinutes"]

MINUTE = 60 * SECOND
PANES = 5  # minutes of a window
SLACK = 7 * SECOND


class PacketsOfFiveMinutes(Workload):
    question = "count, 5 min every 1 min, no key"
    keys = ("window_start",)
    schema = Schema({"ts": pa.timestamp("us"), "src": pa.int32(), "len": pa.int32()}, "ts")

    def data(self, rows: int) -> Columns:
        return links(rows)

    def reference(self, columns: Columns) -> Columns:
        counts = np.bincount((columns["ts"] - ORIGIN) // MINUTE)
        summed = np.convolve(counts, np.ones(PANES, np.int64))
        starts = ORIGIN + (np.arange(summed.size) - PANES + 1) * MINUTE
        return {"window_start": starts[summed > 0], "count": summed[summed > 0]}

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        most = int((columns["ts"].max() - ORIGIN) // MINUTE) + PANES
        starts, counts = np.empty(most, np.int64), np.empty(most, np.int64)

        def run() -> Columns:
            found = count_sliding(columns["ts"], ORIGIN, SLACK, starts, counts)
            return {"window_start": starts[:found], "count": counts[:found]}

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        promised = graph.add("progress", Punctuate(BoundedDisorder("7 s"), "1 min"), tuples)
        windows = WindowAggregate(Sliding("5 min", "1 min"), {"count": Count()})
        graph.sink("results", graph.add("windows", windows, promised))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        table = found["results"]
        return {"window_start": values(table, "window_start"), "count": values(table, "count")}


@numba.njit(cache=True)
def count_sliding(times, origin, slack, starts, counts):
    """Count into a ring of minutes; add five of them up when the bound passes their end.

    ``starts``, ``counts``: int64 (windows,), written.  Returns how many windows there are.
    """
    ring = np.zeros(16, np.int64)  # minute m is at m & 15; five are open, two more may have begun
    newest, window, found = np.int64(-1), np.int64(1 - PANES), 0
    for at in range(times.size):
        time = times[at] - origin
        minute = time // MINUTE
        if minute >= window:
            ring[minute & 15] += 1
        if time > newest:
            newest = time
            while (window + PANES) * MINUTE <= newest - slack:
                found = close_sliding(ring, window, origin, starts, counts, found)
                window += 1
    while window * MINUTE <= newest:
        found = close_sliding(ring, window, origin, starts, counts, found)
        window += 1
    return found


@numba.njit(cache=True)
def close_sliding(ring, window, origin, starts, counts, found):
    """Write the window that begins with minute ``window``, unless it is empty; forget that minute."""
    total = np.int64(0)
    for minute in range(window, window + PANES):
        total += ring[minute & 15]
    ring[window & 15] = 0
    if total == 0:
        return found
    starts[found], counts[found] = origin + window * MINUTE, total
    return found + 1
