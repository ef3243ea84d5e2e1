"""A service over a broker that is killed: ``python -m tests.parts.connectors.brokered_service KIND AT FOLDER``.

Results go back into the same broker, of MQTT into files.  After each acknowledgement it prints the source, and how many
of its messages are in a checkpoint.  It ends when it gets SIGTERM; with a fourth argument, ``drain``, it ends its
streams then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from oop_engine import serve
from oop_engine.connectors.sources import jet_stream, kafka, mqtt, postgres_changes, redis_stream
from oop_engine.extend import LiveSink, LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import JetStreamSubject, KafkaTopic, PartFiles, PostgresTable, RedisEntries
from oop_engine.sources import JetStream, Kafka, Mqtt, PostgresChanges, RedisStream
from tests.parts.service.killed_service import LOGS, counts

OUT = "out"


def telling(source: LiveSource, name: str, folder: Path) -> LiveSource:
    """Let a source print how far a checkpoint has it: rows are numbered.

    A file tells the numbers of positions that an earlier process has read.
    """
    acknowledge, read, known = source.acknowledge, source.read, folder / f"{name}.numbers"
    lines = known.read_text().splitlines() if known.exists() else []
    numbers = dict(json.loads(line) for line in lines if line.endswith("]"))

    async def seen(position: Any) -> AsyncIterator[tuple[Any, Any]]:
        number = numbers.get(json.dumps(position), 0)
        async for data, behind in read(position):
            number = max((json.loads(payload)["id"] for payload in data), default=number)
            numbers[json.dumps(behind)] = number
            with known.open("a") as file:
                file.write(f"\n{json.dumps([json.dumps(behind), number])}")
            yield data, behind

    async def told(position: Any) -> None:
        await acknowledge(position)
        print(name, numbers.get(json.dumps(position), 0), flush=True)

    source.acknowledge, source.read = told, seen  # type: ignore[method-assign]
    return source


def source_of(kind: str, at: str, name: str) -> LiveSource:
    match kind:
        case "mqtt":
            host, _, port = at.partition(":")
            return Mqtt(host, f"logs/{name}", f"service-{name}", port=int(port))
        case "redis":
            return RedisStream(f"redis://{at}/0", name)
        case "nats":
            return JetStream(f"nats://{at}", name)
        case "kafka":
            return Kafka(at, name, [0])
    return PostgresChanges(f"postgresql://me@{at}/postgres", name, name)


def sink_of(kind: str, at: str, folder: Path) -> LiveSink:
    match kind:
        case "redis":
            return RedisEntries(f"redis://{at}/0", OUT)
        case "nats":
            return JetStreamSubject(f"nats://{at}", OUT)
        case "kafka":
            return KafkaTopic(at, OUT)
        case "postgres":
            return PostgresTable(f"postgresql://me@{at}/postgres", OUT)
    return PartFiles(folder / OUT, "jsonl")


def main(kind: str, at: str, folder: Path, *, drain: bool) -> None:
    for module in (mqtt, redis_stream, jet_stream, kafka):
        module._MOST = 20  # type: ignore[attr-defined]  # small pieces, so that there are many moments to die at
    postgres_changes._MOST = 7  # within a transaction
    served = serve(
        counts(),
        {name: telling(source_of(kind, at, name), name, folder) for name in LOGS},
        {"out": sink_of(kind, at, folder)},
        checkpoint=folder / "state",
        every_s=0.01,
        drain=drain,
        signals=True,
    )
    assert run_async(served).over == drain


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), drain="drain" in sys.argv[4:])
