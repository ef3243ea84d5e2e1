"""Aggregates from the definition: functions of the rows in a window."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

__all__ = ["aggregate"]

Row = dict[str, Any]


def counting(value: list[Any]) -> list[Any]:
    """NaN counts for extremes only where there is nothing else."""
    return [v for v in value if v == v] or value


def edge(rows: list[Row], column: str, at: str, choose: Callable[..., Any]) -> Any:
    """Return a value of those rows in which ``at`` is extreme: the extreme one."""
    known = [row for row in rows if row[column] is not None and row[at] is not None]
    if not known:
        return None
    extreme = choose(counting([row[at] for row in known]))
    return choose(counting([row[column] for row in known if same(row[at], extreme)]))


def same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))


def often(values: list[Any], choose: Callable[..., Any]) -> int:
    return sum(same(v, choose(counting(values))) for v in values)


def geometric_mean(values: list[Any]) -> float:
    if any(v < 0 or v != v for v in values):
        return math.nan
    return 0.0 if 0 in values else math.exp(math.fsum(map(math.log, values)) / len(values))


def centre(pairs: list[tuple[Any, Any]]) -> float:
    total, weight = math.fsum(v * w for v, w in pairs), math.fsum(w for _, w in pairs)
    if weight:
        return total / weight
    return math.copysign(math.inf, total) if total and total == total else math.nan


def aggregate(
    kind: str, column: str | None = None, time: str = "ts", other: str = ""
) -> Callable[[list[Row]], Any]:
    """Return an aggregate over rows, by its name in lower case; ``other``: its second column."""

    def values(rows: list[Row]) -> list[Any]:
        return [row[column or time] for row in rows if column is None or row[column] is not None]

    def pairs(rows: list[Row]) -> list[tuple[Any, Any]]:
        found = [(row[column or ""], row[other]) for row in rows]
        return [pair for pair in found if None not in pair]

    def nullable(
        of: Callable[[list[Any]], Any], least: int = 1, known: Callable[[list[Row]], list[Any]] = values
    ) -> Callable[[list[Row]], Any]:
        return lambda rows: of(known(rows)) if len(known(rows)) >= least else None

    found: dict[str, Callable[[list[Row]], Any]] = {
        "count": lambda rows: len(values(rows)),
        "sum": nullable(sum),
        "avg": nullable(lambda v: math.fsum(v) / len(v)),
        "var": nullable(lambda v: float(statistics.variance(v)), 2),
        "stddev": nullable(statistics.stdev, 2),
        "var of all": nullable(lambda v: float(statistics.pvariance(v))),
        "stddev of all": nullable(statistics.pstdev),
        "min": nullable(lambda v: min(counting(v))),
        "max": nullable(lambda v: max(counting(v))),
        "first": lambda rows: edge(rows, column or "", time, min),
        "last": lambda rows: edge(rows, column or "", time, max),
        "argmin": lambda rows: edge(rows, column or "", other, min),
        "argmax": lambda rows: edge(rows, column or "", other, max),
        "mincount": lambda rows: often(values(rows), min),
        "maxcount": lambda rows: often(values(rows), max),
        "product": nullable(lambda v: float(math.prod(v))),
        "geometricmean": nullable(geometric_mean),
        "weightedavg": nullable(centre, known=pairs),
        "any": nullable(any),
        "all": nullable(all),
    }
    if kind == "m4":
        four = {name: aggregate(name, column, time) for name in ("min", "max", "first", "last")}
        return lambda rows: {name: of(rows) for name, of in four.items()} if values(rows) else None
    return found[kind]
