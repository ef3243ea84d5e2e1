"""Definitions that come and go, from the definition: each by itself, over the tuples of its life, windows within it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.naive.windows import Row

__all__ = ["Life", "over_lives"]


class Life(NamedTuple):
    """A definition by name: its results over tuples, and from when on and until when it holds (None: for ever)."""

    name: str
    results: Callable[[list[Row]], list[Row]]
    since: int | None = None
    until: int | None = None

    def has(self, start: int, end: int) -> bool:
        """Tell whether all of ``[start, end)`` is in the life."""
        return (self.since is None or start >= self.since) and (self.until is None or end <= self.until)


def over_lives(rows: list[Row], time: str, lives: Iterable[Life]) -> list[Row]:
    """Return the results of each definition, under its name."""
    return [
        {"window": life.name, **row}
        for life in lives
        for row in life.results([row for row in rows if life.has(row[time], row[time] + 1)])
        if life.has(row["window_start"], row["window_end"])
    ]
