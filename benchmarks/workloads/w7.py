"""W7: sessions of 10 k users, with gaps of 1 s and of 5 s at once."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pyarrow as pa

from benchmarks.data import SECOND, Columns, clicks
from benchmarks.workload import Workload, values
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Session, WindowAggregate

__all__ = ["SessionsByUser"]

GAPS = (1, 5)  # seconds
USERS = 10_000


class SessionsByUser(Workload):
    """The floor is given the tuples in order of time; the engine as they arrive, up to 2 s behind each other."""

    question = "count, sessions by user, gaps of 1 s and 5 s at once"
    keys = ("gap", "user", "window_start", "window_end")
    schema = Schema({"ts": pa.timestamp("us"), "user": pa.int32()}, "ts")

    def data(self, rows: int) -> Columns:
        return clicks(rows, keys=USERS)

    def reference(self, columns: Columns) -> Columns:
        order = np.lexsort((columns["ts"], columns["user"]))
        user, ts = columns["user"][order], columns["ts"][order]
        parts = []
        for gap in GAPS:
            apart = (user[1:] != user[:-1]) | (ts[1:] - ts[:-1] > gap * SECOND)
            starts = np.flatnonzero(np.append(True, apart))
            behind = np.append(starts[1:], ts.size)
            end = ts[behind - 1] + gap * SECOND
            parts.append((np.full(starts.size, gap), user[starts], ts[starts], end, behind - starts))
        return dict(zip((*self.keys, "count"), map(np.concatenate, zip(*parts, strict=True)), strict=True))

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        order = np.argsort(columns["ts"], kind="stable")
        ts, user = columns["ts"][order], columns["user"][order]
        out = np.empty((5, ts.size * len(GAPS)), np.int64)
        gaps = np.array(GAPS)

        def run() -> Columns:
            found = sessions(ts, user, gaps, USERS, out)
            return dict(zip((*self.keys, "count"), out[:, :found], strict=True))

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        promised = graph.add("progress", Punctuate(BoundedDisorder("2 s"), "1 s"), tuples)
        windows = {str(gap): Session(f"{gap} s") for gap in GAPS}
        counts = WindowAggregate(windows, {"count": Count()}, ("user",))
        graph.sink("sessions", graph.add("counts", counts, promised))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        [table] = found.values()
        rest = {name: values(table, name) for name in (*self.keys[1:], "count")}
        return {"gap": table.column("window").cast(pa.int64()).to_numpy(), **rest}


@numba.njit(cache=True)
def sessions(times, users, gaps, many, out):
    """Write the sessions of tuples in order of time into ``out`` int64 (5, rows); return how many there are."""
    open_ = np.zeros((3, len(gaps), many), np.int64)  # first time, last time, tuples
    found = 0
    for at in range(times.size):
        time, user = times[at], users[at]
        for g in range(len(gaps)):
            if open_[2, g, user] and time - open_[1, g, user] > gaps[g] * SECOND:
                found = put(open_, g, user, gaps[g], out, found)
            if open_[2, g, user] == 0:
                open_[0, g, user] = time
            open_[1, g, user] = time
            open_[2, g, user] += 1
    for g in range(len(gaps)):
        for user in range(many):
            if open_[2, g, user]:
                found = put(open_, g, user, gaps[g], out, found)
    return found


@numba.njit(cache=True)
def put(open_, g, user, gap, out, found):
    """Write one session out, and forget it."""
    out[0, found], out[1, found], out[2, found] = gap, user, open_[0, g, user]
    out[3, found], out[4, found] = open_[1, g, user] + gap * SECOND, open_[2, g, user]
    open_[2, g, user] = 0
    return found + 1
