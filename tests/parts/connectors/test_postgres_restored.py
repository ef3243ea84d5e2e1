"""A server of Postgres that was restored from a backup: its log is another one, and its results lack epochs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.errors import SnapshotError, TraceError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import PostgresTable
from oop_engine.sources import PostgresChanges
from tests.parts.connectors import test_outages
from tests.parts.connectors.postgres_server import changes, do
from tests.parts.connectors.servers import IN_A_ROW
from tests.parts.connectors.test_outages import PostgresServer

pytestmark = IN_A_ROW
folder = test_outages.folder
SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


@contextmanager
def backup(server: PostgresServer, *, point_in_time: bool) -> Iterator[None]:
    """Have a copy of the stopped server, which takes its place behind the block, when it is stopped again.

    ``point_in_time``: it recovers as from an archive, and goes on in another timeline.
    """
    db, copy = server.folder / "db", server.folder / "copy"
    shutil.copytree(db, copy, copy_function=_copied)
    _as_owner(db, copy)
    yield
    shutil.rmtree(db)
    copy.rename(db)
    if point_in_time:
        (db / "recovery.signal").touch()
        with (db / "postgresql.auto.conf").open("a") as settings:
            settings.write("restore_command = 'false'\n")
        _as_owner(db / "PG_VERSION", db / "recovery.signal")


def _copied(source: str, target: str) -> None:
    shutil.copy2(source, target)
    _as_owner(Path(source), Path(target))


def _as_owner(source: Path, target: Path) -> None:
    about = source.stat()
    for path in [target, *target.rglob("*")] if target.is_dir() else [target]:
        shutil.chown(path, about.st_uid, about.st_gid)


class Results:
    """A sink of the table ``out``, an epoch of one row each time, as a service that is started anew has it."""

    def __init__(self, server: PostgresServer) -> None:
        self.server, self.prepared = server, list[Any]()

    async def life(self, *epochs: int) -> None:
        sink = PostgresTable(self.server.at, "out")
        await sink.open(SCHEMA, "run", self.prepared)
        try:
            for prepared in self.prepared:
                await sink.commit(prepared)
            for epoch in epochs:
                await sink.write(epoch, Page.of(SCHEMA, {"ts": [epoch]}))
                self.prepared = [await sink.prepare(epoch)]
                await sink.commit(self.prepared[0])
        finally:
            await sink.close()


@pytest.mark.slow
@pytest.mark.parametrize("point_in_time", [False, True])
def test_the_log_and_the_results_are_those_of_the_backup(folder: Path, point_in_time: bool) -> None:
    """Both are told; the next start goes on, the source as it is told to."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (the extra postgres)")
    server = PostgresServer(folder)
    source, results = PostgresChanges(server.at, "in", "in"), Results(server)
    with server.process():
        run_async(server.begin())
        run_async(server.send(0))
        run_async(results.life(0))
        _, early = run_async(changes(source, None, 1, acknowledged=True))
    with backup(server, point_in_time=point_in_time), server.process():
        run_async(server.send(1, 2))
        found, late = run_async(changes(source, early, 2))
        assert [row["ts"] for part in found for row in part] == [1, 2]
        run_async(results.life(1, 2))
        do(server.at, "create table filler as select generate_series(1, 20000)", "select pg_switch_wal()")
        run_async(server.send(3))
        _, late = run_async(changes(source, late, 1))
    with server.process():
        words = r"timeline 2 has left it at .*it was restored" if point_in_time else "the log ends at"
        with pytest.raises(TraceError, match=rf"{words}.*--from earliest"):
            run_async(changes(source, late, 1))
        run_async(server.send(10))
        found, _ = run_async(changes(source, early, 1))
        assert [row["ts"] for part in found for row in part] == [10]
        with pytest.raises(SnapshotError, match=r"results of epoch 2 .* are gone, .*restart the service"):
            run_async(results.life(3))
        run_async(results.life(3))
        assert do(server.at, "select ts from out order by 1") == [(0,), (3,)]


def test_a_copy_whose_log_has_grown_past_the_position_is_read_on(folder: Path) -> None:
    """Nothing in it tells the copy from the server that it is of: the rows up to the position are not read."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (the extra postgres)")
    server = PostgresServer(folder)
    source = PostgresChanges(server.at, "in", "in")
    with server.process():
        run_async(server.begin())
        run_async(server.send(0))
        _, early = run_async(changes(source, None, 1, acknowledged=True))
    with backup(server, point_in_time=False), server.process():
        run_async(server.send(1))
        _, late = run_async(changes(source, early, 1))
    with server.process():
        do(server.at, "create table filler as select generate_series(1, 20000)", "select pg_switch_wal()")
        run_async(server.send(20))
        do(server.at, "create table more as select generate_series(1, 20000)", "select pg_switch_wal()")
        run_async(server.send(21))
        found, behind = run_async(changes(source, late, 2))
        assert [row["ts"] for part in found for row in part] == [20, 21]
        run_async(server.send(22))
        found, _ = run_async(changes(source, behind, 1))
        assert [row["ts"] for part in found for row in part] == [22]
