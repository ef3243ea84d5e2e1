"""Redis streams, on a real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.connectors.pace import read_on
from oop_engine.errors import SetupError, TraceError
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import RedisEntries
from oop_engine.sources import RedisStream
from tests.parts.connectors.breaks import through_breaks
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
pytestmark = IN_A_ROW


def page(*times: int) -> Page:
    return Page.of(SCHEMA, {"ts": [*times], "key": ["a"] * len(times)})


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(SetupError, match=r"pip install 'oop-engine\[redis\]'"):
        read(RedisStream("redis://127.0.0.1:1", "stream"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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
        yield f"redis://127.0.0.1:{port}/0"


@pytest.fixture
def client(server: str) -> Iterator[Any]:
    import redis

    with redis.Redis.from_url(server) as found:
        yield found


def send(client: Any, stream: str, *times: int) -> list[bytes]:
    return [client.xadd(stream, {"data": json.dumps({"ts": ts})}) for ts in times]


async def pieces(source: LiveSource, position: Any) -> list[tuple[Any, Any]]:
    return [piece async for piece in source.read(position)]


def read(source: LiveSource, position: Any = None) -> tuple[list[int], Any]:
    """Return the times of all messages from a position on, and the last position."""
    found = run_async(pieces(source, position))
    return [json.loads(m)["ts"] for data, _ in found for m in data], found[-1][1] if found else position


def test_a_stream_is_read_from_any_entry_on(server: str, client: Any) -> None:
    send(client, "one", *range(2500))
    source = RedisStream(server, "one", follow=False)
    found, position = read(source)
    assert found == [*range(2500)]
    send(client, "one", 3000)
    assert read(source, position)[0] == [3000]
    again = run_async(pieces(source, None))
    assert read(source, again[0][1])[0] == [*range(1000, 2500), 3000]
    assert read(source, again[-1][1])[0] == []


def test_trimmed_entries_are_only_missed_if_they_were_not_read(server: str, client: Any) -> None:
    send(client, "two", *range(10))
    source = RedisStream(server, "two", follow=False)
    _, position = read(source)
    send(client, "two", 10, 11)
    client.xtrim("two", maxlen=2, approximate=False)
    assert read(source, position)[0] == [10, 11]
    client.xtrim("two", maxlen=1, approximate=False)
    with pytest.raises(
        TraceError, match=r"are no longer there; it has \S+-\d+ to \S+-\d+: keep more of them"
    ):
        read(source, position)
    assert read(source)[0] == [11]
    [last] = send(client, "two", 12)
    _, position = read(source)
    send(client, "two", 13)
    client.xdel("two", send(client, "two", 14)[0])
    with pytest.raises(TraceError, match=f"entries behind {last.decode()}, the next to read"):
        read(source, position)
    client.delete("two")
    with pytest.raises(TraceError, match="no longer there; there is no such stream: keep"):
        read(source, position)


def test_fields_may_be_columns_and_entries_without_a_payload_are_told(server: str, client: Any) -> None:
    client.xadd("three", {"ts": 5, "host": "a"})
    [(data, _)] = run_async(pieces(RedisStream(server, "three", field=None, follow=False), None))
    assert [json.loads(each) for each in data] == [{"ts": "5", "host": "a"}]
    told = []
    source = RedisStream(server, "three", follow=False)
    source.unreadable = lambda reason, record, rows: told.append((reason, rows))
    assert read(source)[0] == []
    assert told == [("no field 'data'", 1)]


def test_a_wrong_server_or_stream_is_told_in_a_line(server: str, client: Any) -> None:
    with pytest.raises(
        SetupError, match=r"Redis stream 'none' at 127.0.0.1:.* there is nothing: check its name"
    ):
        read(RedisStream(server.replace("//", "//default:secret@"), "none"))
    client.set("text", "no stream")
    with pytest.raises(SetupError, match="must be a stream; there is a string"):
        read(RedisStream(server, "text"))
    with pytest.raises(SetupError, match="give the address of one that runs"):
        read(RedisStream(f"redis://127.0.0.1:{free_port()}", "one"))


async def opened(server: str, stream: str, prepared: list[Any], **options: Any) -> RedisEntries:
    sink = RedisEntries(server, stream, **options)
    await sink.open(SCHEMA, "run", prepared)
    return sink


@pytest.mark.parametrize("format", ["jsonl", "msgpack"])
def test_rows_of_an_epoch_are_added_once(server: str, client: Any, format: str) -> None:
    stream = f"out-{format}"

    async def main() -> None:
        sink = await opened(server, stream, [], format=format)
        await sink.write(1, page(5, 6))
        prepared = json.loads(json.dumps(await sink.prepare(1)))
        await sink.write(2, page(7))
        await sink.prepare(2)
        await sink.close()  # killed: epoch 1 is in the checkpoint, epoch 2 is not
        again, sink = [await opened(server, stream, [prepared], format=format) for _ in range(2)]
        for each in (again, sink, again):
            await each.commit(prepared)
        await sink.write(2, page(8))
        await sink.commit(await sink.prepare(2))
        assert await sink.prepare(3) is None
        await again.commit(prepared)  # an older process wakes up
        await again.close()
        await sink.close()

    run_async(main())
    unpacked = {"jsonl": json.loads, "msgpack": msgpack.unpackb}[format]
    assert [unpacked(fields[b"data"])["ts"] for _, fields in client.xrange(stream)] == [5, 6, 8]


def test_a_sink_tells_of_a_wrong_server_or_a_name_that_is_taken(server: str, client: Any) -> None:
    client.set("taken", "no stream")
    with pytest.raises(SetupError, match=r"'taken' at .* must be a stream; there is a string: take"):
        run_async(opened(server, "taken", []))
    with pytest.raises(SetupError, match="give the address of one that runs"):
        run_async(opened(f"redis://127.0.0.1:{free_port()}", "one", []))


def test_a_sink_goes_on_when_its_server_is_back(server: str, client: Any) -> None:
    port = int(server.partition("//")[2].partition(":")[2].partition("/")[0])
    run_async(
        through_breaks(
            port, lambda at: RedisEntries(f"redis://127.0.0.1:{at}/0", "away"), lambda sent: b"EXEC" in sent
        )
    )
    found = [json.loads(fields[b"data"])["ts"] for _, fields in client.xrange("away")]
    assert found == [1, 2, 3, 4, 5, 6]


def test_a_source_goes_on_when_its_server_is_back(tmp_path: Path) -> None:
    redis = pytest.importorskip("redis", reason="redis is not installed (the extra redis)")
    port = free_port()
    always = ["--appendonly", "yes", "--appendfsync", "always"]
    command = [program("redis-server", "redis-server"), "--port", str(port), "--bind", "127.0.0.1", *always]
    source = RedisStream(f"redis://127.0.0.1:{port}/0", "s")

    async def main() -> list[int]:
        async with aclosing(read_on(source, None)) as feed:  # type: ignore[type-var]
            found = list[int]()
            for life in range(2):
                with served(command, "eady to accept connections", tmp_path):
                    with redis.Redis(port=port) as client:
                        send(client, "s", life)
                    found += [json.loads(m)["ts"] for m in (await anext(feed))[0]]
            return found

    assert run_async(main()) == [0, 1]
    assert source.link.losses == 1


def test_an_entry_has_its_id_and_moment_as_columns(server: str, client: Any) -> None:
    client.xadd("told", {"data": b"{}"}, id="1700000000123-4")
    source = RedisStream(server, "told", follow=False)
    source.wanted = source.metadata
    [(data, _)] = run_async(pieces(source, None))
    assert data[0].about == {"_id": "1700000000123-4", "_time": 1700000000123}
