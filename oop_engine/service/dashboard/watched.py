"""Watched: a service with its page, and with somebody who gets each sample, for as long as it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from oop_engine.service.dashboard.dashboard import Dashboard
from oop_engine.service.dashboard.sampler import Sampler
from oop_engine.service.service import Service

__all__ = ["watched"]


@asynccontextmanager
async def watched(
    service: Service, page: Dashboard | None, watch: Callable[[dict[str, Any]], None] | None
) -> AsyncIterator[None]:
    """Keep a page open, and call ``watch`` with each sample; without either nothing runs."""
    if page is None and watch is None:
        yield
        return
    sampler = Sampler(service)
    if page is not None:
        await page.open(service, sampler)
    tasks = [asyncio.create_task(sampler.run(), name="page")]
    if watch is not None:
        tasks.append(asyncio.create_task(_tell(sampler, watch), name="watch"))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if page is not None:
            await page.close()


async def _tell(sampler: Sampler, watch: Callable[[dict[str, Any]], None]) -> None:
    sampler.look(1)
    watch(sampler.last)
    while True:
        watch(await sampler.following())
