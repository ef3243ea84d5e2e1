"""NATS client: a connection, or the reason why there is none, also where a certificate is not trusted."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from oop_engine.connectors.link import NotReadyError

__all__ = ["headers_of", "nats_closed", "nats_connected"]

_CLOSE_S = 1.0
"""Seconds for a client to close, and for each try to end its tasks."""


async def nats_connected(
    nats: Any, server: str, error_cb: Callable[[Exception], Awaitable[None]], **options: Any
) -> Any:
    """Return a client of the module ``nats``; raises its errors, and ``ssl.SSLError``, for which it waits for ever.

    Raises ``NotReadyError`` for a server that has no room for one more client.
    """
    failed: asyncio.Future[ssl.SSLError] = asyncio.get_running_loop().create_future()

    async def heard(error: Exception) -> None:
        await error_cb(error)
        if isinstance(error, ssl.SSLError) and not failed.done():
            failed.set_result(error)

    client = nats.NATS()
    client._parse_header_lines = _Headers.read
    connecting = asyncio.ensure_future(client.connect(server, error_cb=heard, **options))
    try:
        await asyncio.wait({connecting, failed}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not connecting.done():
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
        if connecting.cancelled() or connecting.exception() is not None:
            await nats_closed(client)
    if failed.done() and connecting.cancelled():
        raise failed.result()
    try:
        await connecting
    except (OSError, nats.errors.Error):
        if await _is_full(server):
            msg = "maximum connections exceeded"
            raise NotReadyError(msg) from None
        raise
    return client


class _Headers(dict[str, str]):
    """The headers of a message as the package has them; ``pairs``: name and bytes of each, in their order.

    The package itself replaces bytes that are no UTF-8, and has one header of a name.
    """

    pairs: list[tuple[str, bytes]]

    @classmethod
    def read(cls, raw: bytes) -> _Headers:
        """Return the headers in some lines."""
        lines = (line.partition(b":") for line in raw.split(b"\r\n"))
        pairs = [
            (name.strip().decode(errors="replace"), value.strip()) for name, colon, value in lines if colon
        ]
        headers = cls((name, value.decode(errors="replace")) for name, value in pairs)
        headers.pairs = pairs
        return headers


def headers_of(message: Any) -> list[tuple[str, bytes]]:
    """Return name and value of each header of a message."""
    if isinstance(headers := message.headers or {}, _Headers):
        return headers.pairs
    return [(name, value.encode()) for name, value in headers.items()]


async def _is_full(server: str) -> bool:
    """Return whether a server has no room for one more client: the library tells only that the connection was reset."""
    parts = urlsplit(server if "://" in server else f"nats://{server}")
    with suppress(OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
        async with asyncio.timeout(_CLOSE_S):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 4222)
            try:
                await reader.readuntil(b"\r\n")  # about the server
                return b"maximum connections exceeded" in await reader.readuntil(b"\r\n")
            finally:
                writer.close()
    return False


async def nats_closed(client: Any) -> None:
    """Close a client, and end its tasks: it leaves some where the server has gone, or is silent."""
    tasks = {
        task
        for task in [*vars(client).values(), *_of_subscriptions(client)]
        if isinstance(task, asyncio.Task)
    }
    tasks.discard(asyncio.current_task())
    try:
        with suppress(Exception):  # it may write to a connection that is closed
            async with asyncio.timeout(_CLOSE_S):
                await client.close()
    finally:
        while tasks := {task for task in tasks if not task.done()}:
            for task in tasks:
                task.cancel()  # again, if it gets over that
            await asyncio.wait(tasks, timeout=_CLOSE_S)


def _of_subscriptions(client: Any) -> list[Any]:
    return [getattr(each, "_wait_for_msgs_task", None) for each in getattr(client, "_subs", {}).values()]
