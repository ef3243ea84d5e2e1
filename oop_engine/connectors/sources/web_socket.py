"""WebSocket: messages that a server sends, until the connection ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

from oop_engine.connectors.library import library
from oop_engine.connectors.source import LiveSource, Position
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
        self, url: str, format: str = "jsonl", *, first: str | None = None, again: bool = True,
        options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._url, self.format, self._first, self._again = url, format, first, again
        self._options = options or {}

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield each message; the position is how many there were."""
        client = library("websockets.asyncio.client", "web", "WebSocket")
        errors = library("websockets.exceptions", "web", "WebSocket")
        count, connected = int(position or 0), False
        try:
            async for connection in client.connect(
                self._url, process_exception=self._patience, **self._options
            ):
                connected = self._connected = True
                self.link.here()
                try:
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
                finally:
                    await connection.close()
                if not self._again:
                    return
        except (errors.WebSocketException, OSError) as error:
            if connected:
                raise
            msg = f"{self._url}: no WebSocket answers ({error}): give the address of a server that runs"
            raise SetupError(msg) from error

    _connected = False

    def _patience(self, error: Exception) -> Exception | None:
        """Return an error that ends the stream; None: try again, after a while."""
        return None if self._connected else error
