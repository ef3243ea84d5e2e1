"""Windows from marker to marker: ``Delimited``.

Markers are tuples like others, in the window that they begin.  A late one splits no slice: it is known, as all markers
are, before the tuples around it are folded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.schema import Schema
from oop_engine.operators.values.columns import ends_of
from oop_engine.operators.values.expressions import (
    Expression,
    columns_of,
    evaluate,
    mask_of,
    require_boolean,
    text_of,
)
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView

__all__ = ["Delimited", "Marked"]

Integers = NDArray[np.int64]
Scope = Literal["group", "stream"]


@checked_arguments
@dataclass(frozen=True, eq=False)
class Delimited:
    """Windows ``[marker, next marker)``, cut by the tuples for which ``marker`` is true.

    ``marker``: a predicate as ``Filter`` takes it.  ``scope``: markers cut the windows of their own group, or of all
    groups of the "stream".  The first window begins with the first tuple; the last one ends behind the last tuple.  A
    window is complete once a marker is at the bound or below.  Tuples of one time are in one window.
    Raises ``GraphError`` if the marker is not boolean.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Count, WindowAggregate
    >>> schema = Schema({"ts": pa.int64(), "gate": pa.bool_()}, "ts", "s")
    >>> count = WindowAggregate(Delimited("gate"), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [7, 1, 12, 3], "gate": [True, False, True, False]})))
    []
    >>> (_, page), _ = count.on_punctuation(0, Linear(12))
    >>> page.to_pylist()
    [{'window_start': 1, 'window_end': 7, 'n': 2}, {'window_start': 7, 'window_end': 12, 'n': 1}]
    """

    marker: Expression
    scope: Scope = "group"

    def bound(self, schema: Schema, place: str = "Delimited") -> Marked:
        """Return the definition of windows between markers."""
        if self.scope not in get_args(Scope):
            msg = f"{place}: scope must be 'group' or 'stream'; got {self.scope!r}"
            raise GraphError(msg)
        require_boolean(f"{place}: marker", [self.marker], schema)
        return Marked(self.marker, whole_stream=self.scope == "stream")


@dataclass(frozen=True, eq=False)
class Marked(Folding):
    """Slices are the windows; a slice's place is the rank of the first tuple of its marker's time."""

    marker: Expression
    whole_stream: bool = False

    tagged = True
    peeks: ClassVar[bool] = True

    @property
    def retains(self) -> str:
        return (
            "the open window of each key: its next marker may be in any later row"
            if not self.whole_stream
            else ""
        )

    def words(self) -> str:
        cut = "of any group " * self.whole_stream
        return f"all tuples from one {cut}to the next with {text_of(self.marker)}"

    def columns(self, schema: Schema) -> frozenset[str]:
        return columns_of([self.marker], schema)

    def tags(self, page: Page, numbers: Integers) -> NDArray[np.int8]:
        [marks] = evaluate("Delimited: marker", [self.marker], [pa.bool_()], page.batch)
        return mask_of(marks).astype(np.int8)

    def places(self, final: FinalTuples) -> Integers:
        begins = final.begins()
        of_time = begins.cumsum() - 1
        marked = np.zeros(of_time[-1] + 1, np.bool_)
        marked[of_time[final.tags != 0]] = True
        cuts = begins & marked[of_time]
        first = np.zeros(cuts.size, np.bool_)
        first[final.starts] = True
        at = np.maximum.accumulate(np.where(cuts | first, np.arange(cuts.size), 0))
        return np.where(cuts[at], final.ranks[at], np.maximum(final.opened, 0)[final.groups])

    def due(self, view: SliceView) -> Due:
        groups = view.groups
        rows = np.arange(groups.size)
        closed = view.ended | view.tagged
        last = view.begins[1:] - 1
        ends = ends_of(view.first, 0)
        ends[last] = np.where(view.ended, view.last[last] + 1, view.bounds)
        closing = np.ones(rows.size, np.bool_)
        closing[last] = closed
        rows = rows[closing]
        keep = last + closed
        return Due(groups[rows], view.first[rows], ends[rows], rows, rows + 1, keep, view.cut)

    def next_due(self, view: SliceView) -> Integers:
        # the store finds a marker right at a bound
        return np.full(view.bounds.size, FOREVER)
