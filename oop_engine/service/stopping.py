"""Stopping: SIGTERM and Ctrl-C end a service in order; a second one ends it at once."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

__all__ = ["any_of", "cancelled", "stopped_by_signals"]

_LOG = logging.getLogger("oop_engine")
_AGAIN_S = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(
    stop: asyncio.Event, wanted: bool, checkpoint: str | None = None
) -> Iterator[asyncio.Event]:
    """Set ``stop`` at the first signal; the handlers that were there come back then, and at the end of the block.

    ``checkpoint``: its place, for the line that is logged at the signal (None: there is none).
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
        _LOG.info("%s", _words(checkpoint))

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


def _words(checkpoint: str | None) -> str:
    if checkpoint is None:
        return "stopping: results that are complete are written (a second signal ends at once, and they are lost)"
    return (
        f"stopping: a last checkpoint is taken in {checkpoint} (a second signal ends at once: the state is safe then "
        "too, the next start goes on from the checkpoint before)"
    )


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
