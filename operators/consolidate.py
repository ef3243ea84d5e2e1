"""Consolidate: the second half of window aggregation, which merges partial aggregates.

It takes what any number of ``PartialAggregate`` have put out, melded in any order, and
gives what one ``WindowAggregate`` would have given for their tuples.  Where a tuple went,
and whether its group went elsewhere before, makes no difference.

    Pass       results, as soon as a promise completes their window (and group).
    Keep       one partial aggregate for each group and pane of an open window (up to two
               until they are merged), and the keys of groups that have one.  Group-wise
               promises until the linear one catches up.
    Propagate  linear      the end (start, by ``stamp``) of the earliest window still open
               group-wise  the same for each group, if its attributes are among ``by``
               each only when it has grown.  Joint ones are dropped.
    Cost       O(log rows) a row, amortised; a punctuation that closes something O(rows
               kept + panes of the windows closed x log(panes a window)).  Order needed: none.
    Source     thesis 6.2 (panes); compute and consolidate: Madsen, Zhou, Su, Enorm, DEBS
               2016, section 4.

``empty=True`` is as in ``WindowAggregate``: the promise stays behind the last window of
each group until its next row has come, or the group is ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.group_index import GroupIndex
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.keys.group_match import matching
from oop_engine.operators.keys.key_table import KeyTable
from oop_engine.operators.slicing.pane_runs import PaneRuns, Run
from oop_engine.operators.slicing.partial_rows import PartialRows
from oop_engine.operators.slicing.window_limits import too_long
from oop_engine.operators.slicing.window_results import Stamp, checked
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Windows

__all__ = ["Consolidate"]

Integers = NDArray[np.int64]

_NONE = FOREVER  # the lowest open window of a group that has none


class Consolidate(Operator):
    """Results of ``windows`` from the rows of ``PartialAggregate(windows, aggregates, by)``.

    ``tuples`` is the schema of the tuples in front of ``PartialAggregate``: results have the
    types of its columns.  Output, ``empty`` and ``stamp`` are those of ``WindowAggregate``.
    Raises ``GraphError`` if the input is not what ``PartialAggregate`` puts out for the same
    parameters, or as that does; ``ContractError`` if an integer sum passes 64 bits.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Schema
    >>> from oop_engine.operators.aggregates import Count
    >>> from oop_engine.operators.windows import Sliding
    >>> tuples = Schema({"ts": pa.int64()}, "ts", "s")
    >>> second = Consolidate(Sliding(range=20, slide=10), {"n": Count()}, tuples=tuples)
    >>> rows = Schema({"pane_start": pa.int64(), "state0_count": pa.int64()}, "pane_start", "s")
    >>> second = second.opened(rows)
    >>> for count in (2, 3):  # of two instances
    ...     assert not list(second.on_page(0, Page.of(rows, {"pane_start": [0], "state0_count": [count]})))
    >>> (_, page), promise = second.on_punctuation(0, Linear(10))
    >>> page.to_pylist(), promise
    ([{'window_start': -10, 'window_end': 10, 'n': 5}], (0, Linear(below=20)))
    """

    waits = "results"

    def __init__(
        self, windows: Windows, aggregates: Mapping[str, Aggregation], by: Sequence[str] = (),
        *, tuples: Schema, empty: bool = False, stamp: Stamp = "end",
    ) -> None:  # fmt: skip
        self.by = checked(aggregates, by, stamp, "Consolidate")
        self.windows = windows
        self.aggregates = dict(aggregates)
        self.tuples = tuples
        self.empty = empty
        self.stamp: Stamp = stamp

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        rows = self._rows_of_input()
        if inputs[0] != rows.schema:
            msg = (
                f"Consolidate: its input must be {rows.schema}; got {inputs[0]}: put a PartialAggregate with the "
                f"same windows, aggregates and by before it, and the schema of what goes into that as tuples"
            )
            raise GraphError(msg)
        return (rows.results.schema,)

    def _rows_of_input(self) -> PartialRows:
        given = self.windows, self.aggregates, self.by, self.tuples
        return PartialRows(*given, "Consolidate", self.stamp)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return [(name,) for name in self.by]

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in self.by else None,)

    def open(self) -> None:
        self._rows = self._rows_of_input()
        self._groups = GroupIndex([self.tuples.type_of(name) for name in self.by], KeyTable)
        self._spans = np.empty((0, 2), np.int64)  # (groups, 2)  lowest open, highest window
        self._alive = 0  # groups with open windows
        self._panes = PaneRuns(self._rows.parts, self._overflow)
        self._promised = Progress()

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if len(page):
            slots = self._groups.encode([page.column(name) for name in self.by], len(page))
            first, last = self._rows.extents.wids(page.times)
            self._widen(slots, first, last)
            self._panes.add(Run(slots, first, last, self._rows.states(page)))
            self._forget_dead()
        yield from ()

    def _widen(self, slots: Integers, first: Integers, last: Integers) -> None:
        """Note that groups have these windows."""
        if len(self._groups) > len(self._spans):
            size = max(len(self._groups), 2 * len(self._spans))
            more = np.tile([_NONE, NEVER], (size - len(self._spans), 1))
            self._spans = np.concatenate([self._spans, more])
        np.minimum.at(self._spans[:, 0], slots, first)
        np.maximum.at(self._spans[:, 1], slots, last)
        self._alive = int(np.count_nonzero(self._spans[:, 0] != _NONE))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        match punctuation:
            case Linear(below):
                yield from self._linear(below)
            case GroupWise() if set(punctuation.attributes) <= set(self.by):
                yield from self._group_wise(punctuation)

    def _linear(self, below: int) -> Iterator[Emission]:
        cut = int(self._rows.extents.closed_by(below))
        yield from self._close(np.arange(len(self._groups)), np.full(len(self._groups), cut))
        if self.empty:
            cut = min(cut, int(self._spans[:, 0].min(initial=_NONE)))
        yield from self._say(Linear(int(self._rows.results.promise(cut))))
        self._forget_dead()

    def _group_wise(self, punctuation: GroupWise) -> Iterator[Emission]:
        cuts = self._rows.extents.closed_by(punctuation.below)
        slots, of = matching(self._groups, self.by, punctuation)
        yield from self._close(slots, cuts[of])
        if self.empty:
            np.minimum.at(cuts, of, self._spans[slots, 0])
        yield from self._say(GroupWise(punctuation.groups, self._rows.results.promise(cuts)))
        self._forget_dead()

    def _close(self, slots: Integers, cuts: Integers) -> Iterator[Emission]:
        """Give out the windows below ``cuts`` of the groups ``slots``."""
        low, high = self._spans[slots].T
        some = (low < cuts) & (low != _NONE)
        if not some.any():
            return
        slots, cuts, low, high = slots[some], cuts[some], low[some], high[some]
        stop = np.minimum(cuts, high + 1)
        over = cuts == FOREVER if self.empty else high < cuts
        kept = np.where(over, _NONE, np.maximum(low, stop) if self.empty else cuts)
        if self.empty:
            self._check(slots, low, stop)
        closing = self._take(slots, stop, kept)
        if self.empty:  # a row of no values for all windows of each group
            between = np.flatnonzero(low < stop)
            nothing = self._panes.rows(slots[between], low[between], stop[between] - 1)
            closing = closing.joined(nothing)
        for of, wids, states in self._panes.windows(closing):
            for page in self._rows.results.pages(self._groups.keys(of), wids, states):
                yield 0, page

    def _check(self, slots: Integers, low: Integers, stop: Integers) -> None:
        """Raise ``ContractError`` if a group has too many windows without a row to be put out."""
        if (most := too_long(low, stop, len(self._panes))) >= 0:
            keys = dict(zip(self.by, self._groups.keys(slots[[most]]), strict=True))
            raise self._rows.results.gap(int(low[most]), int(stop[most]), keys)

    def _take(self, slots: Integers, stop: Integers, kept: Integers) -> Run:
        """Take what closes out of the panes, and note what is open then."""
        low = self._spans[:, 0]
        cuts, keep = np.full(low.size, NEVER), low.copy()
        cuts[slots], keep[slots] = stop, kept
        closing = self._panes.take(low, cuts, keep)
        self._spans[slots, 0] = kept
        self._spans[slots[kept == _NONE], 1] = NEVER
        self._alive = int(np.count_nonzero(self._spans[:, 0] != _NONE))
        return closing

    def _say(self, promise: Linear | GroupWise) -> Iterator[Emission]:
        for said in self._promised.advance(0, promise):
            yield 0, said

    def _forget_dead(self) -> None:
        """Drop the groups that have no window, once they are most of all."""
        known = len(self._groups)
        if not self.by or known == 0 or (self._alive and known <= 2 * self._alive + 1024):
            return
        kept = np.flatnonzero(self._spans[:known, 0] != _NONE)
        self._groups.keep(kept)
        slots = np.full(known, -1)
        slots[kept] = np.arange(kept.size)
        self._spans = self._spans[kept]
        self._panes.rename(slots)

    def _overflow(self, column: str | None, slot: int, wid: int) -> ContractError:
        keys = dict(zip(self.by, self._groups.keys(np.array([slot])), strict=True))
        return self._rows.results.overflow(column, wid, keys)

    def state(self) -> State:
        held = self._panes.nbytes + self._groups.nbytes + self._spans.nbytes + self._promised.nbytes
        return State(0, len(self._panes), self._alive, held)

    def save(self) -> dict[str, Any]:
        return {
            "groups": self._groups.save(),
            "spans": self._spans[: len(self._groups)],
            "panes": self._panes.save(),
            "promised": self._promised.save(),
        }

    def load(self, state: Saved) -> None:
        self._groups.load(state.part("groups"))
        groups = len(self._groups)
        self._spans = state.integers("spans", (groups, 2))
        self._alive = int(np.count_nonzero(self._spans[:, 0] != _NONE))
        extents = self._rows.extents
        assert extents.range is not None  # PartialAggregate takes no landmark windows
        self._panes.load(state.parts("panes"), groups, -(-extents.range // extents.slide))
        self._promised.load(state.part("promised"))

    def describe(self) -> str:
        asked = ", ".join(
            f"{name}={describe_value(aggregate)}" for name, aggregate in self.aggregates.items()
        )
        by = f"; by {', '.join(self.by)}" if self.by else ""
        return f"Consolidate({describe_value(self.windows)}; {asked}{by})"
