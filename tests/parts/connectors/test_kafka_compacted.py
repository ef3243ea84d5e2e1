"""Topics of Kafka with gaps: compacted ones, tombstones, marks of transactions.  No row is lost, and the lag reaches 0.

The log is as a compaction leaves it; the compaction itself is the broker's.  Tansu sends no batch without messages.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Schema, serve
from oop_engine.operators import Punctuate, Upstream
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import Kafka
from tests.children import MOST_S
from tests.parts.connectors import test_made_again
from tests.parts.connectors.kafka_log import append
from tests.parts.connectors.servers import IN_A_ROW

pytestmark = IN_A_ROW
topic = test_made_again.topic
SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


def line(ts: int) -> bytes:
    return json.dumps({"ts": ts}).encode()


def compacted(at: str, name: str) -> list[int]:
    """Append batches, of which some messages are there, a mark and a tombstone; return the offsets of rows."""
    append(at, name, 15, {0: line(0), 3: line(3), 7: line(7)})
    append(at, name, 1, {}, mark=True)
    append(at, name, 4, {3: line(19)})
    append(at, name, 1, {0: None})
    append(at, name, 1, {0: line(21)})  # the last message of a partition is never compacted away
    return [0, 3, 7, 19, 21]


async def pieces(source: Kafka, position: Any) -> list[tuple[list[int], Any]]:
    return [
        ([json.loads(each)["ts"] for each in data if each], at) async for data, at in source.read(position)
    ]  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_compacted_topic_is_read_from_any_position_on(topic: Callable[..., str]) -> None:
    """Also from a position whose message, or whose last one, is not there any more."""
    at = topic("create", "compacted")
    there = compacted(at, "compacted")

    def read(position: Any) -> tuple[list[int], Any]:
        found = run_async(pieces(Kafka(at, "compacted", follow=False), position))
        return [ts for part, _ in found for ts in part], found[-1][1] if found else position

    found, behind = read(None)
    assert (found, behind["0"]) == (there, 22)
    for offset in (1, 4, 8, 14, 15, 16, 19, 20, 22):
        gone = (
            {} if offset - 1 in [*there, 20] else {"seen": {"0": [offset - 1, 0, 0]}}
        )  # the last one that was read
        assert read({"0": offset, **gone})[0] == [ts for ts in there if ts >= offset], offset


def test_positions_between_the_rows_lose_nothing(
    topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that was stopped behind any piece goes on from there."""
    at = topic("create", "stopped")
    there = compacted(at, "stopped")
    monkeypatch.setattr("oop_engine.connectors.sources.kafka._MOST", 2)
    found = run_async(pieces(Kafka(at, "stopped", follow=False), None))
    positions = [position["0"] for _, position in found]
    assert all(before < behind for before, behind in pairwise(positions))
    for number, (_, position) in enumerate(found):
        rest = run_async(pieces(Kafka(at, "stopped", follow=False), json.loads(json.dumps(position))))
        read = [ts for part, _ in [*found[: number + 1], *rest] for ts in part]
        assert read == there


@pytest.mark.parametrize("last", ["row", "tombstone", "mark"])
def test_the_lag_of_a_service_reaches_zero(topic: Callable[..., str], tmp_path: Path, last: str) -> None:
    """By the offset that is committed for monitors, whatever the last message is; also after a restart."""
    import confluent_kafka

    name = f"lag_{last}"
    at = topic("create", name)
    there = compacted(at, name)
    if last != "row":
        append(at, name, 1, {0: None} if last == "tombstone" else {}, mark=last == "mark")
    graph = Graph("numbers")
    graph.sink("out", graph.add("edge", Punctuate(Upstream()), graph.source("in", SCHEMA)))

    def lag(consumer: Any) -> int:
        partition = confluent_kafka.TopicPartition(name, 0)
        _, end = consumer.get_watermark_offsets(partition, timeout=MOST_S)
        [committed] = consumer.committed([partition], timeout=MOST_S)
        return int(end - max(committed.offset, 0))

    async def life() -> list[Any]:
        stop, sink = asyncio.Event(), Gathered()
        consumer = confluent_kafka.Consumer({"bootstrap.servers": at, "group.id": name, "log_level": 0})
        serving = asyncio.create_task(
            serve(
                graph, {"in": Kafka(at, name, group=name)}, {"out": sink}, checkpoint=tmp_path, every_s=0.05, stop=stop,
                signals=False,
            )
        )  # fmt: skip
        async with asyncio.timeout(MOST_S):
            while await asyncio.to_thread(lag, consumer):
                assert not serving.done(), serving.result()
                await asyncio.sleep(0.02)
        stop.set()
        await serving
        consumer.close()
        return [row["ts"] for row in sink.rows]

    assert run_async(life()) == there
    append(at, name, 1, {0: line(99)})
    assert run_async(life()) == [99]
