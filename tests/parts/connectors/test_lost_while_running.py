"""A log that loses messages while a service reads it: those that were read do no harm, others end it with a line."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from oop_engine import serve
from oop_engine.errors import TraceError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.system.on_thread import on_thread
from tests.children import MOST_S
from tests.parts.connectors import test_outages
from tests.parts.connectors.postgres_server import do
from tests.parts.connectors.test_outages import (
    MqttServer,
    NatsServer,
    PostgresServer,
    RedisServer,
    Server,
    graph,
)

folder, pytestmark = test_outages.folder, test_outages.pytestmark
SOME = 3000


async def purge(server: Any) -> None:
    await server.asked(lambda jetstream: jetstream.purge_stream("in"))
    await server.send(2, 3)


async def purge_unread(server: Any) -> None:
    import nats

    client = await nats.connect(server.at)
    for ts in range(SOME):
        await client.publish("in", json.dumps({"ts": ts}).encode())
    await client.flush()
    await client.jetstream().purge_stream("in")
    await client.close()
    await server.send(SOME)


async def delete_consumers(server: Any) -> None:
    async def delete(jetstream: Any) -> None:
        for consumer in await jetstream.consumers_info("in"):
            await jetstream.delete_consumer("in", consumer.name)

    await server.asked(delete)
    await server.send(2, 3)


def redis_does(work: Callable[[Any], Any]) -> Callable[[Any], Awaitable[None]]:
    async def does(server: Any) -> None:
        import redis

        with redis.Redis(port=server.port) as client:
            work(client)
        await server.send(2, 3)

    return does


async def drop_slot(server: Any) -> None:
    import psycopg

    def drop() -> None:
        while do(server.at, "select 1 from pg_replication_slots where slot_name = 'in'"):
            do(server.at, "select pg_terminate_backend(active_pid) from pg_replication_slots where active")
            with suppress(psycopg.Error):
                do(server.at, "select pg_drop_replication_slot('in')")
            time.sleep(0.01)

    await on_thread(drop)


async def invalidate_slot(server: Any) -> None:
    """Let the log grow beyond what the server keeps for a slot; a reader that is stopped does not confirm."""

    def grow() -> None:
        do(server.at, "alter system set max_slot_wal_keep_size = '1MB'", "select pg_reload_conf()")
        do(server.at, "create table big (x text)")
        rows = "insert into big select repeat(md5(i::text), 200) from generate_series(1, 20000) i"
        while do(server.at, "select wal_status from pg_replication_slots") != [("lost",)]:
            do(server.at, rows, "select pg_switch_wal()", "checkpoint")

    await on_thread(grow)


CASES: dict[str, tuple[type[Server], Callable[[Any], Awaitable[None]], str]] = {
    "nats: purged": (NatsServer, purge, ""),
    "nats: purged before it was read": (NatsServer, purge_unread, r"message [\d,]+, the next .* is no longer there"),
    "nats: consumers deleted": (NatsServer, delete_consumers, ""),
    "redis: trimmed": (RedisServer, redis_does(lambda redis: redis.xtrim("in", maxlen=0, approximate=False)), ""),
    "redis: flushed": (RedisServer, redis_does(lambda redis: redis.flushall()), "is another stream|no such stream"),
    "redis: renamed": (RedisServer, redis_does(lambda redis: redis.rename("in", "old")), "another stream|no such"),
    "postgres: slot dropped": (PostgresServer, drop_slot, "there is no such slot any more"),
    "postgres: slot invalidated": (PostgresServer, invalidate_slot, "the server has removed the log of the slot"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_messages_that_are_lost_while_a_service_runs(case: str, folder: Path, tmp_path: Path) -> None:
    kind, does, words = CASES[case]
    pytest.importorskip(test_outages.KINDS[case.partition(":")[0]][1], reason="its package is not installed")
    server, found = kind(folder), Gathered()

    async def main() -> None:
        stop = asyncio.Event()
        async with server.up():
            await server.begin()
            await server.send(0, 1)
            served = serve(
                graph(), {"in": server.source()}, {"out": found}, checkpoint=tmp_path / "state", every_s=0.1, stop=stop,
                signals=False,
            )  # fmt: skip
            serving = asyncio.create_task(served)  # type: ignore[arg-type]
            await until(serving, 2)
            await does(server)
            if words:
                with pytest.raises(TraceError, match=rf"({words}).*resume with --from earliest, latest"):
                    await asyncio.wait_for(serving, MOST_S)
            else:
                await until(serving, 4)
                stop.set()
                await serving
                assert [row["ts"] for row in found.rows] == [0, 1, 2, 3]

    async def until(serving: asyncio.Task[Any], count: int) -> None:
        async with asyncio.timeout(MOST_S):
            while len(found.rows) < count:
                assert not serving.done(), serving.result()
                await asyncio.sleep(0.02)

    run_async(main())


def test_a_broker_that_loses_a_session_while_a_service_runs(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    server = MqttServer(folder)

    async def main() -> None:
        async with server.up():
            served = serve(
                graph(), {"in": server.source()}, {"out": Gathered()}, checkpoint=tmp_path, signals=False
            )
            serving = asyncio.create_task(served)  # type: ignore[arg-type]
            await asyncio.sleep(0.5)
        for kept in folder.glob("*.db"):
            kept.unlink()
        async with server.up():
            with pytest.raises(TraceError, match="the broker has no session of this client any more"):
                await asyncio.wait_for(serving, MOST_S)

    run_async(main())
