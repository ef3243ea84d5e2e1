"""Bands: which pairs of timestamps a window join may match (thesis 5.2.1, 7.1).

A band is given with lengths (``"2 s"``); ``fitted`` turns it into a rule in the unit of the
progressing attributes.  Sides are numbered 0 (left) and 1 (right).  A rule answers four
questions: which timestamps of the other side a tuple can match (``reach``), from which
timestamp on a side's tuples must be kept (``keep_from``), the bounds of the results
(``output_bounds``), and whether a box of both bounds meets the band (``meets``).  The last
two follow from the first two.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.punctuation import FOREVER, NEVER, shift
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length

__all__ = [
    "AsOf", "AsOfRule", "Band", "BandRule", "Bands", "Rule", "TumblingBand", "TumblingRule", "WindowIdBand",
    "WindowIdRule",
]  # fmt: skip

Times = NDArray[np.int64]
Bound = TypeVar("Bound", int, NDArray[np.int64])


@checked_arguments
@dataclass(frozen=True)
class Band:
    """Match if ``l.ts - before <= r.ts <= l.ts + after``; both ends belong to the band.

    ``before`` and ``after`` are how far the right record may lie from the left one, into the past and the future::

        left               l at 10
        right   5 ........ 10 .......... 30       Band(before=5, after=20) matches r from 5 to 30
                           10 .......... 30       Band(0, 20): r up to 20 after l (a click after its ad)
                5 ........ 10                     Band(5, 0): r up to 5 before l

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


@checked_arguments
@dataclass(frozen=True)
class TumblingBand:
    """Match if both timestamps are in one window: ``floor((ts - origin) / range)`` is equal."""

    range: Length
    origin: Length | datetime = 0

    def fitted(self, schema: Schema, place: str) -> TumblingRule:
        """Return the rule in the schema's unit; ``GraphError`` unless the range is positive."""
        length = schema.length(self.range, f"{place}: range")
        if length <= 0:
            msg = f"{place}: range must be more than 0 {schema.unit}; got {self.range!r}"
            raise GraphError(msg)
        return TumblingRule(length, schema.instant(self.origin, f"{place}: origin"))


@checked_arguments
@dataclass(frozen=True)
class WindowIdBand:
    """Match if both tuples are in windows of one id; each pair once (thesis 5.2.2).

    The left windows are ``Sliding(range_left, slide)``, the right ones ``Sliding(range_right,
    slide)``; those with equal ids end together.  ``slide`` = both ranges is a
    ``TumblingBand``; a slide of 1 is ``Band(range_right - 1, range_left - 1)``.
    """

    range_left: Length
    range_right: Length
    slide: Length
    origin: Length | datetime = 0

    def fitted(self, schema: Schema, place: str) -> WindowIdRule:
        """Return the rule in the schema's unit; ``GraphError`` unless both ranges are at least the slide."""
        slide = schema.length(self.slide, f"{place}: slide")
        ranges = tuple(
            schema.length(length, f"{place}: {name}")
            for name, length in (("range_left", self.range_left), ("range_right", self.range_right))
        )
        if slide <= 0 or min(ranges) < slide:
            got = f"range_left={ranges[0]}, range_right={ranges[1]}, slide={slide}"
            msg = f"{place}: ranges must be at least the slide, and that more than 0 {schema.unit}; got {got}"
            raise GraphError(msg)
        return WindowIdRule(ranges[0], ranges[1], slide, schema.instant(self.origin, f"{place}: origin"))


@checked_arguments
@dataclass(frozen=True)
class AsOf:
    """Match the latest right tuple of the key that is not after the left one.

    ``within``: and not more than this before it; None: however long ago.  Right tuples of one
    time all match.  Inner and left joins take it, without a residual.
    """

    within: Length | None = None

    def fitted(self, schema: Schema, place: str) -> AsOfRule:
        """Return the rule in the schema's unit; ``GraphError`` if ``within`` is negative."""
        within = None if self.within is None else schema.length(self.within, f"{place}: within")
        if within is not None and within < 0:
            msg = f"{place}: within must be at least 0 {schema.unit}; got {self.within!r}"
            raise GraphError(msg)
        return AsOfRule(within)


Bands = Band | TumblingBand | WindowIdBand | AsOf
"""A band with lengths, as a user gives it."""


class Rule(Protocol):
    """A band in whole units."""

    def reach(self, side: int, times: Times) -> tuple[Times, Times]:
        """Return the first and the last timestamp of the other side that each time can match."""

    def keep_from(self, side: int, bound: Bound) -> Bound:
        """Return the least timestamp a tuple of ``side`` must have to match anything yet.

        ``bound``: that of the *other* side.
        """

    @property
    def width(self) -> int:
        """About how many timestamps of the other side a tuple can match."""
        first, last = self.reach(0, np.zeros(1, np.int64))
        return int(last[0]) - int(first[0]) + 1

    def output_bounds(self, left: int, right: int) -> tuple[int, int]:
        """Return the bounds of the left and of the right timestamp of later results."""
        return min(left, self.keep_from(0, right)), min(right, self.keep_from(1, left))

    def meets(self, left: int, right: int) -> bool:
        """Return whether the corner of the box ``l.ts < left, r.ts < right`` is in the band.

        If it is not, one individual bound already implies the box.
        """
        if NEVER in (left, right) or FOREVER in (left, right):
            return left == right == FOREVER
        first, last = self.reach(0, np.array([left]))
        return bool(first[0] <= right <= last[0])


@dataclass(frozen=True)
class BandRule(Rule):
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
        """Keep left tuples while ``bound <= ts + after``, right ones while ``bound <= ts + before``."""
        return shift(bound, -(self.after if side == 0 else self.before))


@dataclass(frozen=True)
class TumblingRule(Rule):
    """Windows of one length in whole units.

    >>> TumblingRule(range=60, origin=0).output_bounds(left=70, right=130)
    (70, 60)
    """

    range: int
    origin: int

    def reach(self, side: int, times: Times) -> tuple[Times, Times]:
        """Return the first and the last timestamp of each time's window."""
        within = _within(times, self.range, self.origin)
        return _moved(times, -within), _moved(times, self.range - 1 - within)

    def keep_from(self, side: int, bound: Bound) -> Bound:
        """Return the start of the first window that ``bound`` leaves open.

        The floor of the bound, not the ceiling: that window can still get tuples.
        """
        return _lowered(bound, _within(bound, self.range, self.origin))


@dataclass(frozen=True)
class WindowIdRule(Rule):
    """Windows of two ranges and one slide in whole units.

    >>> rule = WindowIdRule(range_left=10, range_right=10, slide=5, origin=0)
    >>> [times.tolist() for times in rule.reach(0, np.array([3]))]
    [[-5], [9]]
    """

    range_left: int
    range_right: int
    slide: int
    origin: int

    def reach(self, side: int, times: Times) -> tuple[Times, Times]:
        """Return the start of the first, and the last timestamp of the last, of the windows of the same ids."""
        own, other = self._ranges(side)
        first_end = self.slide - _within(times, self.slide, self.origin)
        last_end = own - _within(times, self.slide, self.origin - own)
        return _moved(times, first_end - other), _moved(times, last_end - 1)

    def keep_from(self, side: int, bound: Bound) -> Bound:
        """Return the start of the first of the side's windows whose partner ``bound`` leaves open."""
        own, _ = self._ranges(side)
        return _lowered(bound, own - self.slide + _within(bound, self.slide, self.origin))

    def _ranges(self, side: int) -> tuple[int, int]:
        left, right = self.range_left, self.range_right
        return (left, right) if side == 0 else (right, left)


@dataclass(frozen=True)
class AsOfRule(Rule):
    """The latest one in whole units: a left tuple has to wait until it is known which that is."""

    within: int | None

    def reach(self, side: int, times: Times) -> tuple[Times, Times]:
        """Return the stretch before a left time, behind a right one."""
        if self.within is None:
            return (np.full_like(times, NEVER), times) if side == 0 else (times, np.full_like(times, FOREVER))
        return (_moved(times, -self.within), times) if side == 0 else (times, _moved(times, self.within))

    def keep_from(self, side: int, bound: Bound) -> Bound:
        """Keep left tuples until the bound passes them, right ones for ``within``, or until there is a later one."""
        if side == 0 or self.within is not None:
            return bound if side == 0 else shift(bound, -(self.within or 0))
        if isinstance(bound, np.ndarray):
            return np.where(bound == FOREVER, FOREVER, NEVER)
        return bound if bound == FOREVER else NEVER

    def output_bounds(self, left: int, right: int) -> tuple[int, int]:
        """Return the bounds of the left and of the right timestamp: left tuples that wait are later than both."""
        bound = min(left, right)
        return bound, self.keep_from(1, bound)

    def meets(self, left: int, right: int) -> bool:
        """Never but at the end: a left tuple that waits may be in any box."""
        return left == right == FOREVER


def _moved(times: Times, by: int | Times) -> Times:
    """Return ``times + by``, stopping at the ends of int64 (times are data, not sentinels)."""
    moved: Times  # no array of one number, no ``clip``: both are felt in pages of a few rows
    if isinstance(by, int):
        moved = np.maximum(times, NEVER - by) if by < 0 else np.minimum(times, FOREVER - by)
    else:
        moved = np.maximum(times, NEVER - np.minimum(by, 0))
        moved = np.minimum(moved, FOREVER - np.maximum(by, 0))
    return moved + by


def _within(times: Bound, slide: int, origin: int) -> Bound:
    """Return how far each time is behind the last multiple of ``slide``; nothing wraps round."""
    return (times % slide - origin % slide) % slide


def _lowered(bound: Bound, by: Bound) -> Bound:
    """Return a bound moved down by ``by``, at most to ``NEVER``; the ends stay as they are."""
    if isinstance(bound, np.ndarray):
        return np.where((bound == NEVER) | (bound == FOREVER), bound, np.maximum(bound, NEVER + by) - by)
    return bound if bound in (NEVER, FOREVER) else max(bound - by, NEVER)
