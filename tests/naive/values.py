"""Aggregates of all values of a window, from their definitions, in plain Python.

NaN is one value, the largest; -0.0 is 0.0; nulls are skipped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["counts", "distinct", "heavy", "mode", "quantile", "top"]

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
