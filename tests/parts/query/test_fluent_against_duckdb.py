"""The fluent face over feeds of all forms, with nulls, and texts in SQL in its methods: the answers of DuckDB."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import UsageError, scan, stream
from oop_engine.query import DataStream
from tests.parts.query.duck import answers, logs, same_rows

TABLES = logs(3)
TYPES = {
    name: str(kind) for name, kind in zip(TABLES["log"].schema.names, TABLES["log"].schema.types, strict=True)
}
BOUNDS = "time_bucket(INTERVAL '60' SECOND, ts, TIMESTAMP '1970-01-01') AS w, w + INTERVAL '60' SECOND"


def generated(table: pa.Table) -> Iterator[dict[str, Any]]:
    yield from table.to_pylist()


async def awaited(table: pa.Table) -> AsyncIterator[dict[str, Any]]:
    for row in table.to_pylist():
        await asyncio.sleep(0)
        yield row


FORMS: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "rows": lambda table: table.to_pylist(),
    "columns": lambda table: table.to_pydict(),
    "batches": lambda table: table.to_batches(7),
    "generator": generated,
    "asynchronous": awaited,
}

Query = Callable[[DataStream, DataStream], DataStream]
QUERIES: list[tuple[Query, str]] = [
    (
        lambda log, _: log.filter("NOT (host = 'a') OR kind NOT IN (1, 3)").select("id", "host"),
        "SELECT ts, id, host FROM log WHERE NOT (host = 'a') OR kind NOT IN (1, 3)",
    ),
    (
        lambda log, _: log.select("id", a="coalesce(bytes, -1) * 2", b="CASE WHEN ok THEN x END", c="price % 2"),
        "SELECT ts, id, coalesce(bytes, -1) * 2, CASE WHEN ok THEN x END, price % 2 FROM log",
    ),
    (
        lambda log, _: log.with_columns(host="coalesce(host, '?')").group_by("host").window("1 min").agg(n="count(*)"),
        f"SELECT coalesce(host, '?') AS h, {BOUNDS}, count(*) FROM log GROUP BY ALL",
    ),
    (
        lambda log, _: log.group_by("kind").window("1 min").agg(
            s="sum(bytes * 2)", c="count(DISTINCT host)", f="sum(x) FILTER (WHERE ok)", m="max(upper(host))"
        ),
        f"SELECT kind, {BOUNDS}, sum(bytes * 2), count(DISTINCT host), sum(x) FILTER (WHERE ok), max(upper(host))"
        " FROM log GROUP BY ALL",
    ),
    (
        lambda log, _: log.agg(n="count(*)", s="sum(bytes)"),
        "SELECT min(ts), max(ts) + INTERVAL '1' MICROSECOND, count(*), sum(bytes) FROM log",
    ),
    (
        lambda log, other: log.join(other, on=["host", "kind"], within=("0 s", "15 s"), how="full")
        .select("id", "id_right"),
        "SELECT coalesce(a.ts, b.ts), a.id, b.id FROM log a FULL JOIN other b ON a.host = b.host AND a.kind = b.kind"
        " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '15' SECOND",
    ),
    (
        lambda log, other: log.join(other, on="kind", within=("0 s", "3 s"), how="anti").select("id"),
        "SELECT ts, id FROM log a WHERE NOT EXISTS (SELECT 1 FROM other b WHERE a.kind = b.kind"
        " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '3' SECOND)",
    ),
    (
        lambda log, other: log.join(other, on="host", within="10 s", where="bytes > bytes_right")
        .select("id", "id_right"),
        "SELECT a.ts, a.id, b.id FROM log a JOIN other b ON a.host = b.host AND a.bytes > b.bytes"
        " AND b.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND",
    ),
    (
        lambda log, other: log.join_asof(other, on="host", within="10 s", how="left")
        .select("id", "ts_right").distinct(),
        "SELECT DISTINCT a.ts, a.id, CASE WHEN b.ts >= a.ts - INTERVAL '10' SECOND THEN b.ts END"
        " FROM log a ASOF LEFT JOIN other b ON a.host = b.host AND a.ts >= b.ts",
    ),
    (
        lambda log, other: log.select("id", "host").union(other.select("id", "host")).filter("host IS NULL"),
        "SELECT ts, id, host FROM log WHERE host IS NULL UNION ALL SELECT ts, id, host FROM other WHERE host IS NULL",
    ),
    (
        lambda log, _: log.filter("host LIKE lower(host) || '%' AND (host, kind) IN (('a', 1), ('b', 2))").select(
            "id", a="md5(host)", b="make_date(2026, 1, id % 20 + 1)", c="strptime('5.1.2026 ' || kind, '%d.%m.%Y %H')"
        ),
        "SELECT ts, id, md5(host), make_date(2026, 1, id % 20 + 1), strptime('5.1.2026 ' || kind, '%d.%m.%Y %H')"
        " FROM log WHERE (host, kind) IN (('a', 1), ('b', 2))",
    ),
    (
        lambda log, _: log.group_by("kind").window("1 min").agg(
            a="first(id ORDER BY ts, id)", b="count(DISTINCT (host, ok))", c="arg_max(id, id)"
        ),
        f"SELECT kind, {BOUNDS}, first(id ORDER BY ts, id), count(DISTINCT (host, ok)), arg_max(id, id)"
        " FROM log GROUP BY ALL",
    ),
    (
        lambda log, _: log.group_by("kind").window("1 min").agg(
            a="string_agg(host, '-' ORDER BY ts, host)", n="count(*)", b="listagg(upper(host || id), '')",
            c="string_agg(host, NULL)", d="string_agg(host ORDER BY ts, host) FILTER (WHERE ok)", e="median(x)"
        ).filter("length(a) > 1 OR a IS NULL"),
        f"SELECT kind, {BOUNDS}, string_agg(host, '-' ORDER BY ts, host) AS a, count(*),"
        " string_agg(upper(host || id), '' ORDER BY ts, upper(host || id)), NULL,"
        " string_agg(host, ',' ORDER BY ts, host) FILTER (WHERE ok), median(x)"
        " FROM log GROUP BY ALL HAVING length(a) > 1 OR a IS NULL",
    ),
]  # fmt: skip


@pytest.mark.slow(keep=30)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("at", range(len(QUERIES)))
def test_a_query_over_feeds_of_a_form_has_the_answers_of_duckdb(form: str, at: int) -> None:
    query, theirs = QUERIES[at]
    log, other = (stream(name, TYPES).event_time("ts", "10 min") for name in ("log", "other"))
    made = query(log, other)
    feeds = {name: FORMS[form](table) for name, table in TABLES.items() if name in made.graph.nodes}
    assert same_rows(made.run(**feeds).table, answers(theirs, TABLES))


def test_an_asynchronous_feed_inside_an_event_loop_names_the_method_for_it() -> None:
    log = stream("log", TYPES).event_time("ts", "10 min")

    async def inside() -> None:
        log.run(awaited(TABLES["log"]))

    with pytest.raises(UsageError, match=r"async for row in query\.rows"):
        asyncio.run(inside())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sum(bytes) * 2", "one aggregate is wanted"),
        ("bytes", "one aggregate is wanted"),
        ("sum(byte)", "did you mean bytes"),
        ("summ(bytes)", "one aggregate is wanted"),
    ],
)
def test_a_text_that_is_no_aggregate_is_refused(text: str, words: str) -> None:
    log = scan(TABLES["log"], "log").event_time("ts", "10 min")
    with pytest.raises(UsageError, match=words):
        log.group_by("host").agg(n=text)
