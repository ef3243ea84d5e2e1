"""Refusals: a server has answered, and will not have this client however often it asks; or it is just away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["kafka_is_away", "refused_by_nats"]

_BY_NATS = (
    "authorization violation", "permissions violation", "authentication expired", "authentication revoked",
    "account authentication", "maximum payload", "invalid subject", "invalid client protocol",
)  # fmt: skip
_AWAY = (
    "_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_MSG_TIMED_OUT", "_RESOLVE", "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION", "BROKER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE", "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
)  # fmt: skip


def kafka_is_away(codes: Any, error: Any) -> bool:
    """Return whether an error of librdkafka means that brokers do not answer now; ``codes``: its ``KafkaError``."""
    away = {getattr(codes, name) for name in _AWAY}
    return error.code() in away or (error.retriable() and not error.fatal())


def refused_by_nats(errors: Iterable[Exception]) -> Exception | None:
    """Return the error among those of a connection that comes again however often it is tried; None: there is none.

    >>> refused_by_nats([TimeoutError(), ConnectionError("nats: Permissions Violation for Publish to a")])
    ConnectionError('nats: Permissions Violation for Publish to a')
    """
    return next((error for error in errors if any(sign in str(error).lower() for sign in _BY_NATS)), None)
