"""The event loop: whether one runs here, and how one is started."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["in_loop", "run_async"]

T = TypeVar("T")


def in_loop() -> bool:
    """Whether an event loop runs here, so that none can be started."""
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop().is_running()
    return False


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end, on uvloop where the platform has it."""
    factory = None
    with contextlib.suppress(ImportError):
        import uvloop  # not there on every platform

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)
