"""Messages that a server deletes, or overwrites, while a source reads: never without a word."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from oop_engine.errors import SetupError, TraceError
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import JetStream, RedisStream
from tests.parts.connectors import test_made_again
from tests.parts.connectors.servers import IN_A_ROW
from tests.parts.connectors.test_made_again import add, line, read
from tests.parts.connectors.test_results_gone import jetstream

pytestmark = IN_A_ROW
nats_at, redis_at, redis = test_made_again.nats_at, test_made_again.redis_at, test_made_again.redis
Work = Callable[[Any], Awaitable[Any]]


async def make(at: str, name: str, count: int, **options: Any) -> None:
    """Make a stream with messages of a subject each."""

    async def does(js: Any) -> None:
        await js.add_stream(name=name, subjects=[f"{name}.>"], **options)
        for ts in range(count):
            await js.publish(f"{name}.{ts % 3}", line(ts))

    await jetstream(at, does)


def followed(source: Any, at: str, count: int, change: Work, last: int) -> list[int]:
    """Return the times that a source gives, up to the last; behind so many a stream is changed."""
    found = list[int]()

    async def main() -> None:
        changed = False
        async with aclosing(source.read(None)) as pieces:
            async for data, _ in pieces:
                found.extend(json.loads(each)["ts"] for each in data if each)
                if last in found:
                    break
                if len(found) >= count and not changed:
                    changed = True
                    await jetstream(at, change)

    run_async(main())
    return found


@pytest.mark.parametrize("subject", [None, "kept{}.2"])
def test_messages_that_later_ones_of_their_subject_overwrite(
    nats_at: str, subject: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """They are passed, as those of a compacted topic are; a line tells, if the source reads all subjects."""
    name = f"kept{subject is None}"
    run_async(make(nats_at, name, 3, max_msgs_per_subject=1))

    async def overwrite(js: Any) -> None:
        for ts in range(3, 9):
            await js.publish(f"{name}.{ts % 3}", line(ts))

    source = JetStream(nats_at, name, subject and subject.format(subject is None))
    every = [0, 1, 2] if subject is None else [2]
    found = followed(source, nats_at, len(every), overwrite, 8)
    assert found == [*every, *([6, 7, 8] if subject is None else [8])]
    told = [text for text in caplog.messages if "were deleted, or overwritten" in text]
    assert [": 3 messages before 9 were" in text for text in told] == [True] * (subject is None)


def test_single_messages_that_are_deleted(nats_at: str, caplog: pytest.LogCaptureFixture) -> None:
    run_async(make(nats_at, "single", 2))

    async def delete(js: Any) -> None:
        for ts in range(2, 9):
            await js.publish("single.a", line(ts))
        for number in (4, 5, 8):
            await js.delete_msg("single", number)

    assert followed(JetStream(nats_at, "single"), nats_at, 2, delete, 8) == [0, 1, 2, 5, 6, 8]
    assert any("3 messages before 9 were deleted" in text for text in caplog.messages)


def test_messages_at_the_end_that_are_deleted(nats_at: str, caplog: pytest.LogCaptureFixture) -> None:
    run_async(make(nats_at, "end", 5))
    _, position = read(JetStream(nats_at, "end", follow=False))

    async def delete(js: Any) -> None:
        await js.publish("end.a", line(5))
        await js.delete_msg("end", 6)

    run_async(jetstream(nats_at, delete))
    assert read(JetStream(nats_at, "end", follow=False), position)[1][0] == 6
    assert any("1 messages before 7 were deleted" in text for text in caplog.messages)


def test_messages_that_are_old_and_were_read(nats_at: str) -> None:
    run_async(make(nats_at, "old", 3, max_msgs=3))

    async def more(js: Any) -> None:
        await js.purge_stream("old")
        await js.publish("old.a", line(3))

    assert followed(JetStream(nats_at, "old"), nats_at, 3, more, 3) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["workqueue", "interest"])
def test_a_stream_that_deletes_what_was_read(nats_at: str, kind: str) -> None:
    run_async(make(nats_at, kind, 2, retention=kind))
    with pytest.raises(
        SetupError, match=f"has the retention '{kind}', so a message is deleted once it was read"
    ):
        read(JetStream(nats_at, kind, follow=False))


@pytest.mark.parametrize("entry", ["read", "unread"])
def test_an_entry_of_redis_that_is_deleted(redis_at: str, redis: Any, entry: str) -> None:
    name = f"single {entry}"
    add(redis, name, *range(3))
    source = RedisStream(redis_at, name, follow=False)
    _, position = read(source)
    add(redis, name, *range(3, 7))
    redis.xdel(name, redis.xrange(name)[2 if entry == "read" else 4][0])
    if entry == "read":
        assert read(source, position)[0] == [3, 4, 5, 6]
    else:
        with pytest.raises(TraceError, match="are no longer there"):
            read(source, position)
