"""W3: packets of each sender in each second; senders are integers, or IPv4 addresses as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numba
import numpy as np
import pyarrow as pa

from benchmarks.data import ORIGIN, SECOND, Columns, links
from benchmarks.workload import Workload, pages_of, values
from benchmarks.workloads.w1 import SLACK
from oop_engine import Graph, Page, Schema
from oop_engine.operators import BoundedDisorder, Count, Emit, Punctuate, Tumbling, WindowAggregate
from oop_engine.triggers import AfterCount

__all__ = ["PacketsByAddress", "PacketsBySender", "PacketsCorrected"]


class PacketsBySender(Workload):
    question = "count per key, tumbling 1 s, 10 k keys"
    ours = (
        *Workload.ours,
        "engine, pushed",
        "engine, pushed, pages of 256",
        "engine, pages of 256",
        "engine, text keys",
    )
    keys = ("window_start", "src")
    schema = Schema({"ts": pa.timestamp("us"), "src": pa.int32(), "len": pa.int32()}, "ts")

    def data(self, rows: int) -> Columns:
        return links(rows)

    def reference(self, columns: Columns) -> Columns:
        second, width = (columns["ts"] - ORIGIN) // SECOND, int(columns["src"].max()) + 1
        windows, count = np.unique(second * width + columns["src"], return_counts=True)
        return {"window_start": ORIGIN + windows // width * SECOND, "src": windows % width, "count": count}

    def floor(self, columns: Columns) -> Callable[[], Columns]:
        keys, room = int(columns["src"].max()) + 1, columns["ts"].size
        starts, names, counts = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int64)

        def run() -> Columns:
            found = count_tumbling(columns["ts"], columns["src"], keys, ORIGIN, SLACK, starts, names, counts)
            return {"window_start": starts[:found], "src": names[:found], "count": counts[:found]}

        return run

    def graph(self) -> Graph:
        graph = Graph(self.name)
        tuples = graph.source("tuples", self.schema)
        promised = graph.add("progress", Punctuate(BoundedDisorder("7 s"), "1 s"), tuples)
        windows = WindowAggregate(Tumbling("1 s"), {"count": Count()}, by=("src",))
        graph.sink("results", graph.add("windows", windows, promised))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        return {name: values(found["results"], name) for name in ("window_start", "src", "count")}


class PacketsByAddress(PacketsBySender):
    """The same with IPv4 addresses as text."""

    schema = Schema({"ts": pa.timestamp("us"), "src": pa.string(), "len": pa.int32()}, "ts")

    def feed(self, columns: Columns, page: int) -> Iterator[tuple[str, Page]]:
        keys = np.arange(int(columns["src"].max()) + 1)
        addresses = pa.array([address(int(key)) for key in keys])
        texts = {**columns, "src": addresses.take(pa.array(columns["src"]))}
        return (("tuples", cut) for cut in pages_of(self.schema, texts, page))

    def results(self, found: dict[str, pa.Table]) -> Columns:
        table = found["results"]
        coded = table.column("src").combine_chunks().dictionary_encode()
        numbers = np.array([number(text) for text in coded.dictionary.to_pylist()], np.int64)
        src = numbers[coded.indices.to_numpy()]
        return {"window_start": values(table, "window_start"), "src": src, "count": values(table, "count")}


class PacketsCorrected(PacketsBySender):
    """The same with a first answer at a watermark, and corrected ones as late tuples come, which 5 % are."""

    question = (
        "count per key, tumbling 1 s, 10 k keys; first answers at a watermark, corrected by 5 % late tuples"
    )
    ours = (*Workload.ours, "engine, final results alone")

    def graph(self) -> Graph:
        graph = Graph(self.name)
        edge = Punctuate(BoundedDisorder("7 s"), "1 s", watermark=BoundedDisorder("5.4 s"))
        versions = WindowAggregate(
            Tumbling("1 s"), {"count": Count()}, by=("src",), emit=Emit(late=AfterCount(1))
        )
        progress = graph.add("progress", edge, graph.source("tuples", self.schema))
        graph.sink("results", graph.add("windows", versions, progress))
        return graph

    def results(self, found: dict[str, pa.Table]) -> Columns:
        if "change" not in found["results"].column_names:
            return super().results(found)
        start, src, counts, change = (
            values(found["results"], n) for n in ("window_start", "src", "count", "change")
        )
        windows, of = np.unique(np.stack([start, src]), axis=1, return_inverse=True)
        net = np.bincount(of.ravel(), counts * change).astype(np.int64)
        return {"window_start": windows[0], "src": windows[1], "count": net}


def address(key: int) -> str:
    """Return a sender as an address of 10.0.0.0/8, spread over it."""
    spread = key * 2_654_435 % 2**24
    return f"10.{spread >> 16}.{spread >> 8 & 255}.{spread & 255}"


def number(text: str) -> int:
    """Return the sender of an address; the inverse of ``address``."""
    _, a, b, c = map(int, text.split("."))
    return (a << 16 | b << 8 | c) * pow(2_654_435, -1, 2**24) % 2**24


@numba.njit(cache=True)
def count_tumbling(times, keys_of, keys, origin, slack, starts, names, counts):
    """Count into a ring of seconds by key; write a second out when the bound passes its end.

    ``starts``, ``counts``: int64, ``names``: int32 (rows,), written.  Returns how many.
    """
    ring = np.zeros((16, keys), np.int32)
    newest, window, found = np.int64(-1), np.int64(0), 0
    for at in range(times.size):
        time = times[at] - origin
        second = time // SECOND
        if second >= window:
            ring[second & 15, keys_of[at]] += 1
        if time > newest:
            newest = time
            while (window + 1) * SECOND <= newest - slack:
                found = write(ring[window & 15], origin + window * SECOND, starts, names, counts, found)
                window += 1
    while window * SECOND <= newest:
        found = write(ring[window & 15], origin + window * SECOND, starts, names, counts, found)
        window += 1
    return found


@numba.njit(cache=True)
def write(row, start, starts, names, counts, found):
    """Write the count of each key that has one, and forget it."""
    for key in range(row.size):
        if row[key]:
            starts[found], names[found], counts[found] = start, key, row[key]
            row[key] = 0
            found += 1
    return found
