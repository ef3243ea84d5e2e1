"""Rows at a pace: from the row that completes a window to its answer, milliseconds, and CPU microseconds a row.

    python -m benchmarks.studies.paced SECONDS

``serve`` over three sources, each with punctuation, melded, a count and a sum by key and window; beside it Bytewax and
Pathway, where ``make bench-peers`` has installed them.  This process sends the rows, each contender runs in one of its
own, one after the other (``benchmarks/peers/pace.py``).  "flood": all rows are due at once, so latency is that of what
the connections hold.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from typing import Any, Literal

import pyarrow as pa

from benchmarks.field import ENVIRONMENTS, ROOT
from benchmarks.peers.pace import SLACK, SOURCES, WINDOW, Pace, key, line, told
from oop_engine import Graph, Page, Schema, serve
from oop_engine.operators import BoundedDisorder, Count, Meld, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import TcpLines

__all__ = ["RATES", "answers", "feeds", "from_ports", "paced", "served"]

RATES = (1_000, 10_000)
FLOOD = 1e9
SCHEMA = Schema({"ts": pa.int64(), "key": pa.int64(), "v": pa.int64()}, "ts", "ms")
NAMES = [f"source-{at}" for at in range(SOURCES)]
WARM_S = 1.0
COMPLETE: dict[str, Literal["sources", "key", "rows"]] = {
    "engine": "sources",
    "bytewax": "key",
    "pathway": "rows",
}
"""What must have passed the end of a window, as each system sees it."""


def paced(seconds: float) -> dict[str, dict[str, dict[str, float]]]:
    """Return latencies and CPU by pace and contender."""
    ways = {"engine": [sys.executable, "-m", "benchmarks.studies.paced"]}
    for peer in ("bytewax", "pathway"):
        if (python := ENVIRONMENTS / peer / "bin" / "python").exists():
            ways[peer] = [str(python), "-m", f"benchmarks.peers.{peer}_paced"]
    paces = [*((rate, f"{rate} a second") for rate in RATES), (FLOOD, "flood")]
    return {
        name: {
            way: _sent(way, command, int(seconds * min(rate, RATES[-1])), rate)
            for way, command in ways.items()
        }
        for rate, name in paces
    }


def _sent(way: str, command: list[str], rows: int, rate: float) -> dict[str, float]:
    """Send rows at a pace to who answers them."""
    with ExitStack() as opened:
        doors = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in NAMES]
        ports = [str(door.getsockname()[1]) for door in doors]
        process = subprocess.Popen([*command, str(rows), *ports], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        sources = [opened.enter_context(door.accept()[0]) for door in doors]
        for source in sources:
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        time.sleep(WARM_S)
        lines = [line(n) for n in range(rows)]
        pace = Pace(rows, rate)
        for n, row in enumerate(lines):
            while (wait_s := pace.due(n)) > 0:
                time.sleep(wait_s)
            pace.give(n)
            sources[n % SOURCES].sendall(row)
    said, _ = process.communicate(timeout=600)
    found = json.loads(said.splitlines()[-1])
    pace.answered_s = {(end, of): at for end, of, at in found["answered_s"]}
    return pace.latencies_ms(COMPLETE[way]) | {"cpu_us": round(found["cpu_us"], 1)}


def answers(pace: Pace, ports: list[int]) -> None:
    """Note in ``pace`` when a service answers windows of what ports send."""
    run_async(served(pace, from_ports(ports)))


def from_ports(ports: list[int]) -> dict[str, TcpLines]:
    """Return sources of what ports send."""
    return {name: TcpLines("127.0.0.1", port, connect=True) for name, port in zip(NAMES, ports, strict=True)}


def feeds(pace: Pace) -> dict[str, AsyncIterator[dict[str, int]]]:
    """Return sources that give their rows by themselves, each when it is due."""

    async def rows(source: int) -> AsyncIterator[dict[str, int]]:
        for n in range(source, pace.rows, SOURCES):
            if (wait_s := pace.due(n)) > 0:
                await asyncio.sleep(wait_s)
            pace.give(n)
            yield {"ts": n, "key": key(n), "v": n}

    return {name: rows(at) for at, name in enumerate(NAMES)}


async def served(pace: Pace, sources: Mapping[str, Any]) -> None:
    """Serve sources to their end, and note answers in ``pace``."""
    graph = Graph("paced")
    edges = [
        graph.add(
            f"edge-{n}",
            Punctuate(BoundedDisorder(f"{SLACK} ms"), granularity=f"{WINDOW} ms"),
            graph.source(n, SCHEMA),
        )
        for n in NAMES
    ]
    sums = {"n": Count(), "total": Sum("v")}
    windows = WindowAggregate(Tumbling(f"{WINDOW} ms"), sums, by=("key",))
    graph.sink("out", graph.add("windows", windows, graph.add("meld", Meld(SOURCES), *edges)))

    def answered(page: Page) -> None:
        now = pace.clock()
        for end in page.column("window_end").unique().to_pylist():
            pace.answer(end, at=now)

    await serve(graph, sources, {"out": answered}, signals=False)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        run_async(served(warm := Pace(1_000, FLOOD), feeds(warm)))  # compiles
        told(answers)
    else:
        print(json.dumps(paced(float(sys.argv[1])), indent=1))
