"""Grids: windows that begin and end at fixed places.

Their definition is ``Extents``, with the three functions of the thesis: which windows a tuple is in (``wids``), what a
window covers (``extent``), and which windows a bound closes (``closed_by``).  For aggregates that depend on the order
of tuples they are folded on the bound, as ``Gridded`` and ``Since``.

Window ``w`` of a sliding window covers ``[origin + (w+1)*slide - range, origin + (w+1)*slide)``.
``range`` need not be a multiple of ``slide``; where ``slide`` is larger there are gaps, and
a tuple in a gap is in no window.  ``wids`` is derived from that extent: the ceilings of
equation 5.3 are one too high wherever ``time - origin`` is no multiple of ``slide``.

Source: thesis 5.1 (semantics), equations 5.1 to 5.12; ``origin`` stands for its min(T),
which nobody knows while a disordered stream runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

import numpy as np

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.values.columns import spread
from oop_engine.operators.windows.definition import Definition, Integers, KnownBy, Over, Windows
from oop_engine.operators.windows.folding import (
    Due,
    FinalTuples,
    Folding,
    SliceView,
    checked_many,
    checked_times,
)

__all__ = [
    "LONGEST",
    "Extents",
    "Gridded",
    "Since",
    "divisible_by",
    "instant_in",
    "is_grid",
    "length_in",
    "positive",
]

_FAR = 1 << 62
LONGEST = 2**60
"""The longest length: leaves room for sums of three in int64."""


@dataclass(frozen=True)
class Extents(Definition):
    """A window definition in whole units; ``range`` None: everything since ``origin``.

    ``lulls``: of these, windows behind the last tuple are results too once a bound passes their end.

    All functions take and return int64 arrays and cost O(their length).
    """

    range: int | None
    slide: int
    origin: int
    over: Over = Over.ATTRIBUTE
    lulls: bool = False

    known_by: ClassVar[KnownBy] = "position"
    varying: ClassVar[str] = ""

    @property
    def whole_stream(self) -> bool:  # type: ignore[override]
        """Whether a group's windows depend on other groups: landmark windows run to the stream's last tuple."""
        return self.landmark or self.over is Over.ROWS

    @cached_property
    def landmark(self) -> bool:
        """Return whether a window also takes all that came before."""
        return self.range is None

    @property
    def extents(self) -> Extents:  # type: ignore[override]
        """The grid that windows lie on: this one."""
        return self

    @property
    def retains(self) -> str:
        if self.landmark:
            return "an aggregate of each key: landmark windows contain it until the stream ends"
        if self.over is Over.GROUP_ROWS:
            return "the open windows of each key: only later rows of the key complete them"
        return ""

    @property
    def overlap(self) -> int:
        """How many windows a tuple is in at most; of landmark windows, in how many it is kept."""
        return 1 if self.range is None else -(-self.range // self.slide)

    @property
    def panes(self) -> tuple[int, int]:
        """How many panes a window of one length has, and how many a slide: those between starts and ends of windows.

        >>> Extents(range=240, slide=60, origin=0).panes, Extents(25, 10, 0).panes
        ((4, 1), (5, 2))
        """
        assert self.range is not None
        whole, rest = divmod(self.range, self.slide)
        return (2 * whole + 1, 2) if rest else (whole, 1)

    def ordered(self) -> Folding:
        """Return the windows as folded on the bound."""
        return Since(self) if self.landmark else Gridded(self)

    def places(self, offsets: Any) -> Any:
        """Return in which slide offsets from the origin are."""
        return offsets // self.slide

    def wids(self, times: Integers) -> tuple[Integers, Integers]:
        """Return the first and the last window each tuple is in; last < first: in none.

        A landmark window takes all that came since the origin, so there the last one is
        ``FOREVER``.  Raises ``ContractError`` if an extent would not fit 64 bits.
        """
        if times.size:
            self.check(int(np.minimum.reduce(times)), int(np.maximum.reduce(times)))
        offset = times - self.origin
        first = offset // self.slide
        if self.range is None:
            return first, np.where(offset >= 0, FOREVER, first - 1)
        if self.range % self.slide == 0:
            return first, first + (self.range // self.slide - 1)
        return first, (offset + self.range) // self.slide - 1

    def extent(self, wids: Integers) -> tuple[Integers, Integers]:
        """Return the start (inclusive) and the end (exclusive) of windows."""
        end = wids * self.slide
        end += self.origin + self.slide
        return (np.full(end.shape, self.origin) if self.range is None else end - self.range), end

    def closed_by(self, bounds: Integers | int) -> Integers:
        """Return the first window still open when no later position is below ``bounds``.

        All smaller ones are closed: those with ``end <= bound``.  ``NEVER`` and
        ``FOREVER`` stay what they are.
        """
        low, high = self.safe
        if isinstance(bounds, int):
            inside = NEVER < bounds < FOREVER
            return np.asarray((min(max(bounds, low), high) - self.origin) // self.slide if inside else bounds)
        given = np.asarray(bounds, np.int64)
        cuts = np.minimum(np.maximum(given, low), high)
        cuts -= self.origin
        cuts //= self.slide
        return np.where((given == NEVER) | (given == FOREVER), given, cuts)

    def between(self, below: int, newest: int) -> list[tuple[int, int]]:
        """Return start and end of the first window that ends behind a bound, and of the last that a time is in.

        Only the first if the time is before it, and none where nobody knows.  Windows between them: one every slide.

        >>> Extents(range=60, slide=60, origin=0).between(below=70, newest=200)
        [(60, 120), (180, 240)]
        """
        if self.landmark or not NEVER < below < FOREVER:
            return []
        wids = [int(self.closed_by(below))]
        if newest > NEVER and (last := int(self.wids(np.array([newest]))[1][0])) >= wids[0]:
            wids.append(last)
        starts, ends = self.extent(np.array(wids))
        return list(zip(starts.tolist(), ends.tolist(), strict=True))

    def pane_starts(self, times: Integers) -> Integers:
        """Return the start of the pane that each time is in: the last window edge there was.

        >>> Extents(range=7, slide=5, origin=0).pane_starts(np.array([0, 2, 3, 4, 5]))
        array([0, 0, 3, 3, 5])
        """
        assert self.range is not None
        offset = times - self.origin
        opened = offset // self.slide * self.slide
        closed = (offset + self.range) // self.slide * self.slide - self.range
        return self.origin + np.maximum(opened, closed)

    def boundary(self, bounds: Integers | int) -> Integers:
        """Return bounds rounded down to the end of the last window they close."""
        cuts = self.closed_by(bounds)
        sentinel = (cuts == NEVER) | (cuts == FOREVER)
        return np.where(sentinel, cuts, self.origin + np.where(sentinel, 0, cuts) * self.slide)

    def starts(self, wids: Integers | int) -> Integers:
        """Return the starts of windows, as bounds: ``NEVER`` and ``FOREVER`` stay."""
        return self._sides(np.asarray(wids, np.int64), 0)

    def ends(self, wids: Integers | int) -> Integers:
        """Return the ends of windows, as bounds: ``NEVER`` and ``FOREVER`` stay."""
        return self._sides(np.asarray(wids, np.int64), 1)

    def _sides(self, wids: Integers, side: int) -> Integers:
        sentinel = (wids == NEVER) | (wids == FOREVER)
        return np.where(sentinel, wids, self.extent(np.where(sentinel, 0, wids))[side])

    @cached_property
    def safe(self) -> tuple[int, int]:
        """The least and the largest position for which extents fit 64 bits."""
        margin = (self.range or 0) + 2 * self.slide + abs(self.origin)
        return NEVER + 1 + margin, FOREVER - 1 - margin

    def check(self, least: int, most: int) -> None:
        """Raise ``ContractError`` if the extents of positions from ``least`` to ``most`` would not fit 64 bits."""
        low, high = self.safe
        if least < low or most > high:
            value = least if least < low else most
            msg = f"windows: positions must lie in [{low}, {high}] for extents to fit 64 bits; got {value}"
            raise ContractError(msg)


def is_grid(definition: Definition) -> TypeGuard[Extents]:
    """Return whether the windows of a tuple are known from its position."""
    return definition.known_by == "position"


@dataclass(frozen=True)
class Since(Folding):
    """Landmark windows, folded on the bound.  Slices are slides; those of windows that have left become one.

    The stream's number is its first window that is still open.
    """

    extents: Extents
    whole_stream: bool = True

    @property
    def retains(self) -> str:
        return "an aggregate of each key: landmark windows contain it until the stream ends"

    def words(self) -> str:
        return "slides since the origin, those of windows that have left together"

    def check(self, times: Integers) -> None:
        checked_times(times, _FAR, _FAR)

    def places(self, final: FinalTuples) -> Integers:
        first, last = self.extents.wids(final.times)
        return np.where(last >= first, first, -1)

    def due(self, view: SliceView) -> Due:
        first_open, end = self._open(view), view.places[view.begins[1:] - 1] + 1
        closed = self.extents.closed_by(view.bounds)
        stop = np.where(view.ended, end, closed if self.extents.lulls else np.minimum(end, closed))
        many = np.maximum(stop - first_open, 0)
        checked_many(
            many, first_open * self.extents.slide + self.extents.origin, self.extents.slide, "Landmark"
        )
        groups, wids = spread(first_open, many)
        starts, ends = self.extents.extent(wids)
        cut, everyone = np.maximum(first_open, stop), np.arange(many.size)
        high, join = view.row(view.places, groups, wids + 1), view.row(view.places, everyone, cut)
        low = view.begins[:-1]
        return Due(groups, starts, ends, low[groups], high, low, cut, join=join)

    def _open(self, view: SliceView) -> Integers:
        return np.maximum(view.cut, view.places[view.begins[:-1]])

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        return self.extents.ends(self._open(view))

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return self.extents.ends(self.extents.closed_by(bounds))


@dataclass(frozen=True)
class Gridded(Folding):
    """Windows of ``extents``, of one length.  Slices are panes; a group's number is its first window still open."""

    extents: Extents

    @property
    def over(self) -> Over:  # type: ignore[override]
        return self.extents.over

    @property
    def retains(self) -> str:
        return self.extents.retains

    def words(self) -> str:
        return "panes of a grid"

    def check(self, times: Integers) -> None:
        checked_times(times, _FAR, _FAR)
        if times.size:
            self.extents.check(int(np.minimum.reduce(times)), int(np.maximum.reduce(times)))

    def places(self, final: FinalTuples) -> Integers:
        first, last = self.extents.wids(final.times)
        return np.where(last >= first, self.extents.pane_starts(final.times) + _FAR, -1)

    def due(self, view: SliceView) -> Due:
        cut = self.extents.closed_by(view.bounds)
        groups, at = view.groups, np.arange(view.places.size)
        first, last = self.extents.wids(view.first)
        there = np.where(at > view.begins[groups], last[at - 1] + 1, first)  # by the slice before
        low = np.maximum(np.maximum(first, there), view.cut[groups])
        stop = np.minimum(last + 1, cut[groups])
        many = np.where(stop > low, stop - low, 0)  # of a group without a bound it would not fit
        rows, wids = spread(low, many)
        starts, ends = self.extents.extent(wids)
        groups = groups[rows]
        low, high = view.row(view.first, groups, starts), view.row(view.first, groups, ends)
        everyone = np.arange(view.begins.size - 1)
        keep = view.row(view.first, everyone, self.extents.starts(cut))
        return Due(groups, starts, ends, low, high, keep, np.maximum(view.cut, cut))

    def next_due(self, view: SliceView) -> Integers:
        return self.least_open(view, "end")

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        first = self.extents.wids(view.first[view.begins[:-1]])[0]
        return self._stamp(np.maximum(first, view.cut), stamp)

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return self._stamp(self.extents.closed_by(bounds), stamp)

    def _stamp(self, wids: Integers, stamp: str) -> Integers:
        return self.extents.starts(wids) if stamp == "start" else self.extents.ends(wids)


def divisible_by(windows: Windows, by: Sequence[str], schema: Schema) -> list[tuple[str, ...]]:
    """Return the columns by which an aggregate of these windows may be divided, each by itself.

    All of its groups: but landmark windows run to the last tuple of the whole stream, and
    tuple-based ones count all of its tuples.
    """
    return [] if windows.bound(schema).whole_stream else [(name,) for name in by]


def positive(length: Length, name: str, schema: Schema, place: str) -> int:
    """Return a length in units of ``schema``; raise ``GraphError`` in the name of ``place`` if it is not > 0."""
    value = length_in(length, name, schema, place)
    if value <= 0:
        msg = (
            f"{place}: {name} must be > 0 and in the unit of {schema.progressing!r} "
            f"({schema.unit}); got {name}={value}"
        )
        raise GraphError(msg)
    return value


def length_in(length: Length, name: str, schema: Schema, place: str) -> int:
    """Return a length in units of ``schema``; raise ``GraphError`` in the name of ``place`` if it is too long."""
    value = length if length.__class__ is int else schema.length(length, f"{place}: {name}")
    if not -LONGEST <= value <= LONGEST:
        msg = f"{place}: {name} must be at most 2**60 {schema.unit}; got {name}={value}"
        raise GraphError(msg)
    return value


def instant_in(value: Length | datetime, name: str, schema: Schema, place: str) -> int:
    """Return a position in units of ``schema``; raise ``GraphError`` in the name of ``place`` if it is too far away."""
    instant = schema.instant(value, f"{place}: {name}")
    if not NEVER // 2 < instant < FOREVER // 2:
        msg = f"{place}: {name} must be within 2**62 {schema.unit} of 0; got {instant}"
        raise GraphError(msg)
    return instant
