"""Postgres login: connections whose texts are UTF-8, whatever the database and the environment have."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.library import library
from oop_engine.connectors.servers.postgres_codes import code_of_refusal
from oop_engine.system.on_thread import on_thread

__all__ = ["connected", "cut"]


async def connected(dsn: str, **options: Any) -> Any:
    """Return a connection that commits each statement; raises errors of psycopg, with the code of a refusal."""
    psycopg = library("psycopg", "postgres", "Postgres")
    errors = library("psycopg.errors", "postgres", "Postgres")
    conninfo = library("psycopg.conninfo", "postgres", "Postgres")
    limit = max(int(link.ANSWER_S), 1)
    given = {"connect_timeout": limit, "client_encoding": "utf8", **options}
    try:
        return await psycopg.AsyncConnection.connect(dsn, autocommit=True, **given)
    except psycopg.OperationalError as error:
        if error.sqlstate is None and not isinstance(error, errors.ConnectionTimeout):
            error.sqlstate = await on_thread(code_of_refusal, conninfo.make_conninfo(dsn, **given), limit)
        raise


def cut(connection: Any) -> None:
    """End a connection, so that who waits for it has an error at once."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as way:
        way.shutdown(socket.SHUT_RDWR)
