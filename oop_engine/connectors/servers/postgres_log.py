"""Postgres log: where a reader of the write-ahead log is, and whether the log is the one that it was in.

Each cluster has an identifier of its own, given when it was made.  A server that was restored to an earlier moment, or
a standby that took over, goes on in a new timeline; its history has the place where that left the earlier one.  A slot
that was made again begins behind all that was written before.  A table that was made again has another number (OID).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oop_engine.connectors.source import BEGIN_AGAIN, Position
from oop_engine.core.errors import TraceError, UsageError

__all__ = ["LogPlace", "left_at", "lsn_of", "text_of_lsn"]

_LSN = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")
_BRANCH = re.compile(rb"^\s*(\d+)\s+([0-9A-F]+/[0-9A-F]+)", re.MULTILINE)


def lsn_of(text: str) -> int:
    """Return a place in the log as a number.

    >>> lsn_of("1/A"), text_of_lsn(4294967306)
    (4294967306, '1/A')
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def text_of_lsn(lsn: int) -> str:
    """Return a place in the log as Postgres writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


@dataclass(frozen=True)
class LogPlace:
    """A place in the log: behind the transaction that ends at ``lsn``, and ``rows`` changes of the next one.

    ``commit``: the place of that one's commit; 0: none of its changes was read.  ``system``, ``timeline``: the
    identifier of the cluster and its timeline; None: not known.  ``tables``: the numbers (OIDs) of those of which rows
    came, by name.
    """

    lsn: int
    commit: int = 0
    rows: int = 0
    system: str | None = None
    timeline: int | None = None
    tables: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(place: str, position: Position) -> LogPlace:
        """Return the place that a position is; raise ``UsageError`` in the name of ``place`` if it is none.

        >>> LogPlace.of("slot", {"lsn": "0/5", "commit": "0/9", "rows": 3}), LogPlace.of("slot", "0/5").lsn
        (LogPlace(lsn=5, commit=9, rows=3, system=None, timeline=None, tables={}), 5)
        """
        known: Any = {"lsn": position} if isinstance(position, str) else position
        try:
            texts = known["lsn"], known.get("commit", "0/0")
            if not all(_LSN.fullmatch(text) for text in texts):
                raise ValueError
            lsn, commit = map(lsn_of, texts)
            cluster = known.get("system"), known.get("timeline")
            return LogPlace(lsn, commit, int(known.get("rows", 0)), *cluster, {**known.get("tables", {})})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            msg = f"{place}: a position is a place in the log, as '0/16B3748'; got {position!r}"
            raise UsageError(msg) from error

    @property
    def position(self) -> dict[str, Any]:
        """The place as a value of JSON."""
        within = {"commit": text_of_lsn(self.commit), "rows": self.rows} if self.commit else {}
        known = {"system": self.system, "timeline": self.timeline} if self.system else {}
        tables = {"tables": self.tables} if self.tables else {}
        return {"lsn": text_of_lsn(self.lsn), **within, **known, **tables}

    def behind(self, lsn: int) -> LogPlace:
        """Return the place behind a transaction."""
        return replace(self, lsn=lsn, commit=0, rows=0)

    def within(self, commit: int, rows: int) -> LogPlace:
        """Return the place behind some changes of the next transaction."""
        return replace(self, commit=commit, rows=rows)

    def of_server(self, place: str, system: str, timeline: int, history: bytes) -> LogPlace:
        """Return the place as one of a server; raise ``TraceError`` if its log has another past.

        ``history``: that of its timeline, which is needed where this place is of another one.
        """
        if self.system is not None and self.system != system:
            reason = f"it was of the cluster {self.system}, and this is {system}: it was made again"
            raise self.gone(place, reason)
        if self.timeline is not None and self.timeline != timeline:
            branch = left_at(history, self.timeline)
            if branch is None or branch < max(self.lsn, self.commit):
                there = "does not come from it" if branch is None else f"has left it at {text_of_lsn(branch)}"
                reason = (
                    f"it was of timeline {self.timeline}, and timeline {timeline} {there}: it was restored"
                )
                raise self.gone(place, reason)
        return replace(self, system=system, timeline=timeline)

    def gone(self, place: str, reason: str) -> TraceError:
        """Return the error for a place that is not there any more."""
        within = (
            f", {self.rows:,} rows of the transaction at {text_of_lsn(self.commit)}" if self.commit else ""
        )
        return TraceError(
            f"{place}: changes behind {text_of_lsn(self.lsn)}{within}, the next to read, are no longer there "
            f"({reason}): {BEGIN_AGAIN}"
        )


def left_at(history: bytes, timeline: int) -> int | None:
    """Return where the log has left a timeline, by the history of a later one; None: it never was in it.

    >>> left_at(b"1\\t0/A\\tno recovery target specified\\n", 1), left_at(b"1\\t0/A\\tbefore", 2)
    (10, None)
    """
    branches = {int(number): lsn_of(place.decode()) for number, place in _BRANCH.findall(history)}
    return branches.get(timeline)
