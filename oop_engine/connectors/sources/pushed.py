"""Pushed: a stream that the program pushes, row by row, into a service that runs in its event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from threading import get_ident
from typing import Any

from oop_engine.connectors.source import Format, LiveSource, Position, is_count
from oop_engine.core.errors import UsageError
from oop_engine.runners.feeds.of_now import of_now, parts_of_now
from oop_engine.system.knobs import knob

__all__ = ["Pushed"]

_PART = knob(__name__, "_PART", 4096, least=2)
"""The most rows that are copied in one turn of the event loop."""
_ENDED, _STOPPED = "the stream has ended", "the service has ended"
_LOST = "the service ended before these rows were kept"


class Pushed(LiveSource):
    """All that is given to ``push``, in that order: rows, lists of rows, pages, punctuation, or data of ``format``.

    ``room``: how many pushes may wait for the service; with more of them ``push`` waits.  It cannot be read again, so
    rows since the last checkpoint are lost with the process; ``Journal(Pushed(), folder)`` has them again.
    Rows that are pushed before the service begins wait for it.  One service at a time reads it::

        calls = Pushed()
        service = asyncio.create_task(serve(graph, {"calls": Journal(calls, "journal")}, sinks, checkpoint="state"))
        await calls.push({"ts": 3, "host": "a"}, kept=True)
    """

    def __init__(self, format: Format = "rows", *, room: int = 1024) -> None:
        if room < 1:
            msg = f"Pushed: room must be 1 push at least; got {room}"
            raise UsageError(msg)
        self.format, self._most = format, room
        self._waiting = deque[tuple[Any, asyncio.Future[None] | None]]()
        self._taken = 0  # the number of the last push that was yielded
        self._unkept = deque[tuple[int, asyncio.Future[None]]]()
        self._closed, self._ended = False, False
        self._filled, self._turns = asyncio.Event(), deque[asyncio.Future[None]]()
        self._home: tuple[asyncio.AbstractEventLoop, int] | None = None
        self._one = asyncio.Lock()

    async def push(self, data: Any, *, kept: bool = False) -> None:
        """Hand over a row or several; returns when the service will read them, or with ``kept`` has them for good.

        ``kept``: in the journal, in a checkpoint, or, of a service without either, in its sinks at its end.  Cancelled
        before it is handed over, nothing of it is; cancelled behind that, it is read all the same.
        Raises ``UsageError`` if the service has ended, or ends before it was kept.
        """
        self._check()
        row = await self._of_now(data)
        first = False
        while len(self._waiting) >= self._most:
            await self._turn(first=first)
            self._check()
            first = True  # somebody else was quicker
        done = asyncio.get_running_loop().create_future() if kept else None
        self._waiting.append((row, done))
        self._filled.set()
        if done is not None:
            await asyncio.shield(done)

    async def _turn(self, *, first: bool) -> None:
        """Wait until a push was taken, which wakes one who waits: of thousands all would look for each."""
        turn = asyncio.get_running_loop().create_future()
        self._turns.insert(0, turn) if first else self._turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was woken, and is not going to take the place
                self._wake_one()
            raise

    def _wake_one(self) -> None:
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _of_now(self, data: Any) -> Any:
        """Return the data as they are now; of a long list some rows a turn, later pushes behind it."""
        parts = parts_of_now(data, _PART)
        if parts is None and not self._one.locked():
            return of_now(data)
        async with self._one:
            if parts is None:
                return of_now(data)
            rows = list[Any]()
            for part in parts:
                rows += part
                await asyncio.sleep(0)
        self._check()
        return rows

    def push_threadsafe(self, data: Any, *, kept: bool = False) -> Future[None]:
        """Push from another thread; ``result()`` of the value waits as ``push`` does.

        Raises ``UsageError`` before the service has begun.
        """
        if self._home is None:
            msg = f"{self._place}: push_threadsafe is for a service that runs: start serve(...) first"
            raise UsageError(msg)
        return asyncio.run_coroutine_threadsafe(self.push(data, kept=kept), self._home[0])

    def end(self) -> None:
        """End the stream behind all that was pushed; later pushes are refused.  Any thread may call it."""
        self._ended = True
        if self._home is not None and get_ident() != self._home[1]:
            self._home[0].call_soon_threadsafe(self._wake)
        else:
            self._wake()

    def is_position(self, position: Position) -> bool:
        """Return whether a value can be a position: a number of pushes."""
        return is_count(position)

    async def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        """Yield each push with its number, counted on from those of the services before."""
        self._home = asyncio.get_running_loop(), get_ident()
        self._taken, self._closed = position or 0, False
        try:
            while self._waiting or not self._ended:
                while self._waiting:
                    yield self._take()
                if not self._ended:
                    self._filled.clear()
                    await self._filled.wait()
        finally:
            self._closed = True
            self._wake()

    def rest(self) -> list[tuple[Any, Position]]:
        """Return the pushes that were handed over and not read, each with its number."""
        return [self._take() for _ in range(len(self._waiting))]

    async def acknowledge(self, position: Position) -> None:
        """Resume the callers that wait until their rows are stored."""
        while self._unkept and self._unkept[0][0] <= (position or 0):
            _, done = self._unkept.popleft()
            if not done.done():
                done.set_result(None)

    async def close(self) -> None:
        """Refuse those that still wait: the service is over."""
        self._closed, self._home = True, None
        waiting = [
            done for _, done in [*self._waiting, *self._unkept] if done is not None and not done.done()
        ]
        self._unkept.clear()
        self._waiting.clear()
        for done in waiting:
            done.set_exception(self._over(_LOST))
            done.exception()  # who was cancelled does not ask for it
        self._wake()

    def _take(self) -> tuple[Any, int]:
        data, done = self._waiting.popleft()
        self._taken += 1
        if done is not None:
            self._unkept.append((self._taken, done))
        self._wake_one()
        return data, self._taken

    def _wake(self) -> None:
        self._filled.set()
        while self._turns:
            self._wake_one()

    def _check(self) -> None:
        """Raise ``UsageError`` unless rows are taken here and now."""
        if self._home is not None and get_ident() != self._home[1]:
            msg = f"{self._place}: its service runs on another thread: from here call push_threadsafe(row).result()"
            raise UsageError(msg)
        if self._ended or self._closed:
            raise self._over(_ENDED if self._ended else _STOPPED)

    def _over(self, words: str) -> UsageError:
        return UsageError(f"{self._place}: {words}: push into a service that runs")

    @property
    def _place(self) -> str:
        return self.link.name
