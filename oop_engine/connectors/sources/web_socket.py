"""WebSocket: messages that a server sends, until the connection ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.library import library, loaded
from oop_engine.connectors.servers.quiet import quiet_about
from oop_engine.connectors.servers.reasons import refused_by_http, why_not
from oop_engine.connectors.source import Format, LiveSource, Position, is_count
from oop_engine.core.errors import SetupError
from oop_engine.system.addresses import Address

__all__ = ["WebSocket"]

_LOG = logging.getLogger("oop_engine")
_MOST = 1 << 24
"""Bytes of the largest message, unpacked."""
_TOO_BIG = 1009
_REFUSED = (1002, 1003, 1007, 1008, 1010)
"""Codes with which a server ends a connection that it will not have again: protocol, content, policy, extension."""


class WebSocket(LiveSource):
    """The messages of the server at ``url`` (``"wss://host/path"``), in ``format``; needs the package websockets.

    ``first``: a message to be sent at the start, such as a subscription.  A server cannot be asked for the past:
    messages since the last checkpoint are lost with the process, and those while the connection is down, which is
    made again (``again=False``: the stream ends with it).  A message may have 16 MiB, unpacked; a larger one ends the
    service with a line.  ``options`` are those of ``websockets.connect``: ``{"max_size": 1 << 26}`` is another limit.
    Raises ``SetupError`` if the server does not answer at the start, or refuses.
    """

    def __init__(
        self, url: str, format: Format = "jsonl", *, first: str | None = None, again: bool = True,
        options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._url, self.format, self._first, self._again = url, format, first, again
        self._options = {"max_size": _MOST, **(options or {})}
        self._address = Address(url, options)

    def is_position(self, position: Position) -> bool:
        """Return whether a value can be a position: a number of messages."""
        return is_count(position)

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield each message; the position is how many there were."""
        await loaded("websockets.asyncio.client")
        client = library("websockets.asyncio.client", "web", "WebSocket")
        errors = library("websockets.exceptions", "web", "WebSocket")
        count = int(position or 0)
        limits = {"open_timeout": link.ANSWER_S, **self._options}
        with quiet_about(self._address, "websockets.client"):
            while True:
                try:
                    async with client.connect(self._url, **limits) as connection:
                        self._connected = self.link.forgets = True
                        self.link.here()
                        if self._first is not None:
                            await connection.send(self._first)
                        async for message in connection:
                            count += 1
                            yield [message.encode() if isinstance(message, str) else message], count
                    self._closed(connection.close_reason or f"code {connection.close_code}")
                except errors.ConnectionClosed as closed:
                    self._check(closed)
                    self._closed(closed)
                except (errors.WebSocketException, OSError, EOFError) as error:
                    self._failed(error)
                if not self._again:
                    return
                await self.link.pause()

    _connected = False

    def _closed(self, reason: object) -> None:
        words = self._address.clean(reason)
        if self._again:
            self.link.gone(f"{self._address}: {words}")
        else:
            _LOG.warning("%s: the connection is closed (%s): the source ends", self._address, words)

    def _check(self, closed: Any) -> None:
        """Raise ``SetupError`` if a connection ended for a reason that comes again with the next one."""
        closed_here = closed.sent is not None and not closed.rcvd_then_sent
        if closed_here and closed.sent.code == _TOO_BIG:
            msg = (
                f"{self._address}: a message is larger than {self._options['max_size']:,} bytes: raise the limit "
                '(options={"max_size": ...}), or let the server send smaller ones'
            )
            raise SetupError(msg) from self._address.cause(closed)
        if not closed_here and closed.rcvd is not None and closed.rcvd.code in (_TOO_BIG, *_REFUSED):
            words = self._address.clean(closed.rcvd)
            msg = f"{self._address}: the server refuses this client ({words}): check its name, rights and first message"
            raise SetupError(msg) from self._address.cause(closed)

    def _failed(self, error: Exception) -> None:
        """Record that the server does not answer; raise ``SetupError`` if it never did, or refuses this client."""
        status = getattr(getattr(error, "response", None), "status_code", None)
        if refused_by_http(status) or (status is not None and not self._connected):
            words = self._address.clean(error)
            msg = (
                f"{self._address}: no WebSocket answers ({words}): check the path, the name and the password"
            )
            raise SetupError(msg) from self._address.cause(error)
        if not self._connected:
            raise SetupError(why_not(error, self._address, "WebSocket")) from self._address.cause(error)
        self.link.gone(f"{self._address}: {self._address.clean(error)}")
