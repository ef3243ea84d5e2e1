"""A Postgres on loopback for tests, and its changes as a source gives them."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from oop_engine.sources import PostgresChanges
from tests.parts.connectors.servers import free_port, program, served

__all__ = ["changes", "do", "drop", "dsn", "row"]

SETTINGS = {"wal_level": "logical", "fsync": "off", "max_wal_senders": 10, "max_replication_slots": 40}


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    """A new database, whose server is no root."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (the extra postgres)")
    initdb, postgres = program("initdb", "postgresql"), program("postgres", "postgresql")
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    if user not in {known.pw_name for known in pwd.getpwall()}:
        pytest.skip(f"there is no user {user}: the server does not run as root")
    folder, port = Path(tempfile.mkdtemp()), free_port()
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:
        shutil.chown(folder, user, user)
        as_user = {"user": user, "group": user, "extra_groups": []}
    init = [initdb, "-D", str(folder / "db"), "-A", "trust", "-U", "me", "--no-sync"]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL, cwd=folder, **as_user)
    settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
    command = [
        postgres,
        "-D",
        str(folder / "db"),
        "-p",
        str(port),
        "-k",
        str(folder),
        *settings,
        "-clisten_addresses=127.0.0.1",
    ]
    try:
        with served(command, "ready to accept connections", folder, **as_user):
            yield f"postgresql://me@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(folder)


def do(dsn: str, *statements: str) -> list[Any]:
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def drop(dsn: str, slot: str) -> None:
    """Drop a slot, once the server has learnt that nobody reads it any more."""
    free = f"slot_name = '{slot}' and not active"
    while not do(dsn, f"select pg_drop_replication_slot(slot_name) from pg_replication_slots where {free}"):
        time.sleep(0.01)


async def changes(
    source: PostgresChanges, position: Any, count: int, acknowledged: bool = False
) -> tuple[Any, Any]:
    """Return the rows of some transactions, and the position behind them."""
    found = []
    async with aclosing(source.read(position)) as pieces:  # type: ignore[type-var]
        async for data, position in pieces:
            found.append([json.loads(payload) for payload in data])
            if len(found) == count:
                if acknowledged:
                    await source.acknowledge(position)
                break
    return found, position


def row(table: str, operation: str, **values: Any) -> dict[str, Any]:
    return {**values, "_table": table, "_operation": operation}
