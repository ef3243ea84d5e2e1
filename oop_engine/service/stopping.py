"""Stopping: SIGTERM and Ctrl-C end a service in order; a second one ends it at once."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

__all__ = ["any_of", "cancelled", "stopped_by_signals"]

_AGAIN_S = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(stop: asyncio.Event, wanted: bool) -> Iterator[asyncio.Event]:
    """Set ``stop`` at the first signal; the handlers that were there come back then, and at the end of the block.

    Signals reach the main thread only; in another one, or unless ``wanted``, nothing is done.
    """
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    installed = [False]

    def remove() -> None:
        if installed[0]:
            installed[0] = False
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
                signal.signal(number, before[number])

    def on_signal() -> None:
        remove()
        stop.set()

    try:
        for number in _SIGNALS:
            loop.add_signal_handler(number, on_signal)
        installed[0] = True
    except NotImplementedError:  # loops of Windows have none
        pass
    try:
        yield stop
    finally:
        remove()


async def cancelled(tasks: set[asyncio.Task[None]]) -> None:
    """End tasks; those that get over a cancellation, as some libraries do, are cancelled again."""
    while tasks := {task for task in tasks if not task.done()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_AGAIN_S)


async def any_of(stop: asyncio.Event, readers: Collection[asyncio.Task[None]]) -> None:
    """Wait until ``stop`` is set, or all readers are done."""
    stopping, waiting = asyncio.create_task(stop.wait()), set(readers)
    try:
        while waiting and not stop.is_set():
            done, _ = await asyncio.wait({stopping, *waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting -= done
    finally:
        stopping.cancel()
