"""Repeated keys: an object that has a key twice, as JSON and msgpack allow.

Readers of JSON take the first value, the last one, or none; so a row that has a column twice is refused, and a
punctuation that has a key twice.  Keys that are no columns may be there twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["of_pairs", "once", "twice"]


class _Repeating(dict[str, Any]):
    """An object that has the keys ``twice`` more than once."""

    twice: frozenset[str]


def of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of its pairs, the last value of each key; it knows those that are there twice (``twice``)."""
    row = dict(pairs)
    if len(row) == len(pairs):
        return row
    repeating, names = _Repeating(row), [name for name, _ in pairs]
    repeating.twice = frozenset(name for name in row if names.count(name) > 1)
    return repeating


def twice(row: dict[str, Any], names: Iterable[str] | None = None) -> str | None:
    """Return the reason to refuse an object that ``of_pairs`` made, if it has one of ``names`` twice (None: any key).

    >>> twice(of_pairs([("ts", 1), ("v", 2), ("ts", 3)]), ["ts", "v"])
    'ts is given twice'
    """
    if not isinstance(row, _Repeating):
        return None
    return next(
        (f"{name} is given twice" for name in (row if names is None else names) if name in row.twice),
        None,
    )


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of its pairs; raises ``ValueError`` if it has a key twice."""
    row = of_pairs(pairs)
    if (reason := twice(row)) is not None:
        raise ValueError(reason)
    return row
