"""WindowAggregate: aggregates of windows, in one pass over tuples in any order (WID).

Each tuple goes at once into the partial aggregate of its pane, or into those of every
window it is in, and is gone.  Punctuation, not order, tells which windows are complete.

    Pass       results, as soon as punctuation completes their window (and group); never tuples.
    Keep       one partial aggregate for each open (group, pane), or (group, window), in
               columns, and the keys of groups that have one; adapting, the tuples of groups that
               have too few for it.  Group-wise bounds until the linear one catches up.
               Until its key ends, whatever the linear bound is: the window of ``Global``, ``Delimited``
               and ``Frames``, the last rows of ``LastRows``, ``RowsBetween`` and ``PartitionedTupleBased``, the
               count of ``SlideByTuple(of="arrival")``, the last window with ``empty=True``; that of ``Landmark``
               until the stream ends.  ``explain`` shows these (``retains``).
    Propagate  linear      the end (start, by ``stamp``) of the earliest window still open
               group-wise  the same for each group, if its attributes are among ``by``
               each only when it has grown.  Joint punctuation whose attributes are the
               progressing one and some of ``by`` close windows and end here (7.2).
               Others are dropped.
    Cost       by panes O(1) a tuple, and O(panes passed + windows closed) a punctuation;
               by windows O(windows of the tuple) a tuple, and O(windows closed) a
               punctuation, at most O(windows open); all in kernels.  A group-wise punctuation costs
               its groups and their open windows; the first one about fewer columns than ``by`` looks
               at all groups.  Groups that no message names and that close no window cost nothing.
               Windows that need the order of time cost O(log tuples held) a tuple, and as much for
               each group that a punctuation names.  Order needed: none
               (``operators/in_order/buffering_aggregate.py`` is the in-order twin).

The starts and ends of windows cut the attribute into panes; windows are put together
from them when they close (``slicing/panes/pane_ring.py``).  Tuples far from the others in time go
into windows all the same.  ``slicing/strategy.py`` chooses between these ways, and when tuples of sparse
groups are kept instead (AdaptWID).

Several definitions in one operator share slices where they lie on grids (``slicing/stores/slice_ring.py``); sessions
are runs that merge (``slicing/stores/session_store.py``).  All of them close in ``slicing/closing.py``.

Tuple-based windows of the whole stream close as pages come, all at once: their aggregates slide over it
(``operators/slicing/row_windows.py``).

``empty=True`` adds the windows without a tuple between a group's first and last one.  That
such a window exists is known only when the group's next tuple has come, so the punctuation
stays behind the last window of each group until then, or until the group is ended by a
group-wise ``FOREVER``.  Landmark windows run to the stream's last tuple: their punctuation
stays behind that, and a group is kept for as long as the stream lasts.

Source: thesis 6.1 (figures 6-1 to 6-4), 6.2 (Paned-WID), 6.3 (AdaptWID), 7.2 (joint
punctuation); panes: Li et al., No Pane, No Gain, SIGMOD Record 2005; stacks: Theodorakis et al.,
Hammer Slide, ADMS 2018.  A bound closes all windows with end <= bound, not only the one whose id
equals the punctuation's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.change import Change, OpenWindows
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import EVERYTHING, Punctuation, Wants
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.levels.consolidate import Consolidate
from oop_engine.operators.levels.partial_aggregate import PartialAggregate
from oop_engine.operators.ordering.due_rows import DueRows, check_flush
from oop_engine.operators.slicing.accumulators import is_compiled
from oop_engine.operators.slicing.changing import Changing, changed_windows, read_change
from oop_engine.operators.slicing.checks import by_name, checked, checked_emit, one_of
from oop_engine.operators.slicing.closing import Closing
from oop_engine.operators.slicing.explained import explained, explained_versions, retained
from oop_engine.operators.slicing.output import Output, Stamp
from oop_engine.operators.slicing.revised.emitted import versioned_schema
from oop_engine.operators.slicing.revised.versions import Versions
from oop_engine.operators.slicing.row_windows import RowWindows
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.strategy import Assembly, Query, Strategy, checked_query, stores
from oop_engine.operators.slicing.tagger import Tagger, bind
from oop_engine.operators.slicing.written import written
from oop_engine.operators.triggers import AfterMatch, Emit
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.values.expressions import columns_of
from oop_engine.operators.values.flush import Flush
from oop_engine.operators.windows import (
    Definition,
    Over,
    Windows,
    completed_by_rows,
    is_grid,
)

__all__ = ["Assembly", "Strategy", "WindowAggregate"]

_WHAT = "WindowAggregate"
_FEW = 3  # definitions that are all named in a drawing


@checked_arguments
class WindowAggregate(Operator):
    """``aggregates`` (output name to aggregate) of each window, for each group of ``by``.

    ``windows``: one definition, or several by name, which share all they can.  Output: ``by``, with several ``window``
    (the definition's name), ``window_start``, ``window_end``, the aggregates; progressing attribute is ``window_end``
    (``window_start`` if ``stamp="start"``), of the input's type and unit; in tuple-based windows it is a number of
    tuples, unit ``rows``.  A group without a tuple in a window gives no result there, unless ``empty``, which goes with
    grids and landmark windows.

    ``strategy``: "windows" (WID, as in the thesis), "panes", which takes windows of one length,
    "adaptive" (AdaptWID), which takes windows of one length over the attribute,
    "stacks" (two stacks, Hammer Slide), which takes tuple-based windows without groups,
    "bins" (thesis, fig. 6-7), which takes ``SlideByTuple`` and holds no tuple, or "auto":
    by stacks where that can be, by panes where that is sooner, adapting once groups are sparse, by slices where
    definitions share them.
    ``assembly``: how windows on grids are put together from slices in a ring when they close: "stacks" (lazy), "tree"
    (eager: few windows of very many slices), "prefix" (running sums, of counts and integer sums without groups), or
    "auto".
    ``emit``: versions of results before they are final (``Emit``), of all windows but ``TupleBased`` and
    ``PartitionedTupleBased`` by arrival; the output is then a revision stream, of ``change``
    +1 and -1.  ``OnRequest`` among its triggers adds the input ``ask``.
    ``flush``: ``Slow(every, within)`` spreads the results that a punctuation completes over the messages that follow:
    one for each ``every`` tuples, at least one a message, by their windows' ends, and all of them before the
    ``within``-th punctuation behind that completes windows is answered.  The bound of the output stays at the
    earliest result that is due.  Default: at once.
    ``changing``: named definitions may come and go while the query runs (``Change``); the bound of the results is
    then at most that of the input.
    Raises ``GraphError`` if lengths, columns, types or names do not fit; ``ContractError`` if an
    integer sum passes 64 bits.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Count, Sliding, Tumbling
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> count = WindowAggregate(Sliding(range=20, slide=10), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [12, 3]})))
    []
    >>> (_, page), behind = count.on_punctuation(0, Linear(15))
    >>> page.to_pylist(), behind
    ([{'window_start': -10, 'window_end': 10, 'n': 1}], (0, Linear(below=20)))
    >>> both = WindowAggregate({"short": Tumbling(10), "long": Sliding(30, 15)}, {"n": Count()}).opened(schema)
    >>> list(both.on_page(0, Page.of(schema, {"ts": [12, 3]})))
    []
    >>> (_, page), behind = both.on_punctuation(0, Linear(15))
    >>> page.to_pylist()[1], behind
    ({'window': 'long', 'window_start': -15, 'window_end': 15, 'n': 2}, (0, Linear(below=20)))
    """

    def __init__(
        self, windows: Windows | Mapping[str, Windows], aggregates: Mapping[str, Aggregation],
        by: Sequence[str] = (), *, empty: bool = False, stamp: Stamp = "end", strategy: Strategy = "auto",
        assembly: Assembly = "auto", changing: bool = False, emit: Emit | None = None, flush: Flush | None = None,
    ) -> None:  # fmt: skip
        self.by = checked(aggregates, by, stamp, _WHAT)
        self.named = isinstance(windows, Mapping)
        self.windows: Any = dict(windows) if isinstance(windows, Mapping) else windows
        self.definitions = by_name(windows, _WHAT)
        by_rows = all(map(completed_by_rows, self.definitions.values()))
        self.waits = None if by_rows else "results"
        by_arrival = any(getattr(one, "by_arrival", False) for one in self.definitions.values())
        self.revisions = "refuses" if by_arrival or changing else "takes"
        self.aggregates, self.empty = dict(aggregates), empty
        self.stamp: Stamp = stamp
        self.strategy: Strategy = one_of(Strategy, strategy, f"{_WHAT}: strategy")
        self.assembly: Assembly = one_of(Assembly, assembly, f"{_WHAT}: assembly")
        self.changing, self._first = changing, self.definitions
        self._asked: Query | None = None
        self.emit, self.flush = checked_emit(emit, _WHAT), check_flush(flush, f"{_WHAT}")
        if self.flush is not None and (by_rows or changing or emit is not None):
            msg = f"{_WHAT}: flush is for results that wait for punctuation, without emit and changing; got {flush!r}"
            raise GraphError(msg)
        self.for_sinks = "" if emit is None else emit.for_sinks
        self.inputs = ("in",) if emit is None else emit.inputs
        if emit is not None and (changing or empty or strategy != "auto"):
            msg = f"{_WHAT}: emit goes with strategy='auto', without empty=True and changing=True: leave them out"
            raise GraphError(msg)
        if changing and not self.named:
            msg = f"{_WHAT}: changing=True needs named windows, such as {{'1 min': Tumbling('1 min')}}; got {windows!r}"
            raise GraphError(msg)

    def uses_arrival(self) -> bool:
        return self.emit is not None or self.flush is not None or self.changing

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        query = self._query(inputs[0])
        if not self._slides(query):
            checked_query(query)
        if self.changing and query.output.definitions[0].over is not Over.ATTRIBUTE:
            msg = (
                f"{_WHAT}: windows that change are over {inputs[0].progressing!r}, for changes hold from a time on; "
                f"got {', '.join(self.definitions)} over rows: leave changing out"
            )
            raise GraphError(msg)
        if self.emit is not None:
            asked = list(self.aggregates.values())
            schema = versioned_schema(query.output, self.emit, asked, inputs[0].plain(), _WHAT)
            self.clock_every = self.emit.clock_every(inputs[0])
            return (schema,)
        return (query.output.schema,)

    def explain(self, inputs: tuple[Schema, ...]) -> str:
        query = self._query(inputs[0])
        if self._slides(query):
            return "stacks: tuple-based windows of the whole stream slide over it, page by page"
        if self.emit is not None:
            return explained_versions(query, inputs[0])
        waits = "rows that may be taken back wait until a bound has passed them; of those left: "
        return waits * (inputs[0].change is not None) + explained(query)

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        return retained(self._query(inputs[0]).output.definitions, self.by, empty=self.empty)

    def _query(self, schema: Schema) -> Query:
        """Return the question to ``schema``; it is kept, for thousands of definitions take long to read."""
        schema = schema.plain()
        if self._asked is None or self.changing or self._asked.schema != schema:
            bound = {name: self._bound(schema, name, one) for name, one in self.definitions.items()}
            output = Output(bound, self.aggregates, schema, self.by, self.stamp, _WHAT, named=self.named)
            read = {column for aggregate in self.aggregates.values() for column in aggregate.columns}
            how = self.empty, self.strategy, self.named
            self._asked = Query(output, schema, read, *how, changing=self.changing, assembly=self.assembly)
        return self._asked

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_asked": None}  # read again where it is unpacked

    def __copy__(self) -> Self:
        """Return a copy that keeps the question, which it would not with the state that travels."""
        same = type(self).__new__(type(self))
        vars(same).update(vars(self))
        return same

    def _bound(self, schema: Schema, name: str, windows: Windows) -> Definition:
        return bind(windows, schema, self.by, _WHAT + f": {name!r}" * self.named, self.aggregates.values())

    def _slides(self, query: Query) -> bool:
        """Tell whether windows slide over the stream, which is the order of arrival."""
        whole = query.output.definitions[0].over is Over.ROWS and not (self.by or self.empty or self.named)
        by_stacks = self.strategy in ("auto", "stacks") and self.assembly == "auto"
        return by_stacks and whole and is_compiled(query.parts)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        whole = any(one.bound(inputs[0]).whole_stream for one in self.definitions.values())
        of_all = [name for name in self.by if all(name in schema.names for schema in inputs)]
        return [] if whole else [(name,) * len(inputs) for name in of_all]

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in self.by else None, *(None for _ in inputs[1:]))

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        if self.changing:  # into windows that read any column
            return super().reads(inputs, downstream)
        schema = inputs[0]
        windows = [self._bound(schema, name, one) for name, one in self.definitions.items()]
        of_windows = (one.columns(schema) for one in windows)
        of_aggregates = (one.all_columns(schema) for one in self.aggregates.values())
        own = frozenset(self.by).union(*of_aggregates, *of_windows)
        triggers = () if self.emit is None else self.emit.triggers
        matching = [one.predicate for one in triggers if isinstance(one, AfterMatch)]
        return (own | columns_of(matching, schema), *(frozenset(asks.names) for asks in inputs[1:]))

    def halves(self, inputs: tuple[Schema, ...]) -> tuple[Operator, Operator] | None:
        if self.changing or self.emit is not None or self.flush is not None or inputs[0].change is not None:
            return None
        first = PartialAggregate(self.windows, self.aggregates, self.by)
        try:
            first.output_schemas(inputs)
        except GraphError:  # of windows without panes or runs
            return None
        return first, Consolidate(
            self.windows, self.aggregates, self.by, tuples=inputs[0], empty=self.empty, stamp=self.stamp
        )

    def open(self) -> None:
        schema, given = self.schemas_in[0].plain(), self.schemas_in[0]
        if self.changing:
            self.definitions = self.windows = self._first
        query = self._query(schema)
        self._due = None if self.flush is None else DueRows(self.schemas_out[0], self.flush)
        first, self._rows = query.output.definitions[0], None
        self._straight = False  # tuples go into the windows as they are, results leave as they close
        if self._slides(query) and is_grid(first):
            self._rows = RowWindows(query.output, first, schema)
            return
        self._versions: Versions | None = None
        self._changing: Changing | None = None
        self._tagger = None if first.over is Over.ATTRIBUTE else Tagger(first.over, schema, self.by)
        if self.changing:
            self._changing = Changing(query, self.by, self.definitions, partial(self._bound, schema))
            self._closing = self._changing.closing
        elif self.emit is not None:
            self.clock_every = self.emit.clock_every(schema)
            make = partial(_versioned_stores, query, "read late" if self.emit.early is None else "read early")
            self._versions = Versions(query.output, given, self.by, make, self.emit, *self.schemas_out)
            self._closing = self._versions.closing
        else:
            self._closing = Closing(query.output, given, self.by, stores(query))
        self._windows = (
            self._changing or self._closing
        )  # take tuples, and punctuation if there are no versions
        self._straight = self._versions is None and self._tagger is None and self._due is None

    def wants(self, inputs: tuple[Schema, ...], downstream: Wants) -> tuple[Wants, ...]:
        if self.emit is not None or self.changing or self.waits is None:
            return (EVERYTHING,)
        step = self._query(inputs[0]).granularity
        return (Wants(step, frozenset(self.by), joint=True, watermarks=downstream.watermarks),)

    def changed(self, change: Change, inputs: tuple[Schema, ...]) -> Self:
        if not self.changing:
            msg = f"{_WHAT}: to take changes it must be made with changing=True; got {change}"
            raise GraphError(msg)
        change, after = read_change(change), copy.copy(self)
        after.definitions = after.windows = changed_windows(self.definitions, change, inputs[0], _WHAT)
        if (old := self.output_schemas(inputs)) != (new := after.output_schemas(inputs)):
            msg = f"{_WHAT}: results must have the columns they had, {old[0]!r}; got {new[0]!r}: use two operators"
            raise GraphError(msg)
        return after

    def written(self, change: Change) -> Change:
        return replace(change, add={name: written(one) for name, one in change.add.items()})

    def on_change(self, port: int, change: Change) -> Iterator[Emission]:
        if change.operator:
            yield from super().on_change(port, change)
        elif self.is_new(change):
            change = read_change(change)
            self.changed(change, self.schemas_in)
            assert self._changing is not None
            self._changing.change(change)
            self.definitions = self.windows = self._changing.windows

    def on_clock(self, now: int) -> Iterator[Emission]:
        for page in () if self._versions is None else self._versions.clock(now):
            yield 0, page

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if self._straight:
            self._windows.add(page, page.times)
            return iter(())
        if self._rows is not None:
            return self._rows.add(page)
        answer = self._of_page(port, page)
        return answer if self._due is None else self._due.behind_page(answer, len(page))

    def _of_page(self, port: int, page: Page) -> Iterator[Emission]:
        if self._versions is not None:
            for versions in self._versions.request(page) if port else self._versions.look(page):
                yield 0, versions
        elif self._tagger is None:
            self._windows.add(page, page.times)
        else:
            positions, ended = self._tagger.tag(page)
            self._windows.add(page, positions)
            if ended is not None:
                yield from self._windows.take(ended)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if self._straight:
            return self._windows.take(punctuation)
        answer = self._of_punctuation(port, punctuation)
        return answer if self._due is None else self._due.behind_punctuation(answer)

    def _of_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if port:
            return iter(())  # requests say nothing of windows
        if self._rows is None and self._tagger is None:
            return (self._versions or self._windows).take(punctuation)
        return self._of_rows(punctuation)

    def _of_rows(self, punctuation: Punctuation) -> Iterator[Emission]:
        if self._rows is not None:
            yield from self._rows.take(punctuation)
        elif self._tagger is not None and (translated := self._tagger.translate(punctuation)) is not None:
            yield from self._windows.take(translated)

    def state(self) -> State:
        if self._rows is not None:
            return self._rows.state()
        held = (self._versions or self._closing).state()
        if self._due is not None:
            held += State(partials=len(self._due), nbytes=self._due.nbytes)
        return held if self._tagger is None else held + State(nbytes=self._tagger.nbytes)

    def counts(self) -> dict[str, int]:
        return {"behind": 0} if self._rows is not None else self._closing.counts()

    def slowest_groups(self, most: int) -> list[tuple[dict[str, Any], int]]:
        return [] if self._rows is not None else self._closing.slowest(most)

    def open_windows(self, most: int) -> list[OpenWindows]:
        by_rows = self._rows is not None or self._tagger is not None
        return [] if by_rows else self._closing.open_windows(self.definitions, most)

    def save(self) -> dict[str, Any]:
        if self._rows is not None:
            return {"rows": self._rows.save()}
        tagger = None if self._tagger is None else self._tagger.save()
        saved = {"tagger": tagger, "closing": (self._versions or self._windows).save()}
        return saved if self._due is None else saved | {"due": self._due.save()}

    def load(self, state: Saved) -> None:
        if self._rows is not None:
            self._rows.load(state.part("rows"))
            return
        if self._tagger is not None:
            self._tagger.load(state.part("tagger"))
        (self._versions or self._windows).load(state.part("closing"))
        if self._due is not None:
            self._due.load(state.part("due"))
        if self._changing is not None:
            self.definitions = self.windows = self._changing.windows

    def describe(self) -> str:
        named = [f"{name!r}: {describe_value(one)}" for name, one in self.definitions.items()]
        if len(named) > _FEW:
            named = [named[0], f"... {len(named)} definitions", named[-1]]
        windows = ", ".join(named) if self.named else describe_value(self.windows)
        asked = ", ".join(f"{name}={describe_value(one)}" for name, one in self.aggregates.items())
        by = f"; by {', '.join(self.by)}" if self.by else ""
        how = "" if self.strategy == "auto" else f"; by {self.strategy}"
        how += "" if self.flush is None else f"; {describe_value(self.flush)}"
        return f"{_WHAT}({windows}; {asked}{by}{how})"


def _versioned_stores(query: Query, strategy: str, schema: Schema, more: Sequence[str]) -> list[Store]:
    """Return stores, one a definition, of a schema with ``more`` columns."""
    return stores(replace(query, schema=schema, read={*query.read, *more}, strategy=strategy, changing=True))
