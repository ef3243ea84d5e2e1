"""Windows of neighbouring tuples, one for each tuple: ``RowsBetween`` (ROWS BETWEEN, lag and lead of SQL)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.punctuation import FOREVER, shift
from oop_engine.core.schema import Schema
from oop_engine.operators.values.columns import spread
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView, checked_tie, ties

__all__ = ["FARTHEST", "Neighbours", "RowsBetween"]

Integers = NDArray[np.int64]
FARTHEST = 1 << 40
"""The largest offset, in tuples: more than a group has, and sums of offsets and ranks fit 64 bits."""


@checked_arguments
@dataclass(frozen=True)
class RowsBetween:
    """For each tuple the tuples from the offset ``first`` to ``last`` of its group, both included, in order of time.

    Negative offsets are tuples before it, 0 is the tuple itself.  (-9, 0) is ``ROWS BETWEEN 9 PRECEDING AND CURRENT
    ROW``, (-1, -1) with ``First`` is ``lag``, (1, 1) is ``lead``.  At the ends of a group a window has fewer tuples, or
    none: nulls, and a count of 0.  Extents are ``[t, t + 1)``, of the tuple itself.  ``carry``: columns of the tuple
    that results have before their extents.  ``tie``: columns that order tuples of one time, before their arrival.

    A window is complete once a bound has passed its tuple, and with ``last`` above 0 so many later ones of its group.
    Until then the bounds of results stop before it: a group that pauses delays windows of a later operator.
    Raises ``GraphError`` unless ``first <= last``, both at most 2^40 away.  State: the last ``-first`` tuples of each
    group, and those that wait.  O(1) a tuple.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.aggregates import First
    >>> from oop_engine.operators import WindowAggregate
    >>> schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
    >>> lag = WindowAggregate(RowsBetween(-1, -1, carry=("v",)), {"before": First("v")}).opened(schema)
    >>> list(lag.on_page(0, Page.of(schema, {"ts": [12, 1, 4], "v": [3, 5, 9]})))
    []
    >>> (_, page), _ = lag.on_punctuation(0, Linear(10))
    >>> [(row["v"], row["before"]) for row in page.to_pylist()]
    [(5, None), (9, 5)]
    """

    first: int
    last: int
    carry: Sequence[str] = ()
    tie: Sequence[str] = ()

    def bound(self, schema: Schema, place: str = "RowsBetween") -> Neighbours:
        """Return the definition over the columns of ``schema``."""
        for name, value in (("first", self.first), ("last", self.last)):
            if abs(value) > FARTHEST:
                msg = f"{place}: {name} must be at most 2^40 tuples away; got {value}"
                raise GraphError(msg)
        if self.first > self.last:
            msg = f"{place}: first must not be behind last; got first={self.first}, last={self.last}"
            raise GraphError(msg)
        schema.require(self.carry, f"{place}: carry")
        return Neighbours(self.first, self.last, tuple(self.carry), checked_tie(self.tie, schema, place))


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
        gone = np.maximum(view.cut, 0)
        stop = np.where(view.ended, view.done, np.maximum(view.done - max(self.end, 0), gone))
        groups, ranks = spread(gone, stop - gone)
        own = view.row(view.places, groups, ranks)
        low = view.row(view.places, groups, ranks + self.begin)
        high = view.row(view.places, groups, ranks + self.end + 1)
        keep = view.row(view.places, np.arange(stop.size), stop + min(self.begin, 0))
        more = [] if view.kept is None else [column.take(pa.array(own)) for column in view.kept.columns]
        return Due(groups, view.first[own], view.first[own] + 1, low, high, keep, stop, more)

    def next_due(self, view: SliceView) -> Integers:
        return np.full(view.bounds.size, FOREVER)  # what waits, waits for tuples, or for the end

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        waiting = view.row(view.places, np.arange(view.bounds.size), np.maximum(view.cut, 0))
        some = waiting < view.begins[1:]
        least = np.full(view.bounds.size, FOREVER)
        least[some] = view.first[waiting[some]] + (stamp == "end")
        return least

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return bounds if stamp == "start" else shift(bounds, 1)
