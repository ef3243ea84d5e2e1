"""Connectors by name, as a command line has them; nothing is connected yet."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from oop_engine import Schema, UsageError
from oop_engine.connectors.by_name import sink_of, source_of
from oop_engine.sinks import RedisEntries
from oop_engine.sources import JetStream, Mqtt, RedisStream

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("redis:127.0.0.1:6379/log?db=3&field=", "RedisStream", {"_url": "redis://127.0.0.1:6379/3", "_field": None}),
        ("nats:127.0.0.1:4222/LOG?subject=log.a", "JetStream", {"_stream": "LOG", "_subject": "log.a"}),
        ("mqtt:localhost:1883/a/b?client=me&format=csv", "Mqtt", {"_client_id": "me", "_port": 1883, "format": "csv"}),
        ("postgres:h:5432/shop?publication=p&user=me", "PostgresChanges", {"_dsn": "postgresql://me@h:5432/shop"}),
        ("wss://h.example/feed?x=1&format=csv", "WebSocket", {"_url": "wss://h.example/feed?x=1", "format": "csv"}),
        ("sse:https://h/feed?x=1&event=a", "ServerEvents", {"_url": "https://h/feed?x=1", "_event": "a"}),
        ("tcp:127.0.0.1:9000?journal=kept&format=csv", "Journal", {"_folder": Path("kept"), "format": "csv"}),
        ("wss://h.example/feed?journal=kept&x=1", "Journal", {"format": "jsonl"}),
        ("kafka:127.0.0.1:9092/log?partition=0,2", "Kafka", {"_topic": "log", "_partitions": [0, 2]}),
    ],
)  # fmt: skip
def test_a_source_has_what_its_text_tells(text: str, kind: str, fields: dict[str, object]) -> None:
    found = source_of(text, SCHEMA)
    assert type(found).__name__ == kind
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("kafka:127.0.0.1:9092/out?key=host", "KafkaTopic", {"_topic": "out", "_key": "host"}),
        (
            "redis:h:6379/out?most=9&format=csv",
            "RedisEntries",
            {"_stream": "out", "_most": 9, "_format": "csv"},
        ),
        ("nats:h:4222/out.a", "JetStreamSubject", {"_server": "nats://h:4222", "_subject": "out.a"}),
        ("delta:out?key=k,window_end", "DeltaFolder", {"_key": ("k", "window_end")}),
        (
            "postgres:127.0.0.1:5432/shop?table=t&key=a,b",
            "PostgresTable",
            {"_table": "t", "_key": ["a", "b"]},
        ),
    ],
)
def test_a_sink_has_what_its_text_tells(text: str, kind: str, fields: dict[str, object]) -> None:
    found = sink_of(text)
    assert type(found).__name__ == kind
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("redis:127.0.0.1/log", "must have a host, a port and a name, as in redis:127.0.0.1:6379/requests"),
        ("nats:127.0.0.1:4222", "must have a host, a port and a name"),
        ("mqtt:127.0.0.1:1883/a", "must have a client id that stays the same"),
        ("postgres:127.0.0.1:5432/shop", r"must have \?publication=NAME"),
        ("kafka:topic", "must have a host, a port and a name"),
        ("redis:127.0.0.1:6379/log?fields=a", "unknown option 'fields'"),
        ("tail:a.jsonl?follow=maybe", "tail:a.jsonl: follow must be yes or no; got 'maybe'"),
        ("nats:127.0.0.1:4222/LOG?follow=", "follow must be yes or no; got ''"),
        ("tcp:127.0.0.1:9000?connect=true", "connect must be yes or no; got 'true'"),
        ("tcp:127.0.0.1:99999", "must have a host and a port, as in tcp:127.0.0.1:9000"),
        ("redis:127.0.0.1:99999/log", "must have a host, a port and a name"),
        ("tail:?follow=no", r"source 'tail:\?follow=no': must have a path, as in tail:access.jsonl"),
        ("folder", "source 'folder': must have a path"),
        ("kafka:127.0.0.1:9092/log?partition=0,east", "partition must be numbers, as in .*; got 'east'"),
    ],
)
def test_a_source_that_lacks_something_is_told(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        source_of(text, SCHEMA)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: JetStream("nats://h", "a.b"), "'a.b' can be no name of a stream"),
        (lambda: JetStream("nats://h", ""), "'' can be no name of a stream"),
        (lambda: JetStream("nats://h", "a", "b..c"), r"'b\.\.c' can be no name of a subject"),
        (lambda: JetStream("nats://h", "a", "b c"), "'b c' can be no name of a subject"),
        (
            lambda: RedisStream("redis://:secret@h:1/shop", "s"),
            "at h:1/shop: the database .* must be a number; got 'shop'",
        ),
        (lambda: RedisEntries("rediss://h/x", "s"), "the database in the address must be a number; got 'x'"),
        (lambda: Mqtt("h", "t", ""), "client_id must be a name; without one the broker keeps no session"),
    ],
)
def test_a_name_that_can_be_none_is_told_at_once(make: Callable[[], object], words: str) -> None:
    """The server would refuse it later, or give nothing for ever."""
    with pytest.raises(UsageError, match=words):
        make()


def test_a_file_where_a_folder_must_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(UsageError, match=r"sink 'parquet:.*out': must be a folder, .*got a file"):
        sink_of(f"parquet:{tmp_path / 'out'}")


def test_a_sink_without_a_table_is_told() -> None:
    with pytest.raises(UsageError, match="must have a table, as in postgres:"):
        sink_of("postgres:127.0.0.1:5432/shop")


@pytest.mark.parametrize("text", ["parquet:", "jsonl", "delta:?key=a", "print:out.jsonl"])
def test_a_sink_without_a_path_or_with_one_too_many_is_told(text: str) -> None:
    message = (
        "has no address, for it prints" if text.startswith("print") else "must have a path, as in .*:results"
    )
    with pytest.raises(UsageError, match=f"sink '{re.escape(text)}': {message}"):
        sink_of(text)
