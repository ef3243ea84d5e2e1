"""Live: asynchronous feeds, each read by a task of its own, pushed into a graph as they come.

Nothing is put in order between feeds, for a silent one may still bring earlier tuples.  The arrival clock shows the
latest arrival that has come from any of them, so a ``Heartbeat`` behind a silent feed goes on while another one brings
something.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.plain import is_arrow
from oop_engine.core.punctuation import NEVER
from oop_engine.core.schema import Schema
from oop_engine.core.ticks import Ticks
from oop_engine.runners.door import messages
from oop_engine.runners.local import Local
from oop_engine.runners.schedule import check_arrivals, cut_page

__all__ = ["Live"]


class Live:
    """Reads feeds into ``runner``; the clock ticks every ``ticks`` (None: never).

    ``see`` is called with each message that has gone in.  Without ``arrivals`` pages lose theirs.
    """

    def __init__(
        self, runner: Local, ticks: int | None, see: Callable[[str, Message], None], *, arrivals: bool = True
    ) -> None:
        self._runner, self._see, self._arrivals = runner, see, arrivals
        self._clock = None if ticks is None else Ticks(ticks)
        self._clock_moves = asyncio.Lock()

    async def read(self, feeds: Mapping[str, tuple[Schema, Any]]) -> None:
        """Run the graph to the end of all feeds, each given with the schema of its source.

        Raises the first error, after all tasks have ended and asynchronous feeds have been closed.
        """
        async with self._runner, asyncio.TaskGroup() as readers:
            for source, (schema, feed) in feeds.items():
                readers.create_task(self._read(source, schema, feed), name=f"feed {source}")

    async def _read(self, source: str, schema: Schema, feed: Any) -> None:
        last = NEVER
        async with AsyncExitStack() as stack:
            if hasattr(feed, "aclose"):
                stack.push_async_callback(feed.aclose)
            async for given in _each(feed):
                for message in messages(schema, (given,)):
                    last = await self._push(source, message, last)
        await self._runner.end(source)

    async def _push(self, source: str, message: Message, last: int) -> int:
        """Push a message, in parts where the clock ticks in between; return the latest arrival of its source."""
        timed = self._arrivals and isinstance(message, Page) and message.arrival is not None and len(message)
        if isinstance(message, Page) and timed:
            check_arrivals(source, message, last)
            for part in cut_page(message, [] if self._clock is None else [self._clock.every]):
                assert part.arrival is not None
                await self._tick(int(part.arrival[0]))
                await self._runner.push(source, part)
                last = int(part.arrival[-1])
        else:
            bare = message.without_arrival() if isinstance(message, Page) else message
            await self._runner.push(source, bare)
        self._see(source, message)
        return last

    async def _tick(self, now: int) -> None:
        """Let the clock tick up to ``now``; one reader at a time, so that it never goes back."""
        if self._clock is None:
            return
        async with self._clock_moves:
            self._clock.start(now)
            for tick in self._clock.up_to(now):
                await self._runner.clock(tick)


async def _each(feed: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Any]:
    """Yield the items of a feed of either kind; Arrow data as a whole."""
    if isinstance(feed, AsyncIterable):
        async for given in feed:
            yield given
        return
    for given in (feed,) if is_arrow(feed) else feed:
        yield given
