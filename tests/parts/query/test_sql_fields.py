"""Fields of structs in SQL and in texts of methods: the rows of DuckDB, and mistakes at their place."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import UsageError, scan, sql
from oop_engine.operators import Count
from tests.parts.query.duck import START, answers, same_rows

CTX = pa.struct(
    {"user": pa.string(), "ms": pa.float64(), "at": pa.struct({"City": pa.string(), "n": pa.int32()})}
)


def _struct(of: random.Random) -> Any:
    at = {"City": of.choice(["x", "y", None]), "n": of.choice([1, 2, None])}
    return {
        "user": of.choice(["a", "b", None]),
        "ms": of.choice([0.5, 3.0, None]),
        "at": of.choice([at, None]),
    }


def _log(seed: int, rows: int = 40) -> pa.Table:
    of = random.Random(seed)
    columns = {
        "ts": pa.array(
            [START + dt.timedelta(seconds=of.randint(0, 60)) for _ in range(rows)], pa.timestamp("us")
        ),
        "host": pa.array([of.choice("ab") for _ in range(rows)]),
        "ctx": pa.array([of.choice([_struct(of), _struct(of), None]) for _ in range(rows)], CTX),
        "tags": pa.array(
            [of.choice([[], ["a"], ["a", None], None]) for _ in range(rows)], pa.list_(pa.string())
        ),
    }
    return pa.table(columns)


TABLES = {"log": _log(1), "other": _log(2)}
STREAMS = {name: scan(table, name).event_time("ts", "10 min") for name, table in TABLES.items()}
QUERIES = [
    "SELECT ctx.user, ctx.ms FROM log",
    "SELECT log.ctx.user AS u, ctx.at.city, CTX.AT.n + 1 AS n FROM log",
    "SELECT ctx['user'] AS u, ctx.at['n'] AS n, struct_extract(ctx, 'ms') AS ms FROM log",
    "SELECT upper(ctx.user) AS u FROM log WHERE ctx.ms > 1 AND ctx.at.n IS NOT NULL",
    "SELECT ctx.user, count(*) AS n, sum(ctx.ms) AS ms, max(ctx.at.n) AS most FROM log GROUP BY ctx.user",
    "SELECT ctx.user AS u, count(*) AS n FROM log GROUP BY ALL HAVING max(ctx.ms) > 1",
    "SELECT host, sum(ctx.ms) FILTER (WHERE ctx.user = 'a') AS ms FROM log GROUP BY host",
    "SELECT x.user, n FROM (SELECT ts, ctx AS x, ctx.at.n AS n FROM log)",
    "WITH c AS (SELECT ts, ctx.user AS u FROM log) SELECT u, count(*) AS n FROM c GROUP BY u",
    "SELECT a.host, b.ctx.ms AS ms FROM log a JOIN other b ON a.ctx.user = b.ctx.user AND "
    "b.ts BETWEEN a.ts AND a.ts + INTERVAL '9 s'",
    "SELECT a.host FROM log a JOIN other b ON a.host = b.host AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '9 s' "
    "WHERE a.ctx.user = b.ctx.user AND a.ctx.ms > 1",
    "SELECT host, ctx.ms AS ms, max(ctx.ms) OVER (PARTITION BY ctx.user) AS most FROM log",
    "SELECT len(tags) AS n, array_length(tags) AS m FROM log WHERE len(tags) > 0",
    "SELECT len(tags) AS n, count(*) AS m, max(len(ctx.user)) AS l FROM log GROUP BY n",
    "SELECT host FROM log WHERE ctx.user IN (SELECT o.ctx.user FROM other o)",
    "SELECT host FROM log WHERE ctx.ms > (SELECT min(ctx.ms) FROM other)",
    "SELECT host FROM log e WHERE EXISTS (SELECT 1 FROM other o WHERE o.host = e.host AND o.ctx.user = e.ctx.user)",
    "SELECT host FROM log e WHERE NOT EXISTS (SELECT 1 FROM other o WHERE o.ctx.user = e.ctx.user)",
    "SELECT host, (SELECT max(o.ctx.ms) FROM other o WHERE o.ctx.user = e.ctx.user) AS m FROM log e",
    "SELECT e.host FROM log e JOIN (SELECT ts, host, ctx.user AS user FROM other) ctx ON e.host = ctx.host AND "
    "ctx.user = 'a' AND ctx.ts BETWEEN e.ts AND e.ts + INTERVAL '9 s'",
    "SELECT ctx.user, ctx.ms FROM log ORDER BY ctx.ms NULLS LAST, ctx.user NULLS LAST LIMIT 5",
    "SELECT DISTINCT ctx.user, upper(host) AS h FROM log ORDER BY ctx.user NULLS FIRST, upper(host)",
    "SELECT ctx.user AS u FROM log UNION ALL SELECT ctx.at.city AS u FROM other",
]


@pytest.mark.parametrize("text", QUERIES)
def test_fields_are_those_of_duckdb(text: str) -> None:
    found = sql(text, **STREAMS).run().table
    shown = [name for name in found.column_names if name != "ts" or "ts" in text.split("FROM")[0]]
    assert same_rows(found.select(shown), answers(text, TABLES))


def test_a_field_has_its_name_and_its_type() -> None:
    found = sql("SELECT ctx.user, ctx.at.city, ctx.ms AS m FROM log", **STREAMS).run().table
    assert {"user": pa.string(), "city": pa.string(), "m": pa.float64()}.items() <= dict(
        zip(found.column_names, found.schema.types, strict=True)
    ).items()


def test_a_table_declares_structs_lists_and_maps() -> None:
    text = """
        CREATE TABLE log (
            ts TIMESTAMP, ctx STRUCT("user" VARCHAR, at STRUCT(n INT)), tags VARCHAR[], m MAP(VARCHAR, INT),
            WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
        );
        SELECT ctx.user, ctx.at.n, len(tags) AS l, m FROM log
    """
    rows = [{"ts": START, "ctx": {"user": "a", "at": {"n": 3}}, "tags": ["x"], "m": {"k": 1}}, {"ts": START}]
    found = sql(text).run(rows).table.to_pylist()
    assert found == [
        {"user": "a", "n": 3, "l": 1, "m": [("k", 1)]},
        {"user": None, "n": None, "l": None, "m": None},
    ]


def test_methods_read_fields() -> None:
    log = STREAMS["log"]
    ours = log.filter("ctx.ms > 1").select(u="ctx.user").run().table.select(["u"])
    assert same_rows(ours, answers("SELECT ctx.user FROM log WHERE ctx.ms > 1", TABLES))
    of_users = log.with_columns(u="ctx['user']").group_by("u").agg(n=Count(), ms="sum(ctx.ms)").run().table
    theirs = answers("SELECT ctx.user, count(*), sum(ctx.ms) FROM log GROUP BY ctx.user", TABLES)
    assert same_rows(of_users.select(["u", "n", "ms"]), theirs)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "SELECT ctx.usr FROM log",
            "column 12: no field 'usr' in 'ctx'; there are user, ms, at; did you mean user?",
        ),
        ("SELECT log.ctx.at.town FROM log", "no field 'town' in 'log.ctx.at'; there are City, n"),
        ("SELECT ctx.user.x FROM log", "no field 'x' in 'ctx.user'; it is string"),
        ("SELECT host.x FROM log", "no field 'x' in 'host'; it is string"),
        ("SELECT struct_extract(host, 'x') FROM log", "no field 'x' in host; it is string"),
        ("SELECT lgo.host FROM log", "no table 'lgo'; there are log; did you mean log?"),
        ("SELECT ctx[1] FROM log", "is not supported"),
        (
            "CREATE TABLE t (ts TIMESTAMP, s STRUCT(a INT, a INT)); SELECT ts FROM t",
            "no type 'STRUCT(a INT, a",
        ),
        ("CREATE TABLE t (ts TIMESTAMP, s POINT[]); SELECT ts FROM t", "no type"),
    ],
)
def test_a_mistake_names_what_is_there(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        sql(text, **STREAMS)
    assert words in str(caught.value)
