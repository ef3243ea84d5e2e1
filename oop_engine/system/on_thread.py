"""On a thread: work off the event loop, which is over when the caller goes on, also when that is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

__all__ = ["on_thread"]

T = TypeVar("T")


async def on_thread(work: Callable[..., T], *given: Any, leave: Callable[[], object] | None = None) -> T:
    """Return the value of ``work(*given)``, which runs on a thread.

    A thread cannot be cancelled.  So a caller that is cancelled meanwhile waits until the work is done, and is
    cancelled then: no file is written any more once it has come back.  ``leave`` is called when it is cancelled, so
    that work which waits for a server can end sooner.
    """
    run = partial(copy_context().run, work, *given)
    working = asyncio.get_running_loop().run_in_executor(
        None, run
    )  # no task: one lets no Ctrl-C reach its caller
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        if leave is not None:
            leave()
        while not working.done():
            try:
                await asyncio.wait([working])
            except asyncio.CancelledError:  # once more: it has to wait all the same
                continue
        working.cancelled() or working.exception()  # an error of work that the caller has given up is not asked for
        raise
