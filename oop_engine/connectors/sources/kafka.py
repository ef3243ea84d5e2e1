"""Kafka: the partitions of a topic, read from offsets of ours; each one may be an input of its own."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Container
from contextlib import suppress
from types import MappingProxyType
from typing import Any, ClassVar

import pyarrow as pa

from oop_engine.connectors import link
from oop_engine.connectors.kafka_rights import KafkaRights, kafka_client
from oop_engine.connectors.library import library
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.payload import Payload
from oop_engine.connectors.refusals import kafka_is_away
from oop_engine.connectors.servers.group_commits import GroupCommits
from oop_engine.connectors.servers.topic_log import SEEN, TopicLog, offsets_of
from oop_engine.connectors.source import BEGIN_AGAIN, Format, LiveSource, Position, is_count
from oop_engine.core.errors import SetupError, TraceError, UsageError
from oop_engine.system.addresses import printable
from oop_engine.system.knobs import knob
from oop_engine.system.on_thread import on_thread
from oop_engine.system.stopwatch import wall

__all__ = ["Kafka"]

_MOST = knob(__name__, "_MOST", 1000, least=2)
_WAIT_S, _TOGETHER_S = 0.1, 0.002
_LOOK_S = 10.0
"""Seconds between two looks at the id and the partitions of a topic."""
_LOG = logging.getLogger("oop_engine")
_SEVERE = 2
"""The level of the lines that librdkafka writes itself: less would be a line for each of many tries a second."""


class Kafka(LiveSource):
    """The messages of a topic in ``format``, from the brokers ``servers`` (``"host:9092"``); needs ``confluent-kafka``.

    ``partitions``: the numbers of those to read; None: all, also those that are added while it runs.  A partition has
    progress of its own: where their clocks differ, give each one a source of the graph, with a ``Punctuate`` behind it,
    and ``Meld`` them.  The position is the offset of each partition, the id of the topic, and the time and a checksum
    of the last message of each: it is in the checkpoint.  Offsets are committed to the broker after it in ``group``,
    for monitors of lag alone: two services over one topic each read all of it, which one warning tells.  ``options``
    are those of librdkafka.  ``follow=False``: end at the messages that are there now.  Raises ``SetupError`` if no
    broker answers or the topic is not known, ``TraceError`` if the offset to go on from has been deleted by the broker,
    or the topic was made again: nothing is skipped.  A schema may have columns of the message: ``_key``, ``_headers``,
    ``_time``, ``_topic``, ``_partition``, ``_offset``, ``_tombstone``.
    """

    replayable: ClassVar[bool] = True
    metadata = MappingProxyType(
        {
            "_key": pa.binary(), "_headers": pa.map_(pa.string(), pa.binary()), "_time": pa.timestamp("ms", "UTC"),
            "_topic": pa.string(), "_partition": pa.int32(), "_offset": pa.int64(), "_tombstone": pa.bool_(),
        }
    )  # fmt: skip

    def __init__(
        self,
        servers: str,
        topic: str,
        partitions: list[int] | None = None,
        format: Format = "jsonl",
        *,
        group: str = "oop-engine",
        follow: bool = True,
        options: dict[str, Any] | None = None,
    ) -> None:
        self._topic, self.format, self._follow = topic, format, follow
        self._partitions = None if partitions is None else [*dict.fromkeys(partitions)]
        self._place = f"Kafka topic {topic!r} at {printable(servers)}"
        self._rights = KafkaRights(self._place)
        self._options = {
            "log_level": _SEVERE,
            "error_cb": self._away,
            **(options or {}),
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
        self._log: TopicLog | None = None  # while it is read
        self._commits = GroupCommits(self._place, group)

    def is_position(self, position: Position) -> bool:
        """Return whether a value can be a position: an offset for each partition."""
        return (
            isinstance(position, dict)
            and isinstance(position.get(SEEN, {}), dict)
            and all(name.isdigit() and is_count(at) for name, at in offsets_of(position).items())
        )

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield up to 1,000 messages at a time, with the position behind them; none where it passed marks alone."""
        kafka, known = _library(), position or {}
        if not isinstance(known, dict):
            msg = f'{self._place}: a position has an offset for each partition, {{"0": 17}}; got {position!r}'
            raise UsageError(msg)
        self._consumer = consumer = kafka_client(kafka.Consumer, self._options, self._place)
        log = TopicLog(self._place, self._topic, self._options)
        try:
            offsets = await on_thread(self._start, kafka, consumer, known, log)
            self._log = log
            self.link.here()
            ends, due = set[str](), wall() + _LOOK_S
            while self._follow or ends < offsets.keys():
                messages = await on_thread(_next, consumer)
                self._rights.check()
                if not messages and self.link.away:
                    await on_thread(self._ask, kafka, consumer)
                if wall() >= due and not self.link.away:
                    await on_thread(self._look, kafka, consumer, log, offsets)
                    due = wall() + _LOOK_S
                before, payloads = dict(offsets), list[bytes]()
                for message in messages:
                    if (error := message.error()) is None:
                        ends.discard(str(message.partition()))
                        payloads += _taken(message, log, offsets, self.wanted)
                    elif error.code() == kafka.KafkaError._PARTITION_EOF:
                        ends.add(self._ended(message, offsets))
                    else:
                        number = message.partition()
                        raise await on_thread(self._broken, kafka, error, number, offsets)
                if messages:  # and no error among them
                    self.link.here()
                if offsets != before:
                    yield payloads, log.position(offsets)
        except kafka.KafkaException as error:
            raise self._failed(kafka, error.args[0]) from ConnectionError(error.args[0].str())
        finally:
            self._log = None
            if not self.link.away:
                await on_thread(self._commits.finish)
            await on_thread(consumer.close)

    async def latest(self) -> Position:
        """Return the ends of all partitions."""
        kafka = _library()
        consumer = kafka_client(kafka.Consumer, self._options, self._place)
        log = TopicLog(self._place, self._topic, self._options)

        def ends() -> Position:
            there = self._numbers(kafka, consumer)
            log.begin({})
            return log.position({str(number): self._range(kafka, consumer, number)[1] for number in there})

        try:
            return await on_thread(ends)
        except kafka.KafkaException as error:
            raise self._failed(kafka, error.args[0]) from ConnectionError(error.args[0].str())
        finally:
            await on_thread(consumer.close)

    async def acknowledge(self, position: Position) -> None:
        """Commit the offsets of a checkpoint, for those who watch the lag."""
        if self._log is not None:
            self._commits.commit(_library(), self._log.admin, self._topic, offsets_of(position))

    def _ended(self, message: Any, offsets: dict[str, int]) -> str:
        """Take over the end of a partition: marks of transactions behind its last message are read, too."""
        number = str(message.partition())
        offsets[number] = max(offsets[number], message.offset())
        return number

    def _look(self, kafka: Any, consumer: Any, log: TopicLog, offsets: dict[str, int]) -> None:
        """Look whether the topic was made again, has new partitions, or another service commits in the group."""
        with suppress(kafka.KafkaException):
            log.check_id()
            there = consumer.list_topics(self._topic, timeout=1.0).topics[self._topic].partitions
            for number in sorted(there) if self._partitions is None else ():
                if str(number) not in offsets:
                    first, _ = self._range(kafka, consumer, number)
                    consumer.incremental_assign([kafka.TopicPartition(self._topic, number, first)])
                    offsets[str(number)] = first
                    _LOG.warning(
                        "%s: has a new partition, %d, which is read from its beginning", self._place, number
                    )
            self._commits.check(kafka, consumer, self._topic, link.ANSWER_S)

    def _numbers(self, kafka: Any, consumer: Any) -> list[int]:
        """Return the partitions to read; raise ``SetupError`` if there is no such topic, or no such partition."""
        topic = self._rights.topics(consumer, self._topic, link.ANSWER_S)
        if topic.error is not None and kafka_is_away(kafka.KafkaError, topic.error):
            raise kafka.KafkaException(topic.error)
        if topic.error is not None or not topic.partitions:
            msg = f"{self._place}: there is no such topic: check its name, or make it"
            raise SetupError(msg)
        self._there = sorted(topic.partitions)
        wanted = self._partitions if self._partitions is not None else self._there
        if not wanted or not {*wanted} <= topic.partitions.keys():
            there = ", ".join(map(str, self._there))
            msg = (
                f"{self._place}: must have the partitions {wanted or 'that are read'}; there are {there}: check the "
                "name"
            )
            raise SetupError(msg)
        return list(wanted)

    def _start(self, kafka: Any, consumer: Any, position: dict[str, Any], log: TopicLog) -> dict[str, int]:
        """Assign the partitions, each from its offset; a new one from its first message."""
        wanted, known = self._numbers(kafka, consumer), offsets_of(position)
        log.begin(position)
        if missing := {*map(int, known)} - {*self._there}:
            msg = (
                f"{self._place}: partition {min(missing)}, read to message {known[str(min(missing))]:,}, is no longer "
                f"there; there are {', '.join(map(str, self._there))}: is it another topic of this name? {BEGIN_AGAIN}"
            )
            raise TraceError(msg)
        offsets, assigned = {}, []
        for number in wanted:
            first, last = self._range(kafka, consumer, number)
            offsets[str(number)] = at = known.get(str(number), first)
            if not first <= at <= last:
                raise self._gone(number, at, first, last)
            assigned.append(kafka.TopicPartition(self._topic, number, log.first_of(str(number), at, first)))
        consumer.assign(assigned)
        return offsets

    def _range(self, kafka: Any, consumer: Any, number: int) -> tuple[int, int]:
        """Return the first offset of a partition, and that behind its last message."""
        partition = kafka.TopicPartition(self._topic, number)
        offsets: tuple[int, int] = consumer.get_watermark_offsets(partition, timeout=link.ANSWER_S)
        return offsets

    def _away(self, error: Any) -> None:
        """Log a broker that is away, or refuses; librdkafka tries on."""
        if not self._rights.refused(error):
            self.link.gone(error.str())

    def _ask(self, kafka: Any, consumer: Any) -> None:
        """Look whether the broker is back: librdkafka does not tell."""
        with suppress(kafka.KafkaException):
            consumer.list_topics(self._topic, timeout=1.0)
            self.link.here()

    def _broken(self, kafka: Any, error: Any, partition: int, offsets: dict[str, int]) -> Exception:
        if error.code() in (kafka.KafkaError._AUTO_OFFSET_RESET, kafka.KafkaError.OFFSET_OUT_OF_RANGE):
            return self._gone(
                partition, offsets[str(partition)], *self._range(kafka, self._consumer, partition)
            )
        return self._failed(kafka, error)

    def _failed(self, kafka: Any, error: Any) -> SetupError:
        place = self._place
        if not kafka_is_away(kafka.KafkaError, error):
            return SetupError(f"{place}: {error.str()}")
        return UnreachableError(
            f"{place}: no broker answers ({error.str()}): give the address of one that runs"
        )

    def _gone(self, partition: int, offset: int, first: int, end: int) -> TraceError:
        there = f"it has {first:,} to {end - 1:,}" if first < end else "it is empty"
        return TraceError(
            f"Kafka topic {self._topic!r}, partition {partition}: message {offset:,}, the next to read, is no longer "
            f"there; {there}: keep messages for longer; {BEGIN_AGAIN}"
        )


def _next(consumer: Any) -> list[Any]:
    """Wait for a message, and return it with those that come right behind; ``consume`` waits for as many as it may."""
    first = consumer.poll(_WAIT_S)
    return [] if first is None else [first, *consumer.consume(_MOST - 1, _TOGETHER_S)]


def _taken(message: Any, log: TopicLog, offsets: dict[str, int], wanted: Container[str]) -> list[bytes]:
    """Return the payload of a message, if it has one and was not read before.

    One without (a tombstone) is there where the schema has the column ``_tombstone``.
    """
    number = str(message.partition())
    if message.offset() < offsets[number]:  # the last one that was read: is it the same?
        log.check_message(message)
        return []
    offsets[number] = message.offset() + 1
    log.note(message)
    if message.value() is None and "_tombstone" not in wanted:
        return []
    return [Payload(message.value(), _about(message))] if wanted else [message.value()]


def _about(message: Any) -> dict[str, Any]:
    """Return the columns of a message."""
    kind, at = message.timestamp()
    return {
        "_key": message.key(),
        "_headers": [(name, value) for name, value in message.headers() or ()],
        "_time": at if kind else None,  # 0: it has none
        "_topic": message.topic(),
        "_partition": message.partition(),
        "_offset": message.offset(),
        "_tombstone": message.value() is None,
    }


def _library() -> Any:
    return library("confluent_kafka", "kafka", "Kafka")
