"""Ranks: tuple-based windows in order of time, in whole units.

Slices have as many tuples as range and slide have in common, so every window is whole slices.  Ranks below the bound
are final: no tuple is ever shifted from one slice to the next.  (Scotty shifts, for it ranks tuples as they come.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER, shift
from oop_engine.core.schema import Schema
from oop_engine.operators.values.columns import spread
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView, ties

__all__ = ["Neighbours", "Ranked"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Ranked(Folding):
    """Every ``slide`` tuples the last ``range`` tuples, by (time, tie, arrival)."""

    range: int
    slide: int
    tie: tuple[str, ...] = ()
    whole_stream: bool = True
    partitioned: bool = False

    counts = True
    sides: ClassVar[tuple[str, str]] = ("time_start", "time_end")

    def more(self, schema: Schema) -> list[tuple[str, pa.DataType]]:
        return [("window_start", pa.int64()), ("window_end", pa.int64())]

    @property
    def retains(self) -> str:
        return (
            "the last rows of each key, and their number: later rows of the key share windows with them"
            if self.partitioned
            else ""
        )

    def words(self) -> str:
        return f"{self.slice} tuples each, ranked by time, {ties(self.tie)}"

    @cached_property
    def slice(self) -> int:
        """How many tuples a slice has."""
        return gcd(self.range, self.slide)

    def places(self, final: FinalTuples) -> Integers:
        places: Integers = final.ranks // self.slice
        if self.range < self.slide:
            places[final.ranks % self.slide < self.slide - self.range] = -1
        return places

    def due(self, view: SliceView) -> Due:
        first_open = np.maximum(view.cut, 0)
        full = view.done // self.slide
        stop = np.where(view.ended, (view.done - 1 + self.range) // self.slide, full)
        many = np.maximum(stop - first_open, 0)
        groups, windows = spread(first_open, many)
        ends = (windows + 1) * self.slide
        low = view.row(view.places, groups, (ends - self.range) // self.slice)
        high = view.row(view.places, groups, ends // self.slice)
        cut = np.maximum(first_open, full)
        keep = view.row(
            view.places, np.arange(many.size), ((cut + 1) * self.slide - self.range) // self.slice
        )
        numbers = [pa.array(ends - self.range), pa.array(ends)]
        return Due(groups, view.first[low], view.last[high - 1] + 1, low, high, keep, cut, numbers)

    def next_due(self, view: SliceView) -> Integers:
        return np.full(view.bounds.size, FOREVER)


@dataclass(frozen=True)
class Neighbours(Folding):
    """A slice is a tuple, its place is its rank.  A group's number is the rank of the first tuple that waits."""

    begin: int
    end: int
    keeps: tuple[str, ...] = ()
    tie: tuple[str, ...] = ()

    counts = True

    @property
    def retains(self) -> str:
        return "the last rows of each key, and their number: windows of later rows have them"

    def words(self) -> str:
        return f"one tuple, for each those from {self.begin:+d} to {self.end:+d}, {ties(self.tie)}"

    def more(self, schema: Schema) -> list[tuple[str, pa.DataType]]:
        return [(name, schema.type_of(name)) for name in self.keeps]

    def places(self, final: FinalTuples) -> Integers:
        return final.ranks

    def due(self, view: SliceView) -> Due:
        first_open = np.maximum(view.cut, 0)
        stop = np.where(view.ended, view.done, np.maximum(view.done - max(self.end, 0), first_open))
        groups, ranks = spread(first_open, stop - first_open)
        own = view.row(view.places, groups, ranks)
        low = view.row(view.places, groups, ranks + self.begin)
        high = view.row(view.places, groups, ranks + self.end + 1)
        keep = view.row(view.places, np.arange(stop.size), stop + min(self.begin, 0))
        more = [] if view.kept is None else [column.take(pa.array(own)) for column in view.kept.columns]
        return Due(groups, view.first[own], view.first[own] + 1, low, high, keep, stop, more)

    def next_due(self, view: SliceView) -> Integers:
        return np.full(view.bounds.size, FOREVER)  # windows wait for tuples, or for the end

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        waiting = view.row(view.places, np.arange(view.bounds.size), np.maximum(view.cut, 0))
        waits = waiting < view.begins[1:]
        lowest = np.full(view.bounds.size, FOREVER)
        lowest[waits] = view.first[waiting[waits]] + (stamp == "end")
        return lowest

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return bounds if stamp == "start" else shift(bounds, 1)
