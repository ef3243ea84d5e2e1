"""TCP lines: whole lines that clients send to a port, or that a server sends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import cast

from oop_engine.connectors.alive import keep_alive
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.source import Format, LiveSource, Position, is_count
from oop_engine.core.errors import SetupError
from oop_engine.system.addresses import printable
from oop_engine.system.knobs import knob

__all__ = ["TcpLines"]

_LOG = logging.getLogger("oop_engine")
_LONGEST = 1 << 22
_MOST = knob(__name__, "_MOST", 1 << 22)
"""Bytes that may wait to be taken: with more, senders have to wait."""


class TcpLines(LiveSource):
    """Lines of ``format`` from the clients of ``host:port``; with ``connect=True`` from the server there.

    Neither can be asked for the past: lines since the last checkpoint are lost with the process.  Without
    ``connect`` any number of clients may come and go, and the stream never ends.  With it, the stream ends where the
    server closes the connection, with a line; a connection that is cut is made again, and with ``again=True`` a closed
    one, too: lines that the server sends meanwhile are lost.  Raises ``SetupError`` if the port is taken, or nobody is
    there.
    """

    by_lines = True
    gathers = True

    def __init__(
        self, host: str, port: int, format: Format = "jsonl", *, connect: bool = False, again: bool = False
    ) -> None:
        self.host, self.port, self.format = host, port, format
        self._connect, self._again = connect, again
        self._waiting: _Waiting | None = None
        self._count = 0

    def is_position(self, position: Position) -> bool:
        """Return whether a value can be a position: a number of bytes."""
        return is_count(position)

    async def read(self, position: Position) -> AsyncIterator[tuple[bytes, Position]]:
        """Yield lines as they come; the position is how many bytes there were."""
        self._count = int(position or 0)
        self._waiting = waiting = _Waiting(ends=self._connect)
        waiting.refuse = self._refuse
        async with AsyncExitStack() as stack:
            stack.callback(waiting.close)
            await self._open(waiting, stack)
            while lines := await waiting.take():
                self._count += len(lines)
                yield lines, self._count
        self._ended(waiting.cut)

    def rest(self) -> list[tuple[bytes, Position]]:
        """Return whole lines that came and that ``read`` had not yielded when it was closed."""
        lines = b"" if self._waiting is None else self._waiting.taken()
        self._count += len(lines)
        return [(lines, self._count)] if lines else []

    def _refuse(self, reason: str, line: bytes) -> None:
        if self.unreadable is not None:
            self.unreadable(reason, line[:1000].decode(errors="replace"), 1)

    def _ended(self, cut: Exception | None) -> None:
        """Log that the connection has ended, or raise ``UnreachableError`` where the source connects again."""
        why = "the server has closed the connection" if cut is None else getattr(cut, "strerror", None) or cut
        if self._again or cut is not None:
            msg = f"{self._place}: {why}"
            raise UnreachableError(msg)
        words = "%s: %s: %s, so the source ends; with again=True (?again=yes) it connects again"
        _LOG.warning(words, self.link.name, self._place, why)

    @property
    def _place(self) -> str:
        return printable(f"{self.host}:{self.port}")

    async def _open(self, waiting: _Waiting, stack: AsyncExitStack) -> None:
        """Listen, or connect; all that is opened is closed with ``stack``."""
        loop = asyncio.get_running_loop()
        try:
            if self._connect:
                await loop.create_connection(lambda: _Client(waiting), self.host, self.port)
                self.link.forgets = True
                self.link.here()
                return
            server = await loop.create_server(lambda: _Client(waiting), self.host, self.port)
        except OSError as error:
            does = "connected to" if self._connect else "listened at"
            msg = f"{self._place} cannot be {does} ({error.strerror or error}): give another address"
            raise (UnreachableError if self._connect else SetupError)(msg) from error
        stack.callback(server.close)
        self.port = server.sockets[0].getsockname()[1]


class _Waiting:
    """Lines that have come; ``ends``: the stream does with the first client; ``cut``: why its connection was cut."""

    def __init__(self, *, ends: bool) -> None:
        self._ends, self._over, self._full = ends, False, False
        self.cut: Exception | None = None
        self._lines, self._bytes = list[bytes](), 0
        self._filled = asyncio.Event()
        self._clients = set[_Client]()
        self.refuse: Callable[[str, bytes], None] = lambda reason, line: None

    async def take(self) -> bytes:
        """Return all lines that have come, b"" at the end; waits until there is one."""
        while not (self._lines or self._over):
            self._filled.clear()
            await self._filled.wait()
        if self._full:
            self._full = False
            for client in self._clients:
                client.transport.resume_reading()
        return self.taken()

    def taken(self) -> bytes:
        """Return all lines that have come, b"" if there are none."""
        lines, self._lines, self._bytes = self._lines, [], 0
        return lines[0] if len(lines) == 1 else b"".join(lines)

    def put(self, lines: bytes) -> None:
        self._lines.append(lines)
        self._bytes += len(lines)
        self._filled.set()
        if self._bytes > _MOST and not self._full:
            self._full = True
            for client in self._clients:
                client.transport.pause_reading()

    def come(self, client: _Client) -> None:
        self._clients.add(client)
        if self._full:
            client.transport.pause_reading()

    def gone(self, client: _Client, error: Exception | None) -> None:
        self._clients.discard(client)
        self.cut = error
        self._over = self._over or self._ends
        self._filled.set()

    def close(self) -> None:
        for client in self._clients:
            client.transport.close()


class _Client(asyncio.Protocol):
    """A connection: its whole lines go to those that wait, at once."""

    transport: asyncio.Transport

    def __init__(self, waiting: _Waiting) -> None:
        self._waiting, self._rest = waiting, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        keep_alive(transport.get_extra_info("socket"))
        self._waiting.come(self)

    def data_received(self, data: bytes) -> None:
        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if newline:
            self._waiting.put(whole + newline)
        if len(self._rest) > _LONGEST:  # cut, it could be another row
            self._waiting.refuse(f"a line must be shorter than {_LONGEST:,} bytes", self._rest)
            self._rest = b""
            self.transport.close()  # let the sender know

    def connection_lost(self, error: Exception | None) -> None:
        """Put the rest behind the last line, too; where the connection was cut, it is refused."""
        if self._rest and error is None:
            self._waiting.put(self._rest + b"\n")
        elif self._rest:
            self._waiting.refuse("the connection was cut within a line", self._rest)
        self._waiting.gone(self, error)
