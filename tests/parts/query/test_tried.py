"""TRY_CAST, differences of moments, parts of texts: each beside DuckDB, over nulls, empty texts and extreme values."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import UsageError, sql
from tests.parts.query.duck import answers, same_rows, streams

TEXTS = [
    None, "", " ", "5", "+5", " 5 ", "-5", "\t5\n", "007", "-0", "1e3", "1E3", "1e-3", "3.5", "2.5", "-2.5", ".5", "5.",
    "1__0", "_1", "1_", "1.5_0", "5a", "a5", "--5", "1e", "e5", ".", "-", "+", "٣", "5 5", "127", "128", "-128",
    "1_000", "-129", "127.4", "127.5", "-128.5", "255.5", "32767.5", "2147483647", "2147483648", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "18446744073709551616", "99999999999999999999", "0.9999999999999999999", "9999999999999999999.5", "1e18", "1e19",
    "1e999", "-1e999", "1e-999", "inf", "-inf", "+inf", "Infinity", "infinit", "nan", "NaN", "-nan", "INF", "true",
    "TRUE", "t", "f", "yes", "no", "y", "n", "1", "0", "on", "True ", "1.005", "99.995", "99999999.995",
    "99999999.994", "123456789.12", "2026-01-01", "2026-1-1", "2026/01/01", "2026-01/01", "2026-02-30", "2024-02-29",
    "2023-02-29", "1900-02-29", "2000-02-29", " 2026-01-01 ", "20260101", "2026-01", "2026-13-01", "2026-00-10",
    "2026-04-31", "2026-01-01 10:00", "2026-01-01T10:00:07", "2026-01-01 10:00:00.5", "2026-01-01 10:00:00.123456789",
    "2026-01-01 1:2:3", "2026-01-01 25:00:00", "2026-01-01 23:60:00", "2026-01-01 23:59:60", "2026-01-01x",
    "2026-01-01T10:00:00Z", "9999-12-31", "0001-01-01", "1969-12-31 23:59:59.999999",
]  # fmt: skip
DECIMALS = ["0.5", "1.5", "-2.5", "127.49", "127.5", "-128.5", "99999999999999.99", "0.04", "-0.05"]
NUMBERS: dict[str, pa.Array] = {
    "i": pa.array([None, 0, 127, 128, -129, 65_535, 2**31, -(2**63), 2**63 - 1, 10**15], pa.int64()),
    "u": pa.array([None, 0, 127, 128, 255, 256, 2**63 - 1, 2**63, 2**64 - 1, 7], pa.uint64()),
    "g": pa.array(
        [None, 0.5, 1.5, -2.5, 127.5, 1e19, -1e300, float("nan"), float("inf"), 9.2e18], pa.float64()
    ),
    "d": pa.array(
        [None, *map(Decimal, DECIMALS)],
        pa.decimal128(20, 2),
    ),
    "b": pa.array([None, True, False, True, False, None, True, True, False, True], pa.bool_()),
}
KINDS = (
    "BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UBIGINT", "UTINYINT", "DOUBLE", "FLOAT", "DECIMAL(10, 2)",
    "DECIMAL(3, 1)", "DECIMAL(18, 0)", "DECIMAL(38, 10)", "BOOLEAN", "DATE", "TIMESTAMP", "VARCHAR",
)  # fmt: skip


def table(**columns: pa.Array) -> dict[str, pa.Table]:
    rows = len(next(iter(columns.values())))
    ts = pa.array(
        [dt.datetime(2026, 1, 1) + dt.timedelta(seconds=one) for one in range(rows)], pa.timestamp("us")
    )
    return {"t": pa.table({"ts": ts, "id": pa.array(range(rows), pa.int64()), **columns})}


def check(text: str, tables: dict[str, pa.Table]) -> None:
    ours = sql(text, **streams(tables)).run().table
    assert same_rows(ours, answers(text, tables)), text


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_tried_as_in_duckdb(kind: str) -> None:
    texts = TEXTS
    if kind in ("DATE", "TIMESTAMP"):  # a moment that never comes has no value here
        texts = [one for one in TEXTS if one is None or "inf" not in one.lower()]
    check(f"SELECT id, TRY_CAST(s AS {kind}) AS v FROM t", table(s=pa.array(texts, pa.string())))


@pytest.mark.parametrize(
    "kind", [one for one in KINDS if one not in ("DATE", "TIMESTAMP", "FLOAT", "VARCHAR")]
)
def test_numbers_are_tried_as_in_duckdb(kind: str) -> None:
    for name in NUMBERS:
        check(f"SELECT id, TRY_CAST({name} AS {kind}) AS v FROM t", table(**NUMBERS))


def moments(seed: int) -> dict[str, pa.Table]:
    of = random.Random(seed)

    def drawn() -> list[Any]:
        near = [
            dt.datetime(2026, 1, 1) + dt.timedelta(microseconds=of.randint(-(10**13), 10**13))
            for _ in range(60)
        ]
        return [None, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), *near]

    columns: dict[str, Any] = {
        "a": pa.array(drawn(), pa.timestamp("us")),
        "b": pa.array(drawn()[::-1], pa.timestamp("us")),
        "z": pa.array(drawn(), pa.timestamp("us", "UTC")),
        "y": pa.array(drawn()[::-1], pa.timestamp("us", "UTC")),
        "d": pa.array([one and one.date() for one in drawn()], pa.date32()),
    }
    return table(**columns)


@pytest.mark.parametrize(
    "unit", ["year", "quarter", "month", "day", "hour", "minute", "second", "millisecond", "microsecond"]
)
def test_differences_are_those_of_duckdb(unit: str) -> None:
    tables = moments(1)
    for pair in ("a, b", "z, y", "d, a", "a, d", "d, d"):
        check(f"SELECT id, date_diff('{unit}', {pair}) AS v FROM t", tables)


def test_weeks_last_days_and_parts_of_moments_are_those_of_duckdb() -> None:
    tables = moments(2)
    check("SELECT id, datediff('week', a, b) AS v, date_diff('weeks', d, a) AS w FROM t WHERE id > 2", tables)
    check("SELECT id, last_day(a) AS v, last_day(d) AS w FROM t WHERE id <> 2 AND year(d) < 9999", tables)
    check(
        "SELECT id, weekday(a) a, dayofweek(z) b, isodow(d) c, weekofyear(a) e, yearweek(d) f FROM t", tables
    )


def test_parts_from_the_end_are_those_of_duckdb() -> None:
    of = random.Random(3)
    texts = [None, "", ",", ",,", *("".join(of.choices("ab,;é ", k=of.randint(1, 9))) for _ in range(80))]
    tables = table(s=pa.array(texts, pa.string()))
    for sign in (",", "ab", "é", ",;", " "):
        parts = ", ".join(f"split_part(s, '{sign}', {at}) AS v{at + 5}" for at in range(-4, 5))
        check(f"SELECT id, {parts}, strpos(s, '{sign}') AS p FROM t", tables)


def test_parts_from_the_end_between_signs_that_overlap_are_refused() -> None:
    with pytest.raises(UsageError, match="do not overlap; 'aa' ends as it begins"):
        sql("SELECT split_part(s, 'aa', -1) AS v FROM t", **streams(table(s=pa.array(["a"]))))
