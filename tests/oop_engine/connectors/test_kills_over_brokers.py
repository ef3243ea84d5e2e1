"""SIGKILL and SIGTERM of real processes over real brokers: nothing is lost, nothing is there twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from oop_engine.testing import multiset
from tests.children import started
from tests.oop_engine.connectors.servers import free_port, program, served
from tests.oop_engine.connectors.test_mqtt import CONFIG, begin
from tests.oop_engine.service.killed_service import LOGS
from tests.oop_engine.service.test_kills import KILLS, ROWS, expected, written

SOME = 300


def over(kind: str, port: int, folder: Path, send: Callable[[str, list[str]], None]) -> None:
    """Kill a service again and again, stop it, and let the last one end its streams."""
    random = Random(KILLS)
    every = written(folder, random)
    rows = [row for at in range(len(LOGS)) for row in every[at * ROWS :][:SOME]]
    for name in LOGS:
        send(name, (folder / f"{name}.jsonl").read_text().splitlines()[:SOME])
    command = [
        sys.executable,
        "-m",
        "tests.oop_engine.connectors.brokered_service",
        kind,
        str(port),
        str(folder),
    ]
    for number in range(KILLS + 2):
        with started(command, 60) as process:
            assert process.stdout is not None
            for _ in range(random.randint(2, 12)):
                process.stdout.readline()
            if number:
                process.kill()
            else:
                process.send_signal(signal.SIGTERM)
                _, problems = process.communicate()
                assert process.returncode == 0, problems
    missing = set(LOGS)
    with started([*command, "drain"], 60) as process:
        assert process.stdout is not None
        while missing:
            name, _, count = process.stdout.readline().partition(" ")
            missing -= {name} if int(count) == SOME else set()
        process.send_signal(signal.SIGTERM)
        _, problems = process.communicate()
        assert process.returncode == 0, problems
    assert multiset(pq.ParquetDataset(folder / "out").read().to_pylist()) == expected(rows)


@pytest.mark.slow
def test_over_redis(tmp_path: Path) -> None:
    redis = pytest.importorskip("redis", reason="redis is not installed (the extra redis)")
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

    def send(name: str, lines: list[str]) -> None:
        with redis.Redis(port=port) as client, client.pipeline(transaction=False) as pipeline:
            for line in lines:
                pipeline.xadd(name, {"data": line})
            pipeline.execute()

    with served(command, "eady to accept connections", tmp_path):
        over("redis", port, tmp_path, send)


@pytest.mark.slow
def test_over_mqtt(tmp_path: Path) -> None:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed (the extra mqtt)")
    port = free_port()
    (tmp_path / "mosquitto.conf").write_text(CONFIG.format(port=port))

    def send(name: str, lines: list[str]) -> None:
        begin(port, f"logs/{name}", f"service-{name}")
        topic = ["-h", "127.0.0.1", "-p", str(port), "-q", "1", "-t", f"logs/{name}", "-l"]
        publish = [program("mosquitto_pub", "mosquitto-clients"), *topic]
        subprocess.run(publish, input="\n".join(lines) + "\n", text=True, check=True, timeout=60)

    with served([program("mosquitto", "mosquitto"), "-v", "-c", "mosquitto.conf"], "running", tmp_path):
        over("mqtt", port, tmp_path, send)
