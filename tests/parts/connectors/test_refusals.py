"""What a server refuses ends with a line, and is not tried for ever; what passes is waited for."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, GraphError, Page, Schema, serve
from oop_engine.connectors.link import NotReadyError
from oop_engine.connectors.servers import mqtt_reasons
from oop_engine.errors import SetupError
from oop_engine.extend import LiveSink, LiveSource
from oop_engine.operators import Punctuate, Upstream
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered, JetStreamSubject, OneFile, RedisEntries
from oop_engine.sources import Mqtt, RedisStream, TcpLines, WebSocket
from tests.children import MOST_S
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served

SCHEMA = Schema({"ts": pa.int64(), "text": pa.string()}, "ts", "s")
pytestmark = IN_A_ROW


def graph(schema: Schema = SCHEMA) -> Graph:
    found = Graph("numbers")
    found.sink("out", found.add("edge", Punctuate(Upstream()), found.source("in", schema)))
    return found


def page(ts: int, text: str = "a") -> Page:
    return Page.of(SCHEMA, {"ts": [ts], "text": [text]})


async def sent(sink: LiveSink, *pages: Page, before: Callable[[], Any] = lambda: None) -> None:
    """Open a sink, and send an epoch; ``before`` is called when it is open."""
    await sink.open(SCHEMA, "run", [])
    try:
        before()
        for found in pages:
            await sink.write(0, found)
        await sink.commit(json.loads(json.dumps(await sink.prepare(0))))
    finally:
        await sink.close()


# NATS


@pytest.fixture(scope="module")
def nats_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("nats", reason="nats-py is not installed (the extra nats)")
    folder, port = tmp_path_factory.mktemp("nats"), free_port()
    (folder / "nats.conf").write_text(
        f"""
        listen: "127.0.0.1:{port}"
        jetstream {{ store_dir: "{folder}" }}
        max_payload: 100000
        authorization {{ users = [
            {{ user: all, password: all }},
            {{ user: few, password: few, permissions: {{ publish: {{ deny: ["rights.>"] }} }} }},
            {{ user: reads, password: reads, permissions: {{ publish: {{ deny: ["$JS.API.CONSUMER.CREATE.>"] }} }} }}
        ] }}
        """
    )
    command = [program("nats-server", "nats-server"), "-c", str(folder / "nats.conf")]
    with served(command, "Server is ready", folder):
        yield f"nats://{{user}}:{{user}}@127.0.0.1:{port}"


async def stream(at: str, name: str, does: str = "add_stream", **options: Any) -> None:
    import nats

    client = await nats.connect(at.format(user="all"))
    given = {"name": name, "subjects": [f"{name}.>"], **options} if does == "add_stream" else {"name": name}
    await getattr(client.jetstream(), does)(**given)
    await client.close()


def test_a_message_above_the_limit_of_nats(nats_at: str) -> None:
    run_async(stream(nats_at, "large"))
    sink = JetStreamSubject(nats_at.format(user="all"), "large.a")
    with pytest.raises(
        SetupError, match=r"a message has 100,\d+ bytes, and the server takes 99,9\d\d: raise its limit"
    ):
        run_async(sent(sink, page(1), page(2, "x" * 100_000)))


@pytest.mark.parametrize("format", ["jsonl", "arrow"])
def test_a_row_above_the_limit_of_nats_is_a_dead_letter(nats_at: str, format: str) -> None:
    """A page that is one message is divided."""
    run_async(stream(nats_at, f"letter{format}"))
    sink, letters = JetStreamSubject(nats_at.format(user="all"), f"letter{format}.a", format), list[Any]()
    sink.refused = lambda reason, record, rows, **more: letters.append((reason, json.loads(record)["ts"]))
    texts = ["a" * 40_000, "b" * 40_000, "c" * 100_000, "d" * 40_000]
    run_async(sent(sink, Page.of(SCHEMA, {"ts": [1, 2, 3, 4], "text": texts})))
    assert [ts for _, ts in letters] == [3]
    assert "and the server takes 99,9" in letters[0][0]
    [(name, found)] = run_async(messages(nats_at, f"letter{format}"))
    times = (
        [json.loads(each)["ts"] for each in found]
        if format == "jsonl"
        else [ts for each in found for ts in pa.ipc.open_stream(each).read_all()["ts"].to_pylist()]
    )
    assert (name, times) == (f"letter{format}.a", [1, 2, 4])


async def messages(at: str, stream: str) -> list[tuple[str, list[bytes]]]:
    """Return all that a stream has, by subject."""
    import nats

    client = await nats.connect(at.format(user="all"))
    jetstream, found = client.jetstream(), dict[str, list[bytes]]()
    for number in range(1, (await jetstream.stream_info(stream)).state.last_seq + 1):
        message = await jetstream.get_msg(stream, number)
        found.setdefault(message.subject, []).append(message.data)
    await client.close()
    return [*found.items()]


def test_a_sink_whose_every_message_is_above_the_limit_ends(nats_at: str) -> None:
    run_async(stream(nats_at, "all_large"))
    sink, letters = JetStreamSubject(nats_at.format(user="all"), "all_large.a"), list[Any]()
    sink.refused = lambda *what, **more: letters.append(what)
    with pytest.raises(SetupError, match="raise its limit"):
        run_async(sent(sink, *(page(ts, "x" * 100_000) for ts in range(20))))
    assert len(letters) == 9


@pytest.mark.parametrize("limit", [{"max_msgs": 1}, {"max_bytes": 250}])
def test_a_full_stream_of_nats(nats_at: str, limit: dict[str, Any]) -> None:
    name = f"full{next(iter(limit))}"
    run_async(stream(nats_at, name, discard="new", **limit))
    sink = JetStreamSubject(nats_at.format(user="all"), f"{name}.a")
    with pytest.raises(SetupError, match=r"maximum (messages|bytes) exceeded.*: check the stream's limits"):
        run_async(sent(sink, page(1), page(2), page(3), page(4), page(5)))


def test_a_message_above_the_limit_of_a_stream(nats_at: str) -> None:
    run_async(stream(nats_at, "short", max_msg_size=100))
    with pytest.raises(SetupError, match=r"a message has 221 bytes, and the server takes \d+: raise its"):
        run_async(sent(JetStreamSubject(nats_at.format(user="all"), "short.a"), page(1, "x" * 200)))


def test_a_right_to_publish_that_is_missing(nats_at: str) -> None:
    run_async(stream(nats_at, "rights"))
    sink = JetStreamSubject(nats_at.format(user="few"), "rights.a")
    with pytest.raises(SetupError, match=r"(?i)permissions violation for publish.*: check rights and limits"):
        run_async(sent(sink, page(1)))


def test_a_stream_of_nats_that_is_gone(nats_at: str) -> None:
    run_async(stream(nats_at, "gone"))
    sink = JetStreamSubject(nats_at.format(user="all"), "gone.a")

    async def main() -> None:
        await sink.open(SCHEMA, "run", [])
        await sink.write(0, page(1))
        prepared = await sink.prepare(0)
        await stream(nats_at, "gone", "delete_stream")
        try:
            await sink.commit(prepared)
        finally:
            await sink.close()

    with pytest.raises(SetupError, match="no stream takes it up"):
        run_async(main())


# Redis


@pytest.fixture(scope="module")
def redis_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("redis", reason="redis is not installed (the extra redis)")
    port = free_port()
    command = [
        program("redis-server", "redis-server"),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
    ]
    with served(command, "eady to accept connections", tmp_path_factory.mktemp("redis")):
        yield f"127.0.0.1:{port}/0"


@pytest.fixture
def redis(redis_at: str) -> Iterator[Any]:
    import redis

    with redis.Redis.from_url(f"redis://{redis_at}") as found:
        yield found


def test_a_redis_that_is_full(redis_at: str, redis: Any) -> None:
    full = lambda: redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(SetupError, match=r"the server is full \(.*\): raise its maxmemory"):
            run_async(sent(RedisEntries(f"redis://{redis_at}", "full"), page(1), before=full))
    finally:
        redis.config_set("maxmemory", 0)


def test_a_row_above_the_limit_of_redis_is_a_dead_letter(redis_at: str, redis: Any) -> None:
    """The server would end the connection, whenever it comes."""
    redis.config_set("proto-max-bulk-len", 1 << 20)
    try:
        sink, letters = RedisEntries(f"redis://{redis_at}", "large"), list[Any]()
        sink.refused = lambda reason, record, rows, **more: letters.append(json.loads(record)["ts"])
        run_async(sent(sink, page(1), page(2, "x" * (1 << 20)), page(3)))
    finally:
        redis.config_set("proto-max-bulk-len", 512 << 20)
    assert letters == [2]
    sink.keeps_refused = False  # nobody would have the row
    with pytest.raises(SetupError, match="raise its limit"):
        run_async(sink.write(1, page(4, "x" * (1 << 20))))
    assert [json.loads(entry[b"data"])["ts"] for _, entry in redis.xrange("large")] == [1, 3]


def test_a_right_of_redis_that_is_missing(redis_at: str, redis: Any) -> None:
    redis.acl_setuser(
        "reader", enabled=True, passwords=["+word"], keys=["*"], commands=["+@all", "-xadd", "-xread"]
    )
    with pytest.raises(
        SetupError, match=r"no permissions to run the 'xadd' command.*: check the name, the password"
    ):
        run_async(sent(RedisEntries(f"redis://reader:word@{redis_at}", "rights"), page(1)))
    redis.xadd("rights", {"data": "{}"})
    with pytest.raises(SetupError, match="no permissions to run the 'xread' command"):
        run_async(anext(RedisStream(f"redis://reader:word@{redis_at}", "rights").read(None)))  # type: ignore[arg-type]
    with pytest.raises(SetupError, match=r"invalid username-password pair.*: check the name, the password"):
        run_async(sent(RedisEntries(f"redis://reader:wrong@{redis_at}", "rights"), page(1)))


def test_a_redis_that_is_a_replica(redis_at: str, redis: Any) -> None:
    try:
        with pytest.raises(SetupError, match=r"is a replica .*: give the address of the primary"):
            run_async(
                sent(
                    RedisEntries(f"redis://{redis_at}", "o"),
                    page(1),
                    before=lambda: redis.replicaof("127.0.0.1", 1),
                )
            )
    finally:
        redis.replicaof("NO", "ONE")


class Starting(LiveSource):
    """Its server starts up, and is ready at the fourth try."""

    tries = 0

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        self.tries += 1
        if self.tries < 4:
            msg = "it is loading the dataset in memory"
            raise NotReadyError(msg)
        self.link.here()
        yield {"ts": 1, "text": "a"}, 1


class StartingSink(Gathered):
    """The same."""

    tries = 0

    async def open(self, *given: Any) -> None:
        self.tries += 1
        if self.tries < 4:
            msg = "it is loading the dataset in memory"
            raise NotReadyError(msg)
        await super().open(*given)


def test_a_server_that_starts_up_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("oop_engine.connectors.link._FIRST_S", 0.001)
    source, sink = Starting(), StartingSink()
    with caplog.at_level(logging.WARNING, "oop_engine"):
        served = run_async(serve(graph(), {"in": source}, {"out": sink}, signals=False))
    assert served.over
    assert (source.tries, sink.tries, len(sink.rows)) == (4, 4, 1)
    line = "{}: the server is not ready (it is loading the dataset in memory): trying again until it is"
    assert [text for text in caplog.messages if "not ready" in text] == [
        line.format("sink 'out'"),
        line.format("source 'in'"),
    ]


# WebSocket, TCP


def test_a_message_above_the_limit_of_a_web_socket() -> None:
    websockets = pytest.importorskip(
        "websockets.asyncio.server", reason="websockets is not installed (the extra web)"
    )
    visits = 0

    async def talk(connection: Any) -> None:
        nonlocal visits
        visits += 1
        for text in ("a", "x" * (2 << 20), "b"):
            await connection.send(json.dumps({"ts": 1, "text": text}))
        await connection.wait_closed()

    async def main() -> None:
        async with websockets.serve(talk, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with aclosing(WebSocket(url).read(None)) as pieces:  # type: ignore[type-var]
                assert [position for _, position in [await anext(pieces) for _ in range(3)]] == [1, 2, 3]
            small = WebSocket(url, options={"max_size": 1 << 20})
            with pytest.raises(
                SetupError, match=r"a message is larger than 1,048,576 bytes: raise the limit"
            ):
                async for _ in small.read(None):
                    pass
        assert visits == 2

    run_async(asyncio.wait_for(main(), MOST_S))


@pytest.mark.parametrize("code", [1003, 1008, 1009])
def test_a_web_socket_that_ends_for_good(code: int) -> None:
    websockets = pytest.importorskip(
        "websockets.asyncio.server", reason="websockets is not installed (the extra web)"
    )

    async def talk(connection: Any) -> None:
        await connection.close(code, "not you")

    async def main() -> None:
        async with websockets.serve(talk, "127.0.0.1", 0) as server:
            source = WebSocket(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            with pytest.raises(
                SetupError, match=rf"the server refuses this client \({code}.*not you\): check its name"
            ):
                async for _ in source.read(None):
                    pass

    run_async(asyncio.wait_for(main(), MOST_S))


def test_a_host_of_tcp_that_is_not_known() -> None:
    with pytest.raises(
        SetupError, match=r"nowhere\.invalid:1 cannot be connected to \(.+\): give another address"
    ):
        run_async(anext(TcpLines("nowhere.invalid", 1, connect=True).read(None)))  # type: ignore[arg-type]


# MQTT


@pytest.mark.parametrize(
    ("reason", "words"), [(0x8E, "another client has this client id"), (0x87, "check name")]
)
def test_the_end_of_a_connection_that_would_end_again(reason: int, words: str) -> None:
    codes = pytest.importorskip("paho.mqtt.reasoncodes", reason="paho-mqtt is not installed (the extra mqtt)")
    packets = pytest.importorskip(
        "paho.mqtt.packettypes", reason="paho-mqtt is not installed (the extra mqtt)"
    )
    given = codes.ReasonCode(packets.PacketTypes.DISCONNECT, identifier=reason)
    assert words in mqtt_reasons.way_out(given)
    assert mqtt_reasons.way_out(codes.ReasonCode(packets.PacketTypes.DISCONNECT, identifier=0x8B)) == ""
    assert mqtt_reasons.passes(codes.ReasonCode(packets.PacketTypes.CONNACK, identifier=0x89))


@pytest.mark.slow
def test_two_services_of_one_client_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would end the connection of the other one, for ever."""
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    monkeypatch.setattr(mqtt_reasons, "MOST_SHORT", 2)
    monkeypatch.setattr(mqtt_reasons, "SHORT_S", float(MOST_S))
    port = free_port()
    (tmp_path / "mosquitto.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")

    async def all_of(source: Mqtt) -> None:
        async with aclosing(source.read(None)) as pieces:  # type: ignore[type-var]
            async for _ in pieces:
                pass

    async def main() -> None:
        both = [asyncio.ensure_future(all_of(Mqtt("127.0.0.1", "t", "same", port=port))) for _ in range(2)]
        done, left = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for each in left:
            each.cancel()
        await asyncio.wait(both)
        with pytest.raises(SetupError, match=r"this client id.* give each service one of its own"):
            raise next(iter(done)).exception() or AssertionError

    with served([program("mosquitto", "mosquitto"), "-v", "-c", "mosquitto.conf"], "running", tmp_path):
        run_async(asyncio.wait_for(main(), MOST_S))


# Formats


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2), pa.list_(pa.binary())])
def test_bytes_in_messages_of_text_are_refused_at_the_start(kind: pa.DataType, tmp_path: Path) -> None:
    schema = Schema({"ts": pa.int64(), "b": kind}, "ts", "s")
    for sink in (OneFile(tmp_path / "o.jsonl"), RedisEntries("redis://127.0.0.1:1", "s")):
        with pytest.raises(
            GraphError, match=r"column 'b' is .*, which jsonl cannot hold: give format 'msgpack'"
        ):
            run_async(sink.open(schema, "run", []))
