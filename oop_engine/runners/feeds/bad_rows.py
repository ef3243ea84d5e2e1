"""Bad rows: rows that a source cannot take, and the caller's choice between an error, a count and a function.

A row is bad if its time is null, if a value is not of its column's type, or if it lacks columns and has others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

from oop_engine.core.errors import ContractError, UsageError

__all__ = ["BadRow", "BadRows", "Refusals", "Refuse", "refuse"]

_MOST_REASONS = 50
_WAY_OUT = "; bad_rows='count' leaves such rows out and counts them"


@dataclass(frozen=True)
class BadRow:
    """A row that is left out of a run, in the words of a dead letter of a service.

    ``source``: the source of the graph.  ``position``: the number of the row in its feed, from 1; None: not known, for
    a trace refused the row together with an earlier one for the same reason.  ``reason``: why.  ``record``: the row as
    it was given, or its columns; of a line of text that could not be parsed, the line.
    """

    source: str
    position: int | None
    reason: str
    record: Any


BadRows: TypeAlias = Literal["refuse", "count"] | Callable[[BadRow], object]
"""``"refuse"``: the first bad row ends the run with a ``ContractError``.  ``"count"``: bad rows are left out, and
counted in ``Outcome.refused``.  A function: the same, and it is called with each ``BadRow``."""

Refuse: TypeAlias = Callable[[int | None, str, Any, str], None]
"""Called with each bad row: its number (None: not known), the reason, the row, and the reason with a way out."""


def refuse(place: str, way_out: str = "") -> Refuse:
    """Return the function that makes a bad row an error in the name of ``place``."""

    def refused(position: int | None, reason: str, record: Any, text: str) -> NoReturn:
        at = "a row" if position is None else f"row {position:,}"
        msg = f"{place}: {at}: {text}; the row is {record!r:.200}{way_out}"
        raise ContractError(msg)

    return refused


class Refusals:
    """The bad rows of a run: ``chosen`` is the choice of the caller of ``call``; ``counts``: by source and reason.

    ``chosen`` None: rows of a trace are counted, as ``open_trace`` does, and any other bad row is an error.
    Raises ``UsageError`` for another choice.
    """

    def __init__(self, call: str, chosen: BadRows | None) -> None:
        if not (chosen is None or callable(chosen) or chosen in ("refuse", "count")):
            msg = f"{call}: bad_rows must be 'refuse', 'count' or a function of a BadRow; got {chosen!r:.80}"
            raise UsageError(msg)
        self.call, self._chosen = call, chosen
        self.counts: dict[str, dict[str, int]] = {}

    def of(self, source: str, place: str) -> Refuse:
        """Return the function for rows of Python and of Arrow."""
        if self._chosen is None or self._chosen == "refuse":
            return refuse(place, _WAY_OUT)
        return self._counting(source)

    def of_trace(self, source: str, place: str) -> Refuse:
        """Return the function for rows of a trace."""
        if self._chosen == "refuse":
            return refuse(place, _WAY_OUT)
        count = self._counting(source)
        if self._chosen is not None:
            return count

        def warn(position: int | None, reason: str, record: Any, text: str) -> None:
            if source not in self.counts:
                line = "%s: row %s of the trace is left out: %s; Outcome.refused counts all, bad_rows='refuse' raises"
                logging.getLogger("oop_engine").warning(line, place, position, reason)
            count(position, reason, record, text)

        return warn

    def _counting(self, source: str) -> Refuse:
        def count(position: int | None, reason: str, record: Any, text: str) -> None:
            counts = self.counts.setdefault(source, {})
            known = reason if reason in counts or len(counts) < _MOST_REASONS else "other reasons"
            counts[known] = counts.get(known, 0) + 1
            if callable(self._chosen):
                self._chosen(BadRow(source, position, reason, record))

        return count
