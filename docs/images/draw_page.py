"""Draw ``page.png``: the page of a service, one of whose three sources has been silent for 15 s.

    python docs/images/draw_page.py

Takes 50 seconds, for it is a real service, and needs Chromium (Debian's package ``chromium``).
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine import Graph, Schema, serve
from oop_engine.operators import BoundedDisorder, Count, Meld, Punctuate, Tumbling, WindowAggregate
from oop_engine.service import Dashboard
from oop_engine.sinks import Gathered
from oop_engine.sources import Generated
from tests.parts.service.browser import Browser, browser

PICTURE = Path(__file__).parent / "page.png"
SCHEMA = Schema({"ts": pa.timestamp("ms"), "host": pa.int64()}, progressing="ts")
RATES = {"east": 1500, "west": 350, "north": 750}  # tuples a second
SOME_S, SILENT_S = 30.0, 15.0


def requests() -> Graph:
    """Count requests by host, of three sources."""
    graph = Graph("requests")
    edges = [
        graph.add(f"{name}-edge", Punctuate(BoundedDisorder("3 s")), graph.source(name, SCHEMA))
        for name in RATES
    ]
    count = WindowAggregate(Tumbling("5 s"), {"requests": Count()}, by=("host",))
    graph.sink("counts", graph.add("per-5s", count, graph.add("both", Meld(3), *edges)))
    return graph


async def feed(name: str, silenced: asyncio.Event) -> AsyncIterator[Any]:
    """Yield rows at a rate; west falls silent."""
    number, began = 0, time.time()
    while not (name == "west" and silenced.is_set()):
        if number >= RATES[name] * (time.time() - began):
            await asyncio.sleep(0.02)
            continue
        yield {"ts": int(1000 * time.time()), "host": number % 8}
        number += 1
    await asyncio.Event().wait()


async def drawn(folder: Path) -> None:
    """Run the service, and draw its page once west has been silent for a while."""
    silenced, stop, page = asyncio.Event(), asyncio.Event(), Dashboard()
    sources = {name: Generated(feed(name, silenced)) for name in RATES}
    serving = asyncio.create_task(
        serve(requests(), sources, {"counts": Gathered()}, checkpoint=folder / "state", page=page, stop=stop)
    )
    await page.opened()
    async with browser(folder / "browser") as seen:
        await seen.look(1180, 1120)
        await seen.open(page.link)
        await asyncio.sleep(SOME_S)
        silenced.set()
        await asyncio.sleep(SILENT_S)
        await photographed(seen)
    stop.set()
    await serving


async def photographed(seen: Browser) -> None:
    """Take the picture, with the reason of the first row of windows."""
    await seen.js("document.querySelector('#windows tr[data-node]').click()")
    await seen.until("!document.querySelector('#window-why').hidden")
    await seen.picture(PICTURE)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(drawn(Path(folder)))
