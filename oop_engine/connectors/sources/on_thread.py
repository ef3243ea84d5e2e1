"""On a thread: a feed that may block is read beside the event loop.

A plain iterable is read on a thread of its own; an asynchronous one in an event loop there.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import suppress
from inspect import isgenerator
from typing import Any

from oop_engine.core.errors import UsageError
from oop_engine.runners.feeds.of_now import of_now
from oop_engine.system.knobs import knob

__all__ = ["ThreadReader"]

_MOST = knob(__name__, "_MOST", 1024, least=2)
"""Items that wait; with more of them the thread waits."""
_END_S = 1.5
"""Seconds for which a stop waits for a feed that blocks."""
_TICK_S = 0.05


class ThreadReader:
    """Reads ``feed`` on a thread, from ``items`` on until that is closed; ``name`` is that of the source in messages.

    ``left``: items that were read and not taken before ``items`` was closed.  A thread cannot be ended from outside: if
    the feed still blocks then, the log names it, and the thread ends with the next item or with the process.
    """

    def __init__(self, name: str, feed: AsyncIterable[Any] | Iterable[Any]) -> None:
        self._name, self._feed = name, feed
        self.left = deque[Any]()
        self._error: BaseException | None = None
        self._over = self._stopped = self._told = False
        self._filled, self._room = asyncio.Event(), threading.Event()
        self._loop = asyncio.get_running_loop()
        self._inner: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._thread = threading.Thread(target=self._run, name=f"{name}, read", daemon=True)

    async def items(self) -> AsyncGenerator[Any]:
        """Yield the items as they come; raises the error of the feed."""
        self._thread.start()
        try:
            while True:
                over = self._over  # looked at first: nothing is put behind it
                while self.left:
                    item = self.left.popleft()
                    if len(self.left) < _MOST // 2:
                        self._room.set()
                    yield item
                if over:
                    break
                self._filled.clear()
                if not (self.left or self._over):
                    await self._filled.wait()
        finally:
            await self._stop()
        if self._error is not None:
            raise self._error

    async def _stop(self) -> None:
        self._stopped = True
        self._room.set()
        if self._inner is not None:
            loop, task = self._inner
            with suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                while not self._over:
                    self._filled.clear()
                    if not self._over:
                        await self._filled.wait()
        if self._over:
            self._thread.join()
        else:
            words = "%s: its generator still blocks after %.1f s: its thread ends with the next row, or the process"
            logging.getLogger("oop_engine").warning(words, self._name, _END_S)

    def _run(self) -> None:
        """Read the feed: the work of the thread."""
        try:
            if isinstance(self._feed, AsyncIterable):
                with asyncio.Runner() as runner:
                    runner.run(self._read_async(self._feed))
            else:
                self._read(self._feed)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._error = error
        self._over = True
        self._tell()

    def _read(self, feed: Iterable[Any]) -> None:
        try:
            for item in feed:
                self._put(item)
                while len(self.left) >= _MOST and not self._stopped:
                    self._room.clear()
                    if len(self.left) >= _MOST and not self._stopped:
                        self._room.wait()
                if self._stopped:
                    return
        finally:
            if isgenerator(feed):
                feed.close()

    async def _read_async(self, feed: AsyncIterable[Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._inner = asyncio.get_running_loop(), task
        ticking = asyncio.create_task(_tick())
        try:
            async for item in feed:
                self._put(item)
                while len(self.left) >= _MOST and not self._stopped:
                    await asyncio.sleep(_TICK_S / 10)
                if self._stopped:
                    return
        except RuntimeError as error:
            if "event loop" not in str(error):
                raise
            msg = (
                f"{self._name}: blocks the event loop, so it is read on a thread with a loop of its own, and uses an "
                f"object of another loop ({error}): give the part that blocks as a plain generator (def), or await "
                "asyncio.to_thread(...) there"
            )
            raise UsageError(msg) from error
        finally:
            ticking.cancel()
            if hasattr(feed, "aclose"):
                await feed.aclose()

    def _put(self, item: Any) -> None:
        self.left.append(of_now(item))  # a generator may use its row again for the next one
        if not self._told:
            self._told = True
            self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._told = False
        self._filled.set()


async def _tick() -> None:
    """Wake the loop now and then: objects that another thread changes do not."""
    while True:
        await asyncio.sleep(_TICK_S)
