"""Rows at a pace: from the row that completes a window to its answer, milliseconds, and CPU microseconds a row.

    python -m benchmarks.studies.paced SECONDS

``serve`` over three sources, each with punctuation, melded, a count and a sum by key and window; a dictionary a
message.  Beside it Bytewax and Pathway, where ``make bench-peers`` has installed them; the same rows, the same pace
(``benchmarks/peers/pace.py``).  "flood": all rows are due at once, so latency is that of a backlog.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator

import pyarrow as pa

from benchmarks.field import ENVIRONMENTS, ROOT
from benchmarks.peers.pace import SLACK, SOURCES, WINDOW, Pace, key
from oop_engine import Graph, Page, Schema, serve
from oop_engine.operators import BoundedDisorder, Count, Meld, Punctuate, Sum, Tumbling, WindowAggregate

__all__ = ["paced", "served"]

RATES = (1_000, 10_000)
FLOOD = 1e9
SCHEMA = Schema({"ts": pa.int64(), "key": pa.int64(), "v": pa.int64()}, "ts", "ms")


def paced(seconds: float) -> dict[str, dict[str, dict[str, float]]]:
    """Return latencies and CPU by contender and rate, each contender in a process of its own."""
    asyncio.run(served(Pace(1_000, FLOOD)))  # compiles
    found: dict[str, dict[str, dict[str, float]]] = {}
    for rate, name in [*((rate, f"{rate} a second") for rate in RATES), (FLOOD, "flood")]:
        rows = int(seconds * min(rate, RATES[-1]))
        ways = {
            "engine": _own(rows, rate),
            **{peer: _peer(peer, rows, rate) for peer in ("bytewax", "pathway")},
        }
        found[name] = {way: figures for way, figures in ways.items() if figures}
    return found


def _own(rows: int, rate: float) -> dict[str, float]:
    pace = Pace(rows, rate)
    began = time.process_time()
    asyncio.run(served(pace))
    return pace.latencies_ms("sources") | {"cpu_us": round(1e6 * (time.process_time() - began) / rows, 1)}


async def served(pace: Pace) -> None:
    """Serve the rows of a pace to their end, and note answers in it."""
    graph = Graph("paced")
    names = [f"source-{at}" for at in range(SOURCES)]
    edges = [
        graph.add(f"edge-{n}", Punctuate(BoundedDisorder(f"{SLACK} ms")), graph.source(n, SCHEMA))
        for n in names
    ]
    sums = {"n": Count(), "total": Sum("v")}
    windows = WindowAggregate(Tumbling(f"{WINDOW} ms"), sums, by=("key",))
    graph.sink("out", graph.add("windows", windows, graph.add("meld", Meld(SOURCES), *edges)))

    async def rows(source: int) -> AsyncIterator[dict[str, int]]:
        for n in range(source, pace.rows, SOURCES):
            if (wait_s := pace.due(n)) > 0:
                await asyncio.sleep(wait_s)
            pace.give(n)
            yield {"ts": n, "key": key(n), "v": n}

    def answered(page: Page) -> None:
        for end in set(page.column("window_end").to_pylist()):
            pace.answer(end)

    sources = {name: rows(at) for at, name in enumerate(names)}
    await serve(graph, sources, {"out": answered}, signals=False)


def _peer(name: str, rows: int, rate: float) -> dict[str, float]:
    python = ENVIRONMENTS / name / "bin" / "python"
    if not python.exists():
        return {}
    command = [str(python), "-m", f"benchmarks.peers.{name}_paced", str(rows), str(rate)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    print(json.dumps(paced(float(sys.argv[1])), indent=1))
