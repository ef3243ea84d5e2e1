"""Windows of a number of tuples: ``TupleBased``, ``PartitionedTupleBased`` (thesis 5.1.3), ``RowsBetween`` (SQL)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length, to_units
from oop_engine.operators.windows.folding import checked_tie
from oop_engine.operators.windows.definition import Over
from oop_engine.operators.windows.grid import LONGEST, Extents
from oop_engine.operators.windows.ranked import Neighbours, Ranked

__all__ = ["FARTHEST", "PartitionedTupleBased", "RowsBetween", "TupleBased"]

Order = Literal["arrival", "time"]
FARTHEST = 1 << 40
"""The largest offset, in tuples: more than a group has, and sums of offsets and ranks fit 64 bits."""


@dataclass(frozen=True)
class _Numbered:
    """Windows over the numbers that tuples have, by arrival or by time."""

    range: Length
    slide: Length
    order: Order = "arrival"
    tie: Sequence[str] = ()

    @property
    def by_arrival(self) -> bool:
        """Whether tuples are numbered as they arrive."""
        return self.order == "arrival"

    @property
    def completed_by(self) -> str:
        """Return "rows" where the last row of a window completes it, else "punctuation"."""
        return "rows" if self.by_arrival else "punctuation"


@checked_arguments
@dataclass(frozen=True)
class TupleBased(_Numbered):
    """Every ``slide`` tuples, the last ``range`` tuples (ROWS).

    The first tuple of the stream has number 0; window ``w`` takes the numbers
    ``[(w+1)*slide - range, (w+1)*slide)``.  ``order``: tuples are numbered as they arrive, or by "time"; equal times by
    the columns ``tie``, then as they arrive.  In order of time numbers are final once a bound has passed the tuple;
    results also have ``time_start`` and ``time_end``, of their first and behind their last tuple, of which the second
    is the progressing attribute.  At the end windows leave that are not full.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Sum, WindowAggregate
    >>> schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
    >>> total = WindowAggregate(TupleBased(2, 2, order="time"), {"total": Sum("v")}).opened(schema)
    >>> list(total.on_page(0, Page.of(schema, {"ts": [1, 19, 10], "v": [1, 5, 2]})))
    []
    >>> (_, page), punctuation = total.on_punctuation(0, Linear(30))
    >>> page.to_pylist()
    [{'window_start': 0, 'window_end': 2, 'time_start': 1, 'time_end': 11, 'total': 3}]
    >>> punctuation
    (0, Linear(below=20))
    """

    def bound(self, schema: Schema, place: str = "TupleBased") -> Extents | Ranked:
        return _rows(self, Over.ROWS, schema, place)


@checked_arguments
@dataclass(frozen=True)
class PartitionedTupleBased(_Numbered):
    """Windows of a number of tuples, as ``TupleBased``, numbered within their group (thesis 5.1.3)."""

    def bound(self, schema: Schema, place: str = "PartitionedTupleBased") -> Extents | Ranked:
        return _rows(self, Over.GROUP_ROWS, schema, place)


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


def _rows(windows: _Numbered, over: Over, schema: Schema, place: str) -> Extents | Ranked:
    lengths = {"range": windows.range, "slide": windows.slide}
    numbers = {name: to_units(value, "rows", f"{place}: {name}") for name, value in lengths.items()}
    for name, value in numbers.items():
        if not 0 < value <= LONGEST:
            msg = f"{place}: {name} must be > 0 and in rows; got {name}={value}"
            raise GraphError(msg)
    if windows.order not in get_args(Order):
        msg = f"{place}: order must be 'arrival' or 'time'; got {windows.order!r}"
        raise GraphError(msg)
    tie = checked_tie(windows.tie, schema, place)
    if windows.order == "time":
        whole = over is Over.ROWS
        return Ranked(numbers["range"], numbers["slide"], tie, whole_stream=whole, partitioned=not whole)
    if tie:
        msg = f"{place}: tie={tie} orders equal times, and goes with order='time'; got order='arrival'"
        raise GraphError(msg)
    return Extents(numbers["range"], numbers["slide"], 0, over)
