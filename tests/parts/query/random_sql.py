"""Random queries, as our SQL and as that of DuckDB: projections, filters, groups, windows, joins, ranks, nulls.

``make queries COUNT=5000`` tries many: it prints queries that differ, and damaged texts whose error has no place.
Drawn are TUMBLE, HOP, CUMULATE and SESSION, with offsets, time_bucket, date_trunc; joins with bands, keys, USING, three
sides, as-of; semi and anti joins, IN, EXISTS and values of subqueries; HAVING, DISTINCT, FILTER, QUALIFY and ranks,
RANGE and ROWS frames, lag and lead; UNION, WITH, LIMIT; aggregates over no records.  Not drawn: text and date functions
beside some, CQL's brackets, EMIT EARLY, Flink's and Arroyo's writing of windows; those have lists of their own.
"""

from __future__ import annotations

import logging
import random
import string
import sys
from dataclasses import dataclass

from oop_engine import EngineError, UsageError, sql
from oop_engine.query import DataStream
from tests.parts.query.duck import answers, logs, same_rows, streams

__all__ = ["Query", "breaks", "changes_differ", "damaged", "differs", "mistake_of", "query"]

_NUMBERS = ("bytes", "x", "kind", "id")
_WIDTHS = (5, 10, 30, 60)


@dataclass(frozen=True)
class Query:
    """A query for us, and the same for DuckDB."""

    ours: str
    theirs: str


class _Texts:
    """Random parts of a text; ``table`` stands before columns."""

    def __init__(self, of: random.Random, table: str = "") -> None:
        self._of, self._table = of, table

    def column(self, *names: str) -> str:
        return f"{self._table}{self._of.choice(names)}"

    def number(self, deep: int = 2) -> str:
        of = self._of
        if not deep or of.random() < 0.4:
            return of.choice(
                [self.column(*_NUMBERS), self.column(*_NUMBERS), str(of.randint(-3, 9)), "1.5", "NULL"]
            )
        a, b = self.number(deep - 1), self.number(deep - 1)
        return of.choice([
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"coalesce({a}, {b})", f"abs({self.column('bytes', 'x')})",
            f"CASE WHEN {self.predicate(0)} THEN {a} ELSE {b} END", f"nullif({self.column('bytes')}, 3)",
            f"greatest({self.column('bytes')}, {of.randint(0, 9)})", f"length({self.text(0)})",
            f"-{self.column('bytes')}",
            f"extract(minute FROM {self._table}ts)", self.column("price"), f"extract(month FROM {self._table}day)",
            f"CAST({self.column('price')} AS DOUBLE)", f"CAST({self.column('x')} AS BIGINT)",
            f"{self.column('price')} + {self.column('bytes')}",
        ])  # fmt: skip

    def text(self, deep: int = 1) -> str:
        of = self._of
        if not deep:
            return self.column("host")
        return of.choice([
            self.column("host"), f"upper({self.column('host')})", f"{self.column('host')} || 'x'",
            f"coalesce({self.column('host')}, 'none')", f"CASE WHEN {self.predicate(0)} THEN 'yes' END",
        ])  # fmt: skip

    def predicate(self, deep: int = 2) -> str:
        of = self._of
        if deep and of.random() < 0.5:
            a, b = self.predicate(deep - 1), self.predicate(deep - 1)
            return of.choice([f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})"])
        sign = of.choice(["<", "<=", "=", "<>", ">", ">="])
        return of.choice([
            f"{self.column(*_NUMBERS)} {sign} {of.randint(-3, 9)}", f"{self.column('host')} {sign} 'b'",
            f"{self.column('host')} IS {of.choice(['', 'NOT '])}NULL", self.column("ok"),
            f"{self.column('bytes')} BETWEEN 0 AND {of.randint(3, 12)}", f"{self.column('host')} IN ('a', 'c')",
            f"{self.column('price')} {sign} {of.choice(['1.25', '3', 'x', 'bytes']) if not self._table else '2'}",
            f"{self._table}day {sign} DATE '2026-01-01'", f"CAST({self._table}ts AS DATE) = {self._table}day",
            f"{self.column('kind')} IS DISTINCT FROM 1", f"{self.column('bytes')} {sign} {self.column('kind')}",
            f"{self._table}ts {sign} TIMESTAMP '2026-01-01 00:02:30'", f"{self.column('host')} LIKE '%a%'",
            f"{self.column('host')} NOT LIKE '{of.choice(['a', '%b', '_', '#%'])}' ESCAPE '#'",
            f"{self.column('kind')} NOT IN (1, {of.choice(['3', 'NULL'])})",
        ])  # fmt: skip

    def aggregate(self) -> str:
        of, number = self._of, self.column("bytes", "x", "kind")
        call = of.choice([
            "count(*)", f"count({number})", f"sum({number})", f"min({number})", f"max({number})", f"avg({number})",
            f"count(DISTINCT {number})", f"stddev({number})", f"median({self.column('bytes', 'x')})",
            f"max({self.text(1)})",
            f"sum({self.number(1)} + 0)", f"bool_or({self.column('ok')})", f"arg_max({self.column('id')}, id)",
            f"quantile_cont({self.column('bytes')}, 0.25)", f"var_pop({number})", f"sum({self.column('price')})",
            f"min({self.column('price', 'day')})", f"avg({self.column('price')})", f"max({self._table}day)",
        ])  # fmt: skip
        plain = "(" in call and not call.startswith(
            ("median", "quantile", "arg_max", "bool_or", "stddev", "var")
        )
        return f"{call} FILTER (WHERE {self.predicate(0)})" if plain and of.random() < 0.25 else call


def query(seed: int) -> Query:
    """Return a random query."""
    of = random.Random(seed)
    made = of.choice(
        [
            _rows,
            _rows,
            _groups,
            _groups,
            _windows,
            _windows,
            _windows,
            _join,
            _join,
            _semi,
            _union,
            _top,
            _nested,
            _parts,
            _keys_of_joins,
            _as_of,
            _frame,
            _first_rows,
            _groups_ranked,
            _of_none,
            _three,
            _sessions,
            _cumulated,
            _last_rows,
            _windows_joined,
        ]
    )
    return made(of)


def _where(of: random.Random, texts: _Texts) -> str:
    return f" WHERE {texts.predicate()}" if of.random() < 0.6 else ""


def _rows(of: random.Random) -> Query:
    texts = _Texts(of)
    items = ", ".join(
        f"{of.choice([texts.number, texts.text, texts.predicate])()} AS c{i}" for i in range(of.randint(1, 4))
    )
    distinct = "DISTINCT " if of.random() < 0.2 else ""
    return _same(f"SELECT {distinct}{of.choice(['', 'ts, ', 'id, '])}{items} FROM log{_where(of, texts)}")


def _items(of: random.Random, texts: _Texts, keys: list[str]) -> str:
    named = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    return ", ".join([*named, *(f"{texts.aggregate()} AS a{i}" for i in range(of.randint(1, 4)))])


def _keys(of: random.Random, texts: _Texts) -> list[str]:
    return of.sample(["host", "kind", texts.text(1), "bytes % 3", "ok"], of.randint(0, 2))


def _having(of: random.Random, texts: _Texts) -> str:
    return (
        f" HAVING {of.choice(['count(*) > 2', 'max(bytes) > 3', 'sum(x) IS NOT NULL'])}"
        if of.random() < 0.3
        else ""
    )


def _groups(of: random.Random) -> Query:
    texts = _Texts(of)
    keys = _keys(of, texts) or ["host"]
    group = of.choice([", ".join(keys), ", ".join(str(i + 1) for i in range(len(keys))), "ALL"])
    tail = f"{_where(of, texts)} GROUP BY {group}{_having(of, texts)}"
    return _same(f"SELECT {_items(of, texts, keys)} FROM log{tail}")


def _windows(of: random.Random) -> Query:
    texts, width = _Texts(of), of.choice(_WIDTHS)
    keys = _keys(of, texts)
    items, where, having = _items(of, texts, keys), _where(of, texts), _having(of, texts)
    group = "".join(f", {key}" for key in keys)
    interval = f"INTERVAL '{width} seconds'"
    form = of.choice(["tumble", "hop", "bucket", "trunc"])
    if form == "bucket":
        call = f"time_bucket({interval}, ts)"
        return _same(f"SELECT {call} AS w, {items} FROM log{where} GROUP BY {call}{group}{having}")
    if form == "trunc":
        return _same(
            f"SELECT date_trunc('minute', ts) AS w, {items} FROM log{where} GROUP BY w{group}{having}"
        )
    slide = width if form == "tumble" else width // of.choice([1, 5])
    step = f"INTERVAL '{slide} seconds'"
    first = f"time_bucket({step}, ts, TIMESTAMP '1970-01-01') - {interval} + {step}"
    starts = f"range({first}, ts + INTERVAL '1 microsecond', {step})"
    spread = f"(SELECT *, unnest({starts}) AS window_start FROM log)"
    tail = f"{where} GROUP BY window_start{group}{having}"
    theirs = f"SELECT window_start, window_start + {interval} AS window_end, {items} FROM {spread}{tail}"
    call = (
        f"TUMBLE(log, ts, {interval})"
        if form == "tumble"
        else f"HOP(log, ts, INTERVAL '{slide} seconds', {interval})"
    )
    by = f"GROUP BY window_start, window_end{group}{having}"
    ours = f"SELECT window_start, window_end, {items} FROM {call}{where} {by}"
    return Query(ours, theirs)


def _on(of: random.Random) -> str:
    low, high = of.randint(-9, 3), of.randint(3, 12)
    band = of.choice([
        f"b.ts BETWEEN a.ts + INTERVAL '{low} seconds' AND a.ts + INTERVAL '{high} seconds'",
        f"b.ts > a.ts AND b.ts <= a.ts + INTERVAL '{high} seconds'", "a.ts = b.ts",
        f"a.ts - b.ts < INTERVAL '{high} seconds' AND a.ts >= b.ts",
    ])  # fmt: skip
    if "a.ts - b.ts" in band:
        band = f"a.ts < b.ts + INTERVAL '{high} seconds' AND a.ts >= b.ts"
    keys = of.choice(["a.host = b.host AND ", "a.host = b.host AND a.kind = b.kind AND ", ""])
    rest = of.choice(["", "", " AND a.bytes > b.bytes", " AND a.ok", " AND a.bytes + b.kind > 3"])
    return f"{keys}{band}{rest}"


def _join(of: random.Random) -> Query:
    kind = of.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    on = _on(of)
    items = f"a.id, b.id AS id2, a.host, {_Texts(of, 'b.').number(1)} AS c, {_Texts(of, 'a.').text(1)} AS d"
    where = f" WHERE {_Texts(of, 'a.').predicate(1)}" if of.random() < 0.4 else ""
    if of.random() < 0.2 and kind == "JOIN":
        return _same(
            f"SELECT a.host, count(*) AS n, sum(b.bytes) AS s FROM log a JOIN other b ON {on}{where} GROUP BY a.host"
        )
    return _same(f"SELECT {items} FROM log a {kind} other b ON {on}{where}")


def _semi(of: random.Random) -> Query:
    is_not = of.choice(["", "NOT "])
    if of.random() < 0.3:
        inner = f"SELECT {of.choice(['host', 'kind'])} FROM other b WHERE {_Texts(of, 'b.').predicate(1)}"
        column = inner.split()[1]
        return _same(f"SELECT id, host FROM log WHERE {column} {is_not}IN ({inner})")
    return _same(f"SELECT id, host FROM log a WHERE {is_not}EXISTS (SELECT 1 FROM other b WHERE {_on(of)})")


def _union(of: random.Random) -> Query:
    texts, word = _Texts(of), of.choice(["UNION ALL", "UNION ALL", "UNION"])
    one = f"SELECT {of.choice(['', 'ts, '])}host, bytes + 0 AS b FROM log{_where(of, texts)}"
    return _same(f"{one} {word} {one.replace('FROM log', 'FROM other')}")


def _top(of: random.Random) -> Query:
    rank = of.choice(["row_number", "rank", "dense_rank"])
    keys = of.choice(["PARTITION BY host ", "PARTITION BY host, kind ", "", "PARTITION BY ts "])
    order = of.choice(["bytes DESC NULLS LAST", "x NULLS LAST", "kind NULLS LAST, bytes NULLS LAST"])
    order += ", id" if rank == "row_number" else ""
    n = of.randint(1, 3)
    if of.random() < 0.5:
        return _same(f"SELECT id, host, bytes FROM log QUALIFY {rank}() OVER ({keys}ORDER BY {order}) <= {n}")
    inner = f"SELECT *, {rank}() OVER ({keys}ORDER BY {order}) AS place FROM log{_where(of, _Texts(of))}"
    return _same(f"SELECT id, host, place FROM ({inner}) WHERE place <= {n}")


def _nested(of: random.Random) -> Query:
    """Return a query with a subquery that reads it."""
    key = of.choice(["host", "kind", "id", "day"])
    own = of.choice(["", f" AND {_Texts(of, 'b.').predicate(1)}"])
    inner = f"FROM other b WHERE b.{key} = a.{key}{own}"
    value = of.choice(
        ["count(*)", "max(b.bytes)", "sum(b.price)", "count(b.x) + 1", "coalesce(min(b.id), -1)"]
    )
    one = f"(SELECT {value} {inner})"
    column, some = of.choice(["kind", "bytes"]), f"FROM other{_where(of, _Texts(of))}"
    is_in = f"a.{column} {of.choice(['', 'NOT '])}IN (SELECT b.{column} {inner})"
    exists = f"{of.choice(['', 'NOT '])}EXISTS (SELECT 1 {inner})"
    return _same(of.choice([
        f"SELECT a.id, {one} AS v FROM log a{_where(of, _Texts(of, 'a.'))}",
        f"SELECT a.id FROM log a WHERE {one} > {of.randint(-1, 5)}", f"SELECT a.id FROM log a WHERE {is_in}",
        f"SELECT a.id FROM log a WHERE {is_in} AND {_Texts(of, 'a.').predicate(1)}",
        f"SELECT a.id FROM log a WHERE {exists} OR {_Texts(of, 'a.').predicate(0)}",
        f"SELECT a.id, EXISTS (SELECT 1 {inner}) AS e FROM log a",
        f"SELECT a.host, count(*) AS n FROM log a WHERE {is_in} GROUP BY a.host",
        f"SELECT id, {column} {of.choice(['', 'NOT '])}IN (SELECT {column} {some}) AS v FROM log",
    ]))  # fmt: skip


def _parts(of: random.Random) -> Query:
    """Return a query of several parts in WITH."""
    key, texts = of.choice(["host", "kind", "ok"]), _Texts(of)
    first = (
        f"c AS (SELECT {key} AS k, count(*) AS n, sum(bytes) AS s FROM log{_where(of, texts)} GROUP BY {key})"
    )
    tail = of.choice([
        "SELECT max(n) AS m, sum(s) AS s, count(*) AS r FROM c", f"SELECT k, n FROM c WHERE s > {of.randint(-5, 40)}",
        f"SELECT l.id, c.n FROM log l {of.choice(['', 'LEFT '])}JOIN c ON l.{key} = c.k",
        ", d AS (SELECT max(n) AS m FROM c) SELECT c.k FROM c JOIN d ON c.n = d.m",
        f"SELECT k AS key, n + 1 AS more FROM c WHERE more > {of.randint(1, 9)}", "SELECT DISTINCT n FROM c",
        "SELECT x.k, y.n FROM c x JOIN c y ON x.n = y.n AND x.k <> y.k",
    ])  # fmt: skip
    return _same(f"WITH {first}{'' if tail.startswith(',') else ' '}{tail}")


def _keys_of_joins(of: random.Random) -> Query:
    """Return a join on keys alone: expressions, several types, USING."""
    kind = of.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    if of.random() < 0.3:
        key = of.choice(["id", "host, ts", "id, kind"])
        return _same(f"SELECT {key}, a.bytes, b.bytes AS c FROM log a {kind} other b USING ({key})")
    on = of.choice([
        "a.bytes = b.kind", "a.id = b.id + 1", "upper(a.host) = upper(b.host) AND a.ts = b.ts",
        "a.day = b.day AND a.id = b.id",
        "a.price = b.price", "a.kind = b.x", "a.id = b.id AND a.kind = 1", "a.id = b.id AND b.bytes > 3",
        "a.bytes % 7 = b.id",
    ])  # fmt: skip
    where = f" WHERE {_Texts(of, of.choice(['a.', 'b.'])).predicate(1)}" if of.random() < 0.5 else ""
    return _same(f"SELECT a.id, b.id AS j, a.bytes, b.host FROM log a {kind} other b ON {on}{where}")


def _as_of(of: random.Random) -> Query:
    right = "(SELECT host, ts, max(id) AS m FROM other GROUP BY host, ts)"
    kind = of.choice(["", "LEFT "])
    where = f" WHERE {_Texts(of, 'a.').predicate(1)}" if of.random() < 0.5 else ""
    return _same(
        f"SELECT a.id, b.m FROM log a ASOF {kind}JOIN {right} b ON a.host = b.host AND a.ts >= b.ts{where}"
    )


def _frame(of: random.Random) -> Query:
    call = of.choice(["sum(bytes)", "count(*)", "max(x)", "avg(price)", "min(host)"])
    keys = of.choice(["", "PARTITION BY host ", "PARTITION BY kind, ok "])
    frame = f"ORDER BY ts RANGE BETWEEN INTERVAL '{of.randint(1, 40)}' SECOND PRECEDING AND CURRENT ROW"
    least, most = sorted(of.randint(-4, 3) for _ in range(2))
    first = "UNBOUNDED PRECEDING" if of.random() < 0.2 else _offset(least)
    last = "UNBOUNDED FOLLOWING" if of.random() < 0.2 else _offset(most)
    frame = of.choice([frame, f"ORDER BY ts, id ROWS BETWEEN {first} AND {last}", "ORDER BY ts", ""])
    one = f"{call} OVER ({keys}{frame}) AS f"
    if of.random() < 0.5:
        by, name = of.choice(["", "PARTITION BY host ", "PARTITION BY kind, ok "]), of.choice(["lag", "lead"])
        value = of.choice(["bytes", "host", "price", "x", "day", "ts", "bytes + kind", "coalesce(host, 'z')"])
        default = of.choice(["", "", f", {of.randint(0, 3)}", ", 2, NULL"])
        one += f", {name}({value}{default}) OVER ({by}ORDER BY ts, id) AS g"
    return _same(of.choice([
        f"SELECT id, {one} FROM log{_where(of, _Texts(of))}",
        f"SELECT id, ts, {one}, sum(id) OVER (PARTITION BY kind ORDER BY ts, id ROWS 2 PRECEDING) AS h FROM log",
        f"SELECT max(f) AS m, count(f) AS n FROM (SELECT {one} FROM log{_where(of, _Texts(of))})",
        f"SELECT id, {one} FROM log QUALIFY f IS NOT NULL",
    ]))  # fmt: skip


def _offset(rows: int) -> str:
    return f"{abs(rows)} {'PRECEDING' if rows < 0 else 'FOLLOWING'}" if rows else "CURRENT ROW"


def _first_rows(of: random.Random) -> Query:
    order = of.choice(
        ["id", "bytes DESC NULLS LAST, id", "host NULLS FIRST, id DESC", "day, price DESC NULLS LAST, id"]
    )
    tail = of.choice(
        [f"LIMIT {of.randint(0, 9)}", f"LIMIT 5 OFFSET {of.randint(0, 38)}", "FETCH FIRST 3 ROWS ONLY"]
    )
    return _same(f"SELECT id, host, bytes FROM log{_where(of, _Texts(of))} ORDER BY {order} {tail}")


def _groups_ranked(of: random.Random) -> Query:
    key = of.choice(["host", "kind", "day"])
    rank = f"row_number() OVER (ORDER BY n {of.choice(['', 'DESC '])}, {key} NULLS {of.choice(['FIRST', 'LAST'])})"
    return _same(
        f"SELECT {key}, count(*) AS n FROM log{_where(of, _Texts(of))} GROUP BY {key} QUALIFY {rank} <= 2"
    )


def _of_none(of: random.Random) -> Query:
    """Return aggregates without a key, of no records as often as of some, in a result and inside a query."""
    texts = _Texts(of)
    where = of.choice(
        ["WHERE id < 0", "WHERE false", "WHERE bytes > 18", "WHERE host = 'a' AND kind = 2", ""]
    )
    value = of.choice(
        ["count(*)", "sum(bytes)", "max(host)", "count(DISTINCT kind)", "coalesce(min(id), -1)"]
    )
    inner = f"SELECT {value} AS v, {texts.aggregate()} AS w FROM log {where}"
    having = of.choice(["", " HAVING count(*) = 0", " HAVING max(id) IS NULL", " HAVING count(*) > 3"])
    return _same(of.choice([
        f"{inner}{having}", f"SELECT v FROM ({inner}{having})",
        f"SELECT v, w FROM ({inner}) WHERE v IS NULL OR w IS NULL",
        f"SELECT count(*) AS n, count(v) AS m FROM ({inner}{having})",
        f"SELECT count(*) AS n FROM log {where} UNION ALL SELECT count(*) FROM other",
        f"WITH c AS (SELECT count(*) AS n FROM log {where}) SELECT o.id, c.n "
        f"FROM other o {of.choice(['', 'LEFT '])}JOIN c ON o.id = c.n",
        f"SELECT id FROM other WHERE id {of.choice(['', 'NOT '])}IN (SELECT count(*) FROM log {where})",
        f"SELECT id, (SELECT {value} FROM log {where}) AS v FROM other",
        f"SELECT id FROM other WHERE {of.choice(['', 'NOT '])}EXISTS (SELECT {value} FROM log {where}{having})",
    ]))  # fmt: skip


def _three(of: random.Random) -> Query:
    """Return a join of three sides."""
    kinds = [of.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"]) for _ in range(2)]
    band = f"b.ts BETWEEN a.ts - INTERVAL '{of.randint(0, 60)}' SECOND AND a.ts + INTERVAL '{of.randint(0, 60)}' SECOND"
    first = of.choice(["a.id = b.id", "a.host = b.host AND a.id = b.id + 3", f"a.host = b.host AND {band}"])
    second = of.choice(["c.id = b.id", "c.id = a.id + 1", "c.host = a.host AND c.id = b.id"])
    where = f" WHERE {_Texts(of, of.choice(['a.', 'b.', 'c.'])).predicate(1)}" if of.random() < 0.5 else ""
    source = f"FROM log a {kinds[0]} other b ON {first} {kinds[1]} log c ON {second}{where}"
    return _same(of.choice([
        f"SELECT a.id, b.id AS j, c.id AS k, b.price {source}",
        f"SELECT a.host, count(*) AS n, sum(b.bytes * c.kind) AS s, max(b.bytes * c.kind) AS m {source} GROUP BY ALL",
    ]))  # fmt: skip


def _sessions(of: random.Random) -> Query:
    gap, keys = of.randint(2, 20), of.choice([[], ["host"], ["kind", "ok"]])
    items, where = _items(of, _Texts(of), keys), _where(of, _Texts(of))
    by, over = "".join(f", {key}" for key in keys), f"PARTITION BY {', '.join(keys)} " if keys else ""
    length = f"INTERVAL '{gap} seconds'"
    before = f"ts - lag(ts) OVER ({over}ORDER BY ts, id) <= {length}"
    begun = f"SELECT *, CASE WHEN {before} THEN 0 ELSE 1 END AS _new FROM log{where}"
    runs = f"SELECT *, sum(_new) OVER ({over}ORDER BY ts, id ROWS UNBOUNDED PRECEDING) AS _run FROM ({begun})"
    theirs = f"SELECT min(ts) AS s, max(ts) + {length} AS e, {items} FROM ({runs}) GROUP BY _run{by}"
    ours = f"SELECT window_start, window_end, {items} FROM SESSION(log, ts, {length}){where}"
    return Query(f"{ours} GROUP BY window_start, window_end{by}", theirs)


def _cumulated(of: random.Random) -> Query:
    step, many, offset = of.choice([5, 20, 30]), of.choice([2, 3]), of.choice([0, 0, 7])
    keys = of.choice([[], ["host"], ["kind"]])
    items, where = _items(of, _Texts(of), keys), _where(of, _Texts(of))
    by, most = "".join(f", {key}" for key in keys), step * many
    origin = f"TIMESTAMP '1970-01-01' + INTERVAL '{offset} seconds'"
    start = f"time_bucket(INTERVAL '{most} seconds', ts, {origin})"
    least = f"time_bucket(INTERVAL '{step} seconds', ts, {origin}) + INTERVAL '{step} seconds'"
    ends = f"range({least}, {start} + INTERVAL '{most + 1} seconds', INTERVAL '{step} seconds')"
    spread = f"(SELECT *, {start} AS s, unnest({ends}) AS e FROM log{where})"
    last = f", INTERVAL '{offset} seconds'" if offset else ""
    call = f"CUMULATE(log, ts, INTERVAL '{step} seconds', INTERVAL '{most} seconds'{last})"
    return Query(
        f"SELECT window_start, window_end, {items} FROM {call}{where} GROUP BY window_start, window_end{by}",
        f"SELECT s, e, {items} FROM {spread} GROUP BY s, e{by}",
    )


def _last_rows(of: random.Random) -> Query:
    """Return a frame of rows, over times that are all different."""
    keys = of.choice(["", "host", "kind, ok"])
    call = of.choice(["sum(bytes)", "count(*)", "max(x)", "avg(price)", "min(host)"])
    frame = f"ROWS BETWEEN {of.randint(1, 9)} PRECEDING AND CURRENT ROW"
    over = f"{f'PARTITION BY {keys} ' if keys else ''}ORDER BY ts {frame}"
    once = "(SELECT ts, max(host) AS host, max(kind) AS kind, bool_or(ok) AS ok, max(bytes) AS bytes, max(x) AS x, "
    once += f"max(price) AS price FROM log{_where(of, _Texts(of))} GROUP BY ts)"
    return _same(f"SELECT {f'{keys}, ' if keys else ''}{call} OVER ({over}) AS f FROM {once}")


def _windows_joined(of: random.Random) -> Query:
    """Return a join of results of equal windows."""
    width, kind = of.choice(_WIDTHS), of.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
    made = f"{_Texts(of).aggregate()} AS v, count(*) AS n"
    on = "x.e = y.e AND x.host = y.host"

    def part(name: str, of_table: str, *, ours: bool) -> str:
        if ours:
            source = f"TUMBLE({of_table}, ts, INTERVAL '{width} seconds') GROUP BY window_end, host"
            return f"{name} AS (SELECT window_end AS e, host, {made} FROM {source})"
        e = f"time_bucket(INTERVAL '{width} seconds', ts, TIMESTAMP '1970-01-01') + INTERVAL '{width} seconds'"
        return f"{name} AS (SELECT {e} AS e, host, {made} FROM {of_table} GROUP BY ALL)"

    ours, theirs = (
        f"WITH {part('x', 'log', ours=one)}, {part('y', 'other', ours=one)} "
        f"SELECT x.host, x.n, y.n AS m, y.v FROM x {kind} y ON {on}"
        for one in (True, False)
    )
    return Query(ours, theirs)


def _same(text: str) -> Query:
    return Query(text, text)


def differs(seed: int) -> str | None:
    """Return how our answer to a random query differs from DuckDB's; None: it does not."""
    one = query(seed)
    return _difference(seed, one, one.ours)


def changes_differ(seed: int) -> str | None:
    """Return how the net content of a random revision stream differs from DuckDB's answer; None: it does not."""
    of = random.Random(seed)
    one = of.choice([_windows, _groups])(of)
    return _difference(seed, one, f"{one.ours} EMIT CHANGES")


def _difference(seed: int, one: Query, ours: str) -> str | None:
    tables = logs(seed % 7, rows=40)
    wanted = answers(one.theirs, tables)
    try:
        found = sql(ours, **streams(tables)).run().final("result")
    except EngineError as error:
        return f"seed {seed}: {ours}\n  {error}"
    if same_rows(found, wanted):
        return None
    return f"seed {seed}: {ours}\n  ours   {found.to_pylist()[:5]}\n  theirs {wanted[:5]}"


def damaged(seed: int) -> str:
    """Return a random query with some letters or words gone, doubled, exchanged, or put in."""
    of = random.Random(seed)
    words = query(seed).ours.split(" ")
    for _ in range(of.randint(1, 3)):
        at, other = of.randrange(len(words)), of.randrange(len(words))
        match of.randrange(5):
            case 0:
                words[at] = ""
            case 1:
                words[at], words[other] = words[other], words[at]
            case 2:
                words[at] = words[at][: of.randint(0, len(words[at]))]
            case 3:
                words[at] += of.choice(string.punctuation + " 9é\n\t")
            case _:
                words = words[: at + 1] or ["SELECT"]
    return " ".join(words)


def mistake_of(text: str, given: dict[str, DataStream]) -> str:
    """Return the message for a text; any other error than that of a mistake goes on."""
    try:
        sql(text, **given)
    except UsageError as error:
        return str(error)
    return "sql: it is a query"


def breaks(seed: int, given: dict[str, DataStream]) -> str | None:
    """Return how a damaged text ends otherwise than as a query or as an error with its place; None: it does not."""
    text = damaged(seed)
    try:
        found = mistake_of(text, given)
    except Exception as error:  # all of them are wanted
        return f"seed {seed}: {text}\n  {type(error).__name__}: {error}"
    return None if found.startswith("sql: ") else f"seed {seed}: {text}\n  {found}"


def main() -> None:
    """Try as many queries and damaged texts as the first argument has, from the second on; print those that fail."""
    logging.disable(logging.WARNING)
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    seeds = range(first, first + count)
    found = 0
    for check, some in ((differs, seeds), (changes_differ, seeds[: count // 5])):
        for seed in some:
            if (difference := check(seed)) is not None:
                found += 1
                print(difference, flush=True)
    print(f"{found} of {count} queries differ from DuckDB's answers", flush=True)
    given = streams(logs(0, rows=3))
    broken = [one for seed in seeds if (one := breaks(seed, given)) is not None]
    print(*broken, f"{len(broken)} of {count} damaged texts end without a place", sep="\n")
    sys.exit(bool(found or broken))


if __name__ == "__main__":
    main()
