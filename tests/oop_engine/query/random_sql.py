"""Random queries, as our SQL and as that of DuckDB: projections, filters, groups, windows, joins, ranks, nulls.

Run as a program it tries many: ``python -m tests.oop_engine.query.random_sql 5000``; a query that differs is printed.
"""

from __future__ import annotations

import logging
import random
import sys
from dataclasses import dataclass

from oop_engine import EngineError, sql
from tests.oop_engine.query.duck import answers, logs, same_rows, streams

__all__ = ["Query", "differs", "query"]

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
            f"extract(minute FROM {self._table}ts)",
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
            f"{self.column('kind')} IS DISTINCT FROM 1", f"{self.column('bytes')} {sign} {self.column('kind')}",
            f"{self._table}ts {sign} TIMESTAMP '2026-01-01 00:02:30'", f"{self.column('host')} LIKE '%a%'",
        ])  # fmt: skip

    def aggregate(self) -> str:
        of, number = self._of, self.column("bytes", "x", "kind")
        call = of.choice([
            "count(*)", f"count({number})", f"sum({number})", f"min({number})", f"max({number})", f"avg({number})",
            f"count(DISTINCT {number})", f"stddev({number})", f"median({self.column('bytes', 'x')})",
            f"max({self.text(1)})",
            f"sum({self.number(1)} + 0)", f"bool_or({self.column('ok')})", f"arg_max({self.column('id')}, id)",
            f"quantile_cont({self.column('bytes')}, 0.25)", f"var_pop({number})",
        ])  # fmt: skip
        plain = "(" in call and not call.startswith(
            ("median", "quantile", "arg_max", "bool_or", "stddev", "var")
        )
        return f"{call} FILTER (WHERE {self.predicate(0)})" if plain and of.random() < 0.25 else call


def query(seed: int) -> Query:
    """Return a random query."""
    of = random.Random(seed)
    made = of.choice(
        [_rows, _rows, _groups, _groups, _windows, _windows, _windows, _join, _join, _semi, _union, _top]
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


def _same(text: str) -> Query:
    return Query(text, text)


def differs(seed: int) -> str | None:
    """Return how our answer to a random query differs from DuckDB's; None: it does not."""
    one, tables = query(seed), logs(seed % 7, rows=40)
    wanted = answers(one.theirs, tables)
    try:
        found = sql(one.ours, **streams(tables)).run().table
    except EngineError as error:
        return f"seed {seed}: {one.ours}\n  {error}"
    if same_rows(found, wanted):
        return None
    return f"seed {seed}: {one.ours}\n  ours   {found.to_pylist()[:5]}\n  theirs {wanted[:5]}"


def main() -> None:
    """Try as many queries as the first argument has, from the second on; print those that differ."""
    logging.disable(logging.WARNING)
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found = [difference for seed in range(first, first + count) if (difference := differs(seed)) is not None]
    print(*found, f"{len(found)} of {count} queries differ from DuckDB's answers", sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
