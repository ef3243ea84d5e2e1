"""Brackets: windows as the thesis and CQL write them, ``[RANGE 5 MINUTES SLIDE 1 MINUTE, ts]``.

``WA`` (``WATTR``, ``RATTR``) is the event time, ``PA`` the key of windows of each key.  Windows slide by ``SATTR``:
``row-num``, the arrival of records, or ``rank(ts)``, their order in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oop_engine.operators.joining.bands import Band, Bands, TumblingBand, WindowIdBand
from oop_engine.operators.windows import (
    Landmark,
    PartitionedTupleBased,
    SlideByTuple,
    Sliding,
    Tumbling,
    TupleBased,
    Windows,
)
from oop_engine.query.sql.reading.mistakes import mistake

__all__ = ["Bracket", "bracket_of"]

_CLAUSES = ("RANGE", "SLIDE", "ROWS", "NOW", "WA", "WATTR", "RATTR", "SATTR", "PA", "PARTITION")
_ARRIVAL = ["row", "-", "num"]
_LISTS = ("PA", "PARTITION")
Clauses = dict[str, list[str]]


@dataclass(frozen=True)
class Bracket:
    """The window of one pair of brackets: its clauses by their first word."""

    clauses: Clauses

    @property
    def time(self) -> str:
        """The event time that is named, or ''."""
        return next(iter(self._time()[-1:]), "")

    @property
    def table(self) -> str:
        """The table that stands before the event time, or ''."""
        return next(iter(self._time()[-3:-2]), "")

    def _time(self) -> list[str]:
        words = [word for name in ("WA", "WATTR", "RATTR") for word in self.clauses.get(name, [])]
        return [] if [word.lower() for word in words] == _ARRIVAL else words

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of which each value has windows of its own."""
        words = [word for name in _LISTS for word in self.clauses.get(name, [])]
        return tuple(word for word in words if word.upper() != "BY")

    @property
    def windows(self) -> Windows | None:
        """The windows; None: all of the stream.  Raises ``ValueError`` and ``LookupError`` for others."""
        if "NOW" in self.clauses:
            return Tumbling(1)
        size = [*self._range()]
        slide = self.clauses.get("SLIDE", [])
        if _is_rows(size):
            rows, every = int(size[0]), int(slide[0]) if slide else 1
            return PartitionedTupleBased(rows, every) if self.keys else TupleBased(rows, every)
        if size[0].upper() in ("ALL", "UNBOUNDED"):
            return Landmark(_length(slide)) if slide else None
        if _is_rows(slide):
            return _sliding_by_rows(_length(size), int(slide[0]), self.clauses.get("SATTR", []))
        if not slide:
            return SlideByTuple(_length(size))
        same = _length(size) == _length(slide)
        return Tumbling(_length(size)) if same else Sliding(_length(size), _length(slide))

    def _range(self) -> list[str]:
        if "ROWS" in self.clauses:
            return [*self.clauses["ROWS"], "ROWS"]
        words = self.clauses["RANGE"]
        return words[1:] if words[0].upper() == "TUMBLING" else words

    def tumbling(self) -> Bands:
        """Return the band of a join of records that are in one window."""
        return TumblingBand(_length(self._range()))

    def band(self, right: Bracket) -> Bands | None:
        """Return the band of a join with ``right``; None: the windows are not of time."""
        match self.windows, right.windows:
            case (SlideByTuple(every=1) as left, SlideByTuple(every=1) as other):
                return Band(before=other.range, after=left.range)
            case (Tumbling() as left, Tumbling() as other) if left == other:
                return TumblingBand(left.range)
            case (Sliding() as left, Sliding() as other) if left.slide == other.slide:
                return WindowIdBand(left.range, other.range, left.slide)
        return None


def bracket_of(text: str, node: Any, words: str) -> Bracket:
    """Return the window that ``words`` write; raises ``UsageError`` at ``node``."""
    bracket = Bracket(_clauses(words))
    try:
        assert bracket.windows or "RANGE" in bracket.clauses
    except (AssertionError, LookupError, ValueError) as error:
        msg = f"a window reads [RANGE 5 MINUTES SLIDE 1 MINUTE, ts]; got [{words}]"
        raise mistake(text, node, msg) from error
    return bracket


def _clauses(words: str) -> Clauses:
    """Return the words of each clause; a last one without a name is the event time."""
    clauses: Clauses = {}
    name = "WA"
    for word in words.replace(",", " , ").split():
        is_unit = word.upper() == "ROWS" and name in ("RANGE", "SLIDE") and len(clauses[name]) == 1
        if word.upper() in _CLAUSES and not is_unit:
            name = word.upper()
            clauses[name] = []
        elif word == ",":
            name = name if name in _LISTS else "WA"
        else:
            clauses.setdefault(name, []).append(word)
    return clauses


def _sliding_by_rows(size: Any, every: int, by: list[str]) -> SlideByTuple:
    if every == 1:
        return SlideByTuple(size)
    return SlideByTuple(size, every, "rank" if by[:1] and by[0].lower() == "rank" else "arrival")


def _is_rows(words: list[str]) -> bool:
    return len(words) == 2 and words[1].upper() in ("ROW", "ROWS")


def _length(words: list[str]) -> Any:
    """Return a length: an integer in the unit of the event time, or a text with its unit."""
    text = " ".join(words)
    if not text or not words[0].isdigit():
        msg = f"{text!r} is no length"
        raise ValueError(msg)
    return int(text) if text.isdigit() else text.lower()
