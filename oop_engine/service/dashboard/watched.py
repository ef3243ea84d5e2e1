"""Watched: a service with its page, and with somebody who gets each sample, for as long as it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from oop_engine.service.dashboard.dashboard import Dashboard
from oop_engine.service.dashboard.progress import PROGRESS, report
from oop_engine.service.dashboard.sampler import Sampler
from oop_engine.service.service import Service

__all__ = ["watched"]


@asynccontextmanager
async def watched(
    service: Service,
    page: Dashboard | None,
    watch: Callable[[dict[str, Any]], None] | None,
    progress_every_s: float | None,
) -> AsyncIterator[None]:
    """Keep a page open, call ``watch`` with each sample, and log the progress; without all of them nothing runs."""
    tasks = list[asyncio.Task[None]]()
    if page is not None or watch is not None:
        sampler = Sampler(service)
        if page is not None:
            await page.open(service, sampler)
        tasks.append(asyncio.create_task(sampler.run(), name="page"))
    if progress_every_s is not None and PROGRESS.isEnabledFor(logging.INFO):
        tasks.append(asyncio.create_task(report(service, progress_every_s), name="progress"))
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
