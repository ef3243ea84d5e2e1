"""A wire between a client and a server on loopback, which a test cuts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from tests.parts.connectors.servers import free_port

__all__ = ["Wire", "wired"]


class Wire:
    """A way to ``port`` of loopback.

    ``here``: its own port; while it is cut nobody listens there.  ``last``: asked of all that the client sends; once
    it is true, these data get through to the server, and the connection is cut before its answer is here.  ``cuts``:
    how often that happened.
    """

    def __init__(self, port: int, here: int = 0) -> None:
        self._there, self.here, self.cuts = port, here, 0
        self._server: asyncio.Server | None = None
        self._ways = set[asyncio.Task[None]]()
        self.last: Callable[[bytes], bool] | None = None
        self.lose: Callable[[bytes], bool] | None = None
        self.still = False

    async def mend(self) -> None:
        """Let clients connect, always at one port."""
        if self._server is not None:
            return
        self.still = False
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.here)
        self.here = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """End all connections, and take no more."""
        if self._server is not None:
            self._server.close()
            self._server = None
        ways, self._ways = self._ways, set()
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)

    async def greet(
        self, client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:  # fmt: skip
        """Do something before the first data get through: nothing."""

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._ways.add(task)
        there = None
        try:
            back, there = await asyncio.open_connection("127.0.0.1", self._there)
            await self.greet((reader, writer), (back, there))
            answers = asyncio.create_task(self._answered(back, writer))
            try:
                while data := await reader.read(1 << 16):
                    if self.still:
                        continue
                    if self.last is not None and self.last(data):
                        answers.cancel()
                        await asyncio.wait({answers})
                        self.last = None
                        self.cuts += 1
                        there.write(data)
                        await back.read(1)  # it has been done
                        self._cut_soon()
                        await asyncio.Event().wait()
                    there.write(data)
            finally:
                answers.cancel()
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._ways.discard(task)
            for each in filter(None, (writer, there)):
                each.transport.abort()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if self.lose is not None and self.lose(data):
                    self.lose = None
                    self.cuts += 1
                    self._cut_soon()
                    return
                if not self.still:
                    writer.write(data)
            writer.close()

    def _cut_soon(self) -> None:
        asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self.cut()))


@asynccontextmanager
async def wired(port: int, here: int = 0) -> AsyncIterator[Wire]:
    """Have a wire to a port for as long as the block takes; ``here``: its own port, 0: any that is free."""
    wire = Wire(port, here or free_port())
    await wire.mend()
    try:
        yield wire
    finally:
        await wire.cut()
