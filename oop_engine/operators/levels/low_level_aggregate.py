"""LowLevelAggregate: partial aggregates in a table of fixed size, near the source; ``Consolidate`` is the level above.

A tuple whose group and pane are in the table costs an addition.  Where its place is taken by another group or pane,
that one leaves as a row, and any number of rows of one group and pane are put together by ``Consolidate``.  When a
window closes, its partial aggregates need not leave at once: ``flush`` spreads them over the tuples that follow, so
that nothing piles up in front of the table while it is emptied.

    Pass       rows of ``PartialAggregate``, as their places are needed; those of closed windows by ``flush``:
               AtOnce    with the punctuation that closes them
               Lazy      when a tuple needs the place, and at the latest ``within`` windows later
               Slow      and one for each ``every`` tuples
               InOrder   one for each tuple, a window after the other: for comparison
               Those that a group-wise punctuation closes leave with it.
    Keep       the table: ``slots`` partial aggregates, and the keys of at most a few times as many groups.
    Propagate  linear and group-wise bounds, rounded down to the start of a pane; the linear one not above the
               earliest pane that is in the table.  Joint ones and watermarks are dropped.
    Cost       O(1) a tuple, in kernels; O(slots) a punctuation.  Order needed: none, but by ``InOrder``.
    Source     thesis 8.3.3: Gigascope's low-level aggregation, lazy-flush and slow-flush; fig. 8-6 (``InOrder``).

``probe``: the next place is looked at too, before an entry leaves for another (footnote 4 there).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.groups.group_index import GroupIndex, occurring
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import NEVER, GroupWise, Linear, Punctuation, shift
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.keys.group_match import GroupMatch
from oop_engine.operators.keys.key_codes import key_hashes
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.accumulators import is_ragged
from oop_engine.operators.slicing.checks import checked
from oop_engine.operators.slicing.partial_rows import PaneRows, partial_rows
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.stores.entry_table import EntryTable, Left
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.values.flush import Flush, InOrder, Lazy
from oop_engine.operators.windows import Windows
from oop_engine.system.knobs import knob

__all__ = ["LowLevelAggregate"]

_MOST_SLOTS = 1 << 28
_DEAD = knob(__name__, "_DEAD", 4096)  # keys of groups without an entry that may stay
_WHAT = "LowLevelAggregate"


@checked_arguments
class LowLevelAggregate(Operator):
    """Partial ``aggregates`` of each group of ``by`` and pane of ``windows``, at most ``slots`` of them at a time.

    ``windows``: a ``Tumbling`` or ``Sliding`` definition.  ``flush``: when those of closed windows leave (``AtOnce``,
    ``Lazy``, ``Slow``, ``InOrder``; default ``Lazy(1)``).  Output: the rows of ``PartialAggregate`` with the same
    parameters.  Which rows there are depends on the order of tuples; their sums do not.  Raises ``GraphError`` for
    other windows, for aggregates whose states have no fixed size (``Collect``, ``Median``, ``Min`` of texts), unless
    there are 1 to 2**28 slots, and if columns, types or names do not fit; ``ContractError`` if an integer sum passes
    64 bits.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Count, Tumbling
    >>> schema = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
    >>> low = LowLevelAggregate(Tumbling(10), {"n": Count()}, ("k",), slots=1).opened(schema)
    >>> [(_, page)] = low.on_page(0, Page.of(schema, {"ts": [1, 2, 3], "k": ["a", "a", "b"]}))
    >>> page.to_pylist()  # the place of "a" is needed for "b"
    [{'k': 'a', 'pane_start': 0, 'state0_count': 2}]
    >>> list(low.on_punctuation(0, Linear(10)))  # lazy: "b" stays, so nothing is certain
    [(0, Linear(below=0))]
    >>> [page, bound] = [message for _, message in low.on_punctuation(0, Linear(20))]
    >>> page.to_pylist(), bound
    ([{'k': 'b', 'pane_start': 0, 'state0_count': 1}], Linear(below=20))
    """

    waits = "partial aggregates"

    def __init__(
        self, windows: Windows, aggregates: Mapping[str, Aggregation], by: Sequence[str] = (),
        *, slots: int, flush: Flush | None = None, probe: bool = False,
    ) -> None:  # fmt: skip
        self.by = checked(aggregates, by, "end", _WHAT)
        if isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= _MOST_SLOTS:
            msg = f"{_WHAT}: slots must be a whole number from 1 to {_MOST_SLOTS}; got {slots!r}"
            raise GraphError(msg)
        self.windows, self.aggregates, self.slots = windows, dict(aggregates), slots
        self.flush = Lazy() if flush is None else flush
        self.probe = probe
        self.needs_order = self.flush.ordered

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (self._rows_of(inputs[0]).schema,)

    def _rows_of(self, schema: Schema) -> PaneRows:
        rows = partial_rows(self.windows, self.aggregates, self.by, schema, _WHAT)
        if not isinstance(rows, PaneRows) or len(rows.grids) > 1:
            msg = f"{_WHAT}: windows must be on one grid; got {describe_value(self.windows)}: use PartialAggregate"
            raise GraphError(msg)
        if lists := [
            name for name, aggregate in self.aggregates.items() if is_ragged(aggregate.parts(schema))
        ]:
            msg = (
                f"{_WHAT}: a table of fixed size has no room for states of any length (lists, texts); "
                f"{', '.join(lists)} must have others: use PartialAggregate"
            )
            raise GraphError(msg)
        return rows

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in self.by else None,)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return self.flush.ordered

    def twin(self, inputs: tuple[Schema, ...]) -> Operator:
        flush = InOrder()
        return LowLevelAggregate(
            self.windows, self.aggregates, self.by, slots=self.slots, flush=flush, probe=self.probe
        )

    def open(self) -> None:
        [schema] = self.schemas_in
        self._rows = self._rows_of(schema)
        self._types = [schema.type_of(name) for name in self.by]
        self._states = States(self._rows.parts)
        self._table = EntryTable(self._rows.parts, self.slots, self.flush, probe=self.probe)
        self._groups = GroupIndex(self._types, IN_KERNELS)
        self._match = GroupMatch(self._groups, self.by)
        self._progress = Progress(tables=IN_KERNELS)
        self._below = Linear(NEVER)

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if (inside := self._rows.inside(page)) is None:
            return
        keys = [inside.column(name) for name in self.by]
        groups = self._groups.encode(keys, len(inside))
        panes, hashes = self._rows.pane_starts(inside.times), key_hashes(keys, len(inside))
        old, inputs = self._table.old, self._states.prepare(inside, inside.times)
        try:
            left = self._table.add(groups, panes, hashes, inputs)
        except SumOverflowError as error:
            raise self._overflow(error) from None
        yield from self._put_out(left)
        if old and not self._table.old:
            yield from self._bound()
        self._forget()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        match punctuation:
            case Linear(below):
                self._below = Linear(int(self._rows.bound(below)))
                due = shift(below, -self.flush.within * self._rows.grids[0].slide)
                yield from self._put_out(self._table.close(self._below.below, int(self._rows.bound(due))))
                yield from self._bound()
            case GroupWise(groups, below) if set(punctuation.attributes) <= set(self.by):
                slots, rows = self._match.of(punctuation)
                bounds = self._rows.bound(below)
                yield from self._put_out(self._table.close_groups(slots, bounds[rows]))
                for grown in self._progress.advance(0, GroupWise(groups, bounds)):
                    yield 0, grown
        self._forget()

    def _put_out(self, left: Left) -> Iterator[Emission]:
        if left.groups.size:
            yield 0, self._rows.page(self._groups.keys(left.groups), [left.panes], left.states)

    def _bound(self) -> Iterator[Emission]:
        """Put out the bound that holds, now that some entries have left."""
        for grown in self._progress.advance_linear(0, min(self._below.below, self._table.least_pane)):
            yield 0, grown

    def _overflow(self, error: SumOverflowError) -> Exception:
        return self._rows.overflow_in(error.at, error, self._groups.keys(np.array([error.group])))

    def _forget(self) -> None:
        """Drop the keys of groups without an entry, once they are most of all."""
        known = len(self._groups)
        if not self.by or (len(self._table) and known <= 2 * self.slots + _DEAD):
            return
        in_use = occurring(self._table.groups, known)
        groups = np.full(known, -1)
        groups[in_use] = np.arange(in_use.size)
        self._table.rename(groups)
        self._groups.keep(in_use)

    def state(self) -> State:
        nbytes = self._table.nbytes + self._groups.nbytes + self._match.nbytes + self._progress.nbytes
        taken = len(self._table)
        return State(partials=taken, groups=len(self._groups) if taken else 0, nbytes=nbytes)

    def save(self) -> dict[str, Any]:
        return {
            "groups": self._groups.save(), "table": self._table.save(), "below": self._below.below,
            "progress": self._progress.save(),
        }  # fmt: skip

    def load(self, state: Saved) -> None:
        self._groups.load(state.part("groups"))
        self._table.load(state.part("table"), len(self._groups))
        self._below = Linear(state.integer("below"))
        self._progress.load(state.part("progress"))

    def describe(self) -> str:
        aggregates = ", ".join(
            f"{name}={describe_value(aggregate)}" for name, aggregate in self.aggregates.items()
        )
        by = f"; by {', '.join(self.by)}" if self.by else ""
        table = f"{self.slots} slots, {describe_value(self.flush)}"
        return f"{_WHAT}({describe_value(self.windows)}; {aggregates}{by}; {table})"
