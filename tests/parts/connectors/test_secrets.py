"""No secret is in anything that a service writes: lines of the log, errors, checkpoints, its page, its output."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import EngineError, Graph, Schema, UsageError, serve
from oop_engine.connectors import link
from oop_engine.connectors.by_name import sink_of, source_of
from oop_engine.extend import LiveSink, LiveSource
from oop_engine.formats import Avro
from oop_engine.operators import Punctuate, Upstream
from oop_engine.runners.event_loop import run_async
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.sinks import (
    Gathered,
    JetStreamSubject,
    KafkaTopic,
    OneFile,
    PartFiles,
    PostgresTable,
    RedisEntries,
)
from oop_engine.sources import (
    FileTail,
    JetStream,
    Journal,
    Kafka,
    Mqtt,
    PostgresChanges,
    RedisStream,
    Replayed,
    ServerEvents,
    WebSocket,
)
from tests.children import MOST_S
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served
from tests.parts.connectors.test_outages import KafkaServer, outage

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
pytestmark = IN_A_ROW
WHO, WORD, MORE = "planted-user", "planted-word", "planted-more"
PLANTED = (WHO, WORD, MORE)


def graph() -> Graph:
    found = Graph("numbers")
    found.sink("out", found.add("edge", Punctuate(Upstream()), found.source("in", SCHEMA)))
    return found


def numbers() -> Replayed:
    async def rest(start: int) -> AsyncIterator[Any]:
        for ts in range(start, 1 << 30):
            yield {"ts": ts}
            await asyncio.sleep(0.01)

    return Replayed(rest)


class Written:
    """All that a service has written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.texts = folder, list[str]()

    def found(self, shown: str) -> list[str]:
        """Return the texts that have a secret."""
        files = [
            path.read_bytes().decode(errors="replace") for path in self.folder.rglob("*") if path.is_file()
        ]
        return [text for text in [shown, *self.texts, *files] if any(secret in text for secret in PLANTED)]


async def lived(source: Any, sink: Any, written: Written, enough: Callable[[], bool]) -> BaseException | None:
    """Serve until ``enough``, or an error, which is returned; samples of the page are written, too."""
    stop = asyncio.Event()

    def watch(sample: dict[str, Any]) -> None:
        written.texts.append(json.dumps(sample, default=str))
        if enough():
            stop.set()

    try:
        await asyncio.wait_for(
            serve(
                graph(), {"in": source}, {"out": sink}, checkpoint=written.folder / "state", every_s=0.1, stop=stop,
                signals=False, watch=watch, page=0,
            ),
            MOST_S,
        )  # fmt: skip
    except Exception as error:
        written.texts += traceback.format_exception(error)
        return error
    return None


@pytest.fixture
def written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> Iterator[Written]:
    """Have a folder for a service; at the end nothing that was written has a secret."""
    found = Written(tmp_path)
    with caplog.at_level(logging.INFO):
        yield found
        assert found.found(caplog.text + "".join(capfd.readouterr())) == []


async def framed(start: int) -> AsyncIterator[list[bytes]]:
    """Yield a message whose schema is asked for."""
    yield [b"\0\0\0\0\1\2"]


NOBODY = {
    "web socket": lambda at: WebSocket(f"ws://{WHO}:{WORD}@{at}/x?token={MORE}"),
    "tls": lambda at: WebSocket(f"wss://{at}/x?token={MORE}"),
    "headers": lambda at: WebSocket(f"ws://{at}/", options={"additional_headers": {"X-Any": WORD}}),
    "events": lambda at: ServerEvents(f"http://{WHO}:{WORD}@{at}/x?token={MORE}"),
    "redis": lambda at: RedisStream(f"redis://{WHO}:{WORD}@{at}/0?password={MORE}", "s"),
    "redis, a password": lambda at: RedisStream(f"redis://:{WORD}@{at}/0", "s"),
    "nats": lambda at: JetStream(f"nats://{WHO}:{WORD}@{at}", "s"),
    "nats, a token": lambda at: JetStream(f"nats://{WORD}@{at}", "s", options={"token": MORE}),
    "kafka": lambda at: Kafka(at, "t", options={"sasl.username": WHO, "sasl.password": WORD, "log_level": 0}),
    "mqtt": lambda at: Mqtt("127.0.0.1", "t", "me", port=int(at[10:]), username=WHO, password=WORD),
    "journal": lambda at: Journal(WebSocket(f"ws://{WHO}:{WORD}@{at}/"), "journal"),
    "postgres": lambda at: PostgresChanges(
        f"postgresql://{WHO}:{WORD}@{at}/db?application_name={MORE}", "p", "s"
    ),
    "registry": lambda at: Replayed(
        framed,
        Avro(f"http://{at}/", options={"basic.auth.user.info": f"{WHO}:{WORD}"}),  # type: ignore[arg-type]
    ),
    "registry, in its address": lambda at: Replayed(framed, Avro(f"http://{WHO}:{WORD}@{at}/")),  # type: ignore[arg-type]
    "kafka, options": lambda at: Kafka(
        at, "t", options={"ssl.key.password": WORD, "client.id": "c", "log_level": 0}
    ),
    "into redis": lambda at: RedisEntries(f"redis://{WHO}:{WORD}@{at}/0?password={MORE}", "s"),
    "into nats": lambda at: JetStreamSubject(f"nats://{WHO}:{WORD}@{at}", "s"),
    "into kafka": lambda at: KafkaTopic(at, "t", options={"sasl.password": WORD, "log_level": 0}),
    "into postgres": lambda at: PostgresTable(f"postgresql://{WHO}:{WORD}@{at}/db", "t"),
}


@pytest.mark.slow(keep=10)
@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
@pytest.mark.parametrize("name", NOBODY)
def test_no_secret_of_a_wrong_address_is_written(
    name: str, host: str, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("websockets", "httpx", "redis", "nats", "confluent_kafka", "paho.mqtt", "psycopg"):
        pytest.importorskip(package, reason="the packages of all connectors are needed")
    monkeypatch.setattr(link, "ANSWER_S", 0.5)
    monkeypatch.chdir(written.folder)
    if name.startswith("registry"):
        pytest.importorskip("fastavro", reason="fastavro is not installed (the extra avro)")
    given = NOBODY[name](f"{host}:{free_port()}" if name != "mqtt" else f"127.0.0.1:{free_port()}")
    source, sink = (given, Gathered()) if isinstance(given, LiveSource) else (numbers(), given)
    error = run_async(lived(source, sink, written, lambda: False))
    assert isinstance(error, EngineError), error
    assert "\n" not in str(error)


@pytest.mark.slow(keep=6)
@pytest.mark.parametrize("end", ["HTTP/1.1 403 Forbidden", "HTTP/1.1 302 Found", "HTTP/1.1 200 OK"])
@pytest.mark.parametrize("name", [name for name in NOBODY if "registry" not in name])
def test_no_secret_is_written_for_a_server_of_another_kind(
    name: str, end: str, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "ANSWER_S", 0.5)
    monkeypatch.chdir(written.folder)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        head = (
            f"{end}\r\nContent-Length: 2\r\nContent-Type: text/html\r\nLocation: /login?token={MORE}\r\n\r\n"
        )
        writer.write(f"{head}hi".encode())
        await writer.drain()
        writer.close()

    async def main() -> BaseException | None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        given = NOBODY[name](f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        source, sink = (given, Gathered()) if isinstance(given, LiveSource) else (numbers(), given)
        try:
            return await lived(source, sink, written, lambda: False)
        finally:
            server.close()

    error = run_async(main())
    assert isinstance(error, EngineError), error
    assert "\n" not in str(error)


def test_no_secret_is_written_when_a_connection_is_lost(written: Written) -> None:
    """Of a WebSocket, and of a stream of events."""
    websockets = pytest.importorskip(
        "websockets.asyncio.server", reason="websockets is not installed (the extra web)"
    )
    pytest.importorskip("httpx", reason="httpx is not installed (the extra web)")

    async def talk(connection: Any) -> None:
        await connection.send('{"ts": 1}')
        connection.transport.abort()

    async def events(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\n")
        writer.write(b'data: {"ts": 1}\n\n')
        await writer.drain()
        writer.transport.abort()

    async def main() -> None:
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(websockets.serve(talk, "127.0.0.1", 0))
            server = await asyncio.start_server(events, "127.0.0.1", 0)
            stack.callback(server.close)
            ports = [each.sockets[0].getsockname()[1] for each in (served, server)]
            web_socket = WebSocket(f"ws://{WHO}:{WORD}@127.0.0.1:{ports[0]}/x?token={MORE}")
            options = {"trust_env": False, "headers": {"Authorization": f"Bearer {WORD}"}}
            stream = ServerEvents(f"http://{WHO}:{WORD}@127.0.0.1:{ports[1]}/x?token={MORE}", options=options)
            for number, source in enumerate((web_socket, stream)):
                folder = Written(written.folder / str(number))
                lost = lambda: source.link.losses > 1  # noqa: B023  (awaited here)
                assert await lived(source, Gathered(), folder, lost) is None
                written.texts += folder.texts

    run_async(main())


@pytest.mark.skipif("OOP_ENGINE_KILLS" not in os.environ, reason="run by make kills and make test-servers")
def test_no_secret_of_kafka_is_written_when_a_broker_goes_and_comes(written: Written) -> None:
    """No broker here takes a login by SASL: the client has the name and the password, and does without them."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)")
    options = {"sasl.username": WHO, "sasl.password": WORD, "ssl.key.password": MORE}

    class OfLogins(KafkaServer):
        def source(self) -> LiveSource:
            return Kafka(f"127.0.0.1:{self.port}", "in", [0], options=options)

        def sink(self) -> LiveSink:
            return KafkaTopic(f"127.0.0.1:{self.port}", "out", options=options)

    def watch(sample: dict[str, Any]) -> None:
        written.texts.append(json.dumps(sample, default=str))

    async def main() -> None:
        server = OfLogins(written.folder)
        try:
            await outage(server, written.folder, watch=watch, page=0)
        finally:
            await server.stack.aclose()

    run_async(main())
    assert len(written.texts) > 2


def test_no_secret_is_written_for_servers_that_ask_for_it(
    written: Written, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right one, and a wrong one."""
    pytest.importorskip("redis", reason="redis is not installed (the extra redis)")
    pytest.importorskip("nats", reason="nats-py is not installed (the extra nats)")
    folder, ports = tmp_path_factory.mktemp("servers"), [free_port(), free_port()]
    redis = [
        program("redis-server", "redis-server"),
        "--port",
        str(ports[0]),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
    ]
    nats = [
        program("nats-server", "nats-server"),
        "-js",
        "-sd",
        str(folder),
        "-a",
        "127.0.0.1",
        "-p",
        str(ports[1]),
    ]
    redis += ["--requirepass", WORD]
    nats += ["--user", WHO, "--pass", WORD]

    async def main() -> None:
        import nats as library

        client = await library.connect(f"nats://{WHO}:{WORD}@127.0.0.1:{ports[1]}")
        await client.jetstream().add_stream(name="s", subjects=["s"])
        await client.close()
        for number, word in enumerate((WORD, MORE)):
            given: list[LiveSink] = [
                RedisEntries(f"redis://default:{word}@127.0.0.1:{ports[0]}/0", "s"),
                JetStreamSubject(f"nats://{WHO}:{word}@127.0.0.1:{ports[1]}", "s"),
            ]
            for sink in given:
                one = Written(written.folder / f"{number}{type(sink).__name__}")
                error = await lived(numbers(), sink, one, lambda: len(one.texts) > 2)  # noqa: B023  (awaited here)
                assert (error is None) is (word == WORD), error
                written.texts += one.texts

    with served(redis, "eady to accept connections", folder), served(nats, "Server is ready", folder):
        run_async(main())


@pytest.mark.parametrize(
    "text",
    [
        f"wsss://{WHO}:{WORD}@host/x?token={MORE}",
        f"redis:{WHO}:{WORD}@host/x?token={MORE}",
        f"redis:{WHO}:{WORD}@host:1/x?token={MORE}",
        f"nats:{WORD}@host/x",
        f"kafka:{WHO}:{WORD}@host:1/x?partition=one",
        f"postgres:{WHO}:{WORD}@host:1/x",
        f"redis:{WHO}:{WORD}@host:1/x?csv=delimiter=;",
        f"mqtt:{WHO}:{WORD}@host:1/x",
    ],
)
def test_no_secret_of_an_address_of_the_command_line_is_in_its_error(text: str) -> None:
    for made in (lambda: source_of(text, SCHEMA), lambda: sink_of(text)):
        try:
            made()
        except UsageError as error:
            told = "".join(traceback.format_exception(error))
            assert not [secret for secret in PLANTED if secret in told]


def test_no_secret_of_an_object_store_is_written() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed (the extra objects)")
    with pytest.raises(UsageError) as told:
        CheckpointFolder(f"none://{WHO}:{WORD}@bucket/folder?secret={MORE}")
    written = "".join(traceback.format_exception(told.value))
    assert not [secret for secret in PLANTED if secret in written]


def test_files_of_a_service_are_those_of_its_owner_alone(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"ts": {ts}}}\n' for ts in range(5)))
    sinks = [PartFiles(tmp_path / "parts", "jsonl"), OneFile(tmp_path / "one.jsonl")]
    for number, sink in enumerate(sinks):
        source = Journal(FileTail(log, follow=False), tmp_path / f"journal{number}")
        run_async(serve(graph(), {"in": source}, {"out": sink}, checkpoint=tmp_path / f"state{number}"))
    made = [path for path in tmp_path.rglob("*") if path.is_file() and path != log]
    assert len(made) >= 8
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o600}
