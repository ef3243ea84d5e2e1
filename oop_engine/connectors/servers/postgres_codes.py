"""Codes of Postgres for connections that it refuses, whatever its language.

A server sends a code (SQLSTATE) with each refusal.  While a client connects, libpq keeps the words alone, which are in
the language of the server (``lc_messages``).  With ``PQsetErrorVerbosity`` it writes the code in their place, so a
refused connection is tried once more, for its code.

Source: the PostgreSQL documentation, chapter "libpq", section "Control Functions".
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import select
import sys
from functools import cache
from typing import Any

from oop_engine.connectors.library import library
from oop_engine.system.stopwatch import wall

__all__ = ["PASSED", "code_of_refusal"]

PASSED = "08006"
"""The code of a connection that broke: the second one was not refused."""
_CODES_ALONE = 3
_CODE = re.compile(r":\s+([0-9A-Z]{5})\s*$", re.MULTILINE)


def code_of_refusal(dsn: str, limit_s: float) -> str | None:
    """Connect once more, and return the code with which the server refuses that; None: it does not answer.

    Blocks for at most ``limit_s`` seconds, and as long as a look-up of the host takes.
    """
    pq: Any = library("psycopg.pq", "postgres", "Postgres")
    if (libpq := _libpq(pq.PGconn.__module__)) is None:
        return None
    connection = pq.PGconn.connect_start(dsn.encode())
    try:
        libpq.PQsetErrorVerbosity(ctypes.c_void_p(connection.pgconn_ptr), _CODES_ALONE)
        if _is_let_in(pq.PollingStatus, connection, wall() + limit_s):
            return PASSED
        codes = _CODE.findall(connection.get_error_message("utf-8"))
        return codes[-1] if codes else None
    finally:
        connection.finish()


def _is_let_in(status: Any, connection: Any, until: float) -> bool:
    if connection.status == _BAD:
        return False
    step = status.WRITING
    while step in (status.READING, status.WRITING) and (left := until - wall()) > 0:
        ways = [connection.socket]
        reading, writing = (ways, []) if step == status.READING else ([], ways)
        if any(select.select(reading, writing, [], left)):
            step = connection.connect_poll()
    return bool(step == status.OK)


_BAD = 1
"""The status of a connection that could not even begin."""


@cache
def _libpq(module: str) -> Any:
    """Return the libpq that psycopg uses, by its module; None: it has none that can be asked."""
    file = getattr(sys.modules[module], "__file__", None) or ""
    try:
        libpq = ctypes.CDLL(ctypes.util.find_library("pq") if file.endswith(".py") else file)
        libpq.PQsetErrorVerbosity.argtypes = [ctypes.c_void_p, ctypes.c_int]
    except (OSError, AttributeError):
        return None
    return libpq
