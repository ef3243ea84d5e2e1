"""Postgres replication: values as the server has them, large transactions in parts, logs that are other ones."""

from __future__ import annotations

import asyncio
import json
import math
import socketserver
import struct
from contextlib import aclosing, suppress
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from oop_engine import Page, Schema, UsageError
from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.connectors.link import NotReadyError, UnreachableError
from oop_engine.connectors.pace import read_on
from oop_engine.connectors.servers.postgres_log import LogPlace
from oop_engine.connectors.sources import postgres_changes
from oop_engine.errors import SetupError, TraceError
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import PostgresTable
from oop_engine.sources import Journal, PostgresChanges
from tests.parts.connectors.postgres_server import changes, do, drop, row
from tests.parts.connectors.servers import IN_A_ROW

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
pytestmark = IN_A_ROW


def slotted(dsn: str, name: str, columns: str) -> PostgresChanges:
    """Make a table, a publication and a slot of one name, and return the source of all its changes."""
    do(dsn, f"create table {name} ({columns})", f"create publication {name} for table {name}")
    do(dsn, f"select pg_create_logical_replication_slot('{name}', 'pgoutput')")
    return PostgresChanges(dsn, name, name, operations=("insert", "update", "delete"))


Refusing = TypeVar("Refusing", bound=LiveSource)


@pytest.fixture
def refused() -> list[tuple[str, dict[str, Any]]]:
    return []


def refusing(source: Refusing, refused: list[Any], *columns: str) -> Refusing:
    def unreadable(reason: str, record: bytes, rows: int, *, place: Any) -> None:
        assert LogPlace.of("", place)
        refused.append((reason, json.loads(record)))

    source.unreadable, source.columns = unreadable, columns or None
    return source


LONG = "x" * 10_000


def test_a_long_value_that_is_not_sent_again_is_no_null(dsn: str, refused: list[Any]) -> None:
    """The server leaves it out of an update; also beside the old key of a row whose key has changed."""
    source = slotted(dsn, "toasts", "id int primary key, ts bigint, k text, n int")
    do(dsn, "alter table toasts alter column k set storage external")
    do(dsn, f"insert into toasts values (1, 1, '{LONG}', 5)")
    do(dsn, "update toasts set n = 6", "update toasts set id = 2")
    all_of = refusing(source, refused)
    found, behind = run_async(changes(all_of, None, 3))
    assert found == [[row("toasts", "insert", id=1, ts=1, k=LONG, n=5)], [], []]
    reason = (
        "column 'k' of table toasts was not sent, as this update has not changed it: ALTER TABLE toasts REPLICA "
        "IDENTITY FULL"
    )
    assert refused == [
        (reason, row("toasts", "update", id=1, ts=1, n=6)),
        (reason, row("toasts", "update", id=2, ts=1, n=6)),
    ]
    of_two = refusing(PostgresChanges(dsn, "toasts", "toasts"), refused, "ts", "n")
    found, _ = run_async(changes(of_two, None, 3))
    assert found[1:] == [
        [row("toasts", "update", id=1, ts=1, n=6)],
        [row("toasts", "update", id=2, ts=1, n=6)],
    ]
    do(dsn, "alter table toasts replica identity full", "update toasts set n = 7", "delete from toasts")
    found, _ = run_async(changes(all_of, behind, 2))
    assert found == [
        [row("toasts", "update", id=2, ts=1, k=LONG, n=7)],
        [row("toasts", "delete", id=2, ts=1, k=LONG, n=7)],
    ]
    assert len(refused) == 2
    with pytest.raises(TraceError, match="column 'k' of table toasts was not sent"):
        run_async(changes(PostgresChanges(dsn, "toasts", "toasts"), None, 2))


def test_a_journal_hands_on_the_rows_that_its_source_refuses(
    dsn: str, tmp_path: Path, refused: list[Any]
) -> None:
    inner = slotted(dsn, "journaled", "id int primary key, ts bigint, k text")
    do(dsn, "alter table journaled alter column k set storage external")
    do(dsn, f"insert into journaled values (1, 1, '{LONG}')", "update journaled set ts = 2")
    journal = Journal(inner, tmp_path / "journal")

    async def main() -> None:
        async with aclosing(journal.read(None)) as pieces:  # type: ignore[type-var]
            await anext(pieces)
            while not refused:
                await asyncio.sleep(0.01)

    refusing(journal, refused, "ts", "k")
    run_async(main())
    assert inner.columns == ("ts", "k")
    assert refused[0][0].startswith("column 'k' of table journaled was not sent")


def test_of_a_deleted_row_the_key_is_sent_and_no_null_for_the_others(dsn: str) -> None:
    source = slotted(dsn, "deleted", "id int primary key, ts bigint, gone text")
    do(dsn, "insert into deleted values (1, 1, null)", "delete from deleted")
    found, _ = run_async(changes(source, None, 2))
    assert found == [[row("deleted", "insert", id=1, ts=1, gone=None)], [row("deleted", "delete", id=1)]]


def test_a_truncated_table_is_told(dsn: str, refused: list[Any]) -> None:
    source = refusing(slotted(dsn, "cleared", "ts int primary key"), refused)
    do(dsn, "insert into cleared values (1)", "truncate cleared")
    assert run_async(changes(source, None, 2))[0] == [[row("cleared", "insert", ts=1)], []]
    assert refused[0][0].startswith("table cleared was truncated")


def test_a_column_that_is_gone_is_told(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    source = refusing(slotted(dsn, "narrowed", "ts int, a text, b text"), [], "ts", "a")
    do(dsn, "insert into narrowed values (1, 'a', 'b')", "alter table narrowed drop column b")
    do(dsn, "insert into narrowed values (2, 'a')", "alter table narrowed rename column a to c")
    do(dsn, "insert into narrowed values (3, 'a')")
    found, _ = run_async(changes(source, None, 3))
    assert [each["ts"] for part in found for each in part] == [1, 2, 3]
    assert caplog.messages == ["table narrowed: has no column 'a' any more, which is null from now on"]


def test_a_column_that_is_never_sent_is_told(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    """Such as one that is generated: its rows have null, which only a line can tell from a value."""
    made = "ts int, a int, twice int generated always as (a * 2) stored"
    source = refusing(slotted(dsn, "computed", made), [], "ts", "twice", "_table")
    source.columns = dict.fromkeys(("ts", "twice", "_table"), pa.int64())
    do(dsn, "insert into computed values (1, 1)", "insert into computed values (2, 1)")
    for _ in range(2):
        found, _ = run_async(changes(source, None, 2))
        assert [each["ts"] for part in found for each in part] == [1, 2]
    assert caplog.messages == [
        "table computed: sends no column 'twice', null in its rows: is it generated, or not in the publication?"
    ]


def test_values_are_those_of_the_server_whatever_its_settings(dsn: str) -> None:
    database = dsn.replace("/postgres", "/forms")
    do(dsn, "create database forms")
    for setting in ("datestyle = german", "timezone = 'Asia/Kolkata'", "extra_float_digits = -10"):
        do(dsn, f"alter database forms set {setting}")
    do(dsn, "alter database forms set intervalstyle = sql_standard")
    source = slotted(
        database, "forms", "f float8, g float4, n numeric, d date, t timestamptz, i interval, b bool"
    )
    do(database, "insert into forms values ('NaN', 'Infinity', 'NaN', '2024-03-01', "
       "'2024-03-01 10:00:00.5+00', '1 day 2 hours', true), "
       "(0.1::float8 + 0.2, '-Infinity', 1.50, null, null, null, null)")  # fmt: skip
    [[first, second]], _ = run_async(changes(source, None, 1))
    assert math.isnan(first.pop("f"))
    assert first == row(
        "forms", "insert", g=math.inf, n="NaN", d="2024-03-01", t="2024-03-01 10:00:00.5+00", i="1 day 02:00:00",
        b=True,
    )  # fmt: skip
    assert second == row(
        "forms", "insert", f=0.1 + 0.2, g=-math.inf, n="1.50", d=None, t=None, i=None, b=None
    )


@pytest.fixture(params=["LATIN1", "EUC_JP", "SQL_ASCII"])
def encoded(request: pytest.FixtureRequest, dsn: str) -> str:
    name = request.param.lower()
    do(dsn, f"create database {name} encoding '{request.param}' template template0 locale 'C'")
    return dsn.replace("/postgres", f"/{name}")


def test_texts_of_a_database_in_another_encoding(encoded: str) -> None:
    """Bytes of SQL_ASCII that are no UTF-8 stay, so that the format refuses their row."""
    name = encoded.rpartition("/")[2]
    source = slotted(encoded, name, "ts bigint, k text")
    text, raw = ("Zürich", "Z\\374") if name == "latin1" else ("日本", "\\377")
    do(encoded + "?client_encoding=utf8", f"insert into {name} values (1, '{text}')")
    if name == "sql_ascii":
        do(encoded, f"insert into {name} values (2, E'{raw}')")

    async def read() -> list[bytes]:
        async with aclosing(source.read(None)) as pieces:  # type: ignore[type-var]
            rows, _ = await anext(pieces)
            return rows + (await anext(pieces))[0] if name == "sql_ascii" else rows

    rows = run_async(read())
    assert json.loads(rows[0])["k"] == text
    assert [b'"k": "\xff"' in each for each in rows[1:]] == [True] * (name == "sql_ascii")


def test_a_large_transaction_comes_in_parts_and_goes_on_from_each(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_changes, "_MOST", 3)
    source = slotted(dsn, "large", "id int primary key, ts bigint")
    do(dsn, "create table aside (ts int)", "insert into large values (0, 0)")
    do(dsn, "begin; insert into large select i, 1 from generate_series(1, 10) i; insert into aside values (1); "
       "update large set ts = 2 where id > 5; delete from large where id = 3; commit")  # fmt: skip
    do(dsn, "insert into large values (20, 0)")

    async def parts(position: Any, acknowledged: int = 0) -> list[tuple[Any, Any]]:
        found, ids = list[tuple[Any, Any]](), list[int]()
        async with aclosing(source.read(position)) as pieces:  # type: ignore[type-var]
            async for data, behind in pieces:
                ids += [json.loads(each)["id"] for each in data]
                found.append((list(ids), json.loads(json.dumps(behind))))
                if len(found) <= acknowledged:
                    await source.acknowledge(behind)
                if ids[-1:] == [20]:
                    return found
        raise AssertionError

    found = run_async(parts(None))
    every, _ = found[-1]
    assert len(every) == 18
    assert len(found) == 8
    for ids, position in found[:-1]:
        assert run_async(parts(position))[-1][0] == every[len(ids) :]
    ids, position = found[3]
    source._operations = {"insert"}  # changes are counted, whichever are read
    assert run_async(parts(position))[-1][0] == [10, 20]
    source._operations = {"insert", "update", "delete"}
    run_async(parts(position, acknowledged=9))
    with pytest.raises(TraceError, match=r"the slot has gone on to .*, or was made again there"):
        run_async(parts(position))


def test_a_transaction_that_is_not_sent_again_is_an_error(dsn: str) -> None:
    source = slotted(dsn, "shifted", "ts int")
    do(dsn, "insert into shifted values (1)", "insert into shifted values (2)")
    _, position = run_async(changes(source, None, 1))
    before = {**position, "commit": position["lsn"], "rows": 1}
    with pytest.raises(TraceError, match=r"1 rows of the transaction at .* \(the server sends another"):
        run_async(changes(source, before, 1))

    async def commit_of_second() -> Any:
        async with aclosing(source.read(position)) as pieces:  # type: ignore[type-var]
            postgres_changes._MOST, most = 1, postgres_changes._MOST
            try:
                return (await anext(pieces))[1]
            finally:
                postgres_changes._MOST = most

    within = run_async(commit_of_second())
    with pytest.raises(TraceError, match="the server sends another transaction there"):
        run_async(changes(source, {**within, "rows": 2}, 1))


def test_messages_that_have_come_leave_the_event_loop_free() -> None:
    source, turns, left = PostgresChanges("", "any"), 0, 20_000
    relation = (
        b"R"
        + struct.pack(">i", 1)
        + b"public\0t\0d"
        + struct.pack(">h", 1)
        + b"\0ts\0"
        + struct.pack(">ii", 20, -1)
    )
    insert = b"I" + struct.pack(">i", 1) + b"N" + struct.pack(">h", 1) + b"t" + struct.pack(">i", 1) + b"7"
    begin = b"B" + struct.pack(">qqi", 9, 0, 1)

    async def data() -> bytes:
        nonlocal left
        left -= 1
        if left < 0:
            raise EOFError
        return bytes(25).replace(b"\0", b"w", 1) + {19_999: begin, 19_998: relation}.get(left, insert)

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main() -> int:
        source._data = data  # type: ignore[method-assign]
        other, count = asyncio.ensure_future(turn()), 0
        with suppress(EOFError):
            async for rows in source._parts():
                count += len(rows)
        other.cancel()
        return count

    assert run_async(main()) == 19_000
    assert turns >= 20_000 // postgres_changes._MESSAGES


def test_the_server_keeps_all_that_is_in_no_checkpoint_when_a_connection_is_made_again(dsn: str) -> None:
    source = slotted(dsn, "unsaved", "ts int")
    do(dsn, "insert into unsaved values (1)")
    broken = "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = 'unsaved'"

    async def main() -> None:
        async with aclosing(read_on(source, None)) as feed:  # type: ignore[type-var]
            await anext(feed)
            do(dsn, broken, "insert into unsaved values (2)")
            await anext(feed)
            await source._tell(asks=True)
            do(dsn, "insert into unsaved values (3)")
            await anext(feed)

    run_async(main())
    found, _ = run_async(changes(PostgresChanges(dsn, "unsaved", "unsaved"), None, 3))
    assert [each["ts"] for part in found for each in part] == [1, 2, 3]


def test_a_log_that_is_another_one_is_told(dsn: str) -> None:
    source = slotted(dsn, "others", "ts int")
    do(dsn, "insert into others values (1)")
    _, position = run_async(changes(source, None, 1))
    for changed, words in (
        (
            {"system": "1"},
            r"it was of the cluster 1, and this is \d+: it was made again\): resume with --from",
        ),
        ({"timeline": 7}, "it was of timeline 7, and timeline 1 does not come from it: it was restored"),
    ):
        with pytest.raises(TraceError, match=words):
            run_async(changes(source, {**position, **changed}, 1))
    do(dsn, "insert into others values (2)")
    assert run_async(changes(source, position["lsn"], 1))[0] == [[row("others", "insert", ts=2)]]
    drop(dsn, "others")
    do(
        dsn,
        "select pg_create_logical_replication_slot('others', 'pgoutput')",
        "insert into others values (3)",
    )
    with pytest.raises(TraceError, match="or was made again there"):
        run_async(changes(source, position, 1))
    assert run_async(changes(source, None, 1))[0] == [[row("others", "insert", ts=3)]]
    for wrong in (7, {"0": 7}, "soon", {"lsn": "0/1", "rows": "x"}):
        with pytest.raises(UsageError, match="a position is a place in the log, as '0/16B3748'; got"):
            run_async(changes(source, wrong, 1))


@pytest.mark.parametrize(("lsn", "fits"), [(9, True), (10, True), (11, False)])
def test_a_timeline_goes_on_from_where_it_left_the_earlier_one(lsn: int, fits: bool) -> None:
    place = LogPlace(lsn, system="1", timeline=1)
    if fits:
        assert place.of_server("slot", "1", 2, b"1\t0/A\tpromoted\n") == LogPlace(lsn, system="1", timeline=2)
        return
    with pytest.raises(TraceError, match="timeline 2 has left it at 0/A"):
        place.of_server("slot", "1", 2, b"1\t0/A\tpromoted\n")


def test_the_latest_position_is_the_end_of_the_log(dsn: str) -> None:
    source = slotted(dsn, "ends", "ts int")
    do(dsn, "insert into ends values (1)")
    position = run_async(source.latest())
    do(dsn, "insert into ends values (2)")
    assert run_async(changes(source, position, 1))[0] == [[row("ends", "insert", ts=2)]]


def test_a_slot_of_another_database_is_told(dsn: str) -> None:
    do(dsn, "create database beside", "create publication beside")
    do(dsn.replace("/postgres", "/beside"), "select pg_create_logical_replication_slot('beside', 'pgoutput')")
    with pytest.raises(SetupError, match="is a slot of the database 'beside': give another name of a slot"):
        run_async(changes(PostgresChanges(dsn, "beside", "beside"), None, 1))


def test_what_passes_is_told_apart_from_what_does_not(dsn: str) -> None:
    do(dsn, "create role narrow login replication connection limit 0", "create role plain login")
    do(dsn, "create publication rights")
    for at, kind, words in (
        (dsn.replace("me@", "narrow@"), NotReadyError, "too many connections for role"),
        (dsn.replace("me@", "plain@"), SetupError, "replication role to start walsender: check the name, the pass"),
        (dsn.replace("me@", "nobody@"), SetupError, r'role "\*\*\*" does not exist'),
        (dsn + "?sslmode=require", SetupError, "server does not support SSL"),
        (dsn.replace("me@", "me:open sesame@").replace("://", ":/"), SetupError, "is no connection string: give one"),
    ):  # fmt: skip
        source = PostgresChanges(at, "rights")
        source.link.here()
        with pytest.raises(SetupError, match=words) as told:
            run_async(changes(source, None, 1))
        assert isinstance(told.value, UnreachableError) is (kind is NotReadyError)
        assert "sesame" not in str(told.value)


LANGUAGES = {
    "starts": ("57P03", "ВАЖНО", "система баз данных запускается", NotReadyError, ""),
    "full": ("53300", "ВАЖНО", "извините, уже слишком много клиентов", NotReadyError, ""),
    "ends": ("57P01", "致命错误", "由于管理员命令中断联接", UnreachableError, ""),
    "password": (
        "28P01",
        "FATAL",
        "Passwort-Authentifizierung fehlgeschlagen",
        SetupError,
        "the password, the rights",
    ),
    "rights": ("42501", "SCHWERWIEGEND", "keine Berechtigung", SetupError, "the password, the rights"),
    "database": ("3D000", "FATAL", "Datenbank existiert nicht", SetupError, "give the address"),
}


@pytest.mark.parametrize("kind", LANGUAGES)
def test_refusals_are_told_apart_in_any_language_of_the_server(kind: str) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed (the extra postgres)")
    code, severity, words, wanted, way_out = LANGUAGES[kind]
    fields = {"S": severity, "V": "FATAL", "C": code, "M": words}
    body = b"".join(name.encode() + text.encode() + b"\0" for name, text in fields.items()) + b"\0"

    class Refuses(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while data := self.request.recv(1 << 10):
                if data[4:8] == struct.pack(">i", 3 << 16):
                    self.request.sendall(b"E" + struct.pack(">i", len(body) + 4) + body)
                    break
                self.request.sendall(b"N")  # no TLS

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refuses) as server:
        answering = Thread(target=server.serve_forever, args=(0.01,))
        answering.start()
        at = f"postgresql://me@127.0.0.1:{server.server_address[1]}/db?gssencmode=disable"
        sink, source = PostgresTable(at, "t"), PostgresChanges(at, "p")
        try:
            for work in (lambda: sink.open(SCHEMA, "run", []), lambda: changes(source, None, 1)):
                with pytest.raises(SetupError) as told:
                    run_async(work())
                passes = isinstance(told.value, UnreachableError), isinstance(told.value, NotReadyError)
                assert passes == (issubclass(wanted, UnreachableError), issubclass(wanted, NotReadyError))
                assert way_out in str(told.value)
        finally:
            server.shutdown()
            answering.join()


def test_a_publication_that_is_gone_ends_the_stream_for_good(dsn: str) -> None:
    source = slotted(dsn, "dropped", "ts int")
    do(dsn, "drop publication dropped", "insert into dropped values (1)")
    do(dsn, "create publication dropped for table dropped")
    with pytest.raises(SetupError, match=r'publication "dropped" does not exist: give') as told:
        run_async(changes(source, None, 1))
    assert not isinstance(told.value, UnreachableError)


def test_changes_come_as_a_revision_stream(dsn: str) -> None:
    long = "x" * 10_000
    do(dsn, "create table orders (id int primary key, ts int, doc text)",
       "create table loose (id int primary key, ts int)",
       "alter table orders replica identity full", "alter table orders alter doc set storage external",
       "create publication revised for table orders, loose")  # fmt: skip
    source = PostgresChanges(dsn, "revised", "revised", format="debezium")
    run_async(source.latest())  # makes the slot
    do(dsn, f"insert into orders values (1, 5, '{long}')", "update orders set ts = 6", "delete from orders",
       "insert into loose values (1, 7)", "update loose set ts = 8")  # fmt: skip
    pieces, _ = run_async(changes(source, None, 5))
    payloads = [json.dumps(each).encode() for piece in pieces for each in piece]
    drop(dsn, "revised")
    kinds = {"ts": pa.int64(), "doc": pa.string(), "_table": pa.string(), "change": pa.int8()}
    told: list[str] = []
    schema = Schema(kinds, "ts", "s", "change")
    made = MESSAGE_FORMATS["debezium"](
        schema, "source 'in'", lambda reason, record, rows: told.append(reason)
    )
    rows = [row for m in made.messages(payloads) if isinstance(m, Page) for row in m.to_pylist()]
    assert [(row["ts"], row["_table"], row["change"]) for row in rows] == [
        (5, "orders", 1), (5, "orders", -1), (6, "orders", 1), (6, "orders", -1), (7, "loose", 1)
    ]  # fmt: skip
    assert [row["doc"] for row in rows] == [long] * 4 + [None]
    assert told == ["update of table loose has no row before it: let the server send whole rows: ALTER TABLE ... "
                    "REPLICA IDENTITY FULL"]  # fmt: skip


def test_values_that_a_sink_writes_are_read_again(dsn: str) -> None:
    """Each kind of value through a table, its changes and their two formats."""
    kinds = {
        "ts": ("int8", pa.int64(), [1, 2]), "n": ("int8", pa.int64(), [2**63 - 1, -(2**63)]),
        "u": ("numeric(20)", pa.uint64(), [2**64 - 1, 0]), "f": ("float8", pa.float64(), [0.1, float("-inf")]),
        "r": ("float4", pa.float32(), [0.5, 2.0**-100]), "b": ("bool", pa.bool_(), [True, False]),
        "t": ("text", pa.string(), ["a'b\\n\U0001f600", ""]),
        "d": ("numeric(38,10)", pa.decimal128(38, 10),
              [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.5")]),
        "z": ("timestamptz", pa.timestamp("us", "UTC"), [-1, 1_700_000_000_123_456]),
        "l": ("timestamp", pa.timestamp("us"), [-1, 1_700_000_000_123_456]), "day": ("date", pa.date32(), [-1, 19_000]),
        "c": ("time", pa.time64("us"), [0, 86_399_999_999]), "x": ("bytea", pa.binary(), [b"\x00\xff", b""]),
        "s": ("jsonb", pa.struct({"a": pa.list_(pa.int64()), "b": pa.string()}), [{"a": [1, None], "b": "x\n"}, None]),
        "m": ("jsonb", pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
        "a": ("int8[]", pa.list_(pa.int64()), [[1, None], []]),
        "q": ("text[]", pa.list_(pa.string()), [['a"\\,{', ""], None]),
        "j": ("json", pa.list_(pa.float64()), [[0.5], []]),
    }  # fmt: skip
    columns = ", ".join(f"{name} {of}" for name, (of, _, _) in kinds.items())
    do(
        dsn,
        f"create table typed ({columns})",
        "alter table typed replica identity full",
        "create publication typed for table typed",
    )
    schema = Schema({name: kind for name, (_, kind, _) in kinds.items()}, "ts", "s")
    page = Page.of(schema, {name: pa.array(values, kind) for name, (_, kind, values) in kinds.items()})
    source = PostgresChanges(dsn, "typed", "typed", format="debezium")
    plain = PostgresChanges(dsn, "typed", "typed_plain")

    async def write() -> None:
        await source.latest()
        await plain.latest()
        sink = PostgresTable(dsn, "typed")
        await sink.open(schema, "run", [])
        await sink.write(1, page)
        await sink.commit(await sink.prepare(1))
        await sink.close()

    run_async(write())
    for each, format, names in (
        (source, "debezium", [*kinds]),
        (plain, "jsonl", [n for n in kinds if n != "x"]),
    ):
        each.columns = {name: schema.type_of(name) for name in names}
        pieces, _ = run_async(changes(each, None, 1))
        made = MESSAGE_FORMATS[format](schema.select(names), "source 'in'", pytest.fail)
        payloads = [json.dumps(row, allow_nan=True).encode() for piece in pieces for row in piece]
        found = [m.batch for m in made.messages(payloads) if isinstance(m, Page)]
        assert pa.Table.from_batches(found).equals(pa.Table.from_batches([page.batch]).select(names))
    drop(dsn, "typed")
    drop(dsn, "typed_plain")


NESTED: dict[str, tuple[str, str, pa.DataType, Any]] = {
    "domain of bool": ("yes_no", "true", pa.bool_(), True),
    "domain of a domain": ("surely", "false", pa.bool_(), False),
    "array": ("int[]", "'{1,NULL,3}'", pa.list_(pa.int64()), [1, None, 3]),
    "empty": ("int[]", "'{}'", pa.list_(pa.int64()), []),
    "bounds": ("int[]", "'[0:1]={1,2}'", pa.list_(pa.int64()), [1, 2]),
    "texts": ("text[]", """'{a,"b,c",NULL,"q\\"x","NULL","{}"," "}'""", pa.list_(pa.string()),
              ["a", "b,c", None, 'q"x', "NULL", "{}", " "]),
    "bools": ("bool[]", "'{t,f}'", pa.list_(pa.bool_()), [True, False]),
    "two levels": ("int[][]", "'{{1,2},{3,4}}'", pa.list_(pa.list_(pa.int64())), [[1, 2], [3, 4]]),
    "floats": ("float8[]", "'{1.5,-2}'", pa.list_(pa.float64()), [1.5, -2.0]),
    "decimals": ("numeric[]", "'{1.50}'", pa.list_(pa.decimal128(8, 2)), [Decimal("1.50")]),
    "json": ("json", """'{"a": [1,\n2], "b": null}'""", pa.struct({"a": pa.list_(pa.int64()), "b": pa.int64()}),
             {"a": [1, 2], "b": None}),
    "jsonb": ("jsonb", """'{"a": 1}'""", pa.map_(pa.string(), pa.int64()), [("a", 1)]),
    "an array as a text": ("int[]", "'{1,2}'", pa.string(), "{1,2}"),
    "json as a text": ("jsonb", "'[1]'", pa.string(), "[1]"),
    "bytes": ("bytea", "'Z\u00fcrich'", pa.binary(), "Z\u00fcrich".encode()),
    "bytes of a domain": ("raw", "'abc'", pa.binary(), b"abc"),
    "bytes as a text": ("bytea", "'a'", pa.string(), "\\x61"),
}  # fmt: skip


@pytest.mark.parametrize("format", ["jsonl", "debezium"])
def test_arrays_json_and_domains_fit_the_columns_of_a_schema(dsn: str, format: str) -> None:
    """A list where the schema has one, a text elsewhere; bytes that JSON cannot have refuse their row."""
    name = f"nested_{format}"
    do(dsn, "drop domain if exists surely, yes_no, raw cascade", "create domain yes_no as bool")
    do(dsn, "create domain surely as yes_no", "create domain raw as bytea")
    cases = {f"c{number}": case for number, case in enumerate(NESTED.values())}
    if format == "debezium":  # which has bytes in base64
        cases = {column: case for column, case in cases.items() if case[0] not in ("bytea", "raw")}
    columns = ", ".join(f"{column} {case[0]}" for column, case in cases.items())
    do(
        dsn,
        f"create table {name} (ts bigint, {columns}, x bytea)",
        f"create publication {name} for table {name}",
    )
    source = PostgresChanges(dsn, name, name, format=format)
    source.columns = {
        "ts": pa.int64(),
        **{column: case[2] for column, case in cases.items()},
        "x": pa.binary(),
    }
    run_async(source.latest())
    values = ", ".join(case[1] for case in cases.values())
    do(
        dsn,
        f"insert into {name} values (1, {values}, null)",
        f"insert into {name} (ts, x) values (2, '\\x00ff')",
    )
    refused = list[str]()
    source.unreadable = lambda reason, *more, **_: refused.append(reason)
    pieces, _ = run_async(changes(source, None, 2))
    schema = Schema(source.columns, "ts", "s")
    made = MESSAGE_FORMATS[format](schema, "source 'in'", pytest.fail)
    payloads = [json.dumps(each).encode() for part in pieces for each in part]
    rows = [
        row for found in made.messages(payloads) if isinstance(found, Page) for row in found.batch.to_pylist()
    ]
    assert rows[0] == {"ts": 1, **{column: case[3] for column, case in cases.items()}, "x": None}
    if format == "debezium":
        assert rows[1]["x"] == b"\x00\xff"
    else:
        assert len(rows) == 1
        assert [reason for reason in refused if "read them with format='debezium'" in reason] == refused != []
    drop(dsn, name)
