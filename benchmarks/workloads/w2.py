"""W2: bytes of each sender in the last ten seconds, every second: ten windows a tuple."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pyarrow as pa

from benchmarks.data import ORIGIN, SECOND, Columns, links
from benchmarks.workload import Workload, values
from benchmarks.workloads.w1 import SLACK
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Punctuate, Sliding, Sum, WindowAggregate

__all__ = ["BytesBySender"]

PANES = 10  # seconds of a window


class BytesBySender(Workload):
    question = "sum per key, 10 s every 1 s, 10 k keys"
    keys = ("window_start", "src")
    schema = Schema({"ts": pa.timestamp("us"), "src": pa.int32(), "len": pa.int32()}, "ts")

    def data(self, rows: int) -> Columns:
        return links(rows)

    def reference(self, columns: Columns) -> Columns:
        second, width = (columns["ts"] - ORIGIN) // SECOND, int(columns["src"].max()) + 1
        panes, place = np.unique(second * width + columns["src"], return_inverse=True)
        sums = np.bincount(place, weights=columns["len"]).astype(np.int64)
        spread = np.concatenate([panes - back * width for back in range(PANES)])
        windows, place = np.unique(spread, return_inverse=True)
        total = np.bincount(place, weights=np.tile(sums, PANES)).astype(np.int64)
        return {"window_start": ORIGIN + windows // width * SECOND, "src": windows % width, "total": total}

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        keys = int(columns["src"].max()) + 1
        room = PANES * columns["ts"].size
        starts, names, totals = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int64)

        def run() -> Columns:
            ts, src, length = columns["ts"], columns["src"], columns["len"]
            found = sum_sliding(ts, src, length, keys, ORIGIN, SLACK, starts, names, totals)
            return {"window_start": starts[:found], "src": names[:found], "total": totals[:found]}

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        promised = graph.add("progress", Punctuate(BoundedDisorder("7 s"), "1 s"), tuples)
        windows = WindowAggregate(Sliding("10 s", "1 s"), {"total": Sum("len")}, by=("src",))
        graph.sink("results", graph.add("windows", windows, promised))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        return {name: values(found["results"], name) for name in ("window_start", "src", "total")}


@numba.njit(cache=True)
def sum_sliding(times, keys_of, lengths, keys, origin, slack, starts, names, totals):
    """Sum into a ring of seconds by key; a running sum per key takes a second in and puts one out.

    ``starts``, ``totals``: int64, ``names``: int32 (windows x keys,), written.  Returns how many.
    """
    sums, counts = np.zeros((32, keys), np.int64), np.zeros((32, keys), np.int32)
    running, present = np.zeros(keys, np.int64), np.zeros(keys, np.int64)
    newest, window, found = np.int64(-1), np.int64(1 - PANES), 0
    for at in range(times.size):
        time = times[at] - origin
        second = time // SECOND
        if second >= window:
            sums[second & 31, keys_of[at]] += lengths[at]
            counts[second & 31, keys_of[at]] += 1
        if time > newest:
            newest = time
            while (window + PANES) * SECOND <= newest - slack:
                slide_in(sums, counts, running, present, window + PANES - 1)
                found = write(running, present, origin + window * SECOND, starts, names, totals, found)
                slide_out(sums, counts, running, present, window)
                window += 1
    while window * SECOND <= newest:
        slide_in(sums, counts, running, present, window + PANES - 1)
        found = write(running, present, origin + window * SECOND, starts, names, totals, found)
        slide_out(sums, counts, running, present, window)
        window += 1
    return found


@numba.njit(cache=True)
def slide_in(sums, counts, running, present, second):
    """Add the newest second to the running sums."""
    running += sums[second & 31]
    present += counts[second & 31]


@numba.njit(cache=True)
def slide_out(sums, counts, running, present, second):
    """Take the oldest second out of the running sums, and forget it."""
    running -= sums[second & 31]
    present -= counts[second & 31]
    sums[second & 31] = 0
    counts[second & 31] = 0


@numba.njit(cache=True)
def write(running, present, start, starts, names, totals, found):
    """Write the sum of each key that is present."""
    for key in range(present.size):
        if present[key]:
            starts[found], names[found], totals[found] = start, key, running[key]
            found += 1
    return found
