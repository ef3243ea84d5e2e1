"""TCP lines: whole lines that clients send to a port, or that a server sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

from oop_engine.connectors.alive import keep_alive
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.core.errors import SetupError

__all__ = ["TcpLines"]

_LONGEST = 1 << 22


class TcpLines(LiveSource):
    """Lines of ``format`` from the clients of ``host:port``; with ``connect=True`` from the server there.

    Neither can be asked for the past: lines since the last checkpoint are lost with the process.  Without
    ``connect`` any number of clients may come and go, and the stream never ends; with it, it ends with the connection.
    Raises ``SetupError`` if the port is taken, or nobody is there.
    """

    by_lines = True

    def __init__(self, host: str, port: int, format: str = "jsonl", *, connect: bool = False) -> None:
        self.host, self.port, self.format, self._connect = host, port, format, connect

    async def read(self, position: Position) -> AsyncIterator[tuple[bytes, Position]]:
        """Yield lines as they come; the position is how many bytes there were."""
        count = int(position or 0)
        waiting: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=64)
        async with AsyncExitStack() as stack:
            await self._open(waiting, stack)
            while (lines := await waiting.get()) is not None:
                count += len(lines)
                yield lines, count

    async def _open(self, waiting: asyncio.Queue[bytes | None], stack: AsyncExitStack) -> None:
        """Listen, or connect; all that is opened is closed with ``stack``."""
        pumps: set[asyncio.Task[Any]] = set()
        stack.push_async_callback(_cancelled, pumps)
        try:
            if self._connect:
                found = await asyncio.open_connection(self.host, self.port)
                pumps.add(asyncio.create_task(_pump(*found, waiting, last=True)))
                return

            async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.current_task()
                assert task is not None
                pumps.add(task)
                await _pump(reader, writer, waiting)
                pumps.discard(task)

            server = await asyncio.start_server(take, self.host, self.port)
        except OSError as error:
            does = "connected to" if self._connect else "listened at"
            msg = (
                f"{self.host}:{self.port} cannot be {does} ({error.strerror or error}): give another address"
            )
            raise SetupError(msg) from error
        stack.callback(server.close)
        self.port = server.sockets[0].getsockname()[1]


async def _cancelled(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    waiting: asyncio.Queue[bytes | None],
    *,
    last: bool = False,
) -> None:
    """Put whole lines of a connection into the queue; a full queue makes the sender wait."""
    rest = b""
    keep_alive(writer.get_extra_info("socket"))
    try:
        while data := await reader.read(1 << 16):
            whole, newline, rest = (rest + data).rpartition(b"\n")
            if newline:
                await waiting.put(whole + newline)
            if len(rest) > _LONGEST:
                break  # no line is that long: let the sender know
        if rest:
            await waiting.put(rest + b"\n")
    except OSError:  # the connection broke, or nobody is there any more
        pass  # the lines that came whole are in the queue
    finally:
        writer.close()
    if last:
        await waiting.put(None)
