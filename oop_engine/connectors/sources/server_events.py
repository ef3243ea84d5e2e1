"""Server-sent events: data of an HTTP stream, with ids to go on from where the server knows them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.alive import keep_alive
from oop_engine.connectors.library import library
from oop_engine.connectors.refusals import REFUSED_BY_HTTP
from oop_engine.connectors.source import Format, LiveSource, Position
from oop_engine.core.errors import SetupError

__all__ = ["ServerEvents"]

_AGAIN_S = 1.0


class ServerEvents(LiveSource):
    """The events of the stream at ``url`` (SSE), their data in ``format``; needs the package httpx.

    ``event``: those of this kind alone.  The position is the id of an event, if the server gives ids: it is asked to
    go on behind it (``Last-Event-ID``); whether it does is the server's affair, so events since the last checkpoint
    may be lost.  A connection that ends is made again (``again=False``: the stream ends with it).  ``options`` are
    those of ``httpx.AsyncClient``: where a server sends a comment now and then, ``{"timeout": httpx.Timeout(10,
    read=60)}`` makes it anew when none comes any more.  Raises ``SetupError`` if the server does not answer at the
    start, or refuses.
    """

    replayable = True  # of servers that go on behind an id

    def __init__(
        self, url: str, format: Format = "jsonl", *, event: str | None = None, again: bool = True,
        options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._url, self.format, self._event, self._again = url, format, event, again
        self._options = options or {}

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield the data of each event, with the last id that there was."""
        httpx = library("httpx", "web", "ServerEvents")
        last, connected = position, False
        limit = httpx.Timeout(link.ANSWER_S, read=None)
        async with httpx.AsyncClient(**{"timeout": limit, **self._options}) as client:
            while True:
                headers = {"Accept": "text/event-stream", **({} if last is None else {"Last-Event-ID": last})}
                try:
                    async with client.stream("GET", self._url, headers=headers) as answer:
                        answer.raise_for_status()
                        if (stream := answer.extensions.get("network_stream")) is not None:
                            keep_alive(stream.get_extra_info("socket"))
                        connected = True
                        self.link.here()
                        async for name, data, number in _events(answer.aiter_lines()):
                            last = last if number is None else number
                            if self._event in (None, name):
                                yield [data.encode()], last
                except httpx.HTTPError as error:
                    refused = (
                        isinstance(error, httpx.HTTPStatusError)
                        and error.response.status_code in REFUSED_BY_HTTP
                    )
                    if refused or not connected:
                        msg = f"{self._url}: no stream of events ({error}): give the address of one"
                        raise SetupError(msg) from error
                    if self._again:
                        self.link.gone(f"{self._url}: {str(error) or type(error).__name__}")
                        await self.link.pause()
                        continue
                if not self._again:
                    return
                await asyncio.sleep(_AGAIN_S)  # an answer that has ended is no loss


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str, str | None]]:
    """Yield the name, the data and the id of each event that has data."""
    name, data, number = "message", list[str](), None
    async for line in lines:
        if not line:
            if data:
                yield name, "\n".join(data), number
            name, data, number = "message", [], None
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            number = value
