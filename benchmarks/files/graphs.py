"""The graphs of the questions, for ``oop-engine run benchmarks/files/graphs.py:NAME``.

Each imports the parts that it has alone, as if it were in a file of its own.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine import Graph, Schema
from oop_engine.core.graphs.graph import Stream
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Max,
    Punctuate,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)

__all__ = ["join", "q5", "q7", "sliding_integer", "sliding_text", "tumbling_integer", "tumbling_text"]


def tumbling_text() -> Graph:
    return _by_host(pa.string(), Tumbling("10 s"))


def tumbling_integer() -> Graph:
    return _by_host(pa.int64(), Tumbling("10 s"))


def sliding_text() -> Graph:
    return _by_host(pa.string(), Sliding("10 s", "2 s"))


def sliding_integer() -> Graph:
    return _by_host(pa.int64(), Sliding("10 s", "2 s"))


def q5() -> Graph:
    from oop_engine.aggregates import ArgMax

    graph = Graph("q5")
    counts = WindowAggregate(Sliding("10 s", "2 s"), {"bids": Count()}, ("auction",))
    most = WindowAggregate(Tumbling("2 s"), {"hottest": ArgMax("auction", "bids"), "most": Max("bids")})
    graph.sink("results", graph.add("most", most, graph.add("counts", counts, _bids(graph))))
    return graph


def q7() -> Graph:
    from oop_engine.aggregates import ArgMax

    graph = Graph("q7")
    aggregates = {"auction": ArgMax("auction", "price"), "price": Max("price")}
    graph.sink("results", graph.add("highest", WindowAggregate(Tumbling("10 s"), aggregates), _bids(graph)))
    return graph


def join() -> Graph:
    from oop_engine.operators import Band, OAJoin

    graph = Graph("flows seen twice")
    schema = Schema({"ts": pa.int64(), "flow": pa.int32()}, "ts", "us")
    sides = [
        graph.add(f"{side}_progress", Punctuate(BoundedDisorder("2 s"), "1 s"), graph.source(side, schema))
        for side in ("lefts", "rights")
    ]
    pairs = graph.add("pairs", OAJoin([("flow", "flow")], Band("1 s", "1 s")), *sides)
    graph.sink("results", graph.add("minutes", WindowAggregate(Tumbling("1 min"), {"count": Count()}), pairs))
    return graph


def _by_host(key: pa.DataType, windows: Tumbling | Sliding) -> Graph:
    graph = Graph("requests by host")
    schema = Schema({"ts": pa.int64(), "host": key, "size": pa.int64()}, "ts", "ms")
    aggregates = {"requests": Count(), "bytes": Sum("size"), "largest": Max("size")}
    promised = graph.add(
        "progress", Punctuate(BoundedDisorder("2 s"), "1 s"), graph.source("requests", schema)
    )
    graph.sink("results", graph.add("windows", WindowAggregate(windows, aggregates, by=("host",)), promised))
    return graph


def _bids(graph: Graph) -> Stream:
    from oop_engine.operators import Filter

    kinds = {
        "ts": pa.int64(),
        "kind": pa.int8(),
        "auction": pa.int64(),
        "bidder": pa.int64(),
        "price": pa.int64(),
    }
    events = graph.source("tuples", Schema(kinds, "ts", "us"))
    promised = graph.add("progress", Punctuate(BoundedDisorder("2 s"), "1 s"), events)
    return graph.add("bids", Filter(pc.field("kind") == 2), promised)
