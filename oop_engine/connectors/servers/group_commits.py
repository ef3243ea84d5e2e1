"""Group commits: offsets of a group that are committed for monitors of lag, and others who commit under its name."""

from __future__ import annotations

import logging
import os
from concurrent.futures import Future, wait
from typing import Any

from oop_engine.connectors import link

__all__ = ["GroupCommits"]

_LOG = logging.getLogger("oop_engine")
_LAST_S = 2.0
"""Seconds for which the end of a service waits until its last commit is answered."""


class GroupCommits:
    """The offsets that this process commits in ``group``; ``place`` names the topic in the one warning.

    Partitions are assigned by the service, not by the brokers, so two services over one topic each read all of it.
    They are found out by offsets that this process has not committed.
    """

    def __init__(self, place: str, group: str) -> None:
        self._place, self._group = place, group
        self._token = os.urandom(6).hex()
        self._sent: dict[int, int] = {}
        self._warned = False
        self._last: Future[Any] | None = None

    def commit(self, kafka: Any, admin: Any, topic: str, offsets: dict[str, int]) -> None:
        """Commit offsets, without waiting, by the client ``admin``.

        A consumer cannot be closed while a commit of its own is under way: it waits 45 s for brokers that are away, and
        for ever for those that have fallen silent.
        """
        partitions = [
            kafka.TopicPartition(topic, int(number), at, self._token) for number, at in offsets.items()
        ]
        of_group = kafka.ConsumerGroupTopicPartitions(self._group, partitions)
        futures = admin.alter_consumer_group_offsets([of_group], request_timeout=link.ANSWER_S)
        self._last = futures[self._group]
        self._sent |= {int(number): at for number, at in offsets.items()}

    def finish(self) -> None:
        """Wait until the last commit is answered, for ``_LAST_S`` at most."""
        if self._last is not None:
            wait([self._last], _LAST_S)

    def check(self, kafka: Any, consumer: Any, topic: str, answer_s: float) -> None:
        """Warn once if somebody else commits in this group; raises the library's error if no broker answers."""
        if self._warned or not self._sent:
            return
        partitions = [kafka.TopicPartition(topic, number) for number in self._sent]
        for committed in consumer.committed(partitions, timeout=answer_s):
            own = (committed.metadata or self._token) == self._token and committed.offset <= self._sent[
                committed.partition
            ]
            if not own:
                self._warned = True
                _LOG.warning(
                    "%s: another service commits offsets in group %r: each of them reads all of its partitions; divide "
                    "them (partitions=[0, 1], ?partition=0,1), or give each service a group of its own (?group=)",
                    self._place, self._group,
                )  # fmt: skip
                return
