"""Rows read: the rows of a source in words, the same for traces and for a service."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["rows_read"]

_NAMED = 3
"""Columns that the schema does not have, by name."""


def rows_read(
    source: str,
    count: int,
    refused: Mapping[str, int],
    nulls: Mapping[str, int],
    unknown: Mapping[str, int],
) -> str:
    """Return how many rows of a source there were: read, not readable, without a value, with other columns.

    >>> rows_read("log", 3, {"no JSON": 1}, {"k": 2}, {"K": 1})
    "3 rows of log, 1 not readable, 2 without 'k', 1 with 'K' (not in the schema, left out)"
    """
    bad = sum(refused.values())
    missing = [f"{number:,} without {column!r}" for column, number in nulls.items()]
    parts = [f"{count:,} rows of {source}", *([f"{bad:,} not readable"] if bad else []), *missing]
    return ", ".join([*parts, *_left_out(unknown)])


def _left_out(counts: Mapping[str, int]) -> list[str]:
    """Return the columns that were left out in words: the most frequent ones by name."""
    from oop_engine.traces.unknown_columns import OTHERS

    often = sorted((item for item in counts.items() if item[0] != OTHERS), key=lambda item: -item[1])
    named = [f"{count:,} with {name!r}" for name, count in often[:_NAMED]]
    more = f" and {len(often) - _NAMED:,} or more others" if len(often) > _NAMED else ""
    return [f"{', '.join(named)}{more} (not in the schema, left out)"] if named else []
