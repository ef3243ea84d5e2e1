"""W5: one stream in twenty tumbling windows at once, of 1 to 20 s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.data import DELAY, SECOND, Columns, cycles
from benchmarks.workload import Workload, values
from oop_engine import Graph, Schema
from oop_engine.core.graphs.graph import Stream
from oop_engine.operators import BoundedDisorder, Punctuate, Sum, Tumbling, WindowAggregate

__all__ = ["TwentyWindows", "TwentyWindowsApart", "TwentyWindowsChained"]

LENGTHS = range(1, 21)  # seconds
Part = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def joined(parts: list[Part]) -> Columns:
    """Return the results of all lengths, given length by length as columns."""
    length, start, total = map(np.concatenate, zip(*parts, strict=True))
    return {"length": length, "window_start": start, "total": total}


class TwentyWindows(Workload):
    """The sums of a second are made once, and all windows are put together from them, by one operator."""

    question = "sum, 20 tumbling windows of 1 to 20 s, by one operator"
    ours = (*Workload.ours, "engine, cascade", "engine, nothing shared")
    keys = ("length", "window_start")
    schema = Schema({"ts": pa.timestamp("us"), "v": pa.int32()}, "ts")

    def data(self, rows: int) -> Columns:
        return cycles(rows)

    def reference(self, columns: Columns) -> Columns:
        parts = []
        for length in LENGTHS:
            windows, place = np.unique(columns["ts"] // (length * SECOND), return_inverse=True)
            total = np.bincount(place, weights=columns["v"]).astype(np.int64)
            parts.append((np.full(windows.size, length), windows * length * SECOND, total))
        return joined(parts)

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        first = int(columns["ts"].min() // SECOND)
        room = (int(columns["ts"].max() // SECOND) - first + 2) * len(LENGTHS)
        lengths, starts, totals = (np.empty(room, np.int64) for _ in range(3))

        def run() -> Columns:
            found = sum_twenty(columns["ts"], columns["v"], first, DELAY, lengths, starts, totals)
            return {"length": lengths[:found], "window_start": starts[:found], "total": totals[:found]}

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        promised = graph.add("progress", Punctuate(BoundedDisorder("2 s"), "1 s"), tuples)
        windows = {str(length): Tumbling(f"{length} s") for length in LENGTHS}
        graph.sink("windows", graph.add("sums", WindowAggregate(windows, {"total": Sum("v")}), promised))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        [table] = found.values()
        length = table.column("window").cast(pa.int64()).to_numpy()
        return {
            "length": length,
            "window_start": values(table, "window_start"),
            "total": values(table, "total"),
        }


class TwentyWindowsChained(TwentyWindows):
    """The same with an operator for seconds, and twenty that make windows of its results."""

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        promised = graph.add("progress", Punctuate(BoundedDisorder("2 s"), "1 s"), tuples)
        seconds = WindowAggregate(Tumbling("1 s"), {"v": Sum("v")}, stamp="start")
        return twenty(graph, graph.add("seconds", seconds, promised))

    def results(self, found: dict[str, pa.Table]) -> Columns:
        return joined(
            [
                (np.full(table.num_rows, int(length)), values(table, "window_start"), values(table, "total"))
                for length, table in found.items()
            ]
        )


class TwentyWindowsApart(TwentyWindowsChained):
    """The same with twenty operators that share nothing."""

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        return twenty(graph, graph.add("progress", Punctuate(BoundedDisorder("2 s"), "1 s"), tuples))


def twenty(graph: Graph, stream: Stream) -> Graph:
    """Return ``graph`` with an operator and a sink for each length, over ``stream``."""
    for length in LENGTHS:
        windows = WindowAggregate(Tumbling(f"{length} s"), {"total": Sum("v")})
        graph.sink(f"{length}", graph.add(f"windows_{length}", windows, stream))
    return graph


@numba.njit(cache=True)
def sum_twenty(times, given, first, slack, lengths, starts, totals):
    """Sum into a ring of seconds; a second that is complete goes into each of twenty sums.

    ``lengths``, ``starts``, ``totals``: int64 (windows,), written.  Returns how many.
    """
    sums, counts = np.zeros(64, np.int64), np.zeros(64, np.int64)
    running, present = np.zeros(20, np.int64), np.zeros(20, np.int64)
    newest, second, found = first * SECOND, np.int64(first), 0
    for at in range(times.size):
        time = times[at]
        its = time // SECOND
        if its >= second:
            sums[its & 63] += given[at]
            counts[its & 63] += 1
        if time > newest:
            newest = time
            while (second + 1) * SECOND <= newest - slack:
                found = pass_on(sums, counts, running, present, second, lengths, starts, totals, found)
                second += 1
    while second <= newest // SECOND + 20:  # so far that the longest window ends
        found = pass_on(sums, counts, running, present, second, lengths, starts, totals, found)
        second += 1
    return found


@numba.njit(cache=True)
def pass_on(sums, counts, running, present, second, lengths, starts, totals, found):
    """Put a second into the sum of each length; write out those that end with it."""
    running += sums[second & 63]
    present += counts[second & 63]
    sums[second & 63] = counts[second & 63] = 0
    for at in range(20):
        length = at + 1
        if (second + 1) % length == 0:
            if present[at]:
                lengths[found], starts[found] = length, (second + 1 - length) * SECOND
                totals[found] = running[at]
                found += 1
            running[at] = present[at] = 0
    return found
