"""Result rows: the results of a run, row by row, for ``async for``; the run waits for its readers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Self
from weakref import finalize

import pyarrow as pa

from oop_engine.core.errors import UsageError
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.page import Page
from oop_engine.runners.feeds.forms import RING
from oop_engine.system.knobs import knob

__all__ = ["ResultRows"]

_WAITING = knob(__name__, "_WAITING", 64)
"""Pages that nobody has read yet."""


class _Waiting:
    """Pages that nobody has read yet; their writer waits while there are many."""

    def __init__(self) -> None:
        self.pages = deque[Page]()
        self.filled, self.emptied = asyncio.Event(), asyncio.Event()

    async def put(self, page: Page) -> None:
        while len(self.pages) >= _WAITING:
            self.emptied.clear()
            await self.emptied.wait()
        self.pages.append(page)
        self.filled.set()

    def over(self, run: asyncio.Task[None]) -> None:
        self.filled.set()


class ResultRows:
    """The rows of ``run``, a task of its own, which begins with the first read; ``shown``: the columns of a row.

    Nobody who reads holds up the event loop: it runs at least once in ``RING`` rows.  Raises the error of the run, of
    each read from then on.
    """

    def __init__(
        self, run: Callable[[Callable[[Page], Awaitable[None]]], Coroutine[Any, Any, None]],
        shown: Callable[[list[str]], list[str]],
    ) -> None:  # fmt: skip
        self._run, self._shown = run, shown
        self._task: asyncio.Task[None] | None = None
        self._waiting, self._one = _Waiting(), asyncio.Lock()
        self._parts: Iterator[pa.RecordBatch] = iter(())
        self._rows, self._readers, self._since = deque[dict[str, Any]](), 0, 0
        self._stays, self._left, self._cancelled = False, False, False

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        self._stays = True
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def __anext__(self) -> dict[str, Any]:
        """Return the next row that no other task has."""
        self._check_loop()
        self._readers += 1
        try:
            if not self._rows:
                async with self._one:  # the others wait for its rows
                    await self._fill()
        except asyncio.CancelledError:
            if not self._stays and self._readers == 1:
                self._cancelled = not self._left
                await self.aclose()
            raise
        finally:
            self._readers -= 1
        if not self._rows:
            raise self._end()
        return self._rows.popleft()

    async def aclose(self) -> None:
        """Leave the rows that were not read, and wait until nothing of the run goes on; raises an error of that.

        An error that the run had behind those rows is left with them.
        """
        self._check_loop()
        self._left, task = True, self._task
        self._rows.clear()
        self._waiting.filled.set()
        if task is None:
            return
        if task.done():
            task.cancelled() or task.exception()  # else the event loop reports it
            return
        cancelled = None
        while not task.done():
            task.cancel()
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:  # nothing is left open for that
                cancelled = error
        if cancelled is not None:
            raise cancelled
        if not task.cancelled() and (failed := task.exception()) is not None:
            raise failed

    def _check_loop(self) -> None:
        """Raise ``UsageError`` in another event loop than that of the run, which would not wake up."""
        task = self._task
        if task is not None and not task.done() and task.get_loop() is not asyncio.get_running_loop():
            way_out = "asyncio.run_coroutine_threadsafe(anext(rows), loop).result()"
            msg = f"rows: another event loop reads them, of another thread: from here call {way_out}"
            raise UsageError(msg)

    async def _fill(self) -> None:
        """Wait for rows, or for the end."""
        if self._task is None and not self._left:
            self._task = task = asyncio.create_task(self._run(self._waiting.put), name="rows of a query")
            task.add_done_callback(self._waiting.over)
            finalize(self, _leave, task, asyncio.get_running_loop()).atexit = False
        while not self._rows and not self._left:
            if self._since >= RING:
                self._since = 0
                await asyncio.sleep(0)
            elif (part := next(self._parts, None)) is not None:
                self._rows.extend(rows_of(part))
                self._since += len(self._rows)
            elif not await self._next_page():
                return

    async def _next_page(self) -> bool:
        """Wait for the next page; return whether there is one."""
        waiting, task = self._waiting, self._task
        while not waiting.pages and not self._left:
            if task is None or task.done():
                return False
            waiting.filled.clear()
            await waiting.filled.wait()
        if self._left:
            return False
        batch = (page := waiting.pages.popleft()).batch.select(self._shown(page.schema.names))
        waiting.emptied.set()
        self._parts = (batch.slice(at, RING) for at in range(0, len(batch), RING))
        return True

    def _end(self) -> BaseException:
        """Return the error behind the last row."""
        task = self._task
        if self._cancelled or (task is not None and not self._left and task.cancelled()):
            return UsageError(
                "rows: a task that read them was cancelled, and the run with it: under time limits, read them in "
                "`async with query.rows(...) as rows`"
            )
        failed = None if task is None or self._left or not task.done() else task.exception()
        return failed or StopAsyncIteration()


def _leave(task: asyncio.Task[None], loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the run of rows that nobody can read any more."""
    with suppress(RuntimeError):  # the loop is closed, and the run with it
        loop.call_soon_threadsafe(task.cancel)
