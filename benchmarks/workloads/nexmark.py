"""Nexmark: queries 5, 7 and 11 over bids of an auction house (Tucker, Tufte, Papadimos, Maier, NEXMark, 2008).

Windows are those of the usual runs: 10 s every 2 s, 10 s, and sessions of 10 s.  All contenders get the whole stream,
with persons and auctions in it, and take the bids out.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.data import BID, SECOND, Columns, auctions
from benchmarks.workload import Workload, values
from benchmarks.workloads.w7 import sessions
from oop_engine import Graph, Schema
from oop_engine.aggregates import ArgMax
from oop_engine.core.graphs.graph import Stream
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Filter,
    Max,
    Punctuate,
    Session,
    Sliding,
    Tumbling,
    WindowAggregate,
)

__all__ = ["BidsBySession", "HighestBid", "HotItems"]

LONG, STEP = 10 * SECOND, 2 * SECOND


class _OfBids(Workload):
    schema = Schema(
        {"ts": pa.timestamp("us"), "kind": pa.int8(), "auction": pa.int64(), "bidder": pa.int64(), "price": pa.int64()},
        "ts",
    )  # fmt: skip

    def data(self, rows: int) -> Columns:
        return auctions(rows)

    def _bids(self, graph: Graph) -> Stream:
        events = graph.source("tuples", self.schema)
        progress = graph.add("progress", Punctuate(BoundedDisorder("2 s"), "1 s"), events)
        return graph.add("bids", Filter(pc.field("kind") == BID), progress)


class HotItems(_OfBids):
    """Of auctions with as many bids the one with the largest number."""

    question = "Nexmark 5: the auction with the most bids, 10 s every 2 s"
    keys = ("window_start", "auction")

    def reference(self, columns: Columns) -> Columns:
        bids = _bids_of(columns)
        pane = bids["ts"] // STEP
        pairs = np.concatenate([(pane + k - 4) << 32 | bids["auction"] for k in range(5)])
        some, counts = np.unique(pairs, return_counts=True)
        start, auction = some >> 32, some & (1 << 32) - 1
        order = np.lexsort((auction, counts, start))
        last = order[np.append(start[order][1:] != start[order][:-1], True)]
        return {"window_start": start[last] * STEP, "auction": auction[last], "bids": counts[last]}

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        given = [columns[name] for name in ("ts", "kind", "auction")]
        first = int(columns["ts"].min()) // STEP
        last = int(columns["ts"].max()) // STEP
        out = np.empty((3, last - first + 5), np.int64)

        def run() -> Columns:
            found = hottest(*given, first, last, np.zeros((16, 1 << 16), np.int64), out)
            return dict(zip((*self.keys, "bids"), out[:, :found], strict=True))

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        counts = WindowAggregate(Sliding("10 s", "2 s"), {"bids": Count()}, ("auction",))
        most = WindowAggregate(Tumbling("2 s"), {"hottest": ArgMax("auction", "bids"), "most": Max("bids")})
        counted = graph.add("counts", counts, self._bids(graph))
        graph.sink("hot", graph.add("most", most, counted))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        [table] = found.values()
        start = values(table, "window_start") - LONG  # results of a window are stamped with its end
        return {"window_start": start, "auction": values(table, "hottest"), "bids": values(table, "most")}


class HighestBid(_OfBids):
    """Of equal bids that on the auction with the largest number."""

    question = "Nexmark 7: the highest bid and its auction, tumbling 10 s"
    keys = ("window_start", "auction")

    def reference(self, columns: Columns) -> Columns:
        bids = _bids_of(columns)
        start = bids["ts"] // LONG * LONG
        order = np.lexsort((bids["auction"], bids["price"], start))
        last = order[np.append(start[order][1:] != start[order][:-1], True)]
        return {"window_start": start[last], "auction": bids["auction"][last], "price": bids["price"][last]}

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        given = [columns[name] for name in ("ts", "kind", "auction", "price")]
        first = int(columns["ts"].min()) // LONG
        out = np.empty((3, int(columns["ts"].max()) // LONG - first + 1), np.int64)

        def run() -> Columns:
            highest(*given, first, out)
            return dict(zip((*self.keys, "price"), out[:, out[2] >= 0], strict=True))

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        highest_ = WindowAggregate(
            Tumbling("10 s"), {"auction": ArgMax("auction", "price"), "price": Max("price")}
        )
        graph.sink("bids_of_windows", graph.add("highest", highest_, self._bids(graph)))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        [table] = found.values()
        return {name: values(table, name) for name in (*self.keys, "price")}


class BidsBySession(_OfBids):
    """The floor is given the bids in order of time."""

    question = "Nexmark 11: bids of each bidder, sessions with a gap of 10 s"
    keys = ("bidder", "window_start", "window_end")

    def reference(self, columns: Columns) -> Columns:
        bids = _bids_of(columns)
        order = np.lexsort((bids["ts"], bids["bidder"]))
        bidder, ts = bids["bidder"][order], bids["ts"][order]
        apart = (bidder[1:] != bidder[:-1]) | (ts[1:] - ts[:-1] > LONG)
        starts = np.flatnonzero(np.append(True, apart))
        behind = np.append(starts[1:], ts.size)
        found = bidder[starts], ts[starts], ts[behind - 1] + LONG, behind - starts
        return dict(zip((*self.keys, "bids"), found, strict=True))

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        bids = _bids_of(columns)
        order = np.argsort(bids["ts"], kind="stable")
        ts, bidder = bids["ts"][order], bids["bidder"][order]
        out = np.empty((5, ts.size), np.int64)

        def run() -> Columns:
            found = sessions(ts, bidder, np.array([10]), int(bidder.max()) + 1, out)
            return dict(zip((*self.keys, "bids"), out[1:, :found], strict=True))

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        counts = WindowAggregate(Session("10 s"), {"bids": Count()}, ("bidder",))
        graph.sink("sessions", graph.add("counts", counts, self._bids(graph)))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        [table] = found.values()
        return {name: values(table, name) for name in (*self.keys, "bids")}


def _bids_of(columns: Columns) -> Columns:
    bids = columns["kind"] == BID
    return {name: column[bids] for name, column in columns.items()}


@numba.njit(cache=True)
def hottest(times, kinds, auction, first, last, ring, out):
    """Write window start, auction and bids of each window into ``out`` int64 (3, windows); return how many.

    ``ring``: zeros int64 (panes, 65,536); auctions of one window are less far apart than that.
    """
    panes, mask = ring.shape[0], ring.shape[1] - 1
    low, newest, found = first, first, 0  # ``low``: the last pane of the next window
    least, most = np.full(panes, 1 << 62), np.full(panes, -1)
    for i in range(times.size + 1):
        pane = times[i] // STEP if i < times.size else last + 8
        while newest < pane:
            newest += 1
            if newest - 2 >= low and low <= last + 4:  # tuples are at most 2 s late
                begin, end = 1 << 62, -1
                for p in range(low - 4, low + 1):
                    if p >= first and most[p % panes] >= 0:
                        begin, end = min(begin, least[p % panes]), max(end, most[p % panes])
                best, of = 0, -1
                for a in range(begin, end + 1):
                    total = 0
                    for p in range(max(low - 4, first), low + 1):
                        total += ring[p % panes, a & mask]
                    if total >= best and total > 0:
                        best, of = total, a
                if of >= 0:
                    out[0, found], out[1, found], out[2, found] = (low - 4) * STEP, of, best
                    found += 1
                gone = (low - 4) % panes
                for a in range(least[gone], most[gone] + 1):
                    ring[gone, a & mask] = 0
                least[gone], most[gone] = 1 << 62, -1
                low += 1
        if i < times.size and kinds[i] == BID:
            place = (times[i] // STEP) % panes
            ring[place, auction[i] & mask] += 1
            least[place], most[place] = min(least[place], auction[i]), max(most[place], auction[i])
    return found


@numba.njit(cache=True)
def highest(times, kinds, auction, price, first, out):
    """Write window start, auction and price of the highest bid of each window into ``out`` int64 (3, windows)."""
    out[2, :] = -1
    for i in range(times.size):
        if kinds[i] != BID:
            continue
        window = times[i] // LONG - first
        if price[i] > out[2, window] or (price[i] == out[2, window] and auction[i] > out[1, window]):
            out[0, window], out[1, window], out[2, window] = (first + window) * LONG, auction[i], price[i]
