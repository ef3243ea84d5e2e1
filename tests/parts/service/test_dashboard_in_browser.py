"""The page in a real browser: it starts, updates, and has the sentence of a source that was silenced on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from oop_engine import serve
from oop_engine.runners.event_loop import run_async
from oop_engine.service import Dashboard
from oop_engine.service.dashboard import sampler
from oop_engine.sinks import Gathered
from oop_engine.sources import Generated
from tests.parts.service.browser import CHROMIUM, Browser, browser
from tests.parts.service.test_dashboard import counts


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian's package chromium)")
def test_the_page_tells_who_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_OFTEN_S", 0.05)
    monkeypatch.setattr(sampler, "_SILENT_S", 0.2)
    run_async(visited(tmp_path))


async def visited(folder: Path) -> None:
    silenced, stop, page = asyncio.Event(), asyncio.Event(), Dashboard(token="t0ken")

    async def feed(name: str) -> AsyncIterator[Any]:
        ts = 0
        while not (name == "west" and silenced.is_set()):
            ts += 3
            yield {"ts": ts, "key": "a<b>"}
            await asyncio.sleep(0.02)
        await asyncio.Event().wait()

    sources = {name: Generated(feed(name)) for name in ("east", "west")}
    serving = asyncio.create_task(
        serve(counts(), sources, {"out": Gathered()}, page=page, stop=stop, every_s=1e6, signals=False)
    )
    try:
        await page.opened()
        async with browser(folder) as seen:
            await looked_at(seen, page, silenced)
    finally:
        stop.set()
        await serving


async def looked_at(seen: Browser, page: Dashboard, silenced: asyncio.Event) -> None:
    await seen.look(1280, 900)
    await seen.open(page.link)
    await seen.until("document.title === 'counts' && document.querySelectorAll('#graph g.node').length === 7")
    await seen.until("document.querySelectorAll('canvas').length === 2")
    before = await seen.js("sample.sources[0].tuples")
    await seen.until(f"sample.sources[0].tuples > {before}")
    silenced.set()
    await seen.until("document.querySelector('#why').textContent.includes(\"'west' has sent nothing for\")")
    line = await seen.js("document.querySelector('#why').textContent")
    assert line.startswith("'per-minute' (results) keeps ")
    assert "it waits for 'west', whose bound is " in line
    assert " behind 'east'" in line
    assert await seen.js("document.querySelector('g.holds').dataset.node") == "west"
    await seen.js("document.querySelector('g[data-node=\"per-minute\"]').dispatchEvent(new Event('click'))")
    assert "it waits for 'west'" in await seen.js("document.querySelector('#detail').textContent")
    await seen.js("document.querySelector('g[data-node=\"per-minute\"]').dispatchEvent(new Event('click'))")
    row = "document.querySelector('#windows tr[data-node=\"per-minute\"]')"
    assert (await seen.js(f"[...{row}.cells].map(cell => cell.textContent)"))[-1] == "west"
    assert await seen.js("document.querySelector('#window-why').hidden")
    await seen.js(f"{row}.click()")
    assert "it waits for 'west'" in await seen.js("document.querySelector('#window-why').textContent")
    await seen.js("document.querySelector('#checkpoint').click()")
    await seen.until(
        "sample.checkpoints.count > 0 && document.querySelectorAll('#checkpoints tr').length > 1"
    )
    await seen.js("document.querySelector('#pause').click()")
    await seen.until("document.querySelector('#status').textContent === 'paused'")
    await seen.look(400, 900, dark=True)
    await seen.until("picture && !picture.across")
    assert await seen.js("document.documentElement.scrollWidth <= innerWidth")
    assert seen.errors == []
