"""Small messages: CPU microseconds of a message of one row, and of a checkpoint, and latencies one by one.

    python -m benchmarks.studies.small ROWS

Three sources, each with punctuation, melded; a count and a sum per key and second.  The same rows as pages of one row,
answered one by one (``Inline``); pushed row by row (``Inline`` and ``Local``); and as messages of a service, a
dictionary each.  Beside them Bytewax, a row a batch, where it is installed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.field import ENVIRONMENTS, ROOT
from oop_engine import Graph, Page, Schema, serve
from oop_engine.operators import BoundedDisorder, Count, Meld, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.runners.inline import Inline
from oop_engine.runners.local import Local
from oop_engine.runners.states import captured

__all__ = ["small"]

SOURCES = "abc"
SCHEMA = Schema({"ts": pa.int64(), "key": pa.int64(), "v": pa.int64()}, "ts", "ms")
KEYS = 50
GROUPS = 450_000  # of the checkpoint: 10 MB
Row = tuple[int, int, int]


def small(rows: int) -> dict[str, float]:
    """Return CPU microseconds a message by way, milliseconds at percentiles, and costs of a checkpoint in seconds."""
    feed = [(SOURCES[n % 3], (n, n * 7919 % KEYS, n)) for n in range(rows)]
    some = feed[: max(rows // 20, 1)]
    pages = [
        (source, Page.of(SCHEMA, dict(zip(SCHEMA.names, zip(row), strict=True)))) for source, row in some
    ]
    asyncio.run(_served(some))  # compiles
    runner = _opened()
    took_s = [_timed(partial(_answered, runner, *page)) for page in pages]
    found = {
        "page_us": 1e6 * sum(cpu for cpu, _ in took_s) / len(took_s),
        "page_p50_ms": 1e3 * float(np.percentile([wall for _, wall in took_s], 50)),
        "push_row_us": _each(feed, lambda: _pushed(feed)),
        "local_push_row_us": _each(feed, lambda: asyncio.run(_pushed_local(feed, arrivals=False))),
        "local_push_row_arrivals_us": _each(feed, lambda: asyncio.run(_pushed_local(feed, arrivals=True))),
        "serve_us": _each(feed, lambda: asyncio.run(_served(feed))),
    }
    return found | _bytewax(rows) | _checkpoint()


def _graph() -> Graph:
    graph = Graph("small")
    edges = [
        graph.add(f"edge-{n}", Punctuate(BoundedDisorder("100 ms")), graph.source(n, SCHEMA)) for n in SOURCES
    ]
    count = WindowAggregate(Tumbling("1 s"), {"n": Count(), "total": Sum("v")}, by=("key",))
    graph.sink("out", graph.add("count", count, graph.add("meld", Meld(len(edges)), *edges)))
    return graph


def _opened() -> Inline:
    return Inline(_graph(), lambda result: None)


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Return CPU and wall seconds of some work."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def _each(feed: list[tuple[str, Row]], work: Callable[[], Any]) -> float:
    return 1e6 * min(_timed(work)[0] for _ in range(3)) / len(feed)


def _answered(runner: Inline, source: str, page: Page) -> None:
    runner.push(source, page)
    runner.drain()


def _pushed(feed: list[tuple[str, Row]]) -> None:
    runner = _opened()
    for source, row in feed:
        runner.push_row(source, row)
    runner.drain()


async def _pushed_local(feed: list[tuple[str, Row]], *, arrivals: bool) -> None:
    async with Local(_graph(), lambda result: None) as local:
        for now, (source, row) in enumerate(feed):
            await local.push_row(source, row, now if arrivals else None)


def _served(feed: list[tuple[str, Row]]) -> Coroutine[Any, Any, Any]:
    async def rows(name: str) -> AsyncIterator[dict[str, int]]:
        for source, (ts, key, value) in feed:
            if source == name:
                yield {"ts": ts, "key": key, "v": value}

    return serve(_graph(), {name: rows(name) for name in SOURCES}, {"out": lambda page: None}, signals=False)


def _bytewax(rows: int) -> dict[str, float]:
    python = ENVIRONMENTS / "bytewax" / "bin" / "python"
    if not python.exists():
        return {}
    command = [str(python), "benchmarks/peers/bytewax_rows.py", str(min(rows, 50_000))]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return {"bytewax_us": float(done.stdout)}


def _checkpoint() -> dict[str, float]:
    """Return how long a stream stands still for a checkpoint of 10 MB, and the rest of its work, CPU seconds."""
    runner, keys = _opened(), np.arange(GROUPS)
    for part in np.array_split(keys, 8):
        runner.push("a", Page.of(SCHEMA, {"ts": part % 100, "key": part, "v": part}))
        runner.drain()
    still = [_timed(lambda: captured("Inline", runner.operators, {}))[0] for _ in range(5)]
    packs = captured("Inline", runner.operators, {})
    packed, _ = _timed(lambda: [pack() for pack in packs.values()])
    states, again = runner.snapshot(), _opened()
    restart, _ = _timed(lambda: again.restore(states))
    megabytes = sum(map(len, states.values())) / 1e6
    return {"state_mb": megabytes, "still_s": sorted(still)[2], "packed_s": packed, "restart_s": restart}


if __name__ == "__main__":
    print(json.dumps(small(int(sys.argv[1]))))
