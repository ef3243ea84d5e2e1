"""W8: the least value of the last 1 000 tuples in order of time, after every 100, of a stream out of order."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pyarrow as pa

from benchmarks.data import Columns, clicks
from benchmarks.workload import Workload, values
from benchmarks.workloads.w6 import least_of_last
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Min, Punctuate, WindowAggregate
from oop_engine.windows import TupleBased

__all__ = ["LastTuplesInTime"]

RANGE, SLIDE = 1000, 100


class LastTuplesInTime(Workload):
    """The floor sorts all tuples by radix, then has two stacks; the engine sorts what a bound passes."""

    question = f"min of the last {RANGE} tuples in order of time, every {SLIDE}"
    keys = ("window_end",)
    ours = ("floor", "engine")
    schema = Schema({"ts": pa.timestamp("us"), "v": pa.int32()}, "ts")

    def data(self, rows: int) -> Columns:
        return clicks(rows)

    def reference(self, columns: Columns) -> Columns:
        given = columns["v"][np.argsort(columns["ts"], kind="stable")]
        ends = np.arange(1, (given.size + RANGE - 1) // SLIDE + 1) * SLIDE
        most = np.full(ends[-1] + RANGE - given.size, np.iinfo(np.int32).max, np.int32)
        padded = np.concatenate([most[:RANGE], given, most[RANGE:]])
        panes = padded.reshape(-1, SLIDE).min(axis=1)
        rows = np.arange(RANGE // SLIDE) + np.arange(ends.size)[:, np.newaxis] + 1
        return {"window_end": ends, "value": panes[rows].min(axis=1)}

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        rows = columns["ts"].size
        ends = np.arange(1, (rows + RANGE - 1) // SLIDE + 1) * SLIDE
        least = np.empty(ends.size, np.int32)
        work = np.empty((2, rows), np.int64), np.empty((2, rows), np.int32)

        def run() -> Columns:
            given = by_radix(columns["ts"], columns["v"], *work)
            least_of_last(given, RANGE, SLIDE, least)
            return {"window_end": ends, "value": least}

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        promised = graph.add("progress", Punctuate(BoundedDisorder("2 s"), "1 s"), tuples)
        windows = WindowAggregate(TupleBased(RANGE, SLIDE, order="time"), {"value": Min("v")})
        graph.sink("results", graph.add("windows", windows, promised))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        return {name: values(found["results"], name) for name in ("window_end", "value")}


@numba.njit(cache=True)
def by_radix(times, given, keys, moved):
    """Return ``given`` in order of ``times``, by digits of 11 bits; ``keys``, ``moved``: scratch (2, rows)."""
    least, most = times.min(), times.max()
    for at in range(times.size):
        keys[0, at], moved[0, at] = times[at] - least, given[at]
    side, shift = 0, 0
    while (most - least) >> shift:
        counts = np.zeros(2049, np.int64)
        for key in keys[side]:
            counts[((key >> shift) & 2047) + 1] += 1
        for digit in range(2048):
            counts[digit + 1] += counts[digit]
        for at in range(times.size):
            key = keys[side, at]
            digit = (key >> shift) & 2047
            place = counts[digit]
            keys[1 - side, place], moved[1 - side, place] = key, moved[side, at]
            counts[digit] = place + 1
        side, shift = 1 - side, shift + 11
    return moved[side]
