"""Postgres tables: names and types as the server has them, values exactly, rows that it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from oop_engine import Graph, Page, Schema, serve
from oop_engine.cli.app import app
from oop_engine.connectors import link
from oop_engine.connectors.link import NotReadyError, UnreachableError
from oop_engine.connectors.sinks.fitting import RefusedInARow, refused_rows
from oop_engine.errors import SetupError
from oop_engine.extend import LiveSink
from oop_engine.operators import BoundedDisorder, Punctuate
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered, PartFiles, PostgresTable
from oop_engine.sources import Replayed
from tests.parts.connectors.postgres_server import do
from tests.parts.connectors.servers import IN_A_ROW

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
pytestmark = IN_A_ROW
RUNS = count()
"""Numbers of runs: the server remembers the epochs of each."""


class Letters:
    """The rows that a sink has refused, each with its reason."""

    def __init__(self) -> None:
        self.found = list[tuple[str, dict[str, Any]]]()

    def __call__(self, reason: str, record: str, rows: int, *, coding: str) -> None:
        assert (rows, coding) == (1, "json")
        self.found.append((reason, json.loads(record)))


async def written(
    sink: PostgresTable, schema: Schema, epochs: Iterable[dict[str, Any]], start: int = 0
) -> Letters:
    """Write a page an epoch."""
    sink.refused = letters = Letters()  # type: ignore[assignment]
    await sink.open(schema, f"run {next(RUNS)}", [])
    try:
        for epoch, columns in enumerate(epochs, start):
            await sink.write(epoch, Page.of(schema, columns))
            prepared = await sink.prepare(epoch)
            for _ in range(2 if prepared else 0):
                await sink.commit(prepared)
    finally:
        await sink.close()
    return letters


def write(sink: PostgresTable, schema: Schema, *epochs: dict[str, Any], start: int = 0) -> list[Any]:
    return run_async(written(sink, schema, epochs, start)).found


@pytest.mark.parametrize(
    ("before", "alter", "value"),
    [
        ("k text, ts int", "alter column ts type bigint", 1 << 40),
        ("k text, ts bigint", "alter column ts type int", 7),
        ("k text, ts int", "alter column ts type numeric", 1 << 40),
        ("k varchar(1), ts int", "alter column k type text", 3),
        ("k text, old int, ts int", "drop column old", 3),
    ],
)
def test_rows_fit_a_table_that_was_altered(dsn: str, before: str, alter: str, value: int) -> None:
    """Also with rows of an epoch beside it that a checkpoint has."""
    do(dsn, "drop table if exists altered, oop_staged_altered", f"create table altered ({before})")

    async def main() -> None:
        sink = PostgresTable(dsn, "altered")
        await sink.open(SCHEMA, alter, [])
        await sink.write(0, Page.of(SCHEMA, {"ts": [1], "k": ["a"]}))
        prepared = await sink.prepare(0)
        await sink.close()
        do(dsn, f"alter table altered {alter}")
        await sink.open(SCHEMA, alter, [prepared])
        await sink.commit(prepared)
        await sink.write(1, Page.of(SCHEMA, {"ts": [value], "k": ["bc"]}))
        await sink.commit(await sink.prepare(1))
        await sink.close()

    run_async(main())
    assert do(dsn, "select ts, k from altered order by k") == [(1, "a"), (value, "bc")]


def test_rows_fit_a_table_that_is_altered_while_a_service_runs(dsn: str) -> None:
    do(dsn, "create table widened (ts int, k text)")

    async def main() -> None:
        sink = PostgresTable(dsn, "widened")
        sink.refused = letters = Letters()  # type: ignore[assignment]
        await sink.open(SCHEMA, "run", [])
        do(dsn, "alter table widened alter column ts type bigint")
        await sink.write(0, Page.of(SCHEMA, {"ts": [1, 1 << 40], "k": ["a", "b"]}))
        await sink.commit(await sink.prepare(0))
        await sink.close()
        assert letters.found == []

    run_async(main())
    assert do(dsn, "select ts from widened order by 1") == [(1,), (1 << 40,)]


def test_a_column_that_results_have_from_now_on(dsn: str) -> None:
    do(dsn, "create table grown (ts int, k text)")
    write(PostgresTable(dsn, "grown"), SCHEMA, {"ts": [1], "k": ["a"]})
    do(dsn, "alter table grown add column n numeric(10, 2)")
    more = Schema({"ts": pa.int64(), "k": pa.string(), "n": pa.float64()}, "ts", "s")
    write(PostgresTable(dsn, "grown"), more, {"ts": [2], "k": ["b"], "n": [0.5]}, start=1)
    assert do(dsn, "select * from grown order by 1") == [(1, "a", None), (2, "b", Decimal("0.50"))]
    do(dsn, "alter table grown drop column k")
    with pytest.raises(SetupError, match='column "k" does not exist: give the address'):
        write(PostgresTable(dsn, "grown"), more)


LONG = "ä" * 30


@pytest.mark.parametrize(
    ("first", "second"),
    [("east.same", "west.same"), ("a" * 61 + "1", "a" * 61 + "2"), (LONG + "1", LONG + "2")],
)
def test_tables_of_names_that_are_alike_do_not_meet(dsn: str, first: str, second: str) -> None:
    do(dsn, "create schema if not exists east", "create schema if not exists west")
    do(dsn, f"create table {first} (ts int, k text)", f"create table {second} (ts int, name text)")
    named = Schema({"ts": pa.int64(), "name": pa.string()}, "ts", "s")
    write(PostgresTable(dsn, first), SCHEMA, {"ts": [1], "k": ["a"]})
    write(PostgresTable(dsn, second), named, {"ts": [2], "name": ["b"]})
    write(PostgresTable(dsn, first), SCHEMA, {"ts": [3], "k": ["c"]}, start=1)
    assert do(dsn, f"select * from {first} order by 1") == [(1, "a"), (3, "c")]
    assert do(dsn, f"select * from {second}") == [(2, "b")]


@pytest.mark.parametrize("name", ["cpu_%", "a%s", "100%(x)s", "%%", 'q"{0}', "ä b"])
@pytest.mark.parametrize("key", [False, True])
def test_names_of_any_signs(dsn: str, name: str, key: bool) -> None:
    sign = name.replace('"', '""')
    do(dsn, f'drop table if exists "{sign}", "oop_staged_{sign}"')
    do(dsn, f'create table "{sign}" ("{sign}" text unique, ts int)')
    schema = Schema({"ts": pa.int64(), name: pa.string()}, "ts", "s")
    write(PostgresTable(dsn, name, (name,) if key else ()), schema, {"ts": [1], name: ["a"]})
    assert do(dsn, f'select ts from "{sign}"') == [(1,)]


MOMENTS = {
    pa.timestamp("s"): [253_402_300_800, -62_135_596_801, 9_000_000_000_000, 0, None],
    pa.timestamp("us", "Europe/Berlin"): [253_402_300_800_000_001, -1, None],
    pa.timestamp("ns", "UTC"): [1_000, -1_000, None],
    pa.date32(): [2_932_897, -719_529, 10**7, None],
    pa.date64(): [253_402_300_800_000, 0, None],
    pa.time64("us"): [1, None],
    pa.time64("ns"): [1_000, None],
    pa.duration("s"): [10**9, -1, None],
    pa.duration("ns"): [1_000, None],
}
WANTED = {
    "timestamp[s]": ["10000-01-01 00:00:00", "0001-12-31 23:59:59 BC", "287168-08-24 16:00:00",
                     "1970-01-01 00:00:00", None],
    "timestamp[us, tz=Europe/Berlin]": ["10000-01-01 00:00:00.000001+00", "1969-12-31 23:59:59.999999+00", None],
    "timestamp[ns, tz=UTC]": ["1970-01-01 00:00:00.000001+00", "1969-12-31 23:59:59.999999+00", None],
    "date32[day]": ["10000-01-01", "0002-12-31 BC", "29349-01-26", None],
    "date64[ms]": ["10000-01-01", "1970-01-01", None],
    "time64[us]": ["00:00:00.000001", None],
    "time64[ns]": ["00:00:00.000001", None],
    "duration[s]": ["277777:46:40", "-00:00:01", None],
    "duration[ns]": ["00:00:00.000001", None],
}  # fmt: skip
TYPES = {"date": "date", "time": "time", "dura": "interval"}


@pytest.mark.parametrize("kind", MOMENTS, ids=str)
def test_moments_are_in_the_table_exactly(dsn: str, kind: pa.DataType) -> None:
    target = TYPES.get(str(kind)[:4], "timestamptz" if getattr(kind, "tz", None) else "timestamp")
    target = "timestamptz" if str(kind).startswith("timestamp") and kind.tz else target
    target = "timestamp" if str(kind) == "timestamp[s]" else target
    do(dsn, "drop table if exists moments, oop_staged_moments")
    do(dsn, f"create table moments (ts int, v {target}, many {target}[])")
    column = pa.array(MOMENTS[kind], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    schema = Schema({"ts": pa.int64(), "v": kind, "many": pa.list_(kind)}, "ts", "s")
    offsets = pa.array([0, *[len(column)] * len(column)], pa.int32())
    rows = {"ts": [*range(len(column))], "v": column, "many": pa.ListArray.from_arrays(offsets, column)}
    assert write(PostgresTable(dsn, "moments"), schema, rows) == []
    forms = "?options=-ctimezone%3DUTC%20-cdatestyle%3DISO"
    wanted = WANTED[str(kind)]
    assert [row for (row,) in do(dsn + forms, "select v::text from moments order by ts")] == wanted
    assert do(dsn + forms, "select many::text[] from moments order by ts")[0] == (wanted,)


def test_moments_of_a_zone(dsn: str) -> None:
    """Their clock time where the column has no zone, the instant elsewhere, also of offsets with seconds."""
    do(dsn, "create table zoned (ts bigint, v timestamp, w timestamptz)")
    kind = pa.timestamp("s", "Europe/Amsterdam")
    times = pa.array([1_700_000_000, -2_524_521_600, 2**40], pa.int64()).cast(kind)
    schema = Schema({"ts": pa.int64(), "v": kind, "w": kind}, "ts", "s")
    assert write(PostgresTable(dsn, "zoned"), schema, {"ts": [1, 2, 3], "v": times, "w": times}) == []
    found = do(dsn, "select v::text, extract(epoch from w)::bigint from zoned order by ts")
    assert found[0] == ("2023-11-14 23:13:20", 1_700_000_000)
    assert [instant for _, instant in found] == [1_700_000_000, -2_524_521_600, 2**40]


def test_nanoseconds_are_refused_where_the_server_would_round_them(dsn: str) -> None:
    kind = pa.timestamp("ns")
    schema = Schema({"ts": pa.int64(), "v": kind, "d": pa.duration("ns"), "k": kind}, "ts", "s")
    do(dsn, "create table fine (ts int, v timestamp, d interval, k text)")
    found = write(PostgresTable(dsn, "fine"), schema, {"ts": [1, 2, 3], "v": pa.array([0, 1, 0]).cast(kind),
        "d": pa.array([0, 0, 1]).cast(pa.duration("ns")), "k": pa.array([7, 7, 7]).cast(kind)})  # fmt: skip
    assert [(reason, row["ts"]) for reason, row in found] == [
        ("1970-01-01 00:00:00.000000001 has nanoseconds, and the column microseconds", 2),
        ("0.001 microseconds has nanoseconds, and the column microseconds", 3),
    ]
    assert do(dsn, "select ts, k from fine") == [(1, "1970-01-01 00:00:00.000000007")]


def test_values_of_all_kinds(dsn: str) -> None:
    do(
        dsn,
        "create table kinds (ts int, f float8, h float4, b bytea, s jsonb, m text, l int[], j json, d text)",
    )
    schema = Schema(
        {
            "ts": pa.int64(), "f": pa.float64(), "h": pa.float16(), "b": pa.binary(),
            "s": pa.struct({"x": pa.int64()}), "m": pa.map_(pa.string(), pa.int64()), "l": pa.list_(pa.int32()),
            "j": pa.list_(pa.int64()), "d": pa.dictionary(pa.int32(), pa.string()),
        }, "ts", "s",
    )  # fmt: skip
    rows = {
        "ts": [1, 2], "f": [float("nan"), float("-inf")], "h": pa.array([0.5, None], pa.float32()).cast(pa.float16()),
        "b": [b"\0\xff", None], "s": [{"x": 1}, None], "m": [[("a", 1)], None], "l": [[1, None], []],
        "j": [[1, 2], None], "d": pa.array(["a", None]).dictionary_encode(),
    }  # fmt: skip
    assert write(PostgresTable(dsn, "kinds"), schema, rows) == []
    first, second = do(dsn, "select f::text, h, b, s, m, l, j, d from kinds order by ts")
    assert first == ("NaN", 0.5, b"\0\xff", {"x": 1}, '[["a", 1]]', [1, None], [1, 2], "a")
    assert second == ("-Infinity", None, None, None, None, [], None, None)


REFUSALS: dict[str, tuple[str, dict[str, Any], str, list[int]]] = {
    "zero": ("ts bigint, k text", {"ts": [1, 2, 3], "k": ["a", "b\0", "c"]}, "NUL", [2]),
    "range": ("ts int, k text", {"ts": [1, 1 << 40, 3], "k": ["a"] * 3}, "is out of range for type integer (column ts)",
              [1 << 40]),
    "length": ("ts int, k varchar(2)", {"ts": [1, 2, 3], "k": ["a", "abc", "c"]}, "too long", [2]),
    "null": ("ts int, k text not null", {"ts": [1, 2, 3], "k": ["a", None, "c"]}, "violates not-null", [2]),
    "check": ("ts int check (ts <> 2), k text", {"ts": [1, 2, 3], "k": ["a"] * 3}, "violates check", [2]),
    "unique": ("ts int, k text unique", {"ts": [1, 2, 3], "k": ["a", "a", "c"]}, "violates unique", [2]),
    "deferred": ("ts int, k text unique deferrable initially deferred", {"ts": [1, 2, 3], "k": ["a", "a", "c"]},
                 "violates unique", [2]),
    "many": ("ts int check (ts % 3 <> 0), k text", {"ts": [*range(1, 41)], "k": ["a"] * 40}, "violates check",
             [*range(3, 41, 3)]),
    "unwritten": ("ts bigint, k text", {"ts": [2], "k": ["b\0"]}, "NUL", [2]),
    "alone": ("ts int check (ts <> 2), k text", {"ts": [2], "k": ["a"]}, "violates check", [2]),
}  # fmt: skip


RAISES = "create trigger t before insert on {0} for each row execute function {0}()"
TRIGGERS = {
    "own code": "if new.ts = 2 then raise exception 'no twos' using errcode = 'U0001'; end if;",
    "assertion": "assert new.ts <> 2, 'no twos';",
    "strict": "select 1 into strict found where new.ts <> 2;",
    "subquery": "found := (select g from generate_series(1, 2) g limit case when new.ts = 2 then 2 else 1 end);",
}


@pytest.mark.parametrize("kind", TRIGGERS)
def test_a_row_that_a_trigger_refuses_in_its_own_way_is_a_dead_letter(dsn: str, kind: str) -> None:
    name = f"trigger_{kind.replace(' ', '')}"
    body = f"declare found int; begin {TRIGGERS[kind]} return new; end"
    function = f"create function {name}() returns trigger language plpgsql as $$ {body} $$"
    do(dsn, f"create table {name} (ts int, k text)", function, RAISES.format(name))
    found = write(PostgresTable(dsn, name), SCHEMA, {"ts": [1, 2, 3], "k": ["a", "b", "c"]})
    assert [row["ts"] for _, row in found] == [2]
    assert do(dsn, f"select ts from {name} order by 1") == [(1,), (3,)]


def test_a_row_that_a_policy_refuses_is_a_dead_letter_and_a_missing_right_is_not(dsn: str) -> None:
    do(
        dsn,
        "create table guarded_rows (ts int, k text)",
        "alter table guarded_rows enable row level security",
    )
    do(
        dsn,
        "create policy p on guarded_rows using (true) with check (ts <> 2)",
        "create role of_policy login",
    )
    do(dsn, "grant all on schema public to of_policy")
    at = dsn.replace("me@", "of_policy@")
    do(dsn, "grant select on guarded_rows to of_policy")
    write(PostgresTable(dsn, "guarded_rows"), SCHEMA)  # makes what is beside it
    do(dsn, "grant all on oop_staged_guarded_rows, oop_epochs to of_policy")
    with pytest.raises(SetupError, match="permission denied for table guarded_rows"):
        write(PostgresTable(at, "guarded_rows"), SCHEMA)
    do(dsn, "grant all on guarded_rows to of_policy")
    found = write(PostgresTable(at, "guarded_rows"), SCHEMA, {"ts": [1, 2, 3], "k": ["a", "b", "c"]})
    assert [(row["ts"], "row-level security" in reason) for reason, row in found] == [(2, True)]
    assert do(dsn, "select ts from guarded_rows order by 1") == [(1,), (3,)]


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_row_that_the_server_refuses_is_a_dead_letter(dsn: str, kind: str) -> None:
    columns, rows, words, wanted = REFUSALS[kind]
    do(dsn, "drop table if exists refusing, oop_staged_refusing", f"create table refusing ({columns})")
    found = write(PostgresTable(dsn, "refusing"), SCHEMA, rows)
    assert [row["ts"] for _, row in found] == wanted
    assert all(words in reason for reason, _ in found), found
    there = [ts for (ts,) in do(dsn, "select ts from refusing order by 1")]
    assert there == sorted({*rows["ts"]} - {*wanted})
    assert do(dsn, "select count(*) from oop_staged_refusing") == [(0,)]


def test_a_row_that_a_trigger_or_a_view_refuses_is_a_dead_letter(dsn: str) -> None:
    raises = "begin if new.ts = 2 then raise exception 'no two'; end if; return new; end"
    do(dsn, f"create function no_two() returns trigger language plpgsql as $$ {raises} $$")
    do(dsn, "create table guarded (ts int, k text)", "create table viewed (ts int, k text)")
    do(dsn, "create trigger guards before insert on guarded for each row execute function no_two()")
    do(dsn, "create view few as select * from viewed where ts <> 2 with check option")
    rows = {"ts": [1, 2, 3], "k": ["a"] * 3}
    for table, words in (("guarded", "no two"), ("few", "violates check option")):
        found = write(PostgresTable(dsn, table), SCHEMA, rows)
        assert [(row["ts"], words in reason) for reason, row in found] == [(2, True)]
        assert do(dsn, f"select ts from {table} order by 1") == [(1,), (3,)]


@pytest.mark.parametrize("revised", [False, True])
def test_a_row_of_a_key_that_the_server_refuses(dsn: str, revised: bool) -> None:
    do(dsn, "drop table if exists keyed, oop_staged_keyed")
    do(dsn, "create table keyed (k text primary key, ts int check (ts < 100))")
    fields = {"ts": pa.int64(), "k": pa.string(), **({"change": pa.int8()} if revised else {})}
    schema = Schema(fields, "ts", "s", change="change" if revised else None)
    rows: dict[str, Any] = {"ts": [1, 2, 300, 4], "k": ["a", "b", "b", "c"]}
    rows |= {"change": [1, 1, 1, 1]} if revised else {}
    found = write(PostgresTable(dsn, "keyed", "k"), schema, rows)
    assert [(row["ts"], row["k"]) for _, row in found] == [(300, "b")]
    assert do(dsn, "select k, ts from keyed order by 1") == [("a", 1), ("b", 2), ("c", 4)]


@pytest.mark.parametrize("columns", ["ts int check (ts < 0), k text", "ts bigint, k int"])
def test_a_table_that_refuses_all_rows_ends_the_service(dsn: str, columns: str) -> None:
    do(dsn, "drop table if exists closed, oop_staged_closed", f"create table closed ({columns})")
    with pytest.raises(SetupError, match="fix that, and restart the service") as told:
        write(PostgresTable(dsn, "closed"), SCHEMA, {"ts": [1, 2], "k": ["a", "b"]})
    assert not isinstance(told.value, UnreachableError)


def test_a_table_that_refuses_the_rows_of_small_epochs_ends_the_service(dsn: str) -> None:
    """One row an epoch: the first ones are dead letters, until it is clear that none fits."""
    do(dsn, "create table small_epochs (ts int, k int)")
    sink = PostgresTable(dsn, "small_epochs")
    with pytest.raises(SetupError, match=r"invalid input .*: fix that, and restart the service"):
        write(sink, SCHEMA, *({"ts": [ts], "k": ["a"]} for ts in range(20)))
    assert len(sink.refused.found) == 9  # type: ignore[union-attr]
    some = [{"ts": [ts], "k": ["1" if ts % 20 == 0 else "a"]} for ts in range(60)]
    assert len(write(PostgresTable(dsn, "small_epochs"), SCHEMA, *some)) == 57
    do(dsn, "alter table small_epochs add check (ts < 60)")
    late = PostgresTable(dsn, "small_epochs")
    with pytest.raises(SetupError, match="violates check"):
        write(late, SCHEMA, *({"ts": [ts], "k": ["1"]} for ts in range(59, 200)))
    assert len(late.refused.found) == 99  # type: ignore[union-attr]


def test_rows_that_are_refused_in_a_row_are_counted_over_epochs() -> None:
    row = [ValueError("a row")]
    counted = RefusedInARow()
    for _ in range(9):
        counted.end_epoch(row, 0)
    with pytest.raises(ValueError, match="a row"):
        counted.end_epoch(row, 0)
    counted.end_epoch([], 1)
    for _ in range(99):
        counted.end_epoch(row, 0)
    counted.end_epoch(row, 1)
    assert counted.most == 100
    with pytest.raises(ValueError, match="a row"):
        RefusedInARow().end_epoch(row * 2, 0)


def test_refused_rows_are_written_by_another_service_once_the_table_is_mended(
    dsn: str, tmp_path: Any
) -> None:
    """With the values that they had, refused beside the table or by it."""
    fields = {
        "ts": pa.int64(), "at": pa.timestamp("us", "UTC"), "day": pa.date32(), "x": pa.float64(), "ok": pa.bool_(),
        "price": pa.decimal128(10, 2), "text": pa.string(), "parts": pa.list_(pa.int64()),
    }  # fmt: skip
    columns = "at timestamptz, day date, x float8, ok bool, price numeric(10, 2), text text, parts bigint[]"
    schema = Schema(fields, "ts", "s")
    do(dsn, f"create table mended (ts int check (ts <> 2), {columns})")
    graph, letters = Graph("g"), PartFiles(tmp_path / "dead", "jsonl")
    graph.sink("out", graph.add("edge", Punctuate(BoundedDisorder(10)), graph.source("in", schema)))
    values = ["1969-12-31T23:59:59.000001Z", "0001-02-03", "nan", True, "12.30", 'a "quoted" é', [1, None]]
    rows = [dict(zip(fields, [ts, *values], strict=True)) for ts in (1, 2, 1 << 40)]

    async def feed(start: int) -> AsyncIterator[dict[str, Any]]:
        for row in rows[start:]:
            yield row

    def life() -> Any:
        sinks = {"out": PostgresTable(dsn, "mended")}
        options: dict[str, Any] = {
            "dead_letters": letters,
            "checkpoint": tmp_path / "state",
            "after_drain": True,
        }
        return run_async(serve(graph, {"in": Replayed(feed)}, sinks, **options))

    assert sum(map(sum, (each.values() for each in life().refused.values()))) == 2
    do(dsn, "alter table mended drop constraint mended_ts_check, alter ts type bigint")
    shown = CliRunner().invoke(app, ["dead-letters", str(tmp_path / "dead"), "--sink", "out", "--retry"])
    assert shown.output.startswith("2 letters are fed again"), shown.output
    assert not any(each.values() for each in life().refused.values())
    assert not any(each.values() for each in life().refused.values())  # once
    found = do(dsn, "select row_to_json(mended) from mended order by ts")
    first, *others = [json.dumps({**row, "ts": 0}) for (row,) in found]
    assert [row["ts"] for (row,) in found] == [1, 2, 1 << 40]
    assert others == [first] * 2


def test_many_refused_rows_are_not_all_tried() -> None:
    tries = 0

    async def attempt(part: Any) -> None:
        nonlocal tries
        tries += 1
        raise ValueError(part[0])

    with pytest.raises(ValueError, match="99"):
        run_async(refused_rows(range(100_000), attempt, lambda _: True))
    assert tries < 300


def test_a_large_epoch_leaves_the_event_loop_free(dsn: str) -> None:
    do(dsn, "create table wide (ts int, k text)")

    async def main() -> int:
        turns, sink = 0, PostgresTable(dsn, "wide")
        await sink.open(SCHEMA, "run", [])
        await sink.write(0, Page.of(SCHEMA, {"ts": [*range(20_000)], "k": ["a"] * 20_000}))

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(turn())
        await sink._rows(0, sink._pages[0])
        other.cancel()
        await sink.commit(await sink.prepare(0))
        await sink.close()
        return turns

    assert run_async(main()) >= 20
    assert do(dsn, "select count(*), min(ts), max(ts) from wide") == [(20_000, 0, 19_999)]


def graph() -> Graph:
    found = Graph("g")
    found.sink("out", found.add("edge", Punctuate(BoundedDisorder(10)), found.source("in", SCHEMA)))
    return found


def test_dead_letters_of_a_sink_are_counted_and_kept(dsn: str, tmp_path: Any) -> None:
    """Those of the last commit, too."""
    do(dsn, "create table letters (ts int check (ts <> 2), k text)")
    letters = Gathered()
    rows = [{"ts": 1, "k": "a"}, {"ts": 2, "k": "b"}, {"ts": 3, "k": "c\0"}]
    served = run_async(
        serve(
            graph(), {"in": rows}, {"out": PostgresTable(dsn, "letters")}, dead_letters=letters,
            checkpoint=tmp_path / "state",
        )
    )  # fmt: skip
    assert {sum(reasons.values()) for reasons in served.refused.values()} == {2}
    assert sorted(json.loads(row["record"])["ts"] for row in letters.rows) == [2, 3]
    assert {(row["source"], row["coding"]) for row in letters.rows} == {("sink out", "json")}
    assert do(dsn, "select ts from letters") == [(1,)]


def test_a_dead_letter_that_its_own_sink_refuses_is_logged(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    do(dsn, "create table out_of_bytes (ts int, k text)")
    do(dsn, "create table dead (at timestamptz, source text, position text, reason text, record text, coding text, "
            "rows bigint, context text)")  # fmt: skip
    rows = [b'{"ts": 1, "k": "a"}\n', b'{"ts": "x\0"}\n', b'{"ts": "y"}\n']

    async def feed(start: int) -> AsyncIterator[bytes]:
        for line in rows[start:]:
            yield line

    sinks = PostgresTable(dsn, "out_of_bytes"), PostgresTable(dsn, "dead")
    run_async(serve(graph(), {"in": Replayed(feed, "jsonl")}, {"out": sinks[0]}, dead_letters=sinks[1]))
    assert do(dsn, "select record from dead") == [('{"ts": "y"}',)]
    assert any(line.startswith("sink 'dead letters': PostgreSQL text fields") for line in caplog.messages)


def test_texts_in_a_database_of_another_encoding(dsn: str) -> None:
    do(dsn, "create database small encoding 'LATIN1' template template0 locale 'C'")
    at = dsn.replace("/postgres", "/small")
    do(at, "create table texts (ts int, k text)")
    found = write(PostgresTable(at, "texts"), SCHEMA, {"ts": [1, 2, 3], "k": ["Zürich", "日本", "a"]})
    assert [row["k"] for _, row in found] == ["日本"]
    assert do(at + "?client_encoding=utf8", "select k from texts order by ts") == [("Zürich",), ("a",)]


def test_a_role_that_may_write_and_make_nothing(dsn: str) -> None:
    do(dsn, "create table lent (ts int, k text)", "create role writer login")
    at = dsn.replace("me@", "writer@")
    do(dsn, "grant all on lent to writer")
    with pytest.raises(SetupError, match="permission denied for schema public: check the name, the pass"):
        write(PostgresTable(at, "lent"), SCHEMA)
    write(PostgresTable(dsn, "lent"), SCHEMA)
    do(dsn, "revoke insert on lent from writer", "grant all on oop_staged_lent, oop_epochs to writer")
    with pytest.raises(
        SetupError, match="permission denied for table lent: check the name, the password, the r"
    ):
        write(PostgresTable(at, "lent"), SCHEMA)
    do(dsn, "grant all on lent to writer")
    do(dsn, "grant all on oop_staged_lent, oop_epochs to writer")
    write(PostgresTable(at, "lent"), SCHEMA, {"ts": [1], "k": ["a"]})
    assert do(dsn, "select ts from lent") == [(1,)]


def test_a_server_without_room_is_waited_for(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    do(dsn, "create role guest login superuser connection limit 0", "create table crowded (ts int, k text)")
    do(
        dsn,
        "alter role guest nosuperuser",
        "grant all on crowded to guest",
        "grant create on schema public to guest",
    )
    at = dsn.replace("me@", "guest@")

    async def main() -> None:
        sink = PostgresTable(at, "crowded")
        with pytest.raises(NotReadyError, match="too many connections for role"):
            await sink.open(SCHEMA, "run", [])
        do(dsn, "alter role guest connection limit 1", "grant all on oop_epochs to guest")
        await sink.open(SCHEMA, "run", [])
        monkeypatch.setattr(link, "ANSWER_S", 0.01)
        await sink._answered(asyncio.sleep(0.1))  # it has no room for a look, so it is there
        do(dsn, "alter role guest connection limit 0")
        do(dsn, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'guest'")
        monkeypatch.setattr(link, "ANSWER_S", 60.0)
        await sink.write(0, Page.of(SCHEMA, {"ts": [1], "k": ["a"]}))
        for _ in range(2):
            with pytest.raises(UnreachableError):
                await sink.prepare(0)
        do(dsn, "alter role guest connection limit 1")
        await sink.commit(await sink.prepare(0))
        await sink.close()

    run_async(main())
    assert do(dsn, "select ts from crowded") == [(1,)]


def test_no_secret_is_in_a_refusal(dsn: str) -> None:
    do(dsn, "create table kept_secret (ts int, k text)")
    sinks: list[LiveSink] = [
        PostgresTable(dsn.replace("me@", "planted-user:planted-word@"), "kept_secret"),
        PostgresTable(dsn.replace("/postgres", "/planted") + "?passfile=planted-file&user=me", "kept_secret"),
        PostgresTable("host=127.0.0.1 user=planted-user password=planted word port=1", "kept_secret"),
        PostgresTable(
            f"host=127.0.0.1 user=planted-user password=planted-word port={dsn[-14:-9]} dbname=postgres", "t"
        ),
    ]
    for number, sink in enumerate(sinks):
        with pytest.raises(SetupError) as told:
            run_async(sink.open(SCHEMA, "run", []))
        words = f"{told.value} {told.value.__cause__}"
        assert "planted" not in words.replace('"planted"', ""), (number, words)
