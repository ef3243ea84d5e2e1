"""Results that a server has no more, and limits that were lowered, while a service writes to it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.connectors.sinks import kafka_topic
from oop_engine.errors import SetupError, SnapshotError
from oop_engine.extend import LiveSink
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import JetStreamSubject, KafkaTopic, RedisEntries
from tests.parts.connectors import test_made_again
from tests.parts.connectors.servers import IN_A_ROW

pytestmark = IN_A_ROW
nats_at, redis_at, redis = test_made_again.nats_at, test_made_again.redis_at, test_made_again.redis
topic = test_made_again.topic
SCHEMA = Schema({"ts": pa.int64(), "text": pa.string()}, "ts", "s")


class Epochs:
    """An open sink, an epoch of one row each time."""

    def __init__(self, sink: LiveSink) -> None:
        self.sink, self.letters = sink, list[tuple[str, str, str | None]]()
        sink.refused = lambda reason, record, rows, coding=None, **more: self.letters.append(
            (reason, record, coding)
        )

    async def open(self, *prepared: Any) -> None:
        await self.sink.open(SCHEMA, "run", prepared)

    async def prepare(self, epoch: int, *texts: str) -> Any:
        texts = texts or ("a",)
        await self.sink.write(
            epoch, Page.of(SCHEMA, {"ts": [*range(epoch, epoch + len(texts))], "text": texts})
        )
        return json.loads(json.dumps(await self.sink.prepare(epoch)))

    async def write(self, epoch: int, *texts: str) -> None:
        await self.sink.commit(await self.prepare(epoch, *texts))


async def jetstream(at: str, work: Callable[[Any], Awaitable[Any]]) -> Any:
    import nats

    client = await nats.connect(at)
    try:
        return await work(client.jetstream())
    finally:
        await client.close()


async def make(at: str, name: str, again: str | None = None, **options: Any) -> None:
    """Make a stream; ``again``: the name of the one whose place it takes."""

    async def does(js: Any) -> None:
        if again is not None:
            await js.delete_stream(again)
        await js.add_stream(name=name, subjects=[f"{(again or name)}.>"], **options)

    await jetstream(at, does)


async def times(at: str, stream: str) -> list[int]:
    async def does(js: Any) -> list[int]:
        state = (await js.stream_info(stream)).state
        found = [await js.get_msg(stream, number) for number in range(state.first_seq, state.last_seq + 1)]
        return [json.loads(message.data)["ts"] for message in found]

    found: list[int] = await jetstream(at, does)
    return found


@pytest.mark.parametrize("name", ["again", "moved"])
@pytest.mark.parametrize("prepared", [False, True])
def test_a_stream_of_nats_that_is_made_again(nats_at: str, name: str, prepared: bool) -> None:
    """The line names both; the next epoch goes to the stream that there is."""
    old = f"{name}{prepared}"
    new = old if name == "again" else f"{old}2"

    async def main() -> None:
        await make(nats_at, old)
        epochs = Epochs(JetStreamSubject(nats_at, f"{old}.a"))
        await epochs.open()
        await epochs.write(0)
        await epochs.write(1)
        waiting = await epochs.prepare(2) if prepared else None
        await make(nats_at, new, old)
        if waiting:
            await epochs.sink.commit(waiting)
        with pytest.raises(
            SnapshotError, match=rf"lacks results .*'{old}' of .* was deleted, and stream '{new}'"
        ):
            await epochs.write(3)
        await epochs.write(4)
        await epochs.sink.close()

    run_async(main())
    assert run_async(times(nats_at, new)) == ([2, 4] if prepared else [4])


def test_a_stream_of_nats_made_again_between_two_lives(
    nats_at: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit that is repeated looks at all of the stream that there is, which ends before the one of then."""

    async def main() -> None:
        await make(nats_at, "lives")
        epochs = Epochs(JetStreamSubject(nats_at, "lives.a"))
        await epochs.open()
        for epoch in range(5):
            await epochs.write(epoch)
        waiting = await epochs.prepare(5, "a", "b")
        await epochs.sink.close()
        await make(nats_at, "lives", "lives")
        for _ in range(2):
            epochs = Epochs(JetStreamSubject(nats_at, "lives.a"))
            await epochs.open(waiting)
            await epochs.sink.commit(waiting)
            await epochs.sink.close()

    run_async(main())
    assert run_async(times(nats_at, "lives")) == [5, 6]
    assert any("results before epoch 5 are gone" in text for text in caplog.messages)


def test_a_stream_of_nats_without_a_message_that_was_published(nats_at: str) -> None:
    async def main() -> None:
        await make(nats_at, "restored")
        epochs = Epochs(JetStreamSubject(nats_at, "restored.a"))
        await epochs.open()
        await epochs.write(0)
        epochs.sink._taken_up._last = 7  # type: ignore[attr-defined]
        with pytest.raises(
            SnapshotError, match="message 7 of stream 'restored' is gone, the last is 1: it was restored"
        ):
            await epochs.write(1)
        await epochs.write(2)
        await jetstream(nats_at, lambda js: js.purge_stream("restored"))  # those that were read
        await epochs.write(3)
        await epochs.sink.close()

    run_async(main())
    assert run_async(times(nats_at, "restored")) == [3]


def test_a_stream_of_nats_whose_limit_is_lowered(nats_at: str) -> None:
    async def main() -> None:
        await make(nats_at, "lowered")
        epochs = Epochs(JetStreamSubject(nats_at, "lowered.a"))
        await epochs.open()
        waiting = await epochs.prepare(0, "a", "b" * 500, "c")
        lower = lambda js: js.update_stream(name="lowered", subjects=["lowered.>"], max_msg_size=200)
        await jetstream(nats_at, lower)
        await epochs.sink.commit(waiting)
        await epochs.write(9, "d" * 500)
        assert [(json.loads(record)["ts"], coding) for _, record, coding in epochs.letters] == [
            (1, "json"),
            (9, "json"),
        ]
        epochs.sink.keeps_refused = False
        with pytest.raises(SetupError, match="raise its limit"):
            await epochs.write(10, "d" * 500)
        await epochs.sink.close()

    run_async(main())
    assert run_async(times(nats_at, "lowered")) == [0, 2]


@pytest.mark.parametrize("prepared", [False, True])
def test_a_stream_of_redis_that_is_deleted(redis_at: str, redis: Any, prepared: bool) -> None:
    """One that is trimmed is the same."""
    name = f"gone{prepared}"

    async def main() -> None:
        epochs = Epochs(RedisEntries(redis_at, name, format="arrow"))  # whose bytes are no texts
        await epochs.open()
        await epochs.write(0)
        redis.xtrim(name, maxlen=0, approximate=False)
        await epochs.write(1)
        waiting = await epochs.prepare(2) if prepared else None
        redis.delete(name)
        redis.xadd(name, {"data": '{"ts": 9}'})
        with pytest.raises(
            SnapshotError,
            match=r"lacks the results of epoch 1, .* the stream was deleted or flushed, has expired",
        ):
            await (epochs.sink.commit(waiting) if waiting else epochs.write(2))
        await epochs.write(3)
        redis.delete(name)
        redis.set(name, "a")
        with pytest.raises(SnapshotError, match="epoch 3"):
            await epochs.write(4)
        with pytest.raises(
            SetupError, match="must be a stream; there is something else now: take another name"
        ) as told:
            await epochs.write(5)
        assert "XADD" not in str(told.value)
        await epochs.sink.close()

    run_async(main())


@pytest.mark.parametrize("more", [0, 5])
def test_a_stream_of_redis_that_is_made_again_with_as_many_entries(
    redis_at: str, redis: Any, more: int
) -> None:
    """Entries that others add to the stream are none of another one."""
    name = f"again{more}"

    def others(count: int) -> None:
        for ts in range(count):
            redis.xadd(name, {"data": json.dumps({"ts": ts})})

    async def main() -> None:
        epochs = Epochs(RedisEntries(redis_at, name))
        await epochs.open()
        for epoch in range(3):
            others(epoch)
            await epochs.write(epoch)
        redis.xtrim(name, maxlen=1, approximate=False)
        await epochs.write(3)
        count = int(redis.xinfo_stream(name)["entries-added"])
        assert count == 7
        redis.delete(name)
        others(count + more)
        with pytest.raises(SnapshotError, match=r"lacks the results of epoch 3, .* the stream was deleted"):
            await epochs.write(4)
        await epochs.write(5)
        others(2)
        await epochs.write(6)
        await epochs.sink.close()

    run_async(main())


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("kept", [True, False])
def test_a_redis_whose_limit_is_lowered(redis_at: str, redis: Any, kept: bool) -> None:
    """It ends the connection within the transaction: what would be tried for ever is a dead letter, or an error."""
    name = f"lowered{kept}"

    async def main() -> None:
        epochs = Epochs(RedisEntries(redis_at, name))
        await epochs.open()
        waiting = await epochs.prepare(0, "a", "b" * (3 << 20), "c")
        epochs.sink.keeps_refused = kept
        redis.config_set("proto-max-bulk-len", 1 << 20)
        try:
            if kept:
                await epochs.sink.commit(waiting)
            else:
                with pytest.raises(SetupError, match=f"Redis stream '{name}' at"):
                    await epochs.sink.commit(waiting)
        finally:
            redis.config_set("proto-max-bulk-len", 512 << 20)
        await epochs.sink.close()
        assert [json.loads(record)["ts"] for _, record, _ in epochs.letters] == [1] * kept

    run_async(main())
    assert [json.loads(entry[b"data"])["ts"] for _, entry in redis.xrange(name)] == [0, 2] * kept


def test_a_topic_that_is_made_again(topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_topic, "_LOOK_S", 0.0)
    at = topic("create", "results")

    async def main() -> None:
        epochs = Epochs(KafkaTopic(at, "results", options={"log_level": 0}))
        await epochs.open()
        await epochs.write(0)
        topic("delete", "results")
        topic("create", "results")
        with pytest.raises(SnapshotError, match=r"lacks results .* deleted and made again \(its id was"):
            await epochs.write(1)
        await epochs.write(2)
        await epochs.sink.close()

    run_async(main())


def test_a_topic_whose_limit_is_lowered(topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    import confluent_kafka

    at, limits = topic("create", "lower"), [1_000_000, 3000, 3000]
    sent = KafkaTopic._in_one

    def limit(self: KafkaTopic, known: Any) -> int:
        self._limit = limits.pop(0) if self._limit is None else self._limit
        return self._limit

    def in_one(self: KafkaTopic, kafka: Any, epoch: int, rows: list[Any]) -> None:
        if any(value is not None and len(value) > 3000 for _, value in rows):
            raise confluent_kafka.KafkaException(
                confluent_kafka.KafkaError(confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE)
            )
        sent(self, kafka, epoch, rows)

    monkeypatch.setattr(KafkaTopic, "_limit_of_topic", limit)
    monkeypatch.setattr(KafkaTopic, "_in_one", in_one)

    async def main() -> list[Any]:
        epochs = Epochs(KafkaTopic(at, "lower", format="msgpack", options={"log_level": 0}))
        await epochs.open()
        await epochs.write(0, "a", "b" * 4000, "c")
        await epochs.write(8, "d" * 4000, "e")
        await epochs.sink.close()
        return epochs.letters

    letters = run_async(main())
    assert [("the server takes 2,488" in reason, coding) for reason, _, coding in letters] == [
        (True, None),
        (True, "json"),
    ]
    assert limits == [3000]
