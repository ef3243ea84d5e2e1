"""Servers of the web and of lines that are taken away and come back: the service goes on, and tells what is lost.

``OOP_ENGINE_AWAY_S``: for how many seconds they are away.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from oop_engine.connectors.sources import server_events
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import ServerEvents, TcpLines, WebSocket
from tests.children import MOST_S
from tests.parts.connectors.servers import IN_A_ROW
from tests.parts.connectors.test_outages import Server, outage

pytestmark = IN_A_ROW
LOST = "data that it sent meanwhile are lost"


class Talking(Server):
    """A server in this process, that sends each row to those who are there.

    ``cuts``: it goes away by a reset; else connections are closed, as by the system when a process is killed.
    """

    forgets = True

    def __init__(self, folder: Path, *, cuts: bool) -> None:
        super().__init__(folder)
        self.cuts, self.writers, self.rows = cuts, set[Any](), list[int]()

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self.talk, "127.0.0.1", self.port)
        try:
            yield
        finally:
            server.close()
            for writer in self.writers:
                if self.cuts:
                    reset = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                writer.close()
            self.writers.clear()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)

    async def send(self, *times: int) -> None:
        if self.forgets:
            async with asyncio.timeout(MOST_S):
                while not self.writers:
                    await asyncio.sleep(0.01)
        for ts in times:
            self.rows.append(ts)
            for writer in self.writers:
                writer.write(self.framed(ts))

    def framed(self, ts: int) -> bytes:
        return json.dumps({"ts": ts}).encode() + b"\n"


class LinesServer(Talking):
    def source(self) -> LiveSource:
        return TcpLines("127.0.0.1", self.port, connect=True, again=not self.cuts)


class EventsServer(Talking):
    """Of events without ids, in an answer without an end."""

    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        writer.write(self.head + b"".join(map(self.framed, self.missed(asked))))
        await super().talk(reader, writer)

    def missed(self, asked: str) -> list[int]:
        return []

    def framed(self, ts: int) -> bytes:
        return b'data: {"ts": %d}\n\n' % ts

    def source(self) -> LiveSource:
        return ServerEvents(f"http://127.0.0.1:{self.port}/", options={"trust_env": False})


class EventsOfIds(EventsServer):
    """It goes on behind the last id."""

    forgets = False

    def missed(self, asked: str) -> list[int]:
        _, there, rest = asked.partition("last-event-id: ")
        return self.rows[int(rest.partition("\r")[0]) + 1 if there else 0 :]

    def framed(self, ts: int) -> bytes:
        return b"id: %d\n%b" % (self.rows.index(ts), super().framed(ts))


class SocketServer(Talking):
    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        websockets = pytest.importorskip(
            "websockets.asyncio.server", reason="websockets is not installed (the extra web)"
        )
        there = self.writers

        async def talk(connection: Any) -> None:
            there.add(connection)
            await connection.wait_closed()
            there.discard(connection)

        async with websockets.serve(talk, "127.0.0.1", self.port):
            yield
            for connection in [*there]:
                connection.transport.abort() if self.cuts else await connection.close()

    async def send(self, *times: int) -> None:
        async with asyncio.timeout(MOST_S):
            while not self.writers:
                await asyncio.sleep(0.01)
        for ts in times:
            for connection in self.writers:
                await connection.send(json.dumps({"ts": ts}))

    def source(self) -> LiveSource:
        return WebSocket(f"ws://127.0.0.1:{self.port}/")


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("kind", [SocketServer, EventsServer, EventsOfIds, LinesServer])
def test_a_service_goes_on_when_its_server_is_back(
    kind: type[Talking],
    cuts: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows from now on are there; of a server without a past one line tells that those meanwhile are lost."""
    pytest.importorskip("httpx", reason="httpx is not installed (the extra web)")
    monkeypatch.setattr(server_events, "_AGAIN_S", 0.05)
    with caplog.at_level(logging.WARNING, "oop_engine"):
        took_s = run_async(outage(kind(tmp_path, cuts=cuts), tmp_path))
    print(f"{kind.__name__}: all rows {took_s:.1f} s after it is back")
    lines = [line for line in caplog.messages if line.startswith("source 'in': ")]
    assert len(lines) == 2
    assert "the connection is lost" in lines[0]
    assert "is back after" in lines[1]
    assert (LOST in lines[1]) is kind.forgets
