"""Aggregates of all values of a window, from their definitions, in plain Python.

NaN is one value, the largest; -0.0 is 0.0; nulls are skipped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = [
    "approx_quantile",
    "collected",
    "counts",
    "distinct",
    "heavy",
    "mode",
    "quantile",
    "sampled",
    "top",
]

Row = dict[str, Any]
Function = Callable[[list[Row]], Any]


class _Nan(float):
    """The one NaN: equal to itself."""

    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Nan)


NAN = _Nan("nan")


def _known(value: Any) -> Any:
    """Return a value so that equal ones are equal in Python."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    return value


def _place(value: Any) -> Any:
    return (True, 0) if value is NAN else (False, value)


def counts(rows: list[Row], column: str) -> list[tuple[Any, int]]:
    """Return the different values in order, and how many there are of each."""
    found = Counter(_known(row[column]) for row in rows if row[column] is not None)
    return sorted(found.items(), key=lambda item: _place(item[0]))


def quantile(column: str, q: float, method: str = "linear") -> Function:
    def of(rows: list[Row]) -> Any:
        values = [value for value, count in counts(rows, column) for _ in range(count)]
        if not values:
            return None
        h = q * (len(values) - 1)
        low = math.floor(h)
        share = h - low
        if method != "linear":
            return values[low + 1 if method == "nearest" and share > 0.5 else low]
        if share == 0:
            return float(values[low])
        return values[low] * (1 - share) + values[low + 1] * share

    return of


def collected(column: str, most: int, time: str = "ts") -> Function:
    """The first values by time, then value, and how many more there are."""

    def of(rows: list[Row]) -> Any:
        known = [row for row in rows if row[column] is not None]
        known.sort(key=lambda row: (row[time], _place(_known(row[column]))))
        values = [row[column] for row in known]
        return {"values": values[:most], "beyond": max(len(values) - most, 0)} if values else None

    return of


def sampled(
    function: Function, column: str, most: int, of_tuple: Callable[[Any, int], int], time: str = "ts"
) -> Function:
    """The result of the ``most`` rows with the least hash of value and time."""

    def of(rows: list[Row]) -> Any:
        known = [row for row in rows if row[column] is not None]
        known.sort(key=lambda row: of_tuple(row[column], row[time]))
        return function(known[:most])

    return of


def approx_quantile(column: str, q: float, error: float) -> Function:
    """The middle of the bin that the exact value is in: bins grow by a factor, from 1 in both directions."""
    factor = (1 + error) / (1 - error)

    def of(rows: list[Row]) -> Any:
        exact = quantile(column, q, "lower")(rows)
        if exact is None or exact == 0 or exact != exact or math.isinf(exact):
            return None if exact is None else float(exact)
        place = math.ceil(math.log(abs(exact), factor))
        return math.copysign(2 * factor**place / (factor + 1), exact)

    return of


def distinct(column: str) -> Function:
    return lambda rows: len(counts(rows, column))


def top(column: str, k: int) -> Function:
    """The most frequent ones first, of equals the smallest; none of no values."""

    def of(rows: list[Row]) -> Any:
        ordered = sorted(counts(rows, column), key=lambda item: -item[1])  # sorts are stable
        return [{"value": value, "count": count} for value, count in ordered[:k]] or None

    return of


def heavy(column: str, share: float) -> Function:
    def of(rows: list[Row]) -> Any:
        found = counts(rows, column)
        least = share * sum(count for _, count in found)
        return [one for one in top(column, len(found))(rows) or [] if one["count"] >= least] or None

    return of


def mode(column: str) -> Function:
    def of(rows: list[Row]) -> Any:
        found = top(column, 1)(rows)
        return found[0]["value"] if found else None

    return of
