"""What promises mean, so naively that it must be right: sets of (group, time) cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from oop_engine import GroupWise, Linear, Punctuation

__all__ = ["FIRST", "GROUPS", "TIMES", "Promise", "slots_of"]

Group = tuple[str | None, ...]
GROUPS: list[Group] = [("a",), ("b",), (None,), ("unseen",)]
FIRST = -2
TIMES = range(FIRST, 9)


class Promise:
    """All that one stream has promised: the cells in which nothing more comes."""

    def __init__(self) -> None:
        self.cells: set[tuple[Group, int]] = set()

    def add(self, punctuation: Punctuation) -> None:
        match punctuation:
            case Linear(below):
                self.cells |= {(g, t) for g in GROUPS for t in TIMES if t < below}
            case GroupWise(groups, bounds):
                for row, below in zip(groups.to_pylist(), bounds.tolist(), strict=True):
                    self.cells |= {(tuple(row.values()), t) for t in TIMES if t < below}

    def bound(self, group: Group) -> int:
        """The first time of the group at which something may still come; past the last: none."""
        return next((t for t in TIMES if (group, t) not in self.cells), TIMES.stop)


def slots_of(rows: Iterable[tuple[Any, ...]], known: dict[Any, int], *, add: bool) -> list[int]:
    """Number rows by first sight, with a plain dictionary."""
    found = []
    for row in rows:
        key = tuple(_plain(value) for value in row)
        if add:
            known.setdefault(key, len(known))
        found.append(known.get(key, -1))
    return found


def _plain(value: Any) -> Any:
    """Make nested values hashable, every NaN the same, and -0.0 what 0.0 is."""
    if isinstance(value, dict):
        return tuple((name, _plain(v)) for name, v in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value
