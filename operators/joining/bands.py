"""Bands: which pairs of timestamps a window join may match (thesis 5.2.1, 7.1).

A band is given with lengths (``"2 s"``); ``fitted`` turns it into a rule in the unit of the
progressing attributes.  Sides are numbered 0 (left) and 1 (right).  A rule answers four
questions: which timestamps of the other side a tuple can match (``reach``), from which
timestamp on a side's tuples must be kept (``keep_from``), the bounds of the results
(``output_bounds``), and whether a box of both bounds meets the band (``meets``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.punctuation import FOREVER, NEVER, shift
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length

__all__ = ["Band", "BandRule", "Rule", "TumblingBand", "TumblingRule"]

Times = NDArray[np.int64]
Bound = TypeVar("Bound", int, NDArray[np.int64])


@dataclass(frozen=True)
class Band:
    """Match if ``l.ts - before <= r.ts <= l.ts + after``; both ends belong to the band.

    Either length may be negative as long as the band is not empty.  CQL's
    ``L [RANGE a], R [RANGE b]`` is ``Band(before=b, after=a)``.
    """

    before: Length
    after: Length

    def fitted(self, schema: Schema, place: str) -> BandRule:
        """Return the rule in the schema's unit; ``GraphError`` if the band is empty."""
        before = schema.length(self.before, f"{place}: before")
        after = schema.length(self.after, f"{place}: after")
        if before + after < 0:
            got = f"before={before}, after={after}"
            msg = f"{place}: before + after must be at least 0 {schema.unit}; got {got}: the band is empty"
            raise GraphError(msg)
        return BandRule(before, after)


@dataclass(frozen=True)
class TumblingBand:
    """Match if both timestamps are in one window: ``floor((ts - origin) / range)`` is equal."""

    range: Length
    origin: Length = 0

    def fitted(self, schema: Schema, place: str) -> TumblingRule:
        """Return the rule in the schema's unit; ``GraphError`` unless the range is positive."""
        length = schema.length(self.range, f"{place}: range")
        if length <= 0:
            msg = f"{place}: range must be more than 0 {schema.unit}; got {self.range!r}"
            raise GraphError(msg)
        return TumblingRule(length, schema.length(self.origin, f"{place}: origin"))


@dataclass(frozen=True)
class BandRule:
    """A band in whole units.

    >>> rule = BandRule(before=2, after=5)
    >>> rule.output_bounds(left=60, right=61)
    (56, 58)
    """

    before: int
    after: int

    def reach(self, side: int, times: Times) -> tuple[Times, Times]:
        """Return the first and the last timestamp of the other side that each time can match."""
        back, ahead = (self.before, self.after) if side == 0 else (self.after, self.before)
        return _moved(times, -back), _moved(times, ahead)

    def keep_from(self, side: int, bound: Bound) -> Bound:
        """Return the least timestamp a tuple of ``side`` must have to match anything yet.

        ``bound``: that of the *other* side.  Left tuples are kept while
        ``bound <= ts + after``, right ones while ``bound <= ts + before``.
        """
        return shift(bound, -(self.after if side == 0 else self.before))

    def output_bounds(self, left: int, right: int) -> tuple[int, int]:
        """Return the bounds of the left and of the right timestamp of later results."""
        return min(left, self.keep_from(0, right)), min(right, self.keep_from(1, left))

    def meets(self, left: int, right: int) -> bool:
        """Tell whether the corner of the box ``l.ts < left, r.ts < right`` is in the band.

        If it is not, one individual bound already implies the box.
        """
        if NEVER in (left, right) or FOREVER in (left, right):
            return left == right == FOREVER
        return left - self.before <= right <= left + self.after


@dataclass(frozen=True)
class TumblingRule:
    """Windows of one length in whole units.

    >>> TumblingRule(range=60, origin=0).output_bounds(left=70, right=130)
    (70, 60)
    """

    range: int
    origin: int

    def reach(self, side: int, times: Times) -> tuple[Times, Times]:
        """Return the first and the last timestamp of each time's window."""
        ahead = self.range - 1 - self._within(times)
        return self._start(times), np.minimum(times, FOREVER - ahead) + ahead

    def keep_from(self, side: int, bound: Bound) -> Bound:
        """Return the start of the first window that ``bound`` leaves open.

        The floor of the bound, not the ceiling: that window can still get tuples.
        """
        if isinstance(bound, np.ndarray):
            return np.where((bound == NEVER) | (bound == FOREVER), bound, self._start(bound))
        return bound if bound in (NEVER, FOREVER) else self._start(bound)

    def output_bounds(self, left: int, right: int) -> tuple[int, int]:
        """Return the bounds of the left and of the right timestamp of later results."""
        return min(left, self.keep_from(0, right)), min(right, self.keep_from(1, left))

    def meets(self, left: int, right: int) -> bool:
        """Tell whether both bounds are in one window."""
        if NEVER in (left, right) or FOREVER in (left, right):
            return left == right == FOREVER
        return self._start(left) == self._start(right)

    def _start(self, times: Bound) -> Bound:
        """Return the start of each time's window, or ``NEVER`` if that is below int64."""
        within = self._within(times)
        if isinstance(times, np.ndarray):
            return np.maximum(times, NEVER + within) - within
        return max(times - within, NEVER)

    def _within(self, times: Bound) -> Bound:
        """Return how far into its window each time is; nothing wraps round."""
        return (times % self.range - self.origin % self.range) % self.range


Rule = BandRule | TumblingRule


def _moved(times: Times, by: int) -> Times:
    """Return ``times + by``, stopping at the ends of int64 (times are data, not sentinels)."""
    return np.clip(times, NEVER - min(by, 0), FOREVER - max(by, 0)) + by
