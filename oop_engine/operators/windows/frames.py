"""Frames: windows from a tuple that enters to the next one that leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, shift
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.kernels.runs import frames
from oop_engine.operators.values.expressions import (
    Expression,
    columns_of,
    evaluate,
    mask_of,
    require_boolean,
    text_of,
)
from oop_engine.operators.windows.folding import (
    Due,
    FinalTuples,
    Folding,
    SliceView,
    checked_tie,
    checked_times,
    ties,
)
from oop_engine.operators.windows.grid import positive

__all__ = ["Framed", "Frames"]

Integers = NDArray[np.int64]
_ENTERS, _LEAVES = 1, 2
_NONE = -1  # no frame is open


@checked_arguments
@dataclass(frozen=True, eq=False)
class Frames:
    """A frame opens with the first tuple for which ``enter`` is true, and closes with the next one with ``leave``.

    First is so in order of time.  Both tuples are in it, and it is ``[first, last + 1)``.  Frames of a group do not
    overlap; tuples between them are in none.  ``most``: a frame has tuples of less than so long after its first, and
    closes then.  ``unfinished``: at the end, those still open leave too.  ``enter``, ``leave``: predicates as
    ``Filter`` takes them.  ``tie``: columns that order tuples of one time, before their arrival.
    Raises ``GraphError`` if a predicate is not boolean.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Max, WindowAggregate
    >>> schema = Schema({"ts": pa.int64(), "load": pa.int64()}, "ts", "s")
    >>> peak = Frames(enter=pc.field("load") > 80, leave=pc.field("load") < 50)
    >>> top = WindowAggregate(peak, {"top": Max("load")}).opened(schema)
    >>> list(top.on_page(0, Page.of(schema, {"ts": [4, 1, 2, 3, 5], "load": [95, 10, 85, 60, 40]})))
    []
    >>> (_, page), _ = top.on_punctuation(0, Linear(10))
    >>> page.to_pylist()
    [{'window_start': 2, 'window_end': 6, 'top': 95}]
    """

    enter: Expression
    leave: Expression
    most: Length | None = None
    unfinished: bool = False
    tie: Sequence[str] = ()

    def bound(self, schema: Schema, place: str = "Frames") -> Framed:
        """Return the definition in whole units of ``schema``'s progressing attribute."""
        require_boolean(f"{place}: enter and leave", [self.enter, self.leave], schema)
        most = 0 if self.most is None else positive(self.most, "most", schema, place)
        return Framed(self.enter, self.leave, most, self.unfinished, checked_tie(self.tie, schema, place))


@dataclass(frozen=True, eq=False)
class Framed(Folding):
    """Slices are the frames; a frame's place is the rank of its first tuple.  A group's number is its open frame."""

    enter: Expression
    leave: Expression
    most: int
    unfinished: bool
    tie: tuple[str, ...] = ()

    tagged = True

    @property
    def retains(self) -> str:
        return "" if self.most else "the open frame of each key: the row that closes it may still come"

    def words(self) -> str:
        return f"frames from {text_of(self.enter)} to {text_of(self.leave)}, {ties(self.tie)}"

    def check(self, times: Integers) -> None:
        checked_times(times, 0, self.most + 1)

    def columns(self, schema: Schema) -> frozenset[str]:
        return columns_of([self.enter, self.leave], schema).union(self.tie)

    def tags(self, page: Page, numbers: Integers) -> NDArray[np.int8]:
        both = evaluate("Frames", [self.enter, self.leave], [pa.bool_()] * 2, page.batch)
        enters, leaves = map(mask_of, both)
        return (enters * _ENTERS + leaves * _LEAVES).astype(np.int8)

    def places(self, final: FinalTuples) -> Integers:
        return self._scanned(final)[0]

    def _scanned(self, final: FinalTuples) -> tuple[Integers, Integers]:
        """Return the frame of each tuple, and of each group the one that stays open; -1: none."""
        places, still = np.empty(final.times.size, np.int64), np.empty(final.starts.size, np.int64)
        open_ = final.opened, final.since
        frames(final.starts, final.times, final.ranks, final.tags, open_, self.most, places, still)
        return places, still

    def due(self, view: SliceView) -> Due:
        cut = view.cut.copy()
        if view.final is not None:
            there = view.of_final >= 0
            cut[view.of_final[there]] = self._scanned(view.final)[1][there]
        last = view.begins[1:] - 1
        over = view.ended & self.unfinished
        if self.most:
            over = over | view.ended | (view.first[last] + self.most <= view.bounds)
        still = (view.places[last] == cut) & ~over
        cut[~still] = _NONE
        rows = np.ones(view.places.size, np.bool_)
        rows[last[still]] = False
        (ends,) = rows.nonzero()
        keep = view.begins[1:] - still
        return Due(view.groups[ends], view.first[ends], view.last[ends] + 1, ends, ends + 1, keep, cut)

    def next_due(self, view: SliceView) -> Integers:
        last = view.begins[1:] - 1
        return view.first[last] + self.most if self.most else np.full(last.size, FOREVER)

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        if stamp == "start" or self.most or self.unfinished:
            return super().least_open(view, stamp)
        return np.full(view.bounds.size, FOREVER)

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return bounds if stamp == "start" else shift(bounds, 1)
