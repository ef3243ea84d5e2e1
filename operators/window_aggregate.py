"""WindowAggregate: aggregates of windows, in one pass over tuples in any order (WID).

Each tuple goes at once into the partial aggregate of its pane, or into those of every
window it is in, and is gone.  Punctuation, not order, tells which windows are complete.

    Pass       results, as soon as a promise completes their window (and group); never tuples.
    Keep       one partial aggregate for each open (group, pane), or (group, window), in
               columns, and the keys of groups that have one; adapting, the tuples of groups that
               have too few for it.  Group-wise promises until the linear one catches up.
    Propagate  linear      the end (start, by ``stamp``) of the earliest window still open
               group-wise  the same for each group, if its attributes are among ``by``
               each only when it has grown.  Joint promises whose attributes are the
               progressing one and some of ``by`` close windows and end here (7.2).
               Others are dropped.
    Cost       by panes O(1) a tuple, and O(panes passed + windows closed) a punctuation;
               by windows O(windows of the tuple) a tuple, and O(windows closed) a
               punctuation, at most O(windows open); all in kernels.  Order needed: none
               (``operators/in_order/buffering_aggregate.py`` is the in-order twin).

Panes are what the starts and ends of windows cut the attribute into; windows are put together
from them when they close (``operators/slicing/pane_ring.py``).  Tuples far from the others in time go
into windows all the same.  Which way is taken, and when groups that turn out to be sparse have
their tuples kept instead (AdaptWID), is told in ``operators/slicing/window_strategy.py``.

Tuple-based windows of the whole stream close as pages come, all at once: their aggregates slide over it
(``operators/slicing/row_windows.py``).

``empty=True`` adds the windows without a tuple between a group's first and last one.  That
such a window exists is known only when the group's next tuple has come, so the promise
stays behind the last window of each group until then, or until the group is ended by a
group-wise ``FOREVER``.  Landmark windows run to the stream's last tuple: their promise
stays behind that, and a group is kept for as long as the stream lasts.

Source: thesis 6.1 (figures 6-1 to 6-4), 6.2 (Paned-WID), 6.3 (AdaptWID), 7.2 (joint
punctuation); panes: Li et al., No Pane, No Gain, SIGMOD Record 2005; stacks: Theodorakis et al.,
Hammer Slide, ADMS 2018.  A bound closes all windows with end <= bound, not only the one whose id
equals the punctuation's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.consolidate import Consolidate
from oop_engine.operators.partial_aggregate import PartialAggregate
from oop_engine.operators.slicing.row_windows import RowWindows, slidable
from oop_engine.operators.slicing.window_assigner import Tagger, bind
from oop_engine.operators.slicing.window_limits import check_overlap
from oop_engine.operators.slicing.window_results import Results, Stamp, checked
from oop_engine.operators.slicing.window_strategy import Query, can_adapt, chosen, makes_table
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Over, PartitionedTupleBased, TupleBased, Windows, divisible_by

__all__ = ["Strategy", "WindowAggregate"]

Strategy = Literal["auto", "windows", "panes", "adaptive", "stacks"]


class WindowAggregate(Operator):
    """``aggregates`` (output name to aggregate) of each window, for each group of ``by``.

    Output: ``by``, ``window_start``, ``window_end``, the aggregates; progressing attribute is
    ``window_end`` (``window_start`` if ``stamp="start"``), of the input's type and unit; in
    tuple-based windows it is a number of tuples, unit ``rows``.  A group without a tuple in a
    window gives no result there, unless ``empty``.  ``strategy``: "windows" (WID, as in the
    thesis), "panes", which takes windows of one length and no ``empty`` ones,
    "adaptive" (AdaptWID), which takes windows of one length over the attribute and no ``empty``
    ones, "stacks" (two stacks, Hammer Slide), which takes tuple-based windows without groups, or "auto":
    by stacks where that can be, by panes where that is sooner, adapting once groups are sparse.
    Raises ``GraphError`` if lengths, columns, types or names do not fit; ``ContractError`` if an
    integer sum passes 64 bits.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators.aggregates import Count
    >>> from oop_engine.operators.windows import Sliding
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> count = WindowAggregate(Sliding(range=20, slide=10), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [12, 3]})))
    []
    >>> (_, page), promise = count.on_punctuation(0, Linear(15))
    >>> page.to_pylist(), promise
    ([{'window_start': -10, 'window_end': 10, 'n': 1}], (0, Linear(below=20)))
    """

    def __init__(
        self, windows: Windows, aggregates: Mapping[str, Aggregation], by: Sequence[str] = (),
        *, empty: bool = False, stamp: Stamp = "end", strategy: Strategy = "auto",
    ) -> None:  # fmt: skip
        self.by = checked(aggregates, by, stamp, "WindowAggregate")
        self.windows = windows
        self.waits = None if isinstance(windows, TupleBased | PartitionedTupleBased) else "results"
        self.aggregates = dict(aggregates)
        self.empty = empty
        self.stamp: Stamp = stamp
        if strategy not in get_args(Strategy):
            names = ", ".join(map(repr, get_args(Strategy)))
            msg = f"WindowAggregate: strategy must be one of {names}; got {strategy!r}"
            raise GraphError(msg)
        self.strategy: Strategy = strategy

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        results = self._results(inputs[0])
        if self.strategy == "panes" and not self._has_panes(results):
            msg = (
                "WindowAggregate: strategy='panes' needs windows of one length, and no empty ones; "
                f"got {self.describe()}: leave the choice to strategy='auto'"
            )
            raise GraphError(msg)
        if self.strategy == "adaptive" and not can_adapt(self._query(results, inputs[0])):
            msg = (
                "WindowAggregate: strategy='adaptive' needs windows of one length over the progressing "
                f"attribute, and no empty ones; got {self.describe()}: leave the choice to strategy='auto'"
            )
            raise GraphError(msg)
        if self.strategy == "stacks" and not self._has_stacks(results):
            msg = (
                "WindowAggregate: strategy='stacks' needs TupleBased windows, no groups, no empty ones, and no "
                f"First, Last or UserDefined aggregate; got {self.describe()}: leave the choice to strategy='auto'"
            )
            raise GraphError(msg)
        if not (self.strategy in ("auto", "stacks") and self._has_stacks(results)):
            query = self._query(results, inputs[0])
            in_table = makes_table(query, chosen(query, self.strategy))
            check_overlap(results.extents, "WindowAggregate", in_table=in_table)
        return (results.schema,)

    def explain(self, inputs: tuple[Schema, ...]) -> str:
        results = self._results(inputs[0])
        if self.strategy in ("auto", "stacks") and self._has_stacks(results):
            return "stacks: tuple-based windows of the whole stream slide over it, page by page"
        return chosen(self._query(results, inputs[0]), self.strategy).why

    def _query(self, results: Results, schema: Schema) -> Query:
        read = {column for aggregate in self.aggregates.values() for column in aggregate.columns}
        return Query(results, schema, self.by, read, self.empty)

    def _has_panes(self, results: Results) -> bool:
        return not (self.empty or results.extents.landmark)

    def _has_stacks(self, results: Results) -> bool:
        whole = results.extents.over is Over.ROWS and not (self.by or self.empty)
        return whole and slidable(results.parts)

    def _results(self, schema: Schema) -> Results:
        extents = bind(self.windows, schema, self.by, "WindowAggregate")
        return Results(extents, self.aggregates, schema, self.by, self.stamp, "WindowAggregate")

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return divisible_by(self.windows, self.by, inputs[0])

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in self.by else None,) * len(inputs)

    def halves(self, inputs: tuple[Schema, ...]) -> tuple[Operator, Operator] | None:
        first = PartialAggregate(self.windows, self.aggregates, self.by)
        try:
            first.output_schemas(inputs)
        except GraphError:  # of windows without panes
            return None
        return first, Consolidate(
            self.windows, self.aggregates, self.by, tuples=inputs[0], empty=self.empty, stamp=self.stamp
        )

    def open(self) -> None:
        schema = self.schemas_in[0]
        results = self._results(schema)
        stacks = self.strategy in ("auto", "stacks") and self._has_stacks(results)
        self._tagger = Tagger(results.extents, schema, self.by)
        self._rows = RowWindows(results, schema) if stacks else None
        if self._rows is None:
            query = self._query(results, schema)
            choice = chosen(query, self.strategy)
            self._groups = query.groups(choice.kept, adapting=choice.adapting)

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if self._rows is not None:
            yield from self._rows.add(page)
            return
        positions, promise = self._tagger.tag(page)
        self._groups.add_at(page, positions)
        if promise is not None:
            yield from self._groups.take(promise)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        translated = self._tagger.translate(punctuation)
        if translated is not None:
            yield from (self._rows or self._groups).take(translated)

    def state(self) -> State:
        if self._rows is not None:
            return self._rows.state()
        held, tagged = self._groups.state(), self._tagger.nbytes
        return held + State(nbytes=tagged) if tagged else held

    def save(self) -> dict[str, Any]:
        if self._rows is not None:
            return {"rows": self._rows.save()}
        return {"tagger": self._tagger.save(), "groups": self._groups.save()}

    def load(self, state: Saved) -> None:
        if self._rows is not None:
            self._rows.load(state.part("rows"))
            return
        self._tagger.load(state.part("tagger"))
        self._groups.load(state.part("groups"))

    def describe(self) -> str:
        asked = ", ".join(
            f"{name}={describe_value(aggregate)}" for name, aggregate in self.aggregates.items()
        )
        by = f"; by {', '.join(self.by)}" if self.by else ""
        how = "" if self.strategy == "auto" else f"; by {self.strategy}"
        return f"WindowAggregate({describe_value(self.windows)}; {asked}{by}{how})"
