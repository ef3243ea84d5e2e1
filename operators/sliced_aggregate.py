"""SlicedAggregate: aggregates of windows of many definitions over one stream, which share its slices.

What is asked of a stream in windows of several lengths is mostly the same work.  A tuple goes once into the partial
aggregate of its slice, however many definitions there are, and each window is put together from the slices it has.

    Pass       results, as soon as a promise completes their window (and group); never tuples.
               What one promise completes leaves by window end, then in the order of the definitions, then in
               the order in which groups came.
    Keep       one partial aggregate for each (group, slice) that an open window of any definition needs, in
               columns, and the keys of groups that have one.  Group-wise promises until the linear one
               catches up.
    Propagate  linear      the end (start, by ``stamp``) of the earliest window still open, of all definitions
               group-wise  the same for each group, if its attributes are among ``by``
               each only when it has grown.  Joint promises whose attributes are the
               progressing one and some of ``by`` close windows and end here (7.2).
               Others are dropped.
    Cost       O(rings) a tuple; a punctuation O(slices of the windows it closes) for definitions whose lengths
               are within a factor of two, and O(windows closed); all in kernels.  Order needed: none.

A slice is as long as what all edges of windows have in common (``slicing/shared_slices.py``).  Definitions for which
that would be far too fine share a ring of slices with fewer others, or with none; ``explain`` tells.

Source: Traub et al., Efficient window aggregation with general stream slicing, EDBT 2019 (Scotty); Krishnamurthy, Wu,
Franklin, On-the-fly sharing, SIGMOD 2006; thesis 6.2 (panes), 7.2 (joint punctuation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.slicing.shared_slices import Slicing, shared
from oop_engine.operators.slicing.slice_groups import SliceGroups
from oop_engine.operators.slicing.slice_results import SliceResults
from oop_engine.operators.slicing.window_assigner import bind
from oop_engine.operators.slicing.window_limits import MOST_WINDOWS
from oop_engine.operators.slicing.window_results import Stamp, checked
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Extents, Sliding, Tumbling, Windows

__all__ = ["SlicedAggregate"]

_WHAT = "SlicedAggregate"
_FEW = 3  # definitions that are all named in a drawing


class SlicedAggregate(Operator):
    """``aggregates`` (output name to aggregate) of each window of each of ``windows`` (name to definition), by group.

    Output: ``by``, ``window`` (the definition's name, a string), ``window_start``, ``window_end``, the aggregates;
    progressing attribute is ``window_end`` (``window_start`` if ``stamp="start"``), of the input's type and unit.  The
    rows of a definition are those of ``WindowAggregate``.  Definitions are ``Tumbling`` or ``Sliding``.
    Raises ``GraphError`` if others are given, or if lengths, columns, types or names
    do not fit; ``ContractError`` if an integer sum passes 64 bits.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators.aggregates import Count
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> windows = {"short": Tumbling(10), "long": Sliding(range=30, slide=15)}
    >>> count = SlicedAggregate(windows, {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [12, 3]})))
    []
    >>> (_, page), promise = count.on_punctuation(0, Linear(15))
    >>> page.to_pylist()[0]
    {'window': 'short', 'window_start': 0, 'window_end': 10, 'n': 1}
    >>> page.to_pylist()[1:], promise
    ([{'window': 'long', 'window_start': -15, 'window_end': 15, 'n': 2}], (0, Linear(below=20)))
    """

    waits = "results"

    def __init__(
        self, windows: Mapping[str, Windows], aggregates: Mapping[str, Aggregation],
        by: Sequence[str] = (), *, stamp: Stamp = "end",
    ) -> None:  # fmt: skip
        self.by = checked(aggregates, by, stamp, _WHAT)
        if not isinstance(windows, Mapping) or not windows:
            msg = f"{_WHAT}: windows must be named definitions, such as {{'1 min': Tumbling('1 min')}}; got {windows!r}"
            raise GraphError(msg)
        if not all(isinstance(name, str) for name in windows):
            msg = f"{_WHAT}: names of windows must be strings; got {list(windows)}"
            raise GraphError(msg)
        for name, definition in windows.items():
            if not isinstance(definition, Tumbling | Sliding):
                msg = (
                    f"{_WHAT}: windows must be Tumbling or Sliding, for others have no slices to share; "
                    f"got {definition!r} as {name!r}: use a WindowAggregate for it"
                )
                raise GraphError(msg)
        self.windows = dict(windows)
        self.aggregates = dict(aggregates)
        self.stamp: Stamp = stamp

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        results = self._results(inputs[0])
        for slicing in shared(results.definitions):
            if slicing.longest > MOST_WINDOWS:
                name = list(self.windows)[int(slicing.shape[3, -1])]
                msg = (
                    f"{_WHAT}: a window must have at most {MOST_WINDOWS:,} slices; {name!r} has {slicing.longest:,} "
                    f"of {slicing.length} {inputs[0].unit}: take a range, slide and origin with a larger common divisor"
                )
                raise GraphError(msg)
        return (results.schema,)

    def explain(self, inputs: tuple[Schema, ...]) -> str:
        schema = inputs[0]
        names = list(self.windows)
        return "; ".join(
            _told(slicing, names, schema.unit) for slicing in shared(list(self._extents(schema).values()))
        )

    def _extents(self, schema: Schema) -> dict[str, Extents]:
        return {name: bind(of, schema, self.by, f"{_WHAT}: {name!r}") for name, of in self.windows.items()}

    def _results(self, schema: Schema) -> SliceResults:
        return SliceResults(self._extents(schema), self.aggregates, schema, self.by, self.stamp, _WHAT)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return [(name,) for name in self.by]

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in self.by else None,)

    def open(self) -> None:
        schema = self.schemas_in[0]
        results = self._results(schema)
        self._groups = SliceGroups(results, schema, self.by, shared(results.definitions))

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self._groups.add_at(page, page.times)
        yield from ()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        yield from self._groups.take(punctuation)

    def state(self) -> State:
        return self._groups.state()

    def save(self) -> dict[str, Any]:
        return self._groups.save()

    def load(self, state: Saved) -> None:
        self._groups.load(state)

    def describe(self) -> str:
        named = [f"{name!r}: {describe_value(definition)}" for name, definition in self.windows.items()]
        if len(named) > _FEW:
            named = [named[0], f"... {len(named)} definitions", named[-1]]
        asked = ", ".join(
            f"{name}={describe_value(aggregate)}" for name, aggregate in self.aggregates.items()
        )
        by = f"; by {', '.join(self.by)}" if self.by else ""
        return f"{_WHAT}({', '.join(named)}; {asked}{by})"


def _told(slicing: Slicing, names: Sequence[str], unit: str) -> str:
    some = [names[number] for number in sorted(slicing.shape[3].tolist())]
    share = "shared by" if len(some) > 1 else "of"
    return (
        f"slices of {slicing.length} {unit} {share} {', '.join(map(repr, some))}: "
        f"{int(slicing.shape[1].min())} to {slicing.longest} a window, one ring"
    )
