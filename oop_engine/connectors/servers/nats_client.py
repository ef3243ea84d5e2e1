"""NATS client: a connection, or the reason why there is none, also where a certificate is not trusted."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["nats_connected"]


async def nats_connected(
    nats: Any, server: str, error_cb: Callable[[Exception], Awaitable[None]], **options: Any
) -> Any:
    """Return a client of the module ``nats``; raises its errors, and ``ssl.SSLError``, for which it waits for ever."""
    failed: asyncio.Future[ssl.SSLError] = asyncio.get_running_loop().create_future()

    async def heard(error: Exception) -> None:
        await error_cb(error)
        if isinstance(error, ssl.SSLError) and not failed.done():
            failed.set_result(error)

    connecting = asyncio.ensure_future(nats.connect(server, error_cb=heard, **options))
    try:
        await asyncio.wait({connecting, failed}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not connecting.done():
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
    if failed.done() and connecting.cancelled():
        raise failed.result()
    return await connecting
