"""Server-sent events: data of an HTTP stream, with ids to go on from where the server knows them."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from oop_engine.connectors import link
from oop_engine.connectors.alive import keep_alive
from oop_engine.connectors.library import library, loaded
from oop_engine.connectors.payload import Payload
from oop_engine.connectors.servers.event_stream import EventStream
from oop_engine.connectors.servers.inflating import inflating
from oop_engine.connectors.servers.quiet import quiet_about
from oop_engine.connectors.servers.reasons import refused_by_http, why_not
from oop_engine.connectors.source import Format, LiveSource, Position
from oop_engine.core.errors import SetupError
from oop_engine.system.addresses import Address
from oop_engine.system.on_thread import on_thread

__all__ = ["ServerEvents"]

_LOG = logging.getLogger("oop_engine")
_AGAIN_S, _MOST_S = 1.0, 60.0
_MOST = 1 << 24
"""Bytes of the largest event."""
_KIND = "text/event-stream"
_OVER = 204  # No Content: the server wants no more requests


class ServerEvents(LiveSource):
    """The events of the stream at ``url`` (SSE), their data in ``format``; needs the package httpx.

    ``event``: those of this kind alone.  The position is the id of an event, if the server gives ids: it is asked to
    go on behind it (``Last-Event-ID``); whether it does is the server's affair, so events since the last checkpoint
    may be lost.  A connection that ends is made again (``again=False``: the stream ends with it), after a second, or
    as long as the server's ``retry`` tells; with the code 204 the stream ends.  Events are parsed as WHATWG HTML (9.2)
    has it; one of more than 16 MiB is a dead letter.

    ``options`` are those of ``httpx.AsyncClient``: where a server sends a comment now and then, ``{"timeout":
    httpx.Timeout(10, read=60)}`` makes it anew when none comes any more.  Raises ``SetupError`` if the server does not
    answer at the start, refuses, or answers with another kind of content than a stream of events.  A schema may have
    columns of the event: ``_event`` (its type) and ``_id``.
    """

    replayable = True  # of servers that go on behind an id
    metadata = MappingProxyType({"_event": pa.string(), "_id": pa.string()})

    def __init__(
        self, url: str, format: Format = "jsonl", *, event: str | None = None, again: bool = True,
        options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._url, self.format, self._event, self._again = url, format, event, again
        self._options = options or {}
        self._address = Address(url, self._options)
        self._connected = self._over = self._warned = self._told = False
        self._pause_s = _AGAIN_S

    def is_position(self, position: Position) -> bool:
        """Return whether a value can be a position: an id."""
        return isinstance(position, str)

    async def latest(self) -> Position:
        """Return None: without an id a server sends events from now on."""
        return None

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield the data of each event, with the last id that there was."""
        await loaded("httpx")
        httpx = library("httpx", "web", "ServerEvents")
        last, silent_s = position, _AGAIN_S
        limit = httpx.Timeout(link.ANSWER_S, read=None)
        options = {"timeout": limit, "follow_redirects": True, **self._options}
        with quiet_about(self._address, "httpx"):
            # its certificates are read, .1 s
            async with await on_thread(partial(httpx.AsyncClient, **options)) as client:
                while True:
                    came = False
                    try:
                        async for data, event_id in self._events(client, last):
                            came, last = True, event_id
                            if data is not None:
                                yield [data], last
                    except httpx.HTTPError as error:
                        self._failed(httpx, error)
                        if self._again:
                            await self.link.pause()
                            continue
                    if not self._again or self._over:
                        return
                    self._tell_without_id(last)
                    silent_s = self._pause_s if came else min(2 * silent_s, max(_MOST_S / 6, self._pause_s))
                    await asyncio.sleep(silent_s)  # an answer that has ended is no loss

    def _tell_without_id(self, last: str | None) -> None:
        """Log once that an answer has ended, where the server cannot replay the events before the next one."""
        if last is None and not self._told:
            words = (
                "%s: the answer has ended, and its events have no id: those until the next answer are lost"
            )
            _LOG.warning(words, self._address)
            self._told = True

    async def _events(self, client: Any, last: str | None) -> AsyncIterator[tuple[bytes | None, str | None]]:
        """Yield the data of each event of one answer, None for events of another kind, and the id behind it."""
        headers = {"Accept": _KIND, "Accept-Encoding": "identity", "Cache-Control": "no-store"}
        if last is not None:
            headers |= {"Last-Event-ID": last.strip(" \t").encode()}  # type: ignore[dict-item]
        silent = asyncio.get_running_loop().call_later(link.ANSWER_S, self._warn_of_silence)
        async with AsyncExitStack() as stack:
            stack.callback(silent.cancel)
            answer = await stack.enter_async_context(client.stream("GET", self._url, headers=headers))
            silent.cancel()
            answer.raise_for_status()
            if answer.status_code == _OVER:
                _LOG.warning("%s: the server has ended the stream (code 204)", self._address)
                self._over = True
                return
            unpack = self._checked(answer)
            if (stream := answer.extensions.get("network_stream")) is not None:
                keep_alive(stream.get_extra_info("socket"))
            self._connected, self.link.forgets = True, last is None
            self.link.here()
            events = EventStream(_MOST, self._refuse, last)
            try:
                async for chunk in answer.aiter_raw():
                    for piece in unpack(chunk):
                        for name, data in events.feed(piece):
                            wanted = self._event in (None, name)
                            yield self._payload(name, data, events.last) if wanted else None, events.last
            except zlib.error as error:
                msg = f"{self._address}: the compressed content is damaged ({error})"
                raise SetupError(msg) from error
            if events.pause_s is not None:
                self._pause_s = min(events.pause_s, _MOST_S)

    def _payload(self, name: str, data: bytes, last: str | None) -> bytes:
        return Payload(data, {"_event": name, "_id": last}) if self.wanted else data

    def _warn_of_silence(self) -> None:
        """Warn once of a server that has not begun to answer: some do so with their first event."""
        if not self._warned:
            _LOG.warning("%s: no answer for %g s: waiting for it", self._address, link.ANSWER_S)
        self._warned = True

    def _checked(self, answer: Any) -> Any:
        """Return the function that unpacks an answer; raise ``SetupError`` if it is no stream of events."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _KIND:
            msg = f"{self._address}: no stream of events: its content is {kind or 'of no kind'}, and must be {_KIND}: "
            raise SetupError(msg + "check the path, and whether it wants a login")
        encoding = answer.headers.get("content-encoding", "").strip().lower()
        if (unpack := inflating(encoding)) is None:
            msg = f"{self._address}: its content is packed with {encoding!r}: let the server send it plain, or by gzip"
            raise SetupError(msg)
        return unpack

    def _failed(self, httpx: Any, error: Exception) -> None:
        """Record that the server is away; raise ``SetupError`` if it never answered, or refuses this client."""
        status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
        if refused_by_http(status) or (status is not None and not self._connected):
            words = self._address.clean(error)
            msg = f"{self._address}: no stream of events ({words}): check the path, the name and the password"
            raise SetupError(msg) from self._address.cause(error)
        if not self._connected:
            msg = why_not(error, self._address, "stream of events")
            raise SetupError(msg) from self._address.cause(error)
        if self._again:
            self.link.gone(f"{self._address}: {self._address.clean(error)}")

    def _refuse(self, reason: str, record: bytes) -> None:
        if self.unreadable is not None:
            self.unreadable(reason, record.decode(errors="replace"), 1)
