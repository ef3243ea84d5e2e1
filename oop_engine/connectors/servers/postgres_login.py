"""Postgres login: connections whose texts are UTF-8, whatever the database and the environment have."""

from __future__ import annotations

from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.library import library

__all__ = ["connected"]


async def connected(dsn: str, **options: Any) -> Any:
    """Return a connection that commits each statement; raises errors of psycopg."""
    psycopg = library("psycopg", "postgres", "Postgres")
    limit = max(int(link.ANSWER_S), 1)
    given = {"autocommit": True, "connect_timeout": limit, "client_encoding": "utf8", **options}
    return await psycopg.AsyncConnection.connect(dsn, **given)
