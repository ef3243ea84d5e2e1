"""Dead letters: rows of sources that could not be read, counted, logged, and kept if there is a sink for them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import pyarrow as pa

from oop_engine.connectors.source import Position, Unreadable
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["DEAD_LETTERS", "DeadLetters"]

DEAD_LETTERS = Schema(
    {
        "at": pa.timestamp("ms", "UTC"),
        "source": pa.string(),
        "position": pa.string(),
        "reason": pa.string(),
        "record": pa.string(),
        "rows": pa.int64(),
    },
    "at",
)
"""Columns of dead letters: when, where (the position, as JSON, from which the data were read; null: the beginning),
why, which record, and how many with the same reason came with it."""

_MOST_REASONS = 50


class DeadLetters:
    """Counts by source and reason, and rows that wait for their sink."""

    def __init__(self, clock: Callable[[], float], *, kept: bool) -> None:
        self.counts: dict[str, dict[str, int]] = {}
        self._clock, self._kept = clock, kept
        self._waiting: list[dict[str, object]] = []
        self._at: dict[str, Position] = {}

    def of(self, source: str) -> Unreadable:
        """Return the function that a source, and its format, tell of rows that they cannot read."""
        counts = self.counts.setdefault(source, {})

        def unreadable(reason: str, record: str, rows: int) -> None:
            reason = reason.removeprefix(f"source {source!r}: ")
            known = reason if reason in counts or len(counts) < _MOST_REASONS else "other reasons"
            if known not in counts:
                logging.getLogger("oop_engine").warning("source %r: %s; got %s", source, reason, record[:200])
            counts[known] = counts.get(known, 0) + rows
            if self._kept:
                self._waiting.append(
                    {
                        "at": int(self._clock() * 1000),
                        "source": source,
                        "position": json.dumps(self._at.get(source)),
                        "reason": reason,
                        "record": record,
                        "rows": rows,
                    }
                )

        return unreadable

    def at(self, source: str, position: Position) -> None:
        """Learn the position before the data that are read next."""
        self._at[source] = position

    def take(self) -> Page | None:
        """Return the dead letters since the last call as a page."""
        if not self._waiting:
            return None
        columns = {name: [row[name] for row in self._waiting] for name in DEAD_LETTERS.names}
        self._waiting = []
        return Page.of(DEAD_LETTERS, columns)
