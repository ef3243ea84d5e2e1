"""W9: the median, and the 99th percentile, of the response times of each server in 10 s."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pyarrow as pa

from benchmarks.data import SECOND, Columns, responses
from benchmarks.workload import Workload, values
from oop_engine import Graph, Schema
from oop_engine.aggregates import ApproxQuantile, Median
from oop_engine.operators import BoundedDisorder, Punctuate, Tumbling, WindowAggregate

__all__ = ["MedianByServer", "TailByServer"]

LENGTH = 10 * SECOND
SERVERS = 100
MOST = 100_000  # microseconds: times are below
ERROR = 0.01


class MedianByServer(Workload):
    """The floor puts the values of each window side by side, and sorts them."""

    question = "median by server, tumbling 10 s"
    keys = ("server", "window_start")
    ours = ("floor", "engine")
    schema = Schema({"ts": pa.timestamp("us"), "server": pa.int32(), "took": pa.int32()}, "ts")
    share = 0.5

    def data(self, rows: int) -> Columns:
        return responses(rows, keys=SERVERS, most=MOST)

    def _windows(self, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return server and start of each window, where its sorted values begin, and all values."""
        start = columns["ts"] // LENGTH * LENGTH
        order = np.lexsort((columns["took"], columns["server"], start))
        server, start = columns["server"][order], start[order]
        new = np.append(True, (server[1:] != server[:-1]) | (start[1:] != start[:-1]))
        begins = np.flatnonzero(new)
        return server[begins], start[begins], np.append(begins, server.size), columns["took"][order]

    def reference(self, columns: Columns) -> Columns:
        server, start, begins, took = self._windows(columns)
        at = begins[:-1] + (np.diff(begins) - 1) * self.share
        low, high = took[np.floor(at).astype(int)], took[np.ceil(at).astype(int)]
        return {"server": server, "window_start": start, "value": (low + high) / 2}

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        first = int(columns["ts"].min() // LENGTH)
        windows = int(columns["ts"].max() // LENGTH) - first + 1
        counts = np.empty(windows * SERVERS + 1, np.int64)
        room = np.empty(columns["ts"].size, np.int32)
        out = np.empty(windows * SERVERS)

        def run() -> Columns:
            self._loop(columns, first, counts, room, out)
            there = np.flatnonzero(np.diff(counts))
            start = (first + there // SERVERS) * LENGTH
            return {"server": there % SERVERS, "window_start": start, "value": out[there]}

        return run

    def _loop(
        self, columns: Columns, first: int, counts: np.ndarray, room: np.ndarray, out: np.ndarray
    ) -> None:
        medians(columns["ts"], columns["server"], columns["took"], first, counts, room, out)

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        promised = graph.add("progress", Punctuate(BoundedDisorder("2 s"), "1 s"), tuples)
        windows = WindowAggregate(Tumbling("10 s"), {"value": self._aggregate()}, ("server",))
        graph.sink("results", graph.add("windows", windows, promised))
        return graph

    def _aggregate(self) -> Median | ApproxQuantile:
        return Median("took")

    def results(self, found: dict[str, pa.Table]) -> Columns:
        return {name: values(found["results"], name) for name in (*self.keys, "value")}


class TailByServer(MedianByServer):
    """By a sketch of logarithmic bins; the floor counts values in the same bins, and the answer is a bin's middle."""

    question = "99th percentile by server, tumbling 10 s, by a sketch of 1 %"
    share = 0.99

    def reference(self, columns: Columns) -> Columns:
        server, start, begins, took = self._windows(columns)
        rank = np.floor((np.diff(begins) - 1) * self.share).astype(int)
        bins = np.ceil(np.log(took[begins[:-1] + rank]) / np.log(BASE))
        return {"server": server, "window_start": start, "value": 2 * BASE**bins / (BASE + 1)}

    def _loop(
        self, columns: Columns, first: int, counts: np.ndarray, room: np.ndarray, out: np.ndarray
    ) -> None:
        tails(columns["ts"], columns["server"], columns["took"], first, counts, out)

    def _aggregate(self) -> ApproxQuantile:
        return ApproxQuantile("took", self.share, error=ERROR)


BASE = (1 + ERROR) / (1 - ERROR)
BINS = int(np.ceil(np.log(MOST) / np.log(BASE))) + 1


@numba.njit(cache=True)
def placed(times, servers, first, counts):
    """Count the tuples of each window and server; ``counts`` int64 (windows * servers + 1,) are where they begin."""
    counts[:] = 0
    for at in range(times.size):
        counts[(times[at] // LENGTH - first) * SERVERS + servers[at] + 1] += 1
    for at in range(counts.size - 1):
        counts[at + 1] += counts[at]


@numba.njit(cache=True)
def medians(times, servers, given, first, counts, room, out):
    """Write the median of each window and server into ``out``; ``room`` int32 (rows,): scratch."""
    placed(times, servers, first, counts)
    behind = counts.copy()
    for at in range(times.size):
        of = (times[at] // LENGTH - first) * SERVERS + servers[at]
        room[behind[of]] = given[at]
        behind[of] += 1
    for of in range(out.size):
        begin, stop = counts[of], counts[of + 1]
        if begin < stop:
            room[begin:stop].sort()
            middle = begin + (stop - begin - 1) // 2
            high = begin + (stop - begin) // 2
            out[of] = (room[middle] + room[high]) / 2


@numba.njit(cache=True)
def tails(times, servers, given, first, counts, out):
    """Write the 99th percentile of each window and server into ``out``, by a histogram of logarithmic bins."""
    placed(times, servers, first, counts)
    histogram = np.zeros((out.size, BINS), np.int32)
    scale = 1 / np.log(BASE)
    for at in range(times.size):
        of = (times[at] // LENGTH - first) * SERVERS + servers[at]
        histogram[of, int(np.ceil(np.log(given[at]) * scale))] += 1
    for of in range(out.size):
        number = counts[of + 1] - counts[of]
        if number:
            rank, bin_ = int((number - 1) * 0.99), 0
            seen = histogram[of, 0]
            while seen <= rank:
                bin_ += 1
                seen += histogram[of, bin_]
            out[of] = 2 * BASE**bin_ / (BASE + 1)
