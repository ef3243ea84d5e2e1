"""Topic log: whether a topic of Kafka is the one that a position was taken from.

A topic that is deleted and made again under its name has other messages at the same offsets.  Its id differs (Kafka 2.8
and later); of brokers without ids, the last message that was read is compared by its time and a checksum.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any
from zlib import crc32

from oop_engine.connectors.library import library
from oop_engine.connectors.source import BEGIN_AGAIN
from oop_engine.core.errors import TraceError

__all__ = ["ID", "SEEN", "TopicLog", "offsets_of"]

ID, SEEN = "topic", "seen"
"""Keys of a position beside the numbers of partitions: the id of the topic, and the last message of each partition."""
_ANSWER_S = 3.0
"""Seconds that brokers have to tell the id of a topic."""
_NOT_OF_ADMINS = ("group.id", "enable.auto.commit", "auto.offset.reset", "enable.partition.eof", "error_cb")


class TopicLog:
    """The topic ``topic`` as a consumer with ``options`` reads it; ``place`` names it in messages.

    ``options``: of the client that asks for the id; ``id``: that of the topic, once it is known.  ``seen``: by
    partition, offset, time (ms) and checksum of the last message that was read.
    """

    def __init__(self, place: str, topic: str, options: dict[str, Any]) -> None:
        self._place, self._topic = place, topic
        self.options = {name: value for name, value in options.items() if name not in _NOT_OF_ADMINS}
        self.id: str | None = None
        self._has_ids = True
        self.seen: dict[str, list[int]] = {}

    @cached_property
    def admin(self) -> Any:
        """The client that asks brokers for the id, made when it is used first."""
        return library("confluent_kafka.admin", "kafka", "Kafka").AdminClient(self.options)

    def begin(self, position: dict[str, Any]) -> None:
        """Take over a position; raise ``TraceError`` if the topic has another id now."""
        self.seen = {number: list(seen) for number, seen in position.get(SEEN, {}).items()}
        self.id = position.get(ID)
        self.check_id()

    def check_id(self) -> None:
        """Raise ``TraceError`` if the topic was made again; brokers that tell no ids are asked once."""
        if (other := self.other_id()) is not None:
            msg = (
                f"{self._place}: was deleted and made again since its messages were read (its id was {other[0]} and is "
                f"{other[1]}): messages of the earlier topic that were not read are lost: {BEGIN_AGAIN}"
            )
            raise TraceError(msg)

    def other_id(self) -> tuple[str, str] | None:
        """Return the id that was known and that of now, if they differ; the first one that is asked for is known."""
        id_now = self._asked()
        if self.id is not None and id_now is not None and id_now != self.id:
            return self.id, id_now
        self.id = self.id or id_now
        return None

    def note(self, message: Any) -> None:
        """Note the last message of a partition."""
        self.seen[str(message.partition())] = _mark(message)

    def check_message(self, message: Any) -> None:
        """Raise ``TraceError`` if a message that was read before is another one now."""
        known, mark = self.seen.get(str(message.partition())), _mark(message)
        if known is not None and known[0] == mark[0] and known != mark:
            msg = (
                f"{self._place}, partition {message.partition()}: message {mark[0]:,}, the last that was read, is "
                f"another one now: the topic was made again, or restored: {BEGIN_AGAIN}"
            )
            raise TraceError(msg)

    def first_of(self, number: str, offset: int, first: int) -> int:
        """Return the offset to read from: the last message that was read is compared, if the broker still has it."""
        known = self.seen.get(number)
        return known[0] if known is not None and first <= known[0] < offset else offset

    def position(self, offsets: dict[str, int]) -> dict[str, Any]:
        """Return a position: the offset of each partition, and the identity of the topic."""
        seen = {number: list(mark) for number, mark in self.seen.items() if number in offsets}
        return {**offsets, **({ID: self.id} if self.id else {}), **({SEEN: seen} if seen else {})}

    def _asked(self) -> str | None:
        """Return the id of the topic; None: brokers do not tell."""
        kafka = library("confluent_kafka", "kafka", "Kafka")
        if not self._has_ids:
            return None
        try:
            described = self.admin.describe_topics(
                kafka.TopicCollection([self._topic]), request_timeout=_ANSWER_S
            )
            id_now = str(described[self._topic].result(timeout=_ANSWER_S).topic_id)
        except (kafka.KafkaException, TimeoutError):
            self._has_ids = self.id is not None
            return None
        return id_now if any(sign not in "A=-" for sign in id_now) else None


def offsets_of(position: dict[str, Any]) -> dict[str, int]:
    """Return the offsets of a position.

    >>> offsets_of({"0": 5, "topic": "AaIe", "seen": {"0": [4, 0, 0]}})
    {'0': 5}
    """
    return {number: offset for number, offset in position.items() if number not in (ID, SEEN)}


def _mark(message: Any) -> list[int]:
    content = crc32(message.value() or b"", crc32(message.key() or b""))
    return [message.offset(), message.timestamp()[1], content]
