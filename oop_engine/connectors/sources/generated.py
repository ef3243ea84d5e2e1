"""Generated: a stream that a function of Python makes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any, TypeAlias

import pyarrow as pa

from oop_engine.connectors.message_format import shown
from oop_engine.connectors.source import Format, LiveSource, Position, is_count
from oop_engine.connectors.sources.on_thread import ThreadReader
from oop_engine.core.errors import UsageError
from oop_engine.runners.feeds.forms import RING
from oop_engine.runners.feeds.kinds import is_whole
from oop_engine.runners.feeds.of_now import of_now
from oop_engine.traces.trace import Trace

__all__ = ["Feed", "Generated", "Replayed", "is_feed"]

Feed: TypeAlias = AsyncIterable[Any] | Iterable[Any]


class _OfFeed(LiveSource):
    """The base of sources that read a feed; ``_left`` are its items that were read and not yielded before a stop."""

    moves = True
    _count = 0
    _reader: ThreadReader | None = None

    async def _numbered(self, feed: Feed, count: int) -> AsyncGenerator[tuple[Any, int]]:
        """Yield each item with its number; those of a plain feed, or of one that blocks the event loop, on a thread."""
        if isinstance(feed, AsyncIterable):
            items = aiter(feed)
            try:
                async for item in items:
                    count += 1
                    self.lends = item.__class__ is list and len(item) > RING
                    yield item if self.lends else of_now(item), count
                    if self.blocks:
                        break
                else:
                    return
            finally:
                if not self.blocks and hasattr(items, "aclose"):
                    await items.aclose()
            feed = items
        elif is_whole(feed) or isinstance(feed, list | tuple | Trace):
            given = feed.read(self._refused) if isinstance(feed, Trace) else feed
            for item in given if not is_whole(feed) else (feed,):
                count += 1
                yield item, count
            return
        self.lends = False
        self._reader, self._count = ThreadReader(self.link.name, feed), count
        async with aclosing(self._reader.items()) as rows:
            async for item in rows:
                self._count += 1
                yield item, self._count

    def _refused(self, number: int, rows: pa.RecordBatch, reason: str) -> None:
        """Hand rows that a trace refuses to the dead letters."""
        if self.unreadable is not None:
            self.unreadable(reason, shown(rows), rows.num_rows)

    def rest(self) -> list[tuple[Any, Position]]:
        """Return the items that a thread has read and that were not yielded, each with its number."""
        if self._reader is None:
            return []
        items = [*self._reader.left]
        self._reader.left.clear()
        first = self._count + 1
        self._count += len(items)
        return list(zip(items, range(first, self._count + 1), strict=True))

    def is_position(self, position: Position) -> bool:
        """Return whether a value can be a position: a number of items."""
        return is_count(position)


class Generated(_OfFeed):
    """Whatever ``feed`` yields: pages, punctuation, Arrow data, rows, or bytes of another ``format``.

    ``feed``: an iterable, which is read on a thread, as it may block; or an asynchronous one, read in the event loop of
    the service, and on a thread once it has blocked that for 50 ms and awaited nothing so far.
    It cannot be read again: after a crash it goes on with the next item.
    """

    def __init__(self, feed: Feed, format: Format = "rows") -> None:
        if not is_feed(feed):
            msg = f"Generated: must be a LiveSource or an iterable of rows; got {type(feed).__name__}"
            raise UsageError(msg)
        self._feed, self.format = feed, format

    def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        """Yield each item; the position is how much has come in this process and those before."""
        return self._numbered(self._feed, int(position or 0))


class Replayed(_OfFeed):
    """The items of ``make(count)``, an iterable of either kind (``Generated``) that begins behind ``count`` items.

    It can be read again, so nothing is lost with a process, and nothing is counted twice.
    """

    replayable = True

    def __init__(self, make: Callable[[int], Feed], format: Format = "rows") -> None:
        self._make, self.format = make, format

    def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        """Yield items, each with how many there were up to it."""
        if not isinstance(position, int | None):
            msg = f"a replayed source resumes from a number of items; got {position!r}: is the checkpoint another's?"
            raise UsageError(msg)
        count = position or 0
        return self._numbered(self._make(count), count)


def is_feed(given: object) -> bool:
    """Return whether an object is a feed: an iterable of items, or one item as a whole."""
    return is_whole(given) or (
        isinstance(given, AsyncIterable | Iterable) and not isinstance(given, str | bytes)
    )
