"""Page: how much of a core the page of a service takes that has nothing else to do.

    python -m benchmarks.studies.page GROUPS

24 sources, each with punctuation, melded into a count per key: 50 edges.  All groups have an open window, and one
bound, or each group its own.  CPU seconds of the process a second of the clock, over some seconds: without a page; with
one that nobody looks at; and with a visitor, a process of its own that reads all events.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine import Graph, Page, Schema, serve
from oop_engine.operators import Count, Meld, Ordered, PerGroup, Punctuate, Tumbling, WindowAggregate
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.service import Dashboard
from oop_engine.sinks import Gathered
from oop_engine.sources import Generated

__all__ = ["shares"]

SOURCES = 24
SECONDS = 6.0
SCHEMA = Schema({"ts": pa.int64(), "key": pa.int64()}, "ts", "s")
_VISITOR = """
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1] + "/events") as events:
    while events.readline():
        pass
"""


def shares(groups: int) -> dict[str, float]:
    """Return the parts of a core."""
    found = {}
    logging.getLogger("oop_engine").setLevel(logging.ERROR)  # it says of each source that it is silent
    for name, policy in {
        "one bound": Ordered(),
        "bounds of groups": PerGroup(Ordered(), by=("key",)),
    }.items():
        for seen in ("no page", "a page", "a visitor"):
            found[f"{name}, {seen}"] = asyncio.run(_share(groups, policy, seen))
    return found


def _graph(policy: Policy) -> Graph:
    graph = Graph("many edges")
    edges = [
        graph.add(f"edge-{n}", Punctuate(policy), graph.source(f"link-{n}", SCHEMA)) for n in range(SOURCES)
    ]
    count = WindowAggregate(Tumbling(60), {"n": Count()}, by=("key",))
    graph.sink("out", graph.add("per-minute", count, graph.add("all", Meld(SOURCES), *edges)))
    return graph


async def _share(groups: int, policy: Policy, seen: str) -> float:
    read, stop = asyncio.Event(), asyncio.Event()
    page = None if seen == "no page" else Dashboard()

    async def feed(number: int) -> AsyncIterator[Any]:
        yield Page.of(SCHEMA, {"ts": np.full(groups, 61), "key": np.arange(groups)})
        if number == SOURCES - 1:
            read.set()
        await asyncio.Event().wait()

    sources = {f"link-{n}": Generated(feed(n)) for n in range(SOURCES)}
    service = asyncio.create_task(
        serve(_graph(policy), sources, {"out": Gathered()}, page=page, stop=stop, every_s=1e6, signals=False)
    )
    await read.wait()
    visitor = None
    if page is not None:
        await page.opened()
        if seen == "a visitor":
            visitor = subprocess.Popen([sys.executable, "-c", _VISITOR, page.address])
    await asyncio.sleep(4.0)
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.sleep(SECONDS)
    share = (time.process_time() - cpu) / (time.perf_counter() - wall)
    stop.set()
    await service
    if visitor is not None:
        visitor.kill()
        visitor.wait()
    return share


if __name__ == "__main__":
    print(json.dumps(shares(int(sys.argv[1])), indent=1))
