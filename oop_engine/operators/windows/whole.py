"""The global window: all tuples of a group, complete when the group or the stream ends.

Its extent follows from its tuples, ``[first, last + 1)``, so it is a window that merges (``windows/merging.py``).  A
stream that never ends gives no result; a group that a group-wise punctuation ends gives its own.

Source: Akidau et al., The Dataflow Model, VLDB 2015 (global windows); Traub et al., Scotty, TODS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError
from oop_engine.core.punctuation import FOREVER, shift
from oop_engine.core.schema import Schema
from oop_engine.operators.values.columns import new_rows
from oop_engine.operators.windows.definition import Integers
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView
from oop_engine.operators.windows.merging import Merging

__all__ = ["Ended", "Global", "Whole"]


@checked_arguments
@dataclass(frozen=True)
class Global:
    """All tuples of a group: one window ``[first, last + 1)``, put out when the group or the stream ends.

    >>> import pyarrow as pa
    >>> from oop_engine import FOREVER, Linear, Page, Schema
    >>> from oop_engine.operators import Count, WindowAggregate
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> count = WindowAggregate(Global(), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [7, 3]})))
    []
    >>> (_, page), _ = count.on_punctuation(0, Linear(FOREVER))
    >>> page.to_pylist()
    [{'window_start': 3, 'window_end': 8, 'n': 2}]
    """

    def bound(self, schema: Schema, place: str = "Global") -> Whole:
        """Return the definition in units of ``schema``'s progressing attribute, of which it needs none."""
        return Whole()


@dataclass(frozen=True)
class Whole(Merging):
    """The window of all tuples of a group, for the store of windows that merge."""

    single: ClassVar[bool] = True

    @property
    def retains(self) -> str:
        return "the window of each key: it is complete when the key or the stream ends"

    def ordered(self) -> Ended:
        """Return the windows as folded on the bound."""
        return Ended()

    def check(self, times: Integers) -> None:
        """Raise ``ContractError`` if the windows of these times would not fit 64 bits."""
        if times.size and int(times.max()) >= FOREVER - 1:
            msg = f"windows: positions must be below {FOREVER - 1} for ends to fit 64 bits; got {times.max()}"
            raise ContractError(msg)

    def begins(self, slots: Integers, first: Integers, last: Integers) -> NDArray[np.bool_]:
        """Return which runs, sorted by slot, then first, begin a window: the first of each slot."""
        return new_rows(slots)

    def ends(self, last: Integers) -> Integers:
        """Return the ends of windows, by their last times."""
        return last + 1

    def complete(self, last: Integers, bounds: Integers | int) -> NDArray[np.bool_]:
        """Return which runs no later tuple can join: those of groups that are over."""
        return np.broadcast_to(np.equal(bounds, FOREVER), last.shape)

    def least_end(self, bounds: Integers) -> Integers:
        """Return the least end of a window of later tuples alone; sentinels stay."""
        return shift(bounds, 1)


@dataclass(frozen=True)
class Ended(Folding):
    """Windows ``[first, last + 1)`` of whole groups, folded on the bound.  A group has one slice."""

    @property
    def retains(self) -> str:
        return "the window of each key: it is complete when the key or the stream ends"

    def words(self) -> str:
        return "a group each, complete when it ends"

    def places(self, final: FinalTuples) -> Integers:
        return np.zeros_like(final.times)

    def due(self, view: SliceView) -> Due:
        groups, begins = np.flatnonzero(view.ended), view.begins[:-1]
        rows = begins[groups]
        return Due(groups, view.first[rows], view.last[rows] + 1, rows, rows + 1, begins, view.cut)

    def next_due(self, view: SliceView) -> Integers:
        return np.full(view.bounds.size, FOREVER)
