"""Tables of Postgres that are dropped and made again, while a service runs and between two lives."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.connectors.sources import postgres_changes
from oop_engine.errors import SnapshotError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import PostgresTable
from oop_engine.sources import PostgresChanges
from tests.children import MOST_S
from tests.parts.connectors.postgres_server import changes, do, row
from tests.parts.connectors.servers import IN_A_ROW

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
pytestmark = IN_A_ROW
AGAIN = "was dropped and made again, or another one has its name now"


def slotted(dsn: str, name: str, of: str = "for table {}", **options: Any) -> PostgresChanges:
    """Make a table, a publication and a slot of one name, and return the source of the changes."""
    do(dsn, f"create table {name} (ts int)", f"create publication {name} {of.format(name)}")
    do(dsn, f"select pg_create_logical_replication_slot('{name}', 'pgoutput')")
    return PostgresChanges(dsn, name, name, **options)


def rows_of(found: list[list[dict[str, Any]]]) -> list[int]:
    return [each["ts"] for part in found for each in part]


def made_again(name: str, *, renamed: bool) -> list[str]:
    gone = f"alter table {name} rename to {name}_old" if renamed else f"drop table {name}"
    return [gone, f"create table {name} (ts int)", f"alter publication {name} add table {name}"]


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("lives", [1, 2])
def test_rows_of_the_table_that_is_there_now_are_read_on(
    dsn: str, caplog: pytest.LogCaptureFixture, lives: int, renamed: bool
) -> None:
    """A line tells it once; where deletions are read, a dead letter too, since none of the earlier rows comes."""
    name = f"again{lives}{'renamed' if renamed else ''}"
    source = slotted(dsn, name, operations=("insert", "delete"))
    refused = list[tuple[str, Any]]()
    source.unreadable = lambda reason, record, rows, **_: refused.append((reason, json.loads(record)))
    do(dsn, f"insert into {name} values (1)")

    async def main() -> list[int]:
        first, behind = await changes(source, None, 1, acknowledged=True)
        do(
            dsn,
            *made_again(name, renamed=renamed),
            f"insert into {name} values (2)",
            f"insert into {name} values (3)",
        )
        again = source if lives == 1 else PostgresChanges(dsn, name, name, operations=("insert", "delete"))
        again.unreadable = source.unreadable
        second, behind = await changes(again, json.loads(json.dumps(behind)), 1)
        third, _ = await changes(again, behind, 1)
        return rows_of(first + second + third)

    assert run_async(main()) == [1, 2, 3]
    assert [record for _, record in refused] == [{"_table": name, "_operation": "drop"}]
    assert AGAIN in refused[0][0]
    assert len([line for line in caplog.messages if AGAIN in line]) == 1


def test_a_table_that_is_made_again_within_a_transaction(dsn: str) -> None:
    """A restart in the middle of it goes on, and tells the same."""
    source = slotted(dsn, "whole")
    do(dsn, "insert into whole values (0)")
    many = ["begin", "insert into whole select generate_series(1, 1500)", *made_again("whole", renamed=False)]
    do(dsn, *many, "insert into whole select generate_series(1501, 3000)", "commit")

    async def main() -> list[int]:
        found, position, count = list[int](), None, 0
        while count < 3001:
            part, position = await changes(source, position, 1)
            found += rows_of(part)
            count = len(found)
        return found

    assert run_async(main()) == [*range(3001)]


@pytest.mark.parametrize("how", ["drop table {}", "alter publication {} drop table {}"])
@pytest.mark.parametrize("lives", [1, 2])
def test_a_table_that_has_left_its_publication(
    dsn: str, how: str, lives: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_changes, "_LOOK_S", 0.05)
    monkeypatch.setattr(postgres_changes, "_STATUS_S", 0.05)
    name = f"left{lives}{how[0]}"
    slotted(dsn, name)
    do(dsn, f"create table {name}_b (ts int)", f"alter publication {name} add table {name}_b")
    do(dsn, f"insert into {name} values (1)")
    words = f"table {name} is not in the publication any more: it was dropped, renamed or taken out"

    async def main() -> Any:
        source, position = PostgresChanges(dsn, name, name), None
        async with asyncio.timeout(MOST_S):
            async with aclosing(source.read(position)) as pieces:  # type: ignore[type-var]
                async for data, position in pieces:
                    if data:
                        do(dsn, how.format(name, name))
                        if lives == 2:
                            break
                    if any(words in line for line in caplog.messages):
                        return position
            async with aclosing(source.read(position)) as pieces:  # type: ignore[type-var]
                async for _, position in pieces:
                    if any(words in line for line in caplog.messages):
                        return position

    position = run_async(main())
    assert "tables" not in position
    assert len([line for line in caplog.messages if words in line]) == 1
    assert any(f"ALTER PUBLICATION {name} ADD TABLE {name}" in line for line in caplog.messages)


def test_all_tables_are_published_again_by_themselves(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    do(dsn, "create database of_all")
    at = dsn.replace("/postgres", "/of_all")
    source = slotted(at, "every", "for all tables")
    do(
        at,
        "insert into every values (1)",
        "drop table every",
        "create table every (ts int)",
        "insert into every values (2)",
    )
    found, _ = run_async(changes(source, None, 2))
    assert rows_of(found) == [1, 2]
    assert len([line for line in caplog.messages if AGAIN in line]) == 1


def test_a_publication_that_sends_nothing_is_told_at_the_start(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    do(dsn, "create publication bare with (publish = 'insert, delete')", "create table bare (ts int)")
    do(dsn, "select pg_create_logical_replication_slot('bare', 'pgoutput')")
    run_async(PostgresChanges(dsn, "bare", "bare").latest())
    assert [line.split("': ", 2)[-1] for line in caplog.messages] == [
        "leaves out each update (its option publish), so none of them comes",
        "has no table, so no row comes: ALTER PUBLICATION bare ADD TABLE ...",
    ]


class Epochs:
    """A sink of a table, an epoch of one row each time."""

    def __init__(self, dsn: str, table: str, run: str = "run") -> None:
        self.sink, self.run = PostgresTable(dsn, table), run

    async def open(self, *prepared: Any) -> None:
        await self.sink.open(SCHEMA, self.run, prepared)

    async def prepare(self, epoch: int) -> Any:
        await self.sink.write(epoch, Page.of(SCHEMA, {"ts": [epoch]}))
        return json.loads(json.dumps(await self.sink.prepare(epoch)))

    async def write(self, epoch: int) -> None:
        await self.sink.commit(await self.prepare(epoch))


SWAPS = {
    "dropped": ["drop table {0}", "create table {0} (ts int)"],
    "renamed": ["alter table {0} rename to {0}_old", "create table {0} (ts int)"],
    "in one": ["begin", "drop table {0}", "create table {0} (ts int)", "commit"],
}


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("prepared", [False, True])
def test_a_table_of_results_that_is_made_again_ends_the_service_once(
    dsn: str, swap: str, prepared: bool
) -> None:
    name = f"results_{swap.replace(' ', '')}{int(prepared)}"
    do(dsn, f"create table {name} (ts int)")

    async def main() -> None:
        epochs = Epochs(dsn, name, name)
        await epochs.open()
        for epoch in range(3):
            await epochs.write(epoch)
        waiting = await epochs.prepare(3) if prepared else None
        do(dsn, *(statement.format(name) for statement in SWAPS[swap]))
        waiting = waiting or await epochs.prepare(3)
        with pytest.raises(
            SnapshotError, match=rf"{AGAIN}, since epoch 2 was committed: .* restart the service"
        ):
            await epochs.sink.commit(waiting)
        await epochs.sink.close()
        epochs = Epochs(dsn, name, name)
        await epochs.open(waiting)
        await epochs.sink.commit(waiting)
        await epochs.write(4)
        await epochs.sink.close()

    run_async(main())
    assert do(dsn, f"select ts from {name} order by 1") == [(3,), (4,)]


def test_a_table_of_results_that_is_made_again_between_two_lives(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    do(dsn, "create table lives (ts int)")

    async def main() -> None:
        epochs = Epochs(dsn, "lives", "lives")
        await epochs.open()
        await epochs.write(0)
        waiting = await epochs.prepare(1)
        await epochs.sink.close()
        do(dsn, "drop table lives", "create table lives (ts int)")
        for _ in range(2):
            epochs = Epochs(dsn, "lives", "lives")
            await epochs.open(waiting)
            await epochs.sink.commit(waiting)
            await epochs.sink.close()

    run_async(main())
    assert do(dsn, "select ts from lives") == [(1,)]
    assert any(
        "was dropped and made again: results before epoch 1 are not in it" in line for line in caplog.messages
    )


@pytest.mark.parametrize("kept", [0, 2])
def test_a_database_that_was_restored_between_two_lives_ends_one_start(dsn: str, kept: int) -> None:
    """The results of the last epoch are gone with it: the line has the way out, and the next start goes on."""
    name = f"restored{kept}"
    do(dsn, f"create table {name} (ts int)")

    async def main() -> None:
        epochs = Epochs(dsn, name, name)
        await epochs.open()
        for epoch in range(4):
            await epochs.write(epoch)
        waiting = await epochs.prepare(4)
        await epochs.sink.commit(waiting)
        await epochs.sink.close()
        do(dsn, f"delete from {name} where ts >= {kept}", f"delete from oop_staged_{name}")
        back = f"update oop_epochs set epoch = {kept - 1} where place = '{name}'"
        do(dsn, back if kept else f"delete from oop_epochs where place = '{name}'")
        epochs = Epochs(dsn, name, name)
        await epochs.open(waiting)
        with pytest.raises(
            SnapshotError, match=r"epoch 4 that a checkpoint has recorded are gone, .*restart the serv"
        ):
            await epochs.sink.commit(waiting)
        await epochs.sink.close()
        epochs = Epochs(dsn, name, name)
        await epochs.open(waiting)
        await epochs.sink.commit(waiting)
        await epochs.write(5)
        await epochs.sink.close()

    run_async(main())
    assert do(dsn, f"select ts from {name} order by 1") == [*((ts,) for ts in range(kept)), (5,)]


def test_changes_before_and_behind_a_table_that_is_made_again_are_rows(dsn: str) -> None:
    """The server sends those of a table that is not there any more, too."""
    source = slotted(dsn, "late")
    do(dsn, "insert into late values (1)", "insert into late values (2)")
    do(dsn, *made_again("late", renamed=False), "insert into late values (3)")
    found, _ = run_async(changes(source, None, 3))
    assert found == [[row("late", "insert", ts=ts)] for ts in (1, 2, 3)]
