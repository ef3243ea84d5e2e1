"""Latency: milliseconds from a message of one row to the result that its punctuation releases, at a steady pace.

    python -m benchmarks.studies.latency PER_SECOND SECONDS

The graph of ``small`` as a service, with windows of 10 ms: three sources, each with punctuation, melded, a count per
key.  ``given``: since the source handed the message over.  ``due``: since it should have; the timer of the event loop
has steps of a millisecond, which are in it.  ``work``: CPU time since the message was handed over, so without the time
when other processes had the core: a lower bound of ``given``, and near it on a machine that does nothing else.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator

import numpy as np

from benchmarks.studies.small import KEYS, SCHEMA, SOURCES
from oop_engine import Graph, Page, serve
from oop_engine.operators import BoundedDisorder, Count, Meld, Punctuate, Tumbling, WindowAggregate

__all__ = ["latency"]

LENGTH = 10
SLACK = 5
"""Milliseconds of event time, of which each message has one."""

Moment = tuple[float, float]  # on the wall, and in CPU time


def latency(per_second: int, seconds: float) -> dict[str, float]:
    """Return the percentiles of both latencies in ms, CPU microseconds a message, and the number of answers."""
    asyncio.run(_answered(1000, 0.5))  # compiles
    cpu = time.process_time()
    began, given, answered = asyncio.run(_answered(per_second, seconds))
    cpu = time.process_time() - cpu
    ends = [end for end in answered if end + SLACK + len(SOURCES) - 1 < len(given)]
    # The bounds of all three sources close a window; the message given last is the one that counts.
    last = np.array(
        [max(range(end + SLACK, end + SLACK + len(SOURCES)), key=given.__getitem__) for end in ends]
    )
    at, cpu_at = np.array([answered[end] for end in ends]).T
    since, cpu_since = np.array(given)[last].T
    found = {"answers": float(len(ends)), "cpu_us": 1e6 * cpu / len(given)}
    took_s = {"given": at - since, "due": at - (began + last / per_second), "work": cpu_at - cpu_since}
    for name, took in took_s.items():
        for percent in (50, 99):
            found[f"{name}_p{percent}_ms"] = 1e3 * float(np.percentile(took, percent))
    return found


async def _answered(per_second: int, seconds: float) -> tuple[float, list[Moment], dict[int, Moment]]:
    """Return the start, when each message was given, and when each window was answered, by its end."""
    count = int(per_second * seconds)
    given, answered = [(0.0, 0.0)] * count, dict[int, Moment]()
    began = time.perf_counter() + 0.1

    async def rows(first: int) -> AsyncIterator[dict[str, int]]:
        for n in range(first, count, len(SOURCES)):
            if (wait := began + n / per_second - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            given[n] = time.perf_counter(), time.process_time()
            yield {"ts": n, "key": n * 7919 % KEYS, "v": n}

    def take(page: Page) -> None:
        now = time.perf_counter(), time.process_time()
        for end in set(page.column("window_end").to_pylist()):
            answered.setdefault(end, now)

    await serve(
        _graph(), {s: rows(n) for n, s in enumerate(SOURCES)}, {"out": take}, signals=False, drain=True
    )
    return began, given, answered


def _graph() -> Graph:
    graph = Graph("latency")
    edges = [
        graph.add(f"edge-{n}", Punctuate(BoundedDisorder(f"{SLACK} ms")), graph.source(n, SCHEMA))
        for n in SOURCES
    ]
    count = WindowAggregate(Tumbling(f"{LENGTH} ms"), {"n": Count()}, by=("key",))
    graph.sink("out", graph.add("count", count, graph.add("meld", Meld(len(edges)), *edges)))
    return graph


if __name__ == "__main__":
    print(json.dumps(latency(int(sys.argv[1]), float(sys.argv[2]))))
