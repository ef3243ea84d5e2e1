"""W5 with 1 to 10,000 tumbling windows of 1 to 20 s in one operator, as in figure 23 of the Scotty paper."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pyarrow as pa

from benchmarks.data import DELAY, SECOND, Columns, cycles
from benchmarks.workload import Workload, values
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Punctuate, Sum, Tumbling, WindowAggregate

__all__ = ["ManyWindows"]

TENTH = SECOND // 10


class ManyWindows(Workload):
    """Lengths are spread evenly from 1 to 20 s, to a tenth of a second; beyond 191 some are the same."""

    ours = ("floor", "engine")
    keys = ("which", "window_start")
    schema = Schema({"ts": pa.timestamp("us"), "v": pa.int32()}, "ts")

    def __init__(self, name: str, many: int) -> None:
        super().__init__(name)
        self.many = many
        self.lengths = np.round(np.linspace(10, 200, many)).astype(np.int64) * TENTH

    @property
    def question(self) -> str:  # type: ignore[override]
        """What is asked."""
        return f"sum, {self.many:,} tumbling windows of 1 to 20 s, by one operator"

    def data(self, rows: int) -> Columns:
        return cycles(rows)

    def reference(self, columns: Columns) -> Columns:
        parts = []
        for which, length in enumerate(self.lengths.tolist()):
            windows, place = np.unique(columns["ts"] // length, return_inverse=True)
            total = np.bincount(place, weights=columns["v"]).astype(np.int64)
            parts.append((np.full(windows.size, which), windows * length, total))
        return dict(zip((*self.keys, "total"), map(np.concatenate, zip(*parts, strict=True)), strict=True))

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        first, last = int(columns["ts"].min() // TENTH), int(columns["ts"].max() // TENTH)
        sums, counts = np.empty((2, last - first + 2), np.int64)
        room = int(sum((last - first + 1) * TENTH // length + 2 for length in self.lengths.tolist()))
        out = np.empty((3, room), np.int64)

        def run() -> Columns:
            found = sum_many(columns["ts"], columns["v"], self.lengths // TENTH, first, sums, counts, out)
            return dict(zip((*self.keys, "total"), out[:, :found], strict=True))

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        slack = f"{DELAY // SECOND} s"
        promised = graph.add("progress", Punctuate(BoundedDisorder(slack), "1 s"), tuples)
        windows = {str(which): Tumbling(f"{length} us") for which, length in enumerate(self.lengths.tolist())}
        graph.sink("windows", graph.add("sums", WindowAggregate(windows, {"total": Sum("v")}), promised))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        [table] = found.values()
        which = table.column("window").cast(pa.int64()).to_numpy()
        return {"which": which, **{name: values(table, name) for name in ("window_start", "total")}}


@numba.njit(cache=True)
def sum_many(times, given, lengths, first, sums, counts, out):
    """Sum tenths of a second, then take the difference of two running sums for each window.

    ``lengths``: in tenths; ``sums``, ``counts`` int64 (tenths + 1,): scratch; ``out`` int64 (3, windows), written.
    """
    sums[:] = 0
    counts[:] = 0
    for at in range(times.size):
        sums[times[at] // TENTH - first + 1] += given[at]
        counts[times[at] // TENTH - first + 1] += 1
    for tenth in range(1, sums.size):
        sums[tenth] += sums[tenth - 1]
        counts[tenth] += counts[tenth - 1]
    found = 0
    for which in range(lengths.size):
        length = lengths[which]
        for window in range(first // length, (first + sums.size - 2) // length + 1):
            low = max(window * length - first, 0)
            high = min((window + 1) * length - first, sums.size - 1)
            if counts[high] > counts[low]:
                out[0, found], out[1, found] = which, window * length * TENTH
                out[2, found] = sums[high] - sums[low]
                found += 1
    return found
