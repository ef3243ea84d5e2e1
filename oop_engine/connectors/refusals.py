"""Refusals: a server has answered, and will not have this client however often it asks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["refused_by_nats", "refused_by_postgres"]


def refused_by_postgres(error: Any) -> bool:
    """Tell whether an error of psycopg is one of the password, or of the host.

    A server that has asked for a password may also lack room for one more client: that passes.
    """
    connection, text = error.pgconn, str(error)
    if connection is None:
        return False
    answered = connection.used_password and "FATAL" in text and "connection slots" not in text
    return bool(connection.needs_password or answered or "pg_hba.conf" in text)


def refused_by_nats(errors: Iterable[Exception]) -> Exception | None:
    """Return the error of the password or the token among those of a connection; None: there is none."""
    return next((error for error in errors if "authorization violation" in str(error).lower()), None)
