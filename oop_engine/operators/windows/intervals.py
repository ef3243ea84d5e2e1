"""Windows that are given one by one: ``Intervals`` and ``FixedBand`` (one of these)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.values.columns import spread
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView
from oop_engine.operators.windows.grid import instant_in, positive

__all__ = ["FixedBand", "Intervals", "Stretches"]

Integers = NDArray[np.int64]
_MOST = 1 << 16  # intervals


@checked_arguments
@dataclass(frozen=True)
class Intervals:
    """Windows of these extents ``[start, end)``, any overlaps: shifts, campaigns, rounds of a match.

    ``extents``: pairs (start, end) of values of the progressing attribute: integers in its unit, a ``datetime``
    (without a zone: UTC) where it is a timestamp, or lengths from its 0 on, such as ``"8 h"``.  Raises ``GraphError``
    if there is none, or more than 65,536, or one that does not end behind its start.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Count, WindowAggregate
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> shifts = WindowAggregate(Intervals([(0, 480), (450, 930)]), {"n": Count()}).opened(schema)
    >>> list(shifts.on_page(0, Page.of(schema, {"ts": [470, 12, 500]})))
    []
    >>> (_, page), punctuation = shifts.on_punctuation(0, Linear(490))
    >>> page.to_pylist(), punctuation
    ([{'window_start': 0, 'window_end': 480, 'n': 2}], (0, Linear(below=930)))
    """

    extents: Sequence[Sequence[Length | datetime]]

    def __post_init__(self) -> None:
        if isinstance(self.extents, list):
            extents = tuple(tuple(one) if isinstance(one, list) else one for one in self.extents)
            object.__setattr__(self, "extents", extents)

    def bound(self, schema: Schema, place: str = "Intervals") -> Stretches:
        """Return the definition in whole units of ``schema``'s progressing attribute."""
        if not isinstance(self.extents, tuple | list) or not 0 < len(self.extents) <= _MOST:
            got = f"{len(self.extents):,}" if isinstance(self.extents, tuple | list) else repr(self.extents)
            msg = f"{place}: extents must be 1 to {_MOST:,} pairs (start, end) in a list; got {got}"
            raise GraphError(msg)
        ends = []
        for extent in self.extents:
            if not isinstance(extent, tuple | list) or len(extent) != 2:
                msg = f"{place}: an extent must be a pair (start, end); got {extent!r}"
                raise GraphError(msg)
            start, end = (instant_in(side, "extents", schema, place) for side in extent)
            if start >= end:
                msg = f"{place}: an extent must end behind its start; got {extent!r} ({schema.unit})"
                raise GraphError(msg)
            ends.append((end, start))
        return Stretches(tuple(sorted(set(ends))))


@checked_arguments
@dataclass(frozen=True)
class FixedBand:
    """One window ``[start, start + length)``; ``start`` is written as in ``Intervals``.

    >>> FixedBand(18, 10)
    FixedBand(start=18, length=10)
    """

    start: Length | datetime
    length: Length

    def bound(self, schema: Schema, place: str = "FixedBand") -> Stretches:
        """Return the definition in whole units of ``schema``'s progressing attribute."""
        start = instant_in(self.start, "start", schema, place)
        return Stretches(((start + positive(self.length, "length", schema, place), start),))


@dataclass(frozen=True)
class Stretches(Folding):
    """Intervals (end, start) in whole units, sorted.  A slice lies between neighbouring edges; its place is its number.

    A group's number is how many intervals, by their end, have left.
    """

    sides_of: tuple[tuple[int, int], ...]
    varying: ClassVar[str] = "are given, and their versions are emitted as retractions alone"

    def words(self) -> str:
        return f"the stretches between the edges of {len(self.sides_of)} intervals"

    @cached_property
    def _ends(self) -> Integers:
        return np.array([end for end, _ in self.sides_of])

    @cached_property
    def _starts(self) -> Integers:
        return np.array([start for _, start in self.sides_of])

    @cached_property
    def _edges(self) -> Integers:
        return np.union1d(self._starts, self._ends)

    @cached_property
    def _covered(self) -> NDArray[np.bool_]:
        """Which stretches are in an interval; there is none before the first and behind the last edge."""
        change = np.zeros(self._edges.size, np.int64)
        np.add.at(change, self._edges.searchsorted(self._starts), 1)
        np.subtract.at(change, self._edges.searchsorted(self._ends), 1)
        covered: NDArray[np.bool_] = change.cumsum() > 0
        return covered

    @cached_property
    def _least(self) -> Integers:
        """The least start from each interval on; ``FOREVER`` behind the last."""
        return np.append(np.minimum.accumulate(self._starts[::-1])[::-1], FOREVER)

    def check(self, times: Integers) -> None:
        """Any time will do: extents are given."""

    def places(self, final: FinalTuples) -> Integers:
        places = self._edges.searchsorted(final.times, side="right") - 1
        return np.where((places >= 0) & self._covered[places], places, -1)

    def due(self, view: SliceView) -> Due:
        first_open = np.maximum(view.cut, 0)
        cut = np.where(view.ended, self._ends.size, self._ends.searchsorted(view.bounds, side="right"))
        many = np.maximum(cut - first_open, 0)
        groups, which = spread(first_open, many)
        starts, ends = self._starts[which], self._ends[which]
        low = view.row(view.places, groups, self._edges.searchsorted(starts))
        high = view.row(view.places, groups, self._edges.searchsorted(ends))
        (filled,) = (low < high).nonzero()
        cut = np.maximum(first_open, cut)
        keep = view.row(view.places, np.arange(cut.size), self._edges.searchsorted(self._least[cut]))
        return Due(groups[filled], starts[filled], ends[filled], low[filled], high[filled], keep, cut)

    def next_due(self, view: SliceView) -> Integers:
        return np.append(self._ends, FOREVER)[np.maximum(view.cut, 0)]

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        return np.full(view.bounds.size, FOREVER)  # what is open ends behind the bound, as later windows do

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        of = self._least if stamp == "start" else np.append(self._ends, FOREVER)
        least = of[self._ends.searchsorted(bounds, side="right")]
        return np.where(bounds == NEVER, NEVER, least)
