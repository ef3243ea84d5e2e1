"""JetStream of NATS, on a real server."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.connectors.link import NotReadyError, UnreachableError
from oop_engine.connectors.pace import read_on
from oop_engine.errors import SetupError, TraceError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import JetStreamSubject
from oop_engine.sources import JetStream
from tests.children import MOST_S
from tests.parts.connectors.breaks import through_breaks
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served
from tests.parts.connectors.wire import wired

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
pytestmark = IN_A_ROW


def page(*times: int) -> Page:
    return Page.of(SCHEMA, {"ts": [*times], "key": ["a"] * len(times)})


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(SetupError, match=r"pip install 'oop-engine\[nats\]'"):
        read(JetStream("nats://127.0.0.1:1", "stream"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("nats", reason="nats-py is not installed (the extra nats)")
    folder, port = tmp_path_factory.mktemp("nats"), free_port()
    command = [
        program("nats-server", "nats-server"),
        "-js",
        "-sd",
        str(folder),
        "-a",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    with served(command, "Server is ready", folder):
        yield f"nats://127.0.0.1:{port}"


def send(server: str, stream: str, *times: int, subject: str = "a", purged: int = 0) -> None:
    async def work() -> None:
        import nats

        client = await nats.connect(server)
        jetstream = client.jetstream()
        await jetstream.add_stream(name=stream, subjects=[f"{stream}.*"])
        for ts in times:
            await jetstream.publish(f"{stream}.{subject}", json.dumps({"ts": ts}).encode())
        if purged:
            await jetstream.purge_stream(stream, seq=purged)
        await client.close()

    run_async(work())


async def pieces(source: JetStream, position: Any) -> list[tuple[Any, Any]]:
    return [piece async for piece in source.read(position)]


def read(source: JetStream, position: Any = None) -> tuple[list[int], Any]:
    found = run_async(pieces(source, position))
    return [json.loads(m)["ts"] for data, _ in found for m in data], found[-1][1] if found else position


def test_a_stream_is_read_from_any_message_on(server: str) -> None:
    send(server, "one", *range(200))
    source = JetStream(server, "one", follow=False)
    found, position = read(source)
    assert (found, position[0]) == ([*range(200)], 200)
    assert read(source, 150)[0] == [*range(150, 200)]
    send(server, "one", 200, subject="b")
    again, position = read(source, position)
    assert (again, position[0]) == ([200], 201)
    assert read(JetStream(server, "one", "one.b", follow=False))[0] == [200]


def test_a_stream_that_never_had_a_message_is_read_from_its_first_one_on(server: str) -> None:
    send(server, "new")
    source = JetStream(server, "new", follow=False)
    assert read(source) == ([], None)
    send(server, "new", 7)
    found, position = read(source)
    assert (found, position[0]) == ([7], 1)


def test_messages_that_are_gone_are_told(server: str) -> None:
    send(server, "two", *range(10), purged=6)  # the first five are gone
    source = JetStream(server, "two", follow=False)
    assert read(source)[0] == [5, 6, 7, 8, 9]
    assert read(source, 5)[0] == [5, 6, 7, 8, 9]
    with pytest.raises(TraceError, match="message 5, the next to read, is no longer there; it has 6 to 10"):
        read(source, 4)
    with pytest.raises(TraceError, match="message 12, the next to read"):
        read(source, 11)
    send(server, "two", purged=11)
    with pytest.raises(
        TraceError, match="message 8, the next to read, is no longer there; it is empty: keep"
    ):
        read(source, 7)


def test_messages_that_come_and_go_between_two_looks_are_told(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(server, "four", 1)
    source = JetStream(server, "four")
    ask, reading = source._state, [False]

    async def state(jetstream: Any) -> Any:
        found = await ask(jetstream)
        if reading[0]:  # that before a fetch that finds nothing
            reading[0] = False
            await jetstream.publish("four.a", b"{}")
            await jetstream.purge_stream("four")
        return found

    async def main() -> None:
        async for _ in source.read(None):
            reading[0] = True

    monkeypatch.setattr(source, "_state", state)
    with pytest.raises(TraceError, match="message 2, the next to read, is no longer there; it is empty"):
        run_async(main())


@pytest.mark.parametrize("late", ["raises", "is empty"])
def test_a_fetch_that_takes_too_long_does_not_end_the_stream(
    server: str, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client gives up before the answer is there: in one way or the other, by which of two timers is first."""
    from nats.errors import TimeoutError as LateError
    from nats.js.client import JetStreamContext

    fetch, times = JetStreamContext.PullSubscription.fetch, iter(range(3))

    async def slow(asking: Any, *args: Any, **options: Any) -> Any:
        for _ in times:
            if late == "raises":
                raise LateError
            return []
        return await fetch(asking, *args, **options)

    send(server, f"late-{late[0]}", 1, 2)
    monkeypatch.setattr(JetStreamContext.PullSubscription, "fetch", slow)
    found, position = read(JetStream(server, f"late-{late[0]}", follow=False))
    assert (found, position[0]) == ([1, 2], 2)


def test_messages_that_are_lost_on_the_way_are_asked_for_again(server: str) -> None:
    """A server takes a message for read once it was sent, also into a connection that breaks."""
    send(server, "lost", 1)

    async def main() -> list[int]:
        import nats

        client = await nats.connect(server)
        async with wired(int(server.rpartition(":")[2])) as wire:
            source = JetStream(f"nats://127.0.0.1:{wire.here}", "lost")
            async with aclosing(read_on(source, None)) as feed:  # type: ignore[type-var]
                found = [(await anext(feed))[0]]
                following = asyncio.ensure_future(anext(feed))
                wire.lose = lambda sent: b'{"ts": 2}' in sent
                await client.jetstream().publish("lost.a", b'{"ts": 2}')
                while not wire.cuts:
                    await asyncio.sleep(0.01)
                await client.jetstream().publish("lost.a", b'{"ts": 3}')
                await wire.mend()
                found.append((await following)[0])
                while b"3" not in found[-1][-1]:
                    found.append((await anext(feed))[0])
        await client.close()
        return [json.loads(message)["ts"] for messages in found for message in messages]

    assert run_async(main()) == [1, 2, 3]


def test_a_wrong_server_or_stream_is_told_in_a_line(server: str) -> None:
    with pytest.raises(
        SetupError, match=r"NATS stream 'none' at nats://127.0.0.1:\d+: there is no such stream"
    ):
        read(JetStream(server, "none"))
    with pytest.raises(SetupError, match=r"no server answers .*give the address of one that runs"):
        read(JetStream(f"nats://127.0.0.1:{free_port()}", "one"))


@pytest.mark.parametrize("format", ["jsonl", "msgpack"])
def test_rows_of_an_epoch_are_published_once(server: str, format: str) -> None:
    name = f"out-{format}"
    send(server, name)
    subject = f"{name}.results"

    async def opened(prepared: list[Any]) -> JetStreamSubject:
        sink = JetStreamSubject(server, subject, format)
        await sink.open(SCHEMA, "run", prepared)
        return sink

    async def main() -> None:
        sink = await opened([])
        await sink.write(1, page(5, 6, 7))
        prepared = json.loads(json.dumps(await sink.prepare(1)))
        await sink.write(2, page(8))
        await sink.prepare(2)
        await sink.close()  # killed: epoch 1 is in the checkpoint, epoch 2 is not
        sink = await opened([prepared])
        await sink.commit(prepared)
        await sink.commit(prepared)  # within the time for that, the server knows the messages again
        await sink.close()
        await forget(server, name, "run-1-1")  # as if it had died behind the first message, long ago
        sink = await opened([prepared])
        await sink.commit(prepared)
        await sink.write(2, page(9))
        await sink.commit(await sink.prepare(2))
        assert await sink.prepare(3) is None
        await sink.close()

    run_async(main())
    pieces_of = run_async(pieces(JetStream(server, name, format=format, follow=False), None))
    unpacked = {"jsonl": json.loads, "msgpack": msgpack.unpackb}[format]
    assert [unpacked(m)["ts"] for data, _ in pieces_of for m in data] == [5, 7, 6, 9]


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_sink_goes_on_when_its_server_is_back(server: str, forgotten: bool) -> None:
    """Also where the server has forgotten the ids of messages meanwhile."""
    name, port = f"away-{forgotten}", int(server.rpartition(":")[2])
    send(server, name)
    if forgotten:
        run_async(forget(server, name, ""))

    def sink(at: int) -> JetStreamSubject:
        return JetStreamSubject(f"nats://127.0.0.1:{at}", f"{name}.a")

    away_s = 0.3 if forgotten else 0.0
    run_async(through_breaks(port, sink, lambda sent: b"-1-1\r\n" in sent, away_s=away_s))
    found = run_async(pieces(JetStream(server, name, follow=False), None))
    assert [json.loads(m)["ts"] for data, _ in found for m in data] == [1, 2, 3, 4, 5, 6]


async def forget(server: str, stream: str, name: str) -> None:
    """Let a stream take up all ids again, and delete a message by its id.

    A server forgets ids in their order, so it knows none before the last one when that can be had again.
    """
    import nats

    client = await nats.connect(server)
    jetstream = client.jetstream()
    for number in range(1, (await jetstream.stream_info(stream)).state.last_seq + 1):
        message = await jetstream.get_msg(stream, number)
        if (message.headers or {}).get("Nats-Msg-Id") == name:
            await jetstream.delete_msg(stream, number)
    config = (await jetstream.stream_info(stream)).config
    config.duplicate_window = 0.1
    await jetstream.update_stream(config)
    numbers = set[int]()
    while len(numbers) < 2:
        sent = await jetstream.publish(f"{stream}.last", headers={"Nats-Msg-Id": "last"})
        numbers.add(sent.seq)
        await asyncio.sleep(0.01)
    for number in numbers:
        await jetstream.delete_msg(stream, number)
    await client.close()


def test_a_wrong_password_is_told_and_not_tried_again(tmp_path: Path) -> None:
    pytest.importorskip("nats", reason="nats-py is not installed (the extra nats)")
    port = free_port()
    command = [
        program("nats-server", "nats-server"),
        "-a",
        "127.0.0.1",
        "-p",
        str(port),
        "-js",
        "-sd",
        str(tmp_path),
    ]

    async def main() -> None:
        wrong = f"nats://me:wrong@127.0.0.1:{port}"
        with served([*command, "--user", "me", "--pass", "right"], "Server is ready", tmp_path):
            source = JetStream(wrong, "one")
            source.link.here()  # it was there before, and has another password now
            with pytest.raises(SetupError, match="Authorization Violation") as refused:
                await pieces(source, None)
            assert not isinstance(refused.value, UnreachableError)
            with pytest.raises(SetupError, match="Authorization Violation"):
                await JetStreamSubject(wrong, "one.x").open(SCHEMA, "run", [])

    run_async(main())


def test_a_sink_tells_of_a_subject_that_no_stream_has(server: str) -> None:
    with pytest.raises(SetupError, match=r"NATS subject 'none.x' at nats.*: no stream takes it up"):
        run_async(JetStreamSubject(server, "none.x").open(SCHEMA, "run", []))
    with pytest.raises(SetupError, match="no server answers"):
        run_async(JetStreamSubject(f"nats://127.0.0.1:{free_port()}", "x").open(SCHEMA, "run", []))


def test_a_message_has_its_subject_number_time_and_headers_as_columns(server: str) -> None:
    send(server, "told", 5, 6, subject="b")
    source = JetStream(server, "told", follow=False)
    source.wanted = source.metadata
    [(data, _)] = run_async(pieces(source, None))
    assert [(m.about["_subject"], m.about["_sequence"], m.about["_headers"]) for m in data] == [
        ("told.b", 1, []), ("told.b", 2, [])
    ]  # fmt: skip
    assert 0 <= time.time() - data[0].about["_time"] / 1e9 < MOST_S


def test_headers_are_those_that_were_sent(server: str) -> None:
    """The package itself has one of a name, and other signs for bytes that are no UTF-8."""
    send(server, "headed")
    head = b"NATS/1.0\r\nA: 1\r\nB: \xff\r\nA:  two: 2 \r\nC:\r\n\r\n"

    async def publish() -> None:
        host, port = server.removeprefix("nats://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await reader.readline()
        writer.write(b'CONNECT {"headers": true, "verbose": false}\r\n')
        writer.write(b"HPUB headed.a %d %d\r\n%b{}\r\nPING\r\n" % (len(head), len(head) + 2, head))
        await reader.readline()
        writer.close()

    run_async(publish())
    source = JetStream(server, "headed", follow=False)
    source.wanted = source.metadata
    [([message], _)] = run_async(pieces(source, None))
    assert message.about["_headers"] == [("A", b"1"), ("B", b"\xff"), ("A", b"two: 2"), ("C", b"")]


def test_a_server_without_room_for_a_client_is_waited_for(tmp_path: Path) -> None:
    """The library tells of a connection that was reset alone."""
    nats: Any = pytest.importorskip("nats", reason="nats-py is not installed (the extra nats)")
    port = free_port()
    (tmp_path / "nats.conf").write_text(
        f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{tmp_path}" }}\nmax_connections: 1\n'
    )

    async def main() -> None:
        at = f"nats://127.0.0.1:{port}"
        client = await nats.connect(at)
        await client.jetstream().add_stream(name="full", subjects=["full.*"])
        sink, source = JetStreamSubject(at, "full.a"), JetStream(at, "full", follow=False)
        full = pytest.raises(NotReadyError, match="maximum connections exceeded")
        with full:
            await sink.open(SCHEMA, "run", [])
        with full:
            await anext(source.read(None))
        await client.close()
        await sink.open(SCHEMA, "run", [])
        await sink.close()

    with served([program("nats-server", "nats-server"), "-c", "nats.conf"], "Server is ready", tmp_path):
        run_async(main())
