"""Kafka topic: rows of an epoch, and its number, in one transaction."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.kafka_rights import KafkaRights, kafka_client
from oop_engine.connectors.library import library
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.refusals import kafka_is_away
from oop_engine.connectors.registry.declared_format import DeclaredFormat
from oop_engine.connectors.servers.topic_log import TopicLog
from oop_engine.connectors.sinks.held import HeldSink, Keyed, TooLargeError
from oop_engine.core.errors import SetupError, SnapshotError
from oop_engine.system.addresses import printable
from oop_engine.system.on_thread import on_thread
from oop_engine.system.stopwatch import wall

__all__ = ["KafkaTopic"]

_SEVERE = 2  # the level of the lines that librdkafka writes itself
_MOST_BYTES = 1_000_000
"""The limit of librdkafka, which brokers have, too, unless ``message.max.bytes`` is another one."""
_HEAD = 512
"""Bytes of a batch besides the key and the payload of its only message."""
_STEP_S = 1.0
"""Seconds in which one who leaves gives up a wait for an answer."""
_LOOK_S = 10.0
"""Seconds from a look at the id of the topic to the next."""
_LOG = logging.getLogger("oop_engine")


class KafkaTopic(HeldSink):
    """Sends each row to ``topic`` of the brokers ``servers``, in ``format``; needs confluent-kafka.

    ``key``: the column that is the key of a message.  The messages of an epoch are one transaction, and the number of
    the epoch is an offset that is committed in it: so each is there once for those who read committed messages.  A
    transaction dies with its process, so until it is committed the rows of an epoch are in the checkpoint: results
    are for this, raw streams are not.  ``options`` are those of librdkafka.  Raises ``SetupError`` if no broker
    answers, or the topic is not known; ``SnapshotError`` if it was made again since results were sent to it.
    """

    def __init__(
        self, servers: str, topic: str, key: str | None = None, format: str | DeclaredFormat = "jsonl", *,
        options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(format, key)
        self._servers, self._topic, self._options = servers, topic, options or {}
        self._producer: Any = None
        self._consumer: Any = None
        self._lost = False
        self._limit: int | None = None
        self._rights = KafkaRights(self.place)
        self._log, self._due_s = TopicLog(self.place, topic, {}), 0.0

    async def connect(self) -> None:
        """Begin to be the only one who sends under the name of this run."""
        await self._aside(self._connect)

    async def send(self, run: str, epoch: int, messages: list[Keyed], mark: Any) -> None:
        """Send the messages of an epoch, unless that was done."""
        await self._aside(self._send, epoch, messages, mark)

    async def _aside(self, work: Callable[..., None], *given: Any) -> None:
        """Do work on a thread; a caller that is cancelled waits for one answer that may not come, not for all."""
        self._rights.leaves = False
        await on_thread(work, *given, leave=self._rights.leave)

    async def mark(self) -> str | None:
        """Return the id of the topic; None: brokers do not tell."""
        return self._log.id

    async def close(self) -> None:
        """Disconnect from the broker."""
        await on_thread(self._let_go)

    def _let_go(self) -> None:
        """Disconnect; a transaction that is still open is settled when its name is used next."""
        if self._producer is not None:
            self._producer.purge()
            self._consumer.close()
        self._producer = self._consumer = None

    def _connect(self) -> None:
        kafka = library("confluent_kafka", "kafka", "KafkaTopic")
        self.failures = (kafka.KafkaException,)
        try:
            self._begin(kafka)
        except kafka.KafkaException as error:
            msg = (
                f"{self.place}: no broker answers ({error.args[0].str()}): give the address of one that runs"
            )
            raise SetupError(msg) from error

    def _begin(self, kafka: Any) -> None:
        self._lost = False
        known = {"log_level": _SEVERE, **self._options, "bootstrap.servers": self._servers}
        common = {**known, "error_cb": self._lose}
        self._log.options = known
        group = f"oop-engine-{self._run}-{self._topic}"
        consuming = {**common, "group.id": group, "enable.auto.commit": False}
        self._consumer = kafka_client(kafka.Consumer, consuming, self.place)
        producing = {**common, "transactional.id": group, "enable.idempotence": True}
        self._producer = kafka_client(kafka.Producer, producing, self.place)
        topic = self._rights.topics(self._producer, self._topic, link.ANSWER_S)
        if topic.error is not None:
            msg = f"{self.place}: {topic.error.str()}: check its name, or make it"
            raise SetupError(msg)
        own = int(self._options.get("message.max.bytes", _MOST_BYTES))
        most = min(own, self._limit_of_topic(common))
        if most < own:  # else small messages go in batches that the brokers refuse
            batch = min(most, int(self._options.get("batch.size", most)))
            self._producer = kafka.Producer({**producing, "batch.size": batch})
        self._rights.in_steps(self._producer.init_transactions, link.ANSWER_S)
        self._look()
        self.most_bytes = max(most - _HEAD, 1)

    def _look(self) -> None:
        """Raise ``SnapshotError`` if the topic is another one than before; brokers are asked now and then."""
        if wall() < self._due_s:
            return
        self._due_s = wall() + _LOOK_S
        if (other := self._log.other_id()) is not None:
            self._log.id = other[1]
            msg = (
                f"{self.place}: lacks results that were committed: it was deleted and made again (its id was "
                f"{other[0]} and is {other[1]}): restart the service to go on without them"
            )
            raise SnapshotError(msg)

    def _limit_of_topic(self, common: dict[str, Any]) -> int:
        """Return the bytes of a batch that the topic takes, asked for once; brokers may not tell."""
        if self._limit is None:
            admin = library("confluent_kafka.admin", "kafka", "KafkaTopic")
            topic = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, self._topic)
            client = admin.AdminClient(common)  # which has to live until the answer
            futures = client.describe_configs([topic], request_timeout=link.ANSWER_S / 2)
            with suppress(*self.failures, LookupError, TypeError, ValueError):
                while not futures[topic].done() and not self._rights.leaves:
                    wait([futures[topic]], _STEP_S)
                self._limit = int(futures[topic].result(0)["max.message.bytes"].value)
            self._limit = self._limit or sys.maxsize
        return self._limit

    def _send(self, epoch: int, rows: list[Keyed], mark: Any) -> None:
        kafka = library("confluent_kafka", "kafka", "KafkaTopic")
        try:
            if self._producer is None or self._is_lost():
                self._let_go()
                self._begin(kafka)
            self._look()
            if mark is not None and self._log.id not in (None, mark):
                _LOG.warning(
                    "%s: was deleted and made again: results before epoch %d are gone", self.place, epoch
                )
            self._in_one(kafka, epoch, rows)
        except kafka.KafkaException as error:
            if not (away := kafka_is_away(kafka.KafkaError, error.args[0])):
                with suppress(kafka.KafkaException):
                    self._rights.in_steps(self._producer.abort_transaction, link.ANSWER_S)
            self._let_go()
            if error.args[0].code() in (
                kafka.KafkaError.MSG_SIZE_TOO_LARGE,
                kafka.KafkaError.INVALID_MSG_SIZE,
            ):
                msg = (
                    f"{self.place}: a message is larger than brokers take ({error.args[0].str()}): raise "
                    "message.max.bytes (options) and max.message.bytes (topic), or leave such rows out of the graph"
                )
                self._limit = None
                self._begin(kafka)  # which has the limit of now
                raise TooLargeError(msg) from error
            if not away:
                raise
            words = error.args[0].str()
            msg = f"{self.place}: {words}"
            raise UnreachableError(msg) from ConnectionError(words)

    def _lose(self, error: Any) -> None:
        self._lost = True
        self._rights.refused(error)

    def _is_lost(self) -> bool:
        """Return whether a connection broke: a transaction on one that is made again may wait far beyond its time."""
        self._producer.poll(0)
        self._rights.check()
        return self._lost

    def _in_one(self, kafka: Any, epoch: int, rows: list[Keyed]) -> None:
        """Send the messages of an epoch and its number in one transaction, unless that was done."""
        mark = kafka.TopicPartition(self._topic, 0, epoch)
        done = self._rights.in_steps(partial(self._consumer.committed, [mark]), link.ANSWER_S)[0].offset
        if done >= epoch:
            return
        if self._is_lost():
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TRANSPORT))
        self._producer.begin_transaction()
        for key, value in rows:
            while value is not None:
                try:
                    self._producer.produce(self._topic, value, key)
                    break
                except BufferError:  # the queue is full until some are sent
                    self._producer.poll(1.0)
        numbered = self._consumer.consumer_group_metadata()
        self._rights.in_steps(
            partial(self._producer.send_offsets_to_transaction, [mark], numbered), link.ANSWER_S
        )
        self._rights.in_steps(self._producer.commit_transaction, link.ANSWER_S)

    @property
    def topic(self) -> str:
        """The name that its schema is registered by."""
        return self._topic

    @property
    def place(self) -> str:
        """The topic."""
        return f"Kafka topic {self._topic!r} at {printable(self._servers)}"
