"""Postgres: a standby takes over from its primary, with the last transactions and without them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.connectors.link import UnreachableError
from oop_engine.errors import SnapshotError, TraceError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import PostgresTable
from oop_engine.sources import PostgresChanges
from tests.parts.connectors.postgres_server import SETTINGS, changes, do
from tests.parts.connectors.servers import IN_A_ROW, free_port, program, served

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
pytestmark = [
    IN_A_ROW,
    pytest.mark.skipif("OOP_ENGINE_KILLS" not in os.environ, reason="run by make test-servers"),
]
PACKAGE = "postgresql"


class Pair:
    """A primary and its standby; ``primary`` and ``standby``: how to reach each, ``both``: the one that takes rows."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ports = folder, (free_port(), free_port())
        self.primary, self.standby = (f"postgresql://me@127.0.0.1:{port}/postgres" for port in self.ports)
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        self.both = f"postgresql://me@{hosts}/postgres?target_session_attrs=read-write"
        self.as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            self.as_user = {"user": "postgres", "group": "postgres", "extra_groups": []}

    def run(self, name: str, *args: str) -> None:
        command = [program(name, PACKAGE), *args]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self.as_user)

    @contextmanager
    def server(self, number: int, ready: str) -> Iterator[subprocess.Popen[str]]:
        settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        command = [
            program("postgres", PACKAGE),
            "-D",
            str(self.folder / f"db{number}"),
            "-k",
            str(self.folder),
        ]
        command += ["-p", str(self.ports[number]), "-clisten_addresses=127.0.0.1", *settings]
        with served(command, ready, self.folder, **self.as_user) as process:
            try:
                yield process
            finally:
                end(process)

    def copy(self) -> None:
        """Make the standby, as the primary is now."""
        self.run(
            "pg_basebackup", "-D", str(self.folder / "db1"), "-d", self.primary, "-R", "--checkpoint=fast"
        )

    def wait(self) -> None:
        """Wait until the standby has all of the primary."""
        [(lsn,)] = do(self.primary, "select pg_current_wal_lsn()::text")
        while do(self.standby, f"select pg_last_wal_replay_lsn() >= '{lsn}'") != [(True,)]:
            time.sleep(0.02)

    def promote(self) -> None:
        do(self.standby, "select pg_promote()")


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGQUIT)
    process.wait()


@pytest.fixture
def pair() -> Iterator[Pair]:
    pytest.importorskip("psycopg", reason="psycopg is not installed (the extra postgres)")
    with tempfile.TemporaryDirectory() as folder:
        found = Pair(Path(folder))
        found.run("initdb", "-D", str(found.folder / "db0"), "-A", "trust", "-U", "me", "--no-sync")
        yield found


def test_a_standby_takes_over(pair: Pair) -> None:
    """With all transactions: a sink goes on; of a source the slot is gone.

    Without the last ones: both lines have what is lost.
    """

    async def write(sink: PostgresTable, epoch: int, ts: int) -> None:
        await sink.write(epoch, Page.of(SCHEMA, {"ts": [ts]}))
        await sink.commit(await sink.prepare(epoch))

    async def main() -> None:
        source, sink = PostgresChanges(pair.primary, "p", "s"), PostgresTable(pair.both, "out")
        with pair.server(0, "ready to accept connections") as primary:
            do(pair.primary, "create table logs (ts int)", "create publication p for table logs")
            do(
                pair.primary,
                "create table out (ts int)",
                "select pg_create_logical_replication_slot('s', 'pgoutput')",
            )
            pair.copy()
            await sink.open(SCHEMA, "run", [])
            with pair.server(1, "ready to accept read-only connections") as standby:
                do(pair.primary, "insert into logs values (1)")
                await write(sink, 0, 1)
                _, before = await changes(source, None, 1)
                pair.wait()
                end(standby)
                do(pair.primary, "insert into logs values (2)")
                _, lost = await changes(source, before, 1)
                await write(sink, 1, 2)
                end(primary)
        with pair.server(1, "ready to accept read-only connections"):
            pair.promote()
            source = PostgresChanges(pair.standby, "p", "s")
            gone = r"changes behind [0-9A-F/]+, the next .*, are no longer there \(%s\): resume with --from earliest"
            with pytest.raises(TraceError, match=gone % "there is no such slot any more"):
                await changes(source, before, 1)
            reason = r"it was of timeline 1, and timeline 2 has left it at [0-9A-F/]+: it was restored.*"
            with pytest.raises(TraceError, match=gone % reason):
                await changes(source, lost, 1)
            latest = await source.latest()
            do(pair.standby, "insert into logs values (3)")
            [[row]], _ = await changes(source, latest, 1)
            assert row["ts"] == 3
            words = "has the results up to epoch 0 alone, and epoch 1 was committed: it was restored, or a standby"
            with pytest.raises(SnapshotError, match=words):
                await until_there(lambda: write(sink, 2, 3))
            await write(sink, 3, 4)
            assert do(pair.standby, "select ts from out order by 1") == [(1,), (4,)]
            await sink.close()

    async def until_there(work: Any) -> None:
        while True:
            try:
                return await work()
            except UnreachableError:
                continue

    run_async(main())
