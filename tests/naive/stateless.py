"""Filter, project, apply, split, distinct, stamps and negative tuples, from their definitions, row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = [
    "apply",
    "arrived",
    "distinct",
    "expiring",
    "latest",
    "project",
    "select",
    "split",
    "within_budget",
]

Row = dict[str, Any]
Value = Callable[[Row], Any]


def select(rows: Sequence[Row], predicate: Value) -> list[Row]:
    return [row for row in rows if predicate(row) is True]


def project(rows: Sequence[Row], columns: Mapping[str, Value]) -> list[Row]:
    return [{name: value(row) for name, value in columns.items()} for row in rows]


def apply(rows: Sequence[Row], columns: Mapping[str, Value]) -> list[Row]:
    return [row | {name: value(row) for name, value in columns.items()} for row in rows]


def split(rows: Sequence[Row], predicates: Sequence[Value]) -> list[list[Row]]:
    """Return the rows of each predicate, and last those of none."""
    ports: list[list[Row]] = [[] for _ in [*predicates, None]]
    for row in rows:
        true = [port for port, predicate in enumerate(predicates) if predicate(row) is True]
        ports[[*true, len(predicates)][0]].append(row)
    return ports


def distinct(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Return each combination of the columns ``names`` once (rows without NaN)."""
    found: list[Row] = []
    for row in rows:
        key = {name: row[name] for name in names}
        if key not in found:
            found.append(key)
    return found


def arrived(rows: Sequence[Row], column: str) -> list[Row]:
    """Rows that arrive at 0, 1, 2..., with their arrivals."""
    return [row | {column: number} for number, row in enumerate(rows)]


def within_budget(rows: Sequence[Row], budget: float, hash_of: Callable[[Row], int]) -> list[Row]:
    """Rows that arrive one a second, of which a second lets ``budget`` through, a power of two of them at a time."""
    found = []
    for number, row in enumerate(rows):
        one_in = 1
        while number and 1 / one_in > budget:
            one_in *= 2
        if hash_of(row) % one_in == 0:
            found.append(row | {"weight": one_in})
    return found


def latest(
    rows: Sequence[Row], time: str, by: Sequence[str], where: Callable[[Row], bool | None]
) -> list[Row]:
    """Each row that fits once at its time, and once more at the next time of its key, if there is one."""
    found = []
    for row in filter(where, rows):
        key = [row[name] for name in by]
        later = [r[time] for r in rows if [r[name] for name in by] == key and r[time] > row[time]]
        found.append(row | {"at": row[time], "weight": 1})
        if later:
            found.append(row | {"at": min(later), "weight": -1})
    return found


def expiring(rows: Sequence[Row], time: str, length: int) -> list[Row]:
    """Each row once to be counted, and once to be counted no more."""
    positive = [row | {"at": row[time], "weight": 1} for row in rows]
    return positive + [row | {"at": row[time] + length, "weight": -1} for row in rows]
