"""Errors of Redis: those that pass, and those that do not, each in one line with the way out."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from oop_engine.connectors.library import library
from oop_engine.connectors.link import NotReadyError, UnreachableError
from oop_engine.connectors.servers.reasons import why_not
from oop_engine.core.errors import SetupError, UsageError
from oop_engine.system.addresses import Address

__all__ = ["about_client", "check_database", "failure_of_redis"]

_FULL = "max number of clients"
_PIPED = re.compile(r"^Command # \d+ .* of pipeline caused error: \W*(.*?)\W*$", re.DOTALL)
"""In front of an error of a transaction: a command with all of its values, the row of a user."""
_OTHER_KIND = "WRONGTYPE"


def check_database(place: str, url: str) -> None:
    """Raise ``UsageError`` for an address whose database is no number: the package redis would take database 0.

    >>> check_database("stream 's'", "redis://127.0.0.1:6379/0")
    """
    parts = urlsplit(url)
    database = parts.path.strip("/")
    if parts.scheme in ("redis", "rediss") and database and not database.isdigit():
        msg = f"{place}: the database in the address must be a number; got {database!r}: redis://HOST:PORT/0"
        raise UsageError(msg)


def about_client() -> dict[str, Any]:
    """Return the option that names this client to the server.

    Without it redis-py 7.2 and later looks up its own version in its installed files at each connection, 1.5 ms on the
    thread of the event loop.
    """
    redis: Any = library("redis", "redis", "Redis")
    if (of_driver := getattr(redis, "DriverInfo", None)) is None:
        return {}
    return {"driver_info": of_driver(lib_version=redis.__version__)}


def failure_of_redis(place: str, address: Address, error: Exception) -> SetupError:
    """Return the error to raise for one of the package redis; its class tells whether it passes."""
    errors: Any = library("redis.exceptions", "redis", place)
    words = _PIPED.sub(r"\1", address.clean(error))
    if isinstance(error, errors.AuthenticationError | errors.AuthorizationError | errors.NoPermissionError):
        return SetupError(f"{place}: {words}: check the name, the password and the rights")
    if isinstance(error, errors.BusyLoadingError) or _FULL in words:
        return NotReadyError(f"{place}: {words}")
    if isinstance(error, errors.OutOfMemoryError):
        return SetupError(
            f"{place}: the server is full ({words}): raise its maxmemory, or trim its streams (most=)"
        )
    if isinstance(error, errors.ReadOnlyError):
        return SetupError(f"{place}: is a replica ({words}): give the address of the primary")
    if _OTHER_KIND in words:
        return SetupError(
            f"{place}: must be a stream; there is something else now: take another name, or remove it"
        )
    if isinstance(error, errors.ConnectionError | errors.TimeoutError | OSError):
        return UnreachableError(why_not(error, address, "server", place))
    strange = isinstance(error, errors.InvalidResponse) or "unknown command" in words
    return SetupError(f"{place}: {words}{': is it a server of Redis 7 or later?' * strange}")
