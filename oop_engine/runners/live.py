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
from oop_engine.core.punctuation import NEVER
from oop_engine.core.ticks import Ticks
from oop_engine.runners.feeds.forms import Intake
from oop_engine.runners.local import Local
from oop_engine.runners.schedule import check_arrivals, cut_page, moment

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

    async def read(self, feeds: Mapping[str, tuple[Intake, Any]]) -> None:
        """Run the graph to the end of all feeds, each given with the intake of its source.

        Raises the first error, after all tasks have ended and asynchronous feeds have been closed.
        """
        async with self._runner, asyncio.TaskGroup() as readers:
            for source, (intake, feed) in feeds.items():
                readers.create_task(self._read(source, intake, feed, readers), name=f"feed {source}")

    async def _read(self, source: str, intake: Intake, feed: Any, tasks: asyncio.TaskGroup) -> None:
        """Push all that comes; rows wait for each other until the feed waits for more."""
        one_at_a_time, last, soon = asyncio.Lock(), NEVER, False

        async def push(ready: Iterable[Message]) -> None:
            nonlocal last
            for message in ready:
                last = await self._push(source, message, last)

        async def push_rows() -> None:
            nonlocal soon
            async with one_at_a_time:
                soon = False
                await push(intake.flush())

        async with AsyncExitStack() as stack:
            if hasattr(feed, "aclose"):
                stack.push_async_callback(feed.aclose)
            if not isinstance(feed, AsyncIterable):
                await push(intake.messages(feed))
                feed = _nothing()
            async for given in feed:
                if ready := intake.add(given):
                    async with one_at_a_time:
                        await push(ready)
                if intake.waiting and not soon:
                    soon = True
                    tasks.create_task(push_rows(), name=f"rows of {source}")
        await push_rows()
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
            if self._arrivals and (arrival := moment(source, message, last)) > last:
                await self._tick(last := arrival)
            bare = message.without_arrival() if isinstance(message, Page) else message
            await self._runner.push(source, bare)
        self._see(source, message)
        return last

    async def _tick(self, now: int) -> None:
        """Advance the clock to ``now``; one reader at a time, so that it never goes back."""
        if self._clock is None:
            return
        async with self._clock_moves:
            self._clock.start(now)
            for tick in self._clock.up_to(now):
                await self._runner.clock(tick)


async def _nothing() -> AsyncIterator[Any]:
    return
    yield
