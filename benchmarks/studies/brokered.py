"""Rows at a pace through Kafka: from the row that completes a window to its answer, and CPU microseconds a row.

    python -m benchmarks.studies.brokered SECONDS

The broker is librdkafka's own, in the process that sends the rows, one message each; one topic, one partition.
``serve`` reads it, and beside it Quix, which reads from Kafka alone, where ``make bench-peers`` has installed it.
"flood": all rows are there before anybody reads.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

from benchmarks.field import ENVIRONMENTS, ROOT
from benchmarks.peers.pace import FETCH_MS, SLACK, WINDOW, Pace, key, last_end
from oop_engine import Graph, Page, Schema, serve
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.sources import Kafka

__all__ = ["answers", "brokered"]

RATES = (1_000, 10_000)
FLOOD = 1e9
WARM_S = 8.0  # until everybody has begun to read
SCHEMA = Schema({"ts": pa.int64(), "key": pa.int64(), "v": pa.int64()}, "ts", "ms")


def brokered(seconds: float) -> dict[str, dict[str, dict[str, float]]]:
    """Return latencies and CPU by pace and contender, one after the other."""
    quix = ENVIRONMENTS / "quix" / "bin" / "python"
    ways = {"engine": [sys.executable, "-m", "benchmarks.studies.brokered", "answers"]}
    if quix.exists():
        ways["quix"] = [str(quix), "-m", "benchmarks.peers.quix_paced"]
    paces = [*((rate, f"{rate} a second") for rate in RATES), (FLOOD, "flood")]
    return {
        name: {
            way: _paced(command, int(seconds * min(rate, RATES[-1])), rate) for way, command in ways.items()
        }
        for rate, name in paces
    }


def _paced(command: list[str], rows: int, rate: float) -> dict[str, float]:
    """Send rows at a pace to who answers them."""
    producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0})
    [broker] = producer.list_topics(timeout=10).brokers.values()
    producer.list_topics("rows", timeout=10)
    at_once = rate == FLOOD
    pace = Pace(rows, rate)
    if at_once:
        _send(producer, pace)
    process = subprocess.Popen(
        [*command, f"{broker.host}:{broker.port}", "rows", str(rows)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    if not at_once:
        time.sleep(WARM_S)
        pace.began = time.perf_counter()
        _send(producer, pace)
    said, _ = process.communicate(timeout=600)
    found = json.loads(said.splitlines()[-1])
    if at_once:
        pace.given_s[:] = 0.0
    pace.answered_s = {(int(end), 0): at for end, at in found["answered_s"].items()}
    latencies = {"windows": float(len(pace.answered_s))} if at_once else pace.latencies_ms("rows")
    return latencies | {"cpu_us": found["cpu_us"]}


def _send(producer: Producer, pace: Pace) -> None:
    for n in range(pace.rows):
        while (wait_s := pace.due(n)) > 0:
            time.sleep(wait_s)
        pace.give(n)
        value = json.dumps({"ts": n, "key": key(n), "v": n}).encode()
        while True:
            try:
                producer.produce("rows", value, str(key(n)).encode(), partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush(60)


async def answers(servers: str, topic: str, rows: int) -> dict[str, Any]:
    """Return when the first result of each window came out of a service, and CPU microseconds a row."""
    graph, found, stop = Graph("brokered"), dict[int, float](), asyncio.Event()
    edge = graph.add("edge", Punctuate(BoundedDisorder(f"{SLACK} ms")), graph.source("rows", SCHEMA))
    sums = {"n": Count(), "total": Sum("v")}
    graph.sink(
        "out", graph.add("windows", WindowAggregate(Tumbling(f"{WINDOW} ms"), sums, by=("key",)), edge)
    )

    def answered(page: Page) -> None:
        now = time.perf_counter()
        for end in page.column("window_end").unique().to_pylist():
            found.setdefault(end, now)
        if last_end(rows) in found:
            stop.set()

    began = time.process_time()
    source = Kafka(servers, topic, [0], options={"fetch.wait.max.ms": FETCH_MS})
    await serve(graph, {"rows": source}, {"out": answered}, signals=False, stop=stop)
    return {"answered_s": found, "cpu_us": round(1e6 * (time.process_time() - began) / rows, 1)}


if __name__ == "__main__":
    if sys.argv[1] == "answers":
        print(json.dumps(asyncio.run(answers(sys.argv[2], sys.argv[3], int(sys.argv[4])))))
    else:
        print(json.dumps(brokered(float(sys.argv[1])), indent=1))
