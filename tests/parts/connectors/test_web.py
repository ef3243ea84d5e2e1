"""WebSocket and server-sent events, from servers in this process."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from contextlib import aclosing
from typing import Any

import pytest

from oop_engine.connectors.alive import keep_alive
from oop_engine.connectors.sources import server_events
from oop_engine.errors import SetupError
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import ServerEvents, WebSocket
from tests.children import MOST_S
from tests.parts.connectors.servers import free_port


async def first(source: LiveSource, position: Any, count: int) -> tuple[list[Any], Any]:
    """Return the first messages from a position on, and the position behind."""
    found: list[Any] = []
    async with aclosing(source.read(position)) as pieces:  # type: ignore[type-var]
        async for data, behind in pieces:
            found += map(json.loads, data)
            position = behind
            if len(found) == count:
                break
    return found, position


@pytest.mark.parametrize(
    ("source", "package"),
    [(WebSocket("ws://x"), "websockets.asyncio.client"), (ServerEvents("http://x"), "httpx")],
)
def test_without_the_package_the_way_out_is_told(
    source: LiveSource, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SetupError, match=r"pip install 'oop-engine\[web\]'"):
        run_async(first(source, None, 1))


def test_messages_of_a_web_socket_come_and_the_connection_is_made_again() -> None:
    websockets = pytest.importorskip(
        "websockets.asyncio.server", reason="websockets is not installed (the extra web)"
    )
    greetings = []

    async def talk(connection: Any) -> None:
        greetings.append(await connection.recv())
        for ts in range(3):
            await connection.send(json.dumps({"ts": ts, "visit": len(greetings)}))

    async def main() -> None:
        async with websockets.serve(talk, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            once = WebSocket(url, first="hello", again=False)
            assert await first(once, None, 9) == ([{"ts": ts, "visit": 1} for ts in range(3)], 3)
            found, position = await first(WebSocket(url, first="hello"), 3, 4)
            assert [row["visit"] for row in found] == [2, 2, 2, 3]
            assert position == 7
        with pytest.raises(SetupError, match="no WebSocket answers"):
            await first(WebSocket(f"ws://127.0.0.1:{free_port()}"), None, 1)

    run_async(main())


def test_a_web_socket_that_is_closed_in_order_and_not_there_again_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And one that refuses the client then ends the source."""
    websockets = pytest.importorskip(
        "websockets.asyncio.server", reason="websockets is not installed (the extra web)"
    )

    async def talk(connection: Any) -> None:
        await connection.send('{"ts": 1}')

    def refuse(connection: Any, request: Any) -> Any:
        return connection.respond(403, "no")

    async def main() -> None:
        port = free_port()
        source = WebSocket(f"ws://127.0.0.1:{port}")
        async with aclosing(source.read(None)) as feed:  # type: ignore[type-var]
            async with websockets.serve(talk, "127.0.0.1", port):
                await anext(feed)
            following = asyncio.ensure_future(anext(feed))
            while not source.link.away:
                assert not following.done()
                await asyncio.sleep(0.01)
            async with websockets.serve(talk, "127.0.0.1", port):
                await following
            assert not source.link.away
            async with websockets.serve(talk, "127.0.0.1", port, process_request=refuse):
                with pytest.raises(SetupError, match="403"):
                    await anext(feed)

    run_async(asyncio.wait_for(main(), MOST_S))
    lines = [line for line in caplog.messages if line.startswith("source: ")]
    assert "the connection is lost" in lines[0]
    assert "is back after" in lines[1]


@pytest.mark.parametrize("code", [401, 403])
def test_events_that_are_refused_later_end_the_source(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httpx", reason="httpx is not installed (the extra web)")
    monkeypatch.setattr(server_events, "_AGAIN_S", 0.0)
    answers = [b'200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: {"ts": 1}\n\n']
    answers += [b"503 Later\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"]
    answers += [b"%d No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % code]

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 " + answers.pop(0))
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        source = ServerEvents(url, options={"trust_env": False})
        with pytest.raises(SetupError, match=f"{code} No"):
            await first(source, None, 2)
        assert source.link.losses == 1
        server.close()

    run_async(asyncio.wait_for(main(), MOST_S))


def test_events_go_on_behind_the_last_id(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httpx", reason="httpx is not installed (the extra web)")
    monkeypatch.setattr(server_events, "_AGAIN_S", 0.0)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        if "get /none" in head:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        else:
            last = int(head.partition("last-event-id: ")[2].partition("\r")[0] or 0)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: hello\n\n"
            )
            for ts in range(last + 1, last + 3):
                writer.write(
                    f'event: other\ndata: {{}}\n\nid: {ts}\nevent: row\ndata: {{"ts":\ndata: {ts}}}\n\n'.encode()
                )
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        options = {"trust_env": False}
        rows = ServerEvents(url, event="row", options=options)
        found, position = await first(rows, None, 5)
        assert (found, position) == ([{"ts": ts} for ts in range(1, 6)], "5")
        assert (await first(rows, position, 1))[0] == [{"ts": 6}]
        assert len((await first(ServerEvents(url, again=False, options=options), None, 9))[0]) == 4
        with pytest.raises(SetupError, match=r"no stream of events .*404"):
            await first(ServerEvents(f"{url}/none", options=options), None, 1)
        server.close()

    run_async(main())


@pytest.mark.parametrize("begins", ["from now on", "anew"])
def test_a_server_that_ignores_the_last_id_decides(begins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for events behind the last id, within a life and in the next one; whatever it sends is read."""
    pytest.importorskip("httpx", reason="httpx is not installed (the extra web)")
    monkeypatch.setattr(server_events, "_AGAIN_S", 0.0)
    asked = list[str]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        asked.append(head.partition("last-event-id: ")[2].partition("\r")[0])
        start = 10 * len(asked) if begins == "from now on" else 0
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        writer.write(b"".join(b'id: %d\ndata: {"ts": %d}\n\n' % (n, n) for n in range(start, start + 2)))
        await writer.drain()
        writer.close()

    async def main() -> tuple[list[Any], Any, list[Any]]:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        found, position = await first(ServerEvents(url, options={"trust_env": False}), None, 4)
        later, _ = await first(ServerEvents(url, options={"trust_env": False}), position, 2)
        server.close()
        return found, position, later

    found, position, later = run_async(main())
    wanted = [10, 11, 20, 21, 30, 31] if begins == "from now on" else [0, 1, 0, 1, 0, 1]
    assert [row["ts"] for row in found + later] == wanted
    assert (asked[:3], position) == (["", str(wanted[1]), str(wanted[3])], str(wanted[3]))


async def test_a_server_of_events_that_is_silent_for_too_long_is_asked_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It takes no end for that; and the system asks a machine that may have gone without one."""
    httpx = pytest.importorskip("httpx", reason="httpx is not installed (the extra web)")
    kept, asked, ends = list[Any](), list[bytes](), list[Any]()
    monkeypatch.setattr(server_events, "keep_alive", kept.append)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        id = str(len(asked)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        writer.write(b"id: " + id + b'\ndata: {"ts": ' + id + b"}\n\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ends.append(writer)

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    options = {"trust_env": False, "timeout": httpx.Timeout(MOST_S, read=0.2)}
    source = ServerEvents(url, options=options)
    found: list[Any] = []
    async with aclosing(source.read(None)) as pieces:  # type: ignore[type-var]
        while len(found) < 3:
            [data], position = await anext(pieces)
            found.append((json.loads(data)["ts"], position))
    assert found == [(1, "1"), (2, "2"), (3, "3")]
    assert source.link.losses == 2
    assert f"the connection is lost ({url}: ReadTimeout)" in caplog.messages[0]
    assert b"last-event-id: 2" in asked[2].lower()
    assert len(kept) == 3
    while len(ends) < 3:
        await asyncio.sleep(0.01)
    server.close()


def test_the_system_asks_the_other_end_of_a_connection_for_signs_of_life() -> None:
    with socket.socket() as found:
        keep_alive(found)
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
