"""Windows that end with tuples: ``SlideByTuple`` (thesis 5.1.5; its class of windows that need tuples ahead, FCA)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, shift
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView, checked_times
from oop_engine.operators.windows.grid import positive

__all__ = ["Asked", "SlideByTuple"]

Integers = NDArray[np.int64]
Of = Literal["tuple", "arrival", "rank"]


@checked_arguments
@dataclass(frozen=True)
class SlideByTuple:
    """For a tuple at time ``t`` the window ``(t - range, t]``, written ``[t - range + 1, t + 1)``.

    ``of``: each "tuple" has one, or each ``every``-th of its group by "arrival" or by "rank", in order of time.  Tuples
    of one time have equal windows, a row each.  ``carry``: columns of the tuple that results have before their
    extents.  ``own``: extents are ``[t, t + 1)``, of the tuple itself.  A window is complete once a bound has passed
    its tuple.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Count, WindowAggregate
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> count = WindowAggregate(SlideByTuple(5), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [1, 9, 3]})))
    []
    >>> (_, page), _ = count.on_punctuation(0, Linear(5))
    >>> page.to_pylist()
    [{'window_start': -3, 'window_end': 2, 'n': 1}, {'window_start': -1, 'window_end': 4, 'n': 2}]
    """

    range: Length
    every: int = 1
    of: Of = "tuple"
    carry: Sequence[str] = ()
    own: bool = False

    @property
    def by_arrival(self) -> bool:
        """Whether the order of arrival decides which tuples have a window."""
        return self.of == "arrival"

    def bound(self, schema: Schema, place: str = "SlideByTuple") -> Asked:
        """Return the definition in whole units of ``schema``'s progressing attribute."""
        if self.of not in get_args(Of):
            msg = f"{place}: of must be 'tuple', 'arrival' or 'rank'; got {self.of!r}"
            raise GraphError(msg)
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            msg = f"{place}: every must be a number of tuples, at least 1; got {self.every!r}"
            raise GraphError(msg)
        if self.of == "tuple" and self.every > 1:
            msg = f"{place}: every={self.every} counts tuples; add of='rank' (by time) or of='arrival'"
            raise GraphError(msg)
        if isinstance(self.carry, str):
            msg = (
                f"{place}: carry must be a tuple of column names; got {self.carry!r}: write ({self.carry!r},)"
            )
            raise GraphError(msg)
        schema.require(self.carry, f"{place}: carry")
        by_arrival = self.of == "arrival"
        return Asked(
            positive(self.range, "range", schema, place), self.every, self.of, tuple(self.carry),
            tagged=by_arrival, numbered=by_arrival, counts=self.of != "tuple", own=self.own,
        )  # fmt: skip


@dataclass(frozen=True)
class Asked(Folding):
    """Slices are the tuples of one time; they stay as far back as a later window may reach."""

    range: int
    every: int
    of: Of
    reads: tuple[str, ...] = ()
    tagged: bool = False
    numbered: bool = False
    counts: bool = False
    own: bool = False

    @property
    def retains(self) -> str:
        return (
            "the number of rows of each key: it shows which later rows have a window" if self.counts else ""
        )

    @property
    def trailing(self) -> int | None:
        return self.range if self.of == "tuple" and not (self.reads or self.own) else None

    def words(self) -> str:
        each = {
            "tuple": "tuple",
            "rank": f"{self.every} tuples by time",
            "arrival": f"{self.every} tuples to arrive",
        }
        return f"the tuples of one time, a window for each {each[self.of]}"

    def more(self, schema: Schema) -> list[tuple[str, pa.DataType]]:
        return [(name, schema.type_of(name)) for name in self.reads]

    def check(self, times: Integers) -> None:
        checked_times(times, self.range, 1)

    def columns(self, schema: Schema) -> frozenset[str]:
        return frozenset(self.reads)

    def tags(self, page: Page, numbers: Integers) -> NDArray[np.int8]:
        asking: NDArray[np.int8] = ((numbers + 1) % self.every == 0).astype(np.int8)
        return asking

    def places(self, final: FinalTuples) -> Integers:
        begins = final.begins()
        places: Integers = final.ranks[np.maximum.accumulate(np.where(begins, np.arange(begins.size), 0))]
        return places

    def due(self, view: SliceView) -> Due:
        everyone = np.arange(view.begins.size - 1)
        keep = view.row(view.first, everyone, shift(view.bounds, 1 - self.range))
        if view.final is None:
            nothing = everyone[:0]
            return Due(nothing, nothing, nothing, nothing, nothing, keep, view.cut)
        rows = self._asking(view.final)
        groups, ends = view.of_final[view.final.groups[rows]], view.final.times[rows] + 1
        more = [view.final.page.column(name).take(pa.array(rows)) for name in self.reads]
        starts = ends - self.range
        low, high = view.row(view.first, groups, starts), view.row(view.first, groups, ends)
        return Due(groups, ends - 1 if self.own else starts, ends, low, high, keep, view.cut, more)

    def _asking(self, final: FinalTuples) -> Integers:
        if self.of == "arrival":
            return np.flatnonzero(final.tags)
        return np.flatnonzero((final.ranks + 1) % self.every == 0)

    def next_due(self, view: SliceView) -> Integers:
        return shift(view.first[view.begins[:-1]], self.range)

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        return np.full(view.bounds.size, FOREVER)

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        if stamp == "end":
            return shift(bounds, 1)
        return bounds if self.own else shift(bounds, 1 - self.range)
