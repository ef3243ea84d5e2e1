"""Positions that are none of a source: typed by a user (``--from``), or of another kind of source of that name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Schema, UsageError
from oop_engine.connectors.pace import read_on
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import (
    FileTail,
    Generated,
    GrowingFolder,
    JetStream,
    Journal,
    Kafka,
    Mqtt,
    PostgresChanges,
    Pushed,
    RedisStream,
    Replayed,
    ServerEvents,
    TcpLines,
    WebSocket,
)
from tests.parts.connectors.servers import free_port

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
AT = f"127.0.0.1:{free_port()}"


async def feed(start: int) -> AsyncIterator[dict[str, int]]:
    for ts in range(start, 3):
        yield {"ts": ts}


MADE: dict[str, tuple[str, Callable[[Path], LiveSource], list[Any]]] = {
    "tail": ("", lambda folder: FileTail(folder / "log.jsonl", follow=False), [[0, 0, 0, 0], [1, 2, 3, 4, [[1]]]]),
    "folder": ("", lambda folder: GrowingFolder(folder, SCHEMA, follow=False), [["a.jsonl", 1], ["a", 1, True, 9, 7]]),
    "replayed": ("", lambda _: Replayed(feed), [0, 2]),
    "generated": ("", lambda _: Generated(feed(0)), [0, 2]),
    "pushed": ("", lambda _: Pushed(), [0, 2]),
    "journal": ("", lambda folder: Journal(Replayed(feed), folder / "journal"), []),
    "tcp": ("", lambda _: TcpLines("127.0.0.1", 1, connect=True), [0, 2]),
    "web socket": ("websockets", lambda _: WebSocket(f"ws://{AT}/"), [0, 2]),
    "events": ("httpx", lambda _: ServerEvents(f"http://{AT}/"), ["", "7"]),
    "kafka": ("confluent_kafka", lambda _: Kafka(AT, "t"), [{"0": 3, "seen": {"0": [2, 3, 4]}}]),
    "mqtt": ("paho.mqtt", lambda _: Mqtt("127.0.0.1", "t", "c", port=1), [{"count": 3, "sent": {"1": "x"}}]),
    "redis": ("redis", lambda _: RedisStream(f"redis://{AT}/0", "s"), []),
    "nats": ("nats", lambda _: JetStream(f"nats://{AT}", "s"), []),
    "postgres": ("psycopg", lambda _: PostgresChanges(f"postgresql://me@{AT}/x", "p"), []),
}  # fmt: skip
"""By kind: the package that it needs, how it is made, and positions of it."""

WRONG: list[Any] = [
    "x",
    {"a": 1},
    [],
    [1, "b"],
    True,
    1.5,
    {"0": "x"},
    {"0": -5},
    {"seen": 3, "0": 1},
    [[1], 2],
]
BY_SERVER = {"redis", "nats", "postgres"}
"""They tell it themselves, once they have read it."""
OWN = [("events", "x"), ("journal", True)]
"""Values that may be a position of theirs."""


async def first(source: LiveSource, position: Any) -> Any:
    async for piece in read_on(source, position):
        return piece


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize("kind", [kind for kind in MADE if kind not in BY_SERVER])
def test_a_value_that_is_no_position_is_told_with_the_way_out(kind: str, wrong: Any, tmp_path: Path) -> None:
    package, made, _ = MADE[kind]
    if (kind, wrong) in OWN:
        return
    if package:
        pytest.importorskip(package, reason=f"{package} is not installed")
    (tmp_path / "log.jsonl").write_text('{"ts": 1}\n')
    with pytest.raises(UsageError, match=r"--from earliest|is the checkpoint another's"):
        run_async(first(made(tmp_path), wrong))


@pytest.mark.parametrize("kind", MADE)
def test_positions_of_a_source_are_its_own(kind: str, tmp_path: Path) -> None:
    _, made, positions = MADE[kind]
    assert [*map(made(tmp_path).is_position, positions)] == [True] * len(positions)


def test_positions_that_a_source_has_given_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"ts": 1}\n{"ts": 2}\n')

    async def given(source: LiveSource) -> list[Any]:
        return [position async for _, position in source.read(None)]

    for source in (
        FileTail(tmp_path / "log.jsonl", follow=False),
        GrowingFolder(tmp_path, SCHEMA, follow=False),
    ):
        positions = run_async(given(source))
        assert positions
        assert all(map(source.is_position, positions))
