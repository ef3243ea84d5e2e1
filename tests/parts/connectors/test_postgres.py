"""Postgres, on a real server: a table as a sink, changes of a table as a source."""

from __future__ import annotations

import asyncio
import json
import math
import struct
import sys
from contextlib import aclosing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.connectors import link
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.pace import read_on
from oop_engine.connectors.servers.postgres_log import LogPlace, lsn_of
from oop_engine.connectors.sources import postgres_changes
from oop_engine.connectors.sources.pgoutput import Decoder
from oop_engine.errors import SetupError, SnapshotError, TraceError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import PostgresTable
from oop_engine.sources import PostgresChanges
from tests.children import MOST_S
from tests.parts.connectors.breaks import SCHEMA as SCHEMA_OF_BREAKS
from tests.parts.connectors.breaks import through_breaks
from tests.parts.connectors.postgres_server import changes, do, drop, row
from tests.parts.connectors.servers import IN_A_ROW, free_port
from tests.parts.connectors.wire import Wire, wired

SCHEMA = Schema({"window_end": pa.int64(), "host": pa.string(), "n": pa.int64()}, "window_end", "s")
pytestmark = IN_A_ROW


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SetupError, match=r"pip install 'oop-engine\[postgres\]'"):
        run_async(PostgresTable("postgresql://127.0.0.1:1/x", "t").open(SCHEMA, "run", []))


def page(*rows: tuple[int, str, int]) -> Page:
    return Page.of(SCHEMA, dict(zip(SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True)))


async def opened(dsn: str, table: str, prepared: list[Any], key: tuple[str, ...] = ()) -> PostgresTable:
    sink = PostgresTable(dsn, table, key)
    await sink.open(SCHEMA, "run", prepared)
    return sink


def test_rows_of_an_epoch_get_in_once_and_together(dsn: str) -> None:
    do(dsn, 'create table "per minute" (host text, n int, window_end bigint)')

    def there() -> list[Any]:
        return do(dsn, 'select window_end, host, n from "per minute" order by 1, 2')

    async def main() -> None:
        sink = await opened(dsn, "per minute", [])
        await sink.write(1, page((60, "a", 1), (60, "b", 2)))
        prepared = await sink.prepare(1)
        await sink.write(2, page((120, "a", 3)))
        unrecorded = await sink.prepare(2)
        assert there() == []
        await sink.close()  # killed: epoch 1 is in the checkpoint, epoch 2 is not
        sink = await opened(dsn, "per minute", [prepared])
        for _ in range(2):
            await sink.commit(prepared)
        assert there() == [(60, "a", 1), (60, "b", 2)]
        with pytest.raises(SnapshotError, match="results of epoch 2 that a checkpoint has recorded are gone"):
            await sink.commit(unrecorded)
        assert await sink.prepare(2) is None
        await sink.write(2, page((120, "a", 4)))
        await sink.commit(await sink.prepare(2))
        await sink.close()

    run_async(main())
    assert there() == [(60, "a", 1), (60, "b", 2), (120, "a", 4)]
    assert do(dsn, 'select count(*) from "oop_staged_per minute"') == [(0,)]


@pytest.mark.parametrize("last", [b"COMMIT", b"BEGIN", b"copy", b"oop_epochs"])
def test_a_sink_goes_on_when_its_server_is_back(dsn: str, last: bytes) -> None:
    table = f"away_{last.decode().lower()}"
    do(dsn, f"create table {table} (ts int, key text)")
    port = int(dsn.rpartition(":")[2].partition("/")[0])
    sink = lambda at: PostgresTable(dsn.replace(str(port), str(at)), table)
    run_async(through_breaks(port, sink, lambda sent: last in sent))
    assert do(dsn, f"select ts from {table} order by 1") == [(1,), (2,), (3,), (4,), (5,), (6,)]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["prepare", "commit"])
def test_a_sink_takes_a_server_that_is_silent_for_one_that_is_away(
    dsn: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    do(dsn, f"create table still_{part} (ts int, key text)")

    async def main() -> None:
        async with wired(port_of(dsn)) as wire:
            sink = PostgresTable(on_a_wire(dsn, wire), f"still_{part}")
            await sink.open(SCHEMA_OF_BREAKS, "run", [])
            await sink.write(0, Page.of(SCHEMA_OF_BREAKS, {"ts": [1], "key": ["a"]}))
            prepared = await sink.prepare(0) if part == "commit" else None
            work = partial(sink.commit, prepared) if prepared else partial(sink.prepare, 0)
            monkeypatch.setattr(link, "ANSWER_S", 1.0)
            wire.still = True
            with pytest.raises(UnreachableError):
                await work()
            monkeypatch.setattr(link, "ANSWER_S", MOST_S)
            await wire.cut()
            await wire.mend()
            await sink.commit(prepared := await work() or prepared)
            await sink.close()

    run_async(main())
    assert do(dsn, f"select ts from still_{part}") == [(1,)]


def test_a_sink_waits_for_a_server_that_takes_its_time(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where somebody else has locked the table: it lets others in, so it is not away."""
    import psycopg

    do(dsn, "create table locked_out (ts int, key text)")

    async def main() -> None:
        sink = PostgresTable(dsn, "locked_out")
        await sink.open(SCHEMA_OF_BREAKS, "run", [])
        [alive] = await (await sink._connection.execute("show tcp_keepalives_idle")).fetchone()
        assert alive == "30"
        await sink.write(0, Page.of(SCHEMA_OF_BREAKS, {"ts": [1], "key": ["a"]}))
        prepared = await sink.prepare(0)
        connect, looks = sink._connected, []

        async def looked() -> Any:
            monkeypatch.setattr(link, "ANSWER_S", MOST_S)
            looks.append(found := await connect())
            return found

        monkeypatch.setattr(sink, "_connected", looked)
        async with await psycopg.AsyncConnection.connect(dsn) as other:
            await other.execute("lock table locked_out")
            monkeypatch.setattr(link, "ANSWER_S", 0.01)
            committing = asyncio.ensure_future(sink.commit(prepared))
            while not looks:
                await asyncio.sleep(0.01)
            assert not committing.done()
        await committing
        await sink.close()

    run_async(main())
    assert do(dsn, "select ts from locked_out") == [(1,)]


def test_rows_of_a_key_are_replaced(dsn: str) -> None:
    do(dsn, "create table latest (host text primary key, n int, window_end bigint)")

    async def main() -> None:
        sink = await opened(dsn, "latest", [], ("host",))
        for epoch, rows in enumerate([[(60, "a", 1), (60, "b", 2), (120, "a", 3)], [(180, "b", 4)]]):
            await sink.write(epoch, page(*rows))
            await sink.commit(await sink.prepare(epoch))
        await sink.close()

    run_async(main())
    assert do(dsn, "select * from latest order by 1") == [("a", 3, 120), ("b", 4, 180)]


REVISED = Schema(
    {**{f.name: f.type for f in SCHEMA.fields}, "back": pa.int8()}, "window_end", "s", change="back"
)
Change = tuple[int, str, int | None, int]


def test_with_a_key_the_table_is_the_net_content_of_a_revision_stream(dsn: str) -> None:
    do(dsn, "create table net (window_end bigint, host text, n int, primary key (window_end, host))")
    epochs: list[list[Change]] = [
        [(60, "a", 1, 1), (60, "b", None, 1)],
        [(60, "a", 1, -1), (60, "a", 2, 1), (60, "b", None, -1)],
        [(120, "a", 5, 1), (120, "a", 5, -1), (60, "a", 7, 1)],
        [(60, "a", 2, -1), (180, "c", 1, 1), (180, "c", 1, -1), (180, "c", 2, 1)],
        [(60, "a", 7, -1), (180, "c", 2, -1)],
    ]
    wanted = [
        [("a", 1, 60), ("b", None, 60)], [("a", 2, 60)], [("a", 7, 60)], [("a", 7, 60), ("c", 2, 180)], [],
    ]  # fmt: skip

    async def main() -> None:
        for epoch, (rows, there) in enumerate(zip(epochs, wanted, strict=True)):
            sink = PostgresTable(dsn, "net", ("window_end", "host"))
            await sink.open(REVISED, "run", [])
            await sink.write(
                epoch, Page.of(REVISED, dict(zip(REVISED.names, zip(*rows, strict=True), strict=True)))
            )
            prepared = await sink.prepare(epoch)
            for _ in range(2):
                await sink.commit(prepared)
            await sink.close()
            assert do(dsn, "select host, n, window_end from net order by 1, 2") == there

    run_async(main())


def test_a_wrong_server_or_table_is_told_in_a_line(dsn: str) -> None:
    do(dsn, "create table small (host text)")
    for address, table, key, words in (
        (dsn, "none", (), 'relation "none" does not exist: give the address'),
        (dsn, "small", (), 'column "window_end" does not exist'),
        (dsn, "latest", ("n",), "there is no unique or exclusion constraint"),
        (f"postgresql://127.0.0.1:{free_port()}/x", "latest", (), "refused"),
    ):
        with pytest.raises(SetupError, match=words):
            run_async(opened(address, table, [], key))


def test_changes_come_by_transactions_and_again_until_they_are_acknowledged(dsn: str) -> None:
    do(dsn, "create table logs (id int primary key, ts bigint, value float, ok bool, note text)")
    do(dsn, "create publication logs_out for table logs")
    every = PostgresChanges(dsn, "logs_out", "one", operations=("insert", "update", "delete"))

    async def begin() -> None:
        reading = asyncio.ensure_future(anext(aiter(every.read(None))))
        while not every._at.lsn:
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    run_async(begin())
    do(
        dsn,
        "begin; insert into logs values (1, 5, 1.5, true, 'a\nb'), (2, 6, '-infinity', false, null); commit",
    )
    do(dsn, "update logs set ts = 7 where id = 1", "delete from logs where id = 2")
    first = [
        row("logs", "insert", id=1, ts=5, value=1.5, ok=True, note="a\nb"),
        row("logs", "insert", id=2, ts=6, value=-math.inf, ok=False, note=None),
    ]
    update = [row("logs", "update", id=1, ts=7, value=1.5, ok=True, note="a\nb")]
    found, position = run_async(changes(every, None, 3))
    assert found == [first, update, [row("logs", "delete", id=2)]]
    found, behind_first = run_async(changes(every, None, 1))
    assert run_async(changes(every, behind_first, 1))[0] == [update]
    run_async(changes(every, behind_first, 2, acknowledged=True))
    do(dsn, "insert into logs values (3, 9, 0, true, '')")
    found, _ = run_async(changes(every, position, 1))
    assert found == [[row("logs", "insert", id=3, ts=9, value=0.0, ok=True, note="")]]
    with pytest.raises(TraceError, match=r"are no longer there \(the slot has gone on to"):
        run_async(changes(every, behind_first, 1))
    assert lsn_of(position["lsn"]) > lsn_of(behind_first["lsn"])


def test_a_lost_slot_and_a_wrong_publication_are_told_in_a_line(dsn: str) -> None:
    with pytest.raises(SetupError, match="there is no such publication: CREATE PUBLICATION"):
        run_async(changes(PostgresChanges(dsn, "none"), None, 1))
    do(dsn, "create publication empty_out")
    with pytest.raises(TraceError, match="there is no such slot any more"):
        run_async(changes(PostgresChanges(dsn, "empty_out", "never"), "0/1", 1))
    do(dsn, "select pg_create_logical_replication_slot('ours', 'pgoutput')")
    with pytest.raises(
        TraceError, match=r"behind FFFF/1, .* are no longer there \(the log ends at \d+/\w+: is it"
    ):
        run_async(changes(PostgresChanges(dsn, "empty_out", "ours"), "FFFF/1", 1))
    do(dsn, "select pg_create_logical_replication_slot('other', 'test_decoding')")
    with pytest.raises(
        SetupError, match="is a slot of the plugin 'test_decoding', not pgoutput: give another name"
    ):
        run_async(changes(PostgresChanges(dsn, "empty_out", "other"), None, 1))
    do(dsn, "select pg_drop_replication_slot('ours'), pg_drop_replication_slot('other')")
    with pytest.raises(
        TraceError, match=r"no longer there \(there is no such slot any more\): resume with --from"
    ):
        run_async(changes(PostgresChanges(dsn, "empty_out", "ours"), "0/1", 1))
    with pytest.raises(SetupError, match=r"database .nobody. does not exist: give the address"):
        run_async(changes(PostgresChanges(dsn.replace("/postgres", "/nobody"), "logs_out"), None, 1))
    with pytest.raises(SetupError, match="refused"):
        run_async(changes(PostgresChanges(f"postgresql://127.0.0.1:{free_port()}/x", "logs_out"), None, 1))


def test_a_wrong_password_is_told_and_not_tried_again(dsn: str) -> None:
    import psycopg

    do(dsn, "create role locked login password 'right'", "create table locked (ts int, key text)")
    do(dsn, "grant all on locked to locked", "grant create, usage on schema public to locked")
    rules = Path(do(dsn, "show hba_file")[0][0])
    rules.write_text(f"host all locked all scram-sha-256\n{rules.read_text()}")
    do(dsn, "select pg_reload_conf()")
    right, wrong = (dsn.replace("me@", f"locked:{each}@") for each in ("right", "wrong"))
    for _ in range(1000):  # until the server has read them
        try:
            psycopg.connect(wrong).close()
        except psycopg.OperationalError:
            break

    async def main() -> None:
        for at, words in (
            (wrong, "password authentication failed"),
            (wrong.replace(":wrong", ""), "password"),
        ):
            source = PostgresChanges(at, "none")
            source.link.here()  # it was there before, and has another password now
            with pytest.raises(SetupError, match=words) as refused:
                await changes(source, None, 1)
            assert not isinstance(refused.value, UnreachableError)
        sink = PostgresTable(right, "locked")
        await sink.open(SCHEMA_OF_BREAKS, "run", [])
        await sink.close()
        sink._dsn = wrong
        await sink.write(0, Page.of(SCHEMA_OF_BREAKS, {"ts": [1], "key": ["a"]}))
        with pytest.raises(SetupError, match="password authentication failed") as refused:
            await sink.prepare(0)
        assert not isinstance(refused.value, UnreachableError)

    run_async(main())


def test_changes_go_on_when_the_connection_is_made_again(dsn: str) -> None:
    do(dsn, "create table lost (ts int)", "create publication lost for table lost")
    source = PostgresChanges(dsn, "lost", "lost")
    broken = "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = 'lost'"

    async def main() -> list[int]:
        do(
            dsn,
            "select pg_create_logical_replication_slot('lost', 'pgoutput')",
            "insert into lost values (1)",
        )
        async with aclosing(read_on(source, None)) as feed:  # type: ignore[type-var]
            found = [await anext(feed)]
            do(dsn, broken, "insert into lost values (2)")
            await source.acknowledge(found[0][1])
            found.append(await anext(feed))
            return [json.loads(row)["ts"] for rows, _ in found for row in rows]

    assert run_async(main()) == [1, 2]
    assert source.link.losses == 1
    drop(dsn, "lost")


def on_a_wire(dsn: str, wire: Wire) -> str:
    return dsn.replace(str(port_of(dsn)), str(wire.here))


def port_of(dsn: str) -> int:
    return int(dsn.rpartition(":")[2].partition("/")[0])


def test_a_server_that_falls_silent_is_away_and_nothing_is_lost(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a machine that is switched off, or a cable that is cut: no connection ends by that."""
    do(dsn, "create table silent (ts int)", "create publication silent for table silent")
    do(dsn, "select pg_create_logical_replication_slot('silent', 'pgoutput')")

    async def main() -> list[int]:
        async with wired(port_of(dsn)) as wire:
            source = PostgresChanges(on_a_wire(dsn, wire), "silent", "silent")
            async with aclosing(read_on(source, None)) as feed:  # type: ignore[type-var]
                do(dsn, "insert into silent values (1)")
                found = [(await anext(feed))[0]]
                monkeypatch.setattr(postgres_changes, "_SILENT_S", 0.1)
                wire.still = True
                do(dsn, "insert into silent values (2)")
                following = asyncio.ensure_future(anext(feed))
                while not source.link.away:
                    await asyncio.sleep(0.01)
                monkeypatch.setattr(postgres_changes, "_SILENT_S", MOST_S)
                await wire.cut()
                await wire.mend()
                return [json.loads(row)["ts"] for rows in [*found, (await following)[0]] for row in rows]

    assert run_async(asyncio.wait_for(main(), MOST_S)) == [1, 2]
    assert any("slot 'silent': the server has been silent for 0.1 s" in line for line in caplog.messages)
    drop(dsn, "silent")


def test_a_server_is_asked_for_signs_of_life_and_gives_them(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of a table that nobody reads the log is not kept for ever: without changes the place goes on with it."""
    do(
        dsn,
        "create table still (ts int)",
        "create table busy (ts int)",
        "create publication still for table still",
    )
    monkeypatch.setattr(postgres_changes, "_STATUS_S", 0.05)
    source = PostgresChanges(dsn, "still", "still")

    async def main() -> None:
        async with aclosing(source.read(None)) as feed:  # type: ignore[type-var]
            waiting = asyncio.ensure_future(anext(feed))
            while not source._at.lsn:
                await asyncio.sleep(0.01)
            [(end,)] = do(dsn, "insert into busy values (1)", "select pg_current_wal_flush_lsn()::text")
            rows, position = await waiting
            while lsn_of(position["lsn"]) < lsn_of(end):
                more, position = await anext(feed)
                rows += more
            assert rows == []
            await source.acknowledge(position)
            done = "select confirmed_flush_lsn::text from pg_replication_slots where slot_name = 'still'"
            while lsn_of(do(dsn, done)[0][0]) < lsn_of(end):
                await asyncio.sleep(0.01)

    run_async(asyncio.wait_for(main(), MOST_S))


def test_a_sign_of_life_that_the_server_asks_for_is_given_at_once() -> None:
    source, told = PostgresChanges("", "any"), list[bytes]()
    source._pgconn = SimpleNamespace(put_copy_data=told.append, flush=lambda: 0)
    decoder = Decoder({"insert"}, None, lambda *_: None)
    for asks in (0, 1):
        assert run_async(source._sign(b"k" + struct.pack(">qqb", 7, 0, asks), decoder))
        assert source._at == LogPlace(7)
        source._at = LogPlace(0)
    assert [each[:1] for each in told] == [b"r"]
    decoder.commit = 8  # a transaction is on its way: no place in it is one to go on from
    assert not run_async(source._sign(b"k" + struct.pack(">qqb", 9, 0, 0), decoder))


def test_a_slot_that_a_process_before_has_for_a_moment_is_waited_for(dsn: str) -> None:
    do(dsn, "create table held (ts int)", "create publication held for table held")
    do(dsn, "select pg_create_logical_replication_slot('held', 'pgoutput')", "insert into held values (1)")
    before, after = PostgresChanges(dsn, "held", "held"), PostgresChanges(dsn, "held", "held")
    ask, asked = after._asked, list[bytes]()

    async def counted(command: bytes) -> Any:
        asked.append(command)
        return await ask(command)

    async def main() -> None:
        async with aclosing(before.read(None)) as feed:  # type: ignore[type-var]
            await anext(feed)
            following = asyncio.ensure_future(changes(after, None, 1))
            while len(asked) < 2:  # it was refused once
                await asyncio.sleep(0.01)
        assert (await following)[0] == [[row("held", "insert", ts=1)]]

    after._asked = counted  # type: ignore[method-assign]
    run_async(asyncio.wait_for(main(), MOST_S))
    drop(dsn, "held")


def test_a_slot_that_another_service_reads_is_told(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    do(dsn, "create table taken (ts int)", "create publication taken for table taken")
    do(dsn, "select pg_create_logical_replication_slot('taken', 'pgoutput')", "insert into taken values (1)")

    async def main() -> None:
        async with aclosing(PostgresChanges(dsn, "taken", "taken").read(None)) as feed:  # type: ignore[type-var]
            await anext(feed)
            monkeypatch.setattr(link, "ANSWER_S", 0.0)
            monkeypatch.setattr(PostgresChanges, "_slot_at", here)
            with pytest.raises(
                SetupError, match=r"active for PID \d+: does another service read this slot\?"
            ):
                await changes(PostgresChanges(dsn, "taken", "taken"), None, 1)

    async def here(*_: Any) -> int:
        return 0

    run_async(main())
    drop(dsn, "taken")
