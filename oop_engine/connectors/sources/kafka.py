"""Kafka: the partitions of a topic, read from offsets of ours; each one may be an input of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, ClassVar

from oop_engine.connectors import link
from oop_engine.connectors.kafka_rights import KafkaRights
from oop_engine.connectors.library import library
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.refusals import kafka_is_away
from oop_engine.connectors.source import Format, LiveSource, Position
from oop_engine.core.errors import SetupError, TraceError

__all__ = ["Kafka"]

_MOST, _WAIT_S, _TOGETHER_S = 1000, 0.1, 0.002
_SEVERE = 2
"""The level of the lines that librdkafka writes itself: less would be a line for each of many tries a second."""


class Kafka(LiveSource):
    """The messages of a topic in ``format``, from the brokers ``servers`` (``"host:9092"``); needs ``confluent-kafka``.

    ``partitions``: the numbers of those to read; None: all that there are at the start.  A partition has progress
    of its own: where their clocks differ, give each one a source of the graph, with a ``Punctuate`` behind it, and
    ``Meld`` them.  The position is the offset of each partition: it is in the checkpoint, and offsets are committed
    to the broker after it, for monitors of lag alone. ``options`` are those of librdkafka.  ``follow=False``: end
    at the messages that are there now. Raises ``SetupError`` if no broker answers or the topic is not known,
    ``TraceError`` if the offset to go on from has been deleted by the broker: nothing is skipped.
    """

    replayable: ClassVar[bool] = True

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
        self._topic, self._partitions, self.format, self._follow = topic, partitions, format, follow
        self._place = f"Kafka topic {topic!r} at {servers}"
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
        self._consumer: Any = None

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield up to 1,000 messages at a time, with the offsets behind them."""
        kafka = _library()
        self._consumer = consumer = kafka.Consumer(self._options)
        try:
            offsets = await asyncio.to_thread(self._start, kafka, consumer, position or {})
            self.link.here()
            ends = set[str]()
            while self._follow or ends < offsets.keys():
                messages = await asyncio.to_thread(_next, consumer)
                self._rights.check()
                if not messages and self.link.away:
                    await asyncio.to_thread(self._ask, kafka, consumer)
                payloads = []
                for message in messages:
                    error, partition = message.error(), str(message.partition())
                    if error is not None and error.code() == kafka.KafkaError._PARTITION_EOF:
                        ends.add(partition)
                    elif error is not None:
                        raise await asyncio.to_thread(self._broken, kafka, error, int(partition), offsets)
                    else:
                        ends.discard(partition)
                        offsets[partition] = message.offset() + 1
                        if message.value() is not None:  # a tombstone has none
                            payloads.append(message.value())
                if messages:  # and no error among them
                    self.link.here()
                if payloads:
                    yield payloads, dict(offsets)
        except kafka.KafkaException as error:
            raise self._failed(kafka, error.args[0]) from ConnectionError(error.args[0].str())
        finally:
            self._consumer = None
            await asyncio.to_thread(consumer.close)

    async def acknowledge(self, position: Position) -> None:
        """Commit the offsets of a checkpoint, for those who watch the lag."""
        if (consumer := self._consumer) is not None:
            kafka = _library()
            found = [kafka.TopicPartition(self._topic, int(p), offset) for p, offset in position.items()]
            consumer.commit(offsets=found, asynchronous=True)

    def _start(self, kafka: Any, consumer: Any, known: dict[str, int]) -> dict[str, int]:
        """Assign the partitions, each from its offset; a new one from its first message."""
        place = self._place
        topic = self._rights.topics(consumer, self._topic, link.ANSWER_S)
        if topic.error is not None and kafka_is_away(kafka.KafkaError, topic.error):
            raise kafka.KafkaException(topic.error)
        if topic.error is not None or not topic.partitions:
            msg = f"{place}: there is no such topic: check its name, or make it"
            raise SetupError(msg)
        there = ", ".join(map(str, sorted(topic.partitions)))
        wanted = self._partitions if self._partitions is not None else sorted(topic.partitions)
        if not wanted or not {*wanted} <= topic.partitions.keys():
            msg = f"{place}: must have the partitions {wanted or 'that are read'}; there are {there}: check the name"
            raise SetupError(msg)
        if gone := {*map(int, known)} - topic.partitions.keys():
            msg = (
                f"{place}: partition {min(gone)}, read to message {known[str(min(gone))]:,}, is no longer there; there "
                f"are {there}: is it another topic of this name? begin anew with another folder of checkpoints"
            )
            raise TraceError(msg)
        offsets = {}
        for number in wanted:
            partition = kafka.TopicPartition(self._topic, number)
            first, last = consumer.get_watermark_offsets(partition, timeout=link.ANSWER_S)
            offsets[str(number)] = known.get(str(number), first)
            if not first <= offsets[str(number)] <= last:
                raise self._gone(number, offsets[str(number)], first, last)
        assigned = [kafka.TopicPartition(self._topic, int(p), offset) for p, offset in offsets.items()]
        consumer.assign(assigned)
        return offsets

    def _away(self, error: Any) -> None:
        """Tell of a broker that is away, or refuses; librdkafka tries on."""
        if not self._rights.refused(error):
            self.link.gone(error.str())

    def _ask(self, kafka: Any, consumer: Any) -> None:
        """Look whether the broker is back: librdkafka does not tell."""
        with suppress(kafka.KafkaException):
            consumer.list_topics(self._topic, timeout=1.0)
            self.link.here()

    def _broken(self, kafka: Any, error: Any, partition: int, offsets: dict[str, int]) -> Exception:
        if error.code() in (kafka.KafkaError._AUTO_OFFSET_RESET, kafka.KafkaError.OFFSET_OUT_OF_RANGE):
            asked = kafka.TopicPartition(self._topic, partition)
            there: tuple[int, int] = self._consumer.get_watermark_offsets(asked, timeout=link.ANSWER_S)
            return self._gone(partition, offsets[str(partition)], *there)
        return self._failed(kafka, error)

    def _failed(self, kafka: Any, error: Any) -> SetupError:
        place = self._place
        if not kafka_is_away(kafka.KafkaError, error):
            return SetupError(f"{place}: {error.str()}")
        return UnreachableError(
            f"{place}: no broker answers ({error.str()}): give the address of one that runs"
        )

    def _gone(self, partition: int, offset: int, first: int, behind: int) -> TraceError:
        there = f"it has {first:,} to {behind - 1:,}" if first < behind else "it is empty"
        return TraceError(
            f"Kafka topic {self._topic!r}, partition {partition}: message {offset:,}, the next to read, is no longer "
            f"there; {there}: keep messages for longer, or begin anew with another folder of checkpoints"
        )


def _next(consumer: Any) -> list[Any]:
    """Wait for a message, and return it with those that come right behind; ``consume`` waits for as many as it may."""
    first = consumer.poll(_WAIT_S)
    return [] if first is None else [first, *consumer.consume(_MOST - 1, _TOGETHER_S)]


def _library() -> Any:
    return library("confluent_kafka", "kafka", "Kafka")
