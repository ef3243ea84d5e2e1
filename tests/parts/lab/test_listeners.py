"""Clients of the recipes of applications that listen to results, and leave: the graph goes on for all others."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from oop_engine.runners.event_loop import run_async
from tests.children import ROOT

FIRST = re.findall(r"```python\n(.*?)```", (ROOT / "docs/applications.md").read_text(), re.DOTALL)[0]


def page() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(FIRST, "docs/applications.md", "exec", dont_inherit=True), names)
    return names


def test_a_client_that_leaves_with_a_full_queue_holds_nobody_up() -> None:
    async def main() -> None:
        async with page()["Counts"]().running() as counts:
            listening = [aiter(counts.results()) for _ in range(3)]
            first = [asyncio.create_task(anext(each)) for each in listening]
            await asyncio.sleep(0)
            rows = [{"ts": 60 * n, "host": "a"} for n in range(300)]
            pushing = asyncio.create_task(counts.local.push("log", rows))
            await asyncio.gather(*first)
            for _ in range(1_000):  # all queues are full by now, and the graph waits
                await asyncio.sleep(0)
            for each in listening:
                await each.aclose()
            await pushing
            await counts.local.settle()
            assert not counts.listeners
            assert counts.latest == {"a": 1}

    async def in_time() -> None:
        async with asyncio.timeout(60):
            await main()

    run_async(in_time())
