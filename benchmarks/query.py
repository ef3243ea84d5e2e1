"""Queries beside the graph by hand: the same question as a graph, in the words of ``scan``, and in SQL, in turns.

``python -m benchmarks.query [ROWS]`` prints CPU milliseconds, the least of the rounds, and the ratio to the graph by
hand; the time to plan a query is in them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine import Graph, Schema, run, sql, stream
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Filter,
    Meld,
    OAJoin,
    Project,
    Punctuate,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)  # fmt: skip
from oop_engine.query import DataStream

ROUNDS = 9
LATE = "2 s"
TYPES = {"ts": "int64", "host": "int64", "bytes": "int64", "status": "int64"}
SCHEMA = Schema(pa.schema([(name, pa.int64()) for name in TYPES]), "ts", "ms")
LOG, OTHER = (stream(name, TYPES).event_time("ts", LATE, unit="ms") for name in ("log", "other"))
COUNTED = {"n": Count(), "b": Sum("bytes")}
WHERE = "WHERE status >= 300"
ITEMS = "host, window_start, window_end, count(*) AS n, sum(bytes) AS b"


def rows(count: int, seed: int) -> pa.Table:
    """Return requests of 500 hosts, 20 a millisecond, up to two seconds out of order."""
    draw = np.random.default_rng(seed)
    columns = {
        "ts": np.arange(count) // 20 + draw.integers(0, 2000, count), "host": draw.integers(0, 500, count),
        "bytes": draw.integers(0, 1500, count), "status": draw.integers(200, 600, count),
    }  # fmt: skip
    return pa.table(columns)


def by_hand(name: str, operator: WindowAggregate) -> Graph:
    """Return a filter and an aggregate over one source."""
    graph = Graph(name)
    log = graph.add("event-time", Punctuate(BoundedDisorder(LATE)), graph.source("log", SCHEMA))
    graph.sink(
        "result", graph.add("agg", operator, graph.add("filter", Filter(pc.field("status") >= 300), log))
    )
    return graph


def both_by_hand(name: str) -> tuple[Graph, list[Any]]:
    """Return a graph with two sources, each with its edge."""
    graph = Graph(name)
    return graph, [
        graph.add(f"{of}-time", Punctuate(BoundedDisorder(LATE)), graph.source(of, SCHEMA))
        for of in ("log", "other")
    ]


def union_by_hand() -> Graph:
    """Return an aggregate of two sources."""
    graph, both = both_by_hand("union")
    aggregate = WindowAggregate(Tumbling("10 s"), COUNTED, ["host"])
    graph.sink("result", graph.add("agg", aggregate, graph.add("union", Meld(2), *both)))
    return graph


def join_by_hand() -> Graph:
    """Return an aggregate of pairs of small requests, of which the join keeps three columns."""
    graph, both = both_by_hand("join")
    sides = []
    for at, side in enumerate("ab"):
        few = graph.add(f"{side}-few", Filter(pc.field("bytes") < 30), both[at])
        sides.append(graph.add(f"{side}-columns", Project(["ts", "host", "bytes"]), few))
    pairs = graph.add("join", OAJoin([("host", "host")], Band("0 s", "100 ms")), *sides)
    graph.sink("result", graph.add("agg", WindowAggregate(Tumbling("10 s"), {"n": Count()}), pairs))
    return graph


UNION = "(SELECT * FROM log UNION ALL SELECT * FROM other)"
FEW, OTHER_FEW = (one.filter(pc.field("bytes") < 30) for one in (LOG, OTHER))
JOINED = (
    "WITH p AS (SELECT a.ts, a.host FROM log a JOIN other b ON a.host = b.host AND b.ts BETWEEN a.ts AND a.ts + 100 "
    "WHERE a.bytes < 30 AND b.bytes < 30) "
    "SELECT window_start, window_end, count(*) AS n FROM TUMBLE(p, ts, INTERVAL '10' SECOND) GROUP BY ALL"
)
FILTERED = LOG.filter(pc.field("status") >= 300).group_by("host")
CASES: dict[str, tuple[Callable[[], Graph], DataStream, str]] = {
    "tumbling": (
        lambda: by_hand("tumbling", WindowAggregate(Tumbling("10 s"), COUNTED, ["host"])),
        FILTERED.window("10 s").agg(**COUNTED),
        f"SELECT {ITEMS} FROM TUMBLE(log, ts, INTERVAL '10' SECOND) {WHERE} GROUP BY ALL",
    ),
    "sliding": (
        lambda: by_hand("sliding", WindowAggregate(Sliding("10 s", "1 s"), COUNTED, ["host"])),
        FILTERED.window("10 s", every="1 s").agg(**COUNTED),
        f"SELECT {ITEMS} FROM HOP(log, ts, INTERVAL '1' SECOND, INTERVAL '10' SECOND) {WHERE} GROUP BY ALL",
    ),
    "union": (
        union_by_hand,
        LOG.union(OTHER).group_by("host").window("10 s").agg(**COUNTED),
        f"SELECT {ITEMS} FROM TUMBLE({UNION}, ts, INTERVAL '10' SECOND) GROUP BY ALL",
    ),
    "join": (
        join_by_hand,
        FEW.join(OTHER_FEW, on="host", within=("0 s", "100 ms")).window("10 s").agg(n=Count()),
        JOINED,
    ),
}  # fmt: skip


def measured(feeds: Mapping[str, pa.Table], name: str) -> dict[str, float]:
    """Return the least CPU milliseconds of each way; raises ``AssertionError`` if their results differ."""
    hand, words, text = CASES[name]
    query = sql(text, log=LOG, other=OTHER)
    used = {of: feeds[of] for of in feeds if of in query.graph.nodes}
    ways: dict[str, Callable[[], pa.Table]] = {
        "by hand": lambda: run(hand(), used).results["result"], "words": lambda: words.run(**used).table,
        "SQL": lambda: sql(text, log=LOG, other=OTHER).run(**used).table,
    }  # fmt: skip
    found = {way: one() for way, one in ways.items()}
    assert len({one.num_rows for one in found.values()}) == 1, name
    assert len({pc.sum(one["n"]).as_py() for one in found.values()}) == 1, name
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for way, one in ways.items():
            start = time.process_time()
            one()
            least[way] = min(least[way], 1000 * (time.process_time() - start))
    return least


def main() -> None:
    """Print each case."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    feeds = {name: rows(count, seed) for seed, name in enumerate(("log", "other"))}
    for name in CASES:
        least = measured(feeds, name)
        shown = "  ".join(f"{way} {ms:.0f} ms ({ms / least['by hand']:.3f})" for way, ms in least.items())
        print(f"{name:<9} {shown}", flush=True)


if __name__ == "__main__":
    main()
