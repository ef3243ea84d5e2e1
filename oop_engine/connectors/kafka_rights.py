"""Kafka's rights: whether brokers refuse a client's name or password; librdkafka tells in between, and tries on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oop_engine.core.errors import SetupError
from oop_engine.system.stopwatch import wall

__all__ = ["KafkaRights", "kafka_client"]

_ASK_S = 1.0


def kafka_client(kind: Any, options: dict[str, Any], place: str) -> Any:
    """Return a client of librdkafka; raise ``SetupError`` in the name of ``place`` for wrong options."""
    try:
        return kind(options)
    except Exception as error:
        words = error.args[0].str() if hasattr(error.args[0], "str") else str(error)
        msg = f"{place}: {words}: give options of librdkafka, by their names"
        raise SetupError(msg) from None


class KafkaRights:
    """The rights of a client, and its patience; ``place``: the topic and its brokers, in messages.

    ``leaves``: nobody waits for an answer any more, so a step of ``_ASK_S`` is the last one.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._refusal: str | None = None
        self.leaves = False

    def leave(self) -> None:
        """Wait no longer; any thread may call it."""
        self.leaves = True

    def in_steps(self, call: Callable[[float], Any], answer_s: float) -> Any:
        """Return the answer to a call with a time limit, which goes on where it is called again."""
        until = wall() + answer_s
        while True:
            try:
                return call(min(_ASK_S, answer_s))
            except Exception as error:
                reason: Any = error.args[0] if error.args else None
                late = hasattr(reason, "code") and reason.code() == reason._TIMED_OUT
                if not late or self.leaves or wall() >= until:
                    raise

    def refused(self, error: Any) -> bool:
        """Record an error of librdkafka; return whether it is one of the name or the password."""
        if refused := error.code() in (error._AUTHENTICATION, error.SASL_AUTHENTICATION_FAILED):
            self._refusal = error.str()
        return refused

    def check(self) -> None:
        """Raise ``SetupError`` if the client was refused."""
        if self._refusal is not None:
            msg = f"{self._place}: it refuses this client ({self._refusal}): check the name and the password"
            raise SetupError(msg)

    def topics(self, client: Any, topic: str, answer_s: float) -> Any:
        """Return all that brokers tell of a topic.

        Raises ``SetupError`` as soon as they refuse, the client's own error if nobody answers for so long.
        """
        until = wall() + answer_s
        while True:
            try:
                return client.list_topics(topic, timeout=min(_ASK_S, answer_s)).topics[topic]
            except Exception:
                client.poll(0)  # which tells of errors
                self.check()
                if self.leaves or wall() >= until:
                    raise
