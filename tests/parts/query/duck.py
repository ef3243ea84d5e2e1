"""DuckDB as the oracle of queries over sources that end: the same text over the same rows."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import math
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from oop_engine import scan
from oop_engine.query import DataStream

__all__ = ["answers", "connected", "logs", "same_rows", "streams"]

START = dt.datetime(2026, 1, 1)
DAYS = [dt.date(2025, 12, 31), dt.date(2026, 1, 1), dt.date(2026, 2, 28)]
PRICE = pa.decimal128(9, 2)


def _price(cents: int) -> decimal.Decimal:
    return decimal.Decimal(cents) / 100


def logs(seed: int, rows: int = 60) -> dict[str, pa.Table]:
    """Return two tables of records out of order, with nulls."""
    return {name: log(random.Random(f"{seed} {name}"), rows) for name in ("log", "other")}


def log(of: random.Random, rows: int) -> pa.Table:
    """Return records of five minutes, some at one moment."""
    moments = [
        START + dt.timedelta(seconds=of.randint(0, 300), milliseconds=of.choice([0, 0, 500]))
        for _ in range(rows)
    ]
    columns = {
        "ts": pa.array(moments, pa.timestamp("us")),
        "host": pa.array([of.choice(["a", "b", "c", None]) for _ in range(rows)], pa.string()),
        "kind": pa.array([of.choice([1, 2, None]) for _ in range(rows)], pa.int32()),
        "bytes": pa.array([of.choice([None, *range(-5, 20)]) for _ in range(rows)], pa.int64()),
        "x": pa.array([of.choice([None, 0.5, 1.25, -3.0, 7.0]) for _ in range(rows)], pa.float64()),
        "ok": pa.array([of.choice([True, False, None]) for _ in range(rows)], pa.bool_()),
        "id": pa.array(range(rows), pa.int64()),
        "price": pa.array(
            [of.choice([None, *map(_price, range(-150, 999, 37))]) for _ in range(rows)], PRICE
        ),
        "day": pa.array([of.choice([None, *DAYS]) for _ in range(rows)], pa.date32()),
    }
    return pa.table(columns)


def streams(tables: dict[str, pa.Table], disorder: str | None = "10 min") -> dict[str, DataStream]:
    """Return the tables as streams."""
    return {name: scan(table, name).event_time("ts", disorder) for name, table in tables.items()}


def answers(text: str, tables: dict[str, pa.Table]) -> list[tuple[Any, ...]]:
    """Return the rows of DuckDB."""
    with connected(tables) as connection:
        found: list[tuple[Any, ...]] = connection.execute(text).fetchall()
    return found


@contextlib.contextmanager
def connected(tables: dict[str, pa.Table]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that has the tables, in UTC."""
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        with contextlib.suppress(duckdb.Error):  # a setting of later versions; earlier ones give null
            connection.execute("SET error_on_division_by_zero = false")
        for name, table in tables.items():
            connection.register(name, table)
        yield connection


def same_rows(ours: pa.Table, theirs: list[tuple[Any, ...]]) -> bool:
    """Tell whether two results have the same rows, in any order."""
    return plain([tuple(row.values()) for row in ours.to_pylist()]) == plain(theirs)


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(value, row)) for row in rows), key=repr)


def value(one: Any) -> Any:
    """Return a value as both have it: floats to nine digits, days as moments."""
    match one:
        case bool():
            return one
        case decimal.Decimal() | float() | int():
            return "nan" if math.isnan(one) else float(f"{float(one):.9g}") + 0.0
        case dt.datetime():
            return one.replace(tzinfo=None)
        case dt.date():
            return dt.datetime(one.year, one.month, one.day)
        case list():
            return sorted(map(value, one), key=repr)
    return one
