"""WebSocket: messages that a server sends, until the connection ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

from oop_engine.connectors.library import library
from oop_engine.connectors.refusals import REFUSED_BY_HTTP
from oop_engine.connectors.source import Format, LiveSource, Position
from oop_engine.core.errors import SetupError

__all__ = ["WebSocket"]

_LOG = logging.getLogger("oop_engine")


class WebSocket(LiveSource):
    """The messages of the server at ``url`` (``"wss://host/path"``), in ``format``; needs the package websockets.

    ``first``: a message to be sent at the start, such as a subscription.  A server cannot be asked for the past:
    messages since the last checkpoint are lost with the process, and those while the connection is down, which is
    made again (``again=False``: the stream ends with it).  ``options`` are those of ``websockets.connect``. Raises
    ``SetupError`` if the server does not answer at the start, or refuses.
    """

    def __init__(
        self, url: str, format: Format = "jsonl", *, first: str | None = None, again: bool = True,
        options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._url, self.format, self._first, self._again = url, format, first, again
        self._options = options or {}

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield each message; the position is how many there were."""
        client = library("websockets.asyncio.client", "web", "WebSocket")
        errors = library("websockets.exceptions", "web", "WebSocket")
        count = int(position or 0)
        while True:
            try:
                async with client.connect(self._url, **self._options) as connection:
                    self._connected = True
                    self.link.here()
                    if self._first is not None:
                        await connection.send(self._first)
                    async for message in connection:
                        count += 1
                        yield [message.encode() if isinstance(message, str) else message], count
            except errors.ConnectionClosed as closed:
                if self._again:
                    self.link.gone(f"{self._url}: {closed}")
                else:
                    _LOG.warning("%s: the connection is closed (%s): the source ends", self._url, closed)
            except (errors.WebSocketException, OSError) as error:
                self._failed(error)
            if not self._again:
                return
            await self.link.pause()

    _connected = False

    def _failed(self, error: Exception) -> None:
        """Learn that the server does not answer; raise ``SetupError`` if it never did, or refuses this client."""
        status = getattr(getattr(error, "response", None), "status_code", None)
        if not self._connected or status in REFUSED_BY_HTTP:
            msg = f"{self._url}: no WebSocket answers ({error}): give the address of a server that runs"
            raise SetupError(msg) from error
        self.link.gone(f"{self._url}: {error}")
