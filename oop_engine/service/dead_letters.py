"""Dead letters: rows of sources that could not be read, counted, logged, and kept if there is a sink for them."""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from collections.abc import Callable
from threading import Lock
from typing import Any

import pyarrow as pa

from oop_engine.connectors.source import Unreadable
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["DEAD_LETTERS", "DeadLetters", "as_text"]

_LOG = logging.getLogger("oop_engine")

DEAD_LETTERS = Schema(
    {
        "at": pa.timestamp("ms", "UTC"),
        "source": pa.string(),
        "position": pa.string(),
        "reason": pa.string(),
        "record": pa.string(),
        "coding": pa.string(),
        "rows": pa.int64(),
        "context": pa.string(),
    },
    "at",
)
"""Columns of dead letters: when, where (JSON that finds the record: a position of the source, a file and a byte), why,
and the record as it came.  ``coding``: of the record: ``text``, ``base64`` of bytes that are no text, ``json`` of an
object of Python, ``part`` of some rows of a record whose other rows went in, in words.  ``rows``: their number.
``context``: columns of its message, and the line of names above it, as JSON (``letter_context``)."""

_MOST_REASONS = 50
_SHOWN = 200


class DeadLetters:
    """Counts by source and reason, and rows that wait for their sink; ``kept``: whether there is one."""

    def __init__(self, clock: Callable[[], float], *, kept: bool) -> None:
        self.counts: dict[str, dict[str, int]] = {}
        self._clock, self.kept = clock, kept
        self._waiting: list[dict[str, object]] = []
        self._one = Lock()  # long messages are read on a thread

    def of(self, source: str, noun: str = "source") -> Unreadable:
        """Return the function that a source, and its format, call with rows that they cannot read.

        Or a ``sink``, whose server refuses a row.
        """
        counts = self.counts.setdefault(source, {})
        words = f"{noun} {source!r}"

        def unreadable(
            reason: str,
            record: Any,
            rows: int,
            *,
            place: Any = None,
            coding: str | None = None,
            context: Any = None,
        ) -> None:
            reason = reason.removeprefix(f"{words}: ")
            text, known_coding = as_text(record)
            known = reason if reason in counts or len(counts) < _MOST_REASONS else "other reasons"
            if known not in counts:
                _LOG.warning("%s: %s; got %s", words, reason, text[:_SHOWN])
            counts[known] = counts.get(known, 0) + rows
            if self.kept:
                letter = {
                    "at": int(self._clock() * 1000),
                    "source": source if noun == "source" else f"{noun} {source}",
                    "position": json.dumps(place),
                    "reason": reason,
                    "record": text,
                    "coding": coding or known_coding,
                    "rows": rows,
                    "context": None if context is None else json.dumps(context),
                }
                with self._one:
                    self._waiting.append(letter)

        return unreadable

    @property
    def waits(self) -> bool:
        """Whether there are dead letters since the last call of ``take``."""
        return bool(self._waiting)

    def take(self) -> Page | None:
        """Return the dead letters since the last call as a page."""
        with self._one:
            waiting, self._waiting = self._waiting, []
        if not waiting:
            return None
        columns: dict[str, Any] = {name: [row[name] for row in waiting] for name in DEAD_LETTERS.names}
        columns["at"] = pa.array(columns["at"], DEAD_LETTERS.type_of("at"))
        return Page.of(DEAD_LETTERS, columns)


def as_text(record: Any) -> tuple[str, str]:
    """Return a record as text, and how it is coded.

    >>> as_text(b"x,1\\n"), as_text(b"\\xff"), as_text({"ts": 3})
    (('x,1\\n', 'text'), ('/w==', 'base64'), ('{"ts": 3}', 'json'))
    """
    if isinstance(record, str):
        return record, "text"
    if isinstance(record, bytes):
        try:
            return record.decode(), "text"
        except UnicodeDecodeError:
            return b64encode(record).decode(), "base64"
    return json.dumps(record, default=str), "json"
