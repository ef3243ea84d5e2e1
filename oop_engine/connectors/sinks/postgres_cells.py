"""Cells: values of a column as psycopg writes them, exactly, or marked as one that the server would change.

Postgres has moments from 4713 BC to 294276 in microseconds, Python from year 1 to 9999.  So moments and durations are
texts.  One with nanoseconds fits a column of texts alone; elsewhere the server would round it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.connectors.library import library
from oop_engine.core.groups.in_python import as_json, values_of
from oop_engine.core.values.rfc3339 import moment_texts

__all__ = ["Inexact", "cells_of", "register_cells"]

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}
_DAY_S = 86_400
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The days of the years 1 to 9999 since 1970, of which Arrow makes texts that Postgres reads."""
_MOMENTS = ("timestamp", "timestamptz", "time", "timetz", "interval")
_JSON = ("json", "jsonb")


@dataclass(frozen=True)
class Inexact:
    """A value below a microsecond, which the server would round."""

    text: str


def register_cells(connection: Any) -> None:
    """Make a connection raise an error of the row for each ``Inexact``."""
    psycopg = library("psycopg", "postgres", "PostgresTable")
    adapt = library("psycopg.adapt", "postgres", "PostgresTable")

    def dump(_: Any, value: Inexact) -> bytes:
        msg = f"{value.text} has nanoseconds, and the column microseconds"
        raise psycopg.DataError(msg)

    connection.adapters.register_dumper(Inexact, type("InexactDumper", (adapt.Dumper,), {"dump": dump}))


def cells_of(column: pa.Array, target: str) -> list[Any]:
    """Return the values of a column for one of the type ``target`` in the database; O(rows)."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return cells_of(column.dictionary_decode(), target)
    if types.is_timestamp(kind) or types.is_date(kind):
        return list(_exact(column, target, _moments(column)))
    if types.is_time(kind):
        return list(_exact(column, target, column.cast(pa.string()).to_pylist()))
    if types.is_duration(kind):
        return list(_exact(column, target, map(_duration(kind.unit), _integers(column))))
    if types.is_interval(kind):
        return [None if each is None else _interval(each) for each in column.to_pylist()]
    if types.is_float16(kind):
        return cells_of(column.cast(pa.float32()), target)
    if types.is_list(kind) or types.is_large_list(kind):
        return _lists(column, target)
    if types.is_nested(kind):
        return _as_json(column)
    return values_of(column)


def _exact(column: pa.Array, target: str, texts: Any) -> Iterator[Any]:
    """Yield texts, but a mark where a value has nanoseconds and the column none."""
    rounds = target in _MOMENTS and "[ns" in str(column.type)
    for text, value in zip(texts, _integers(column), strict=True):
        yield Inexact(text) if rounds and value is not None and value % 1000 else text


def _integers(column: pa.Array) -> list[int | None]:
    kind = pa.int32() if column.type.bit_width == 32 else pa.int64()
    integers: list[int | None] = column.cast(kind).to_pylist()
    return integers


def _moments(column: pa.Array) -> Iterator[str | None]:
    kind = column.type
    zone = "Z" if pa.types.is_timestamp(kind) and kind.tz else ""
    per_day = _PER_SECOND[kind.unit] * _DAY_S if pa.types.is_timestamp(kind) else 1
    per_day = per_day if kind != pa.date64() else _DAY_S * 1000
    values = _integers(column)
    near = [value is not None and _FIRST_DAY < value // per_day < _LAST_DAY for value in values]
    shown = pc.if_else(pa.array(near, pa.bool_()), column, pa.scalar(None, kind))
    texts = moment_texts(shown) if zone else shown.cast(pa.string())
    for text, value in zip(texts.to_pylist(), values, strict=True):
        if text is not None or value is None:
            yield text
        else:
            yield _far(*divmod(value, per_day), per_day // _DAY_S if per_day > 1 else 0, zone)


def _far(day: int, rest: int, per_second: int, zone: str) -> str:
    """Return a moment of any year as Postgres reads it; ``rest`` of the day, none of a date: ``per_second`` 0."""
    year, month, of_month = _civil(day)
    time = ""
    if per_second:
        second, fraction = divmod(rest, per_second)
        digits = len(str(per_second)) - 1
        time = f" {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        time += f".{fraction:0{digits}}" if digits else ""
    text = f"{year if year > 0 else 1 - year:04}-{month:02}-{of_month:02}{time}{zone}"
    return text if year > 0 else f"{text} BC"


def _civil(day: int) -> tuple[int, int, int]:
    """Return year, month and day of the month of a day since 1970.

    Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".

    >>> _civil(0), _civil(2_932_897), _civil(-719_529)
    ((1970, 1, 1), (10000, 1, 1), (-1, 12, 31))
    """
    era, of_era = divmod(day + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    number = month + 3 if month < 10 else month - 9
    return year + era * 400 + (number <= 2), number, of_year - (153 * month + 2) // 5 + 1


def _duration(unit: str) -> Callable[[int | None], str | None]:
    def text(value: int | None) -> str | None:
        if value is None:
            return None
        return (
            f"{value} {_WORDS[unit]}" if unit != "ns" else f"{value // 1000}.{value % 1000:03} microseconds"
        )

    return text


def _interval(value: Any) -> Any:
    text = f"{value.months} months {value.days} days {value.nanoseconds // 1000} microseconds"
    return Inexact(text) if value.nanoseconds % 1000 else text


def _lists(column: pa.Array, target: str) -> list[Any]:
    """Return lists of cells; as JSON for such a column, and where their items are no plain values."""
    if target in _JSON or pa.types.is_nested(column.type.value_type):
        return _as_json(column)
    items = iter(cells_of(column.flatten(), target.removeprefix("_")))
    sizes = column.value_lengths().to_pylist()
    return [None if size is None else [next(items) for _ in range(size)] for size in sizes]


def _as_json(column: pa.Array) -> list[str | None]:
    return [None if value is None else as_json(value) for value in values_of(column)]
