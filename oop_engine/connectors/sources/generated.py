"""Generated: a stream that a function of Python makes."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any

from oop_engine.connectors.source import LiveSource, Position
from oop_engine.core.errors import UsageError

__all__ = ["Generated", "Replayed"]


class Generated(LiveSource):
    """Whatever ``feed`` yields: pages, punctuation, Arrow data, dictionaries, or bytes of another ``format``.

    It cannot be read again: after a crash it goes on with the next item.
    """

    def __init__(self, feed: AsyncIterable[Any], format: str = "rows") -> None:
        self._feed, self.format = feed, format

    async def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        """Yield each item; the position is how much has come in this process and those before."""
        count = int(position or 0)
        async for data in self._feed:
            count += 1
            yield data, count
        if hasattr(self._feed, "aclose"):
            await self._feed.aclose()


class Replayed(LiveSource):
    """The items of ``make(count)``, an asynchronous iterable that goes on behind the first ``count`` items.

    It can be read again, so nothing is lost with a process, and nothing is counted twice.
    """

    replayable = True

    def __init__(self, make: Callable[[int], AsyncIterable[Any]], format: str = "rows") -> None:
        self._make, self.format = make, format

    async def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        """Yield items, each with how many there were up to it."""
        if not isinstance(position, int | None):
            msg = f"a replayed source goes on from a number of items; got {position!r}: is the checkpoint another's?"
            raise UsageError(msg)
        count = position or 0
        async for data in self._make(count):
            count += 1
            yield data, count
