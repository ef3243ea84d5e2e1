"""W4: flows seen on both sides within a second of each other, counted per minute.

W4-left counts flows of the left side that are not seen on the other as well; W4-wide has few flows, and a band of a
minute either way, so a tuple matches hundreds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numba
import numpy as np
import pyarrow as pa

from benchmarks.data import DELAY, ORIGIN, SECOND, Columns, flows
from benchmarks.workload import Workload, pages_of, values
from oop_engine import Graph, Page, Schema
from oop_engine.operators import Band, BoundedDisorder, Count, OAJoin, Punctuate, Tumbling, WindowAggregate

__all__ = ["FlowsSeenTwice"]

MINUTE = 60 * SECOND


class FlowsSeenTwice(Workload):
    keys = ("window_start",)
    schema = Schema({"ts": pa.timestamp("us"), "flow": pa.int32()}, "ts")

    def __init__(
        self,
        name: str,
        how: str = "inner",
        band_s: int = 1,
        rows: int = 2_000_000,
        flows: int | None = None,
        per_second: float = 1_000_000 / 1200,
    ) -> None:
        super().__init__(name)
        self.how, self.band, self._most = how, band_s * SECOND, rows
        self._flows, self._per_second = flows, per_second

    @property
    def question(self) -> str:  # type: ignore[override]  # of this one
        flows = f"{self._flows or self._most // 10:,} keys"
        return f"{self.how} band join ±{self.band // SECOND} s of two streams, {flows}, count per minute"

    @property
    def rows(self) -> int:  # type: ignore[override]  # of this one
        return self._most

    def data(self, rows: int) -> Columns:
        return flows(rows, keys=self._flows, per_second=self._per_second)

    def reference(self, columns: Columns) -> Columns:
        ts, flow = columns["ts"] - ORIGIN, columns["flow"].astype(np.int64) << 34
        left, right = columns["side"] == 0, np.sort((flow + ts)[columns["side"] == 1])
        matches = np.searchsorted(right, (flow + ts)[left] + self.band, "right")
        matches -= np.searchsorted(right, (flow + ts)[left] - self.band, "left")
        if self.how == "left":
            matches = np.maximum(matches, 1)
        count = np.bincount(ts[left] // MINUTE, weights=matches).astype(np.int64)
        some = np.flatnonzero(count)
        return {"window_start": ORIGIN + some * MINUTE, "count": count[some]}

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        keys = int(columns["flow"].max()) + 1
        room = int((columns["ts"].max() - ORIGIN) // MINUTE) + 1
        size = columns["ts"].size
        starts, counts, behind = (np.empty(n, t) for n, t in ((room, "i8"), (room, "i8"), (size, "i4")))
        lone = np.empty(size if self.how == "left" else 0, np.bool_)
        lengths = np.array([ORIGIN, DELAY, self.band])

        def run() -> Columns:
            ts, flow, side = columns["ts"], columns["flow"], columns["side"]
            found = join_and_count(ts, flow, side, keys, lengths, behind, lone, starts, counts)
            return {"window_start": starts[:found], "count": counts[:found]}

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        sides = [
            graph.add(
                f"{side}_progress", Punctuate(BoundedDisorder("2 s"), "1 s"), graph.source(side, self.schema)
            )
            for side in ("left", "right")
        ]
        band = f"{self.band // SECOND} s"
        join = OAJoin([("flow", "flow")], Band(band, band), how=self.how)
        both = graph.add("join", join, *sides)
        graph.sink(
            "results", graph.add("windows", WindowAggregate(Tumbling("1 min"), {"count": Count()}), both)
        )
        return graph

    def feed(self, columns: Columns, page: int) -> Iterator[tuple[str, Page]]:
        """Cut the arrivals of both sides at once, so that they go on side by side."""
        for start in range(0, columns["ts"].size, page):
            part = {name: column[start : start + page] for name, column in columns.items()}
            for side, source in enumerate(("left", "right")):
                mine = {name: column[part["side"] == side] for name, column in part.items()}
                yield from ((source, cut) for cut in pages_of(self.schema, mine, page))

    def results(self, found: dict[str, pa.Table]) -> Columns:
        return {name: values(found["results"], name) for name in ("window_start", "count")}


@numba.njit(cache=True)
def join_and_count(times, flow, side, keys, lengths, behind, lone, starts, counts):
    """Chain the tuples of each side by flow; look along the other side's chain, and prune it.

    ``lengths``: the origin, the slack and the band.  ``behind``: int32 (rows,), for the next of each
    chain.  ``lone``: bool (rows,), for left tuples that have matched nothing, which count as one; of no
    rows where they do not count.  ``starts``, ``counts``: int64 (minutes,), written.  Returns how many.
    """
    origin, slack, band = lengths
    outer = lone.size > 0
    head = np.full((2, keys), -1, np.int32)
    newest = np.array([origin - slack, origin - slack])
    open_minutes = np.zeros(16, np.int64)
    minute, found = np.int64(0), 0
    for at in range(times.size):
        time, mine, key = times[at], side[at], flow[at]
        newest[mine] = max(newest[mine], time)
        if outer and mine == 0:
            lone[at] = True
            open_minutes[(time - origin) // MINUTE & 15] += 1
        before, other = np.int64(-1), head[1 - mine, key]
        keep_from = newest[mine] - slack - band
        while other >= 0:
            there, following = times[other], behind[other]
            if there < keep_from:  # no later tuple of my side can match it
                if before < 0:
                    head[1 - mine, key] = following
                else:
                    behind[before] = following
            else:
                if abs(time - there) <= band:
                    left = time if mine == 0 else there
                    open_minutes[(left - origin) // MINUTE & 15] += 1
                    if outer:
                        which = at if mine == 0 else other
                        if lone[which]:
                            lone[which] = False
                            open_minutes[(left - origin) // MINUTE & 15] -= 1
                before = other
            other = following
        behind[at] = head[mine, key]
        head[mine, key] = at
        bound = min(newest[0] - slack, newest[1] - slack - band)
        while origin + (minute + 1) * MINUTE <= bound:
            found = write(open_minutes, minute, origin, starts, counts, found)
            minute += 1
    while origin + minute * MINUTE <= newest[0]:
        found = write(open_minutes, minute, origin, starts, counts, found)
        minute += 1
    return found


@numba.njit(cache=True)
def write(open_minutes, minute, origin, starts, counts, found):
    """Write the count of a minute, unless it is empty, and forget it."""
    count = open_minutes[minute & 15]
    open_minutes[minute & 15] = 0
    if count == 0:
        return found
    starts[found], counts[found] = origin + minute * MINUTE, count
    return found + 1
