"""PartialAggregate: the first half of window aggregation, which keeps nothing.

Of each page it makes one row a group and pane (a group and run of tuples, of sessions),
which ``Consolidate`` merges with the rows of other pages and other instances.  Any
instance may see any tuple, so the input can be divided, and divided anew, at any time.

    Pass       at most one page of partial aggregates a page; tuples in no window are gone.
    Keep       no tuple and no partial aggregate; the bounds passed on.
    Propagate  linear and group-wise bounds, rounded down to the start of a pane (those of sessions as they
               are), when that has grown; group-wise ones only if their attributes are among ``by``.  Joint
               ones are dropped.
    Cost       O(1) a tuple (sessions: a sort of runs), in Arrow and kernels; O(its groups) a punctuation.  Order
               needed: none.
    Source     thesis 6.2 (panes), where the first half runs close to the source; compute
               and consolidate: Madsen, Zhou, Su, Enorm, DEBS 2016, section 4.

See ``operators/slicing/partial_rows.py`` for the definitions of a pane and of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.groups.zeros import with_unsigned_zeros, zeros_in
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import GroupWise, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.slicing.checks import checked
from oop_engine.operators.slicing.partial_rows import PartialRows, partial_rows
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Windows

__all__ = ["PartialAggregate"]


@checked_arguments
class PartialAggregate(Operator):
    """Partial ``aggregates`` of each page, for each group of ``by`` and pane of ``windows``.

    ``windows``: one definition, or grids and sessions by name.  Output: ``by``, ``pane_start`` (its progressing
    attribute, of the input's type and unit; of sessions ``run_first``, and ``run_last``), and the columns of state of
    the aggregates' parts.  Raises ``GraphError`` for windows on the order of arrival and landmark windows, and if
    lengths, columns, types or names do not fit; ``ContractError`` if an integer sum passes 64 bits.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators.aggregates import Sum
    >>> from oop_engine.operators.windows import Sliding
    >>> schema = Schema({"ts": pa.int64(), "x": pa.int64()}, "ts", "s")
    >>> first = PartialAggregate(Sliding(range=20, slide=10), {"s": Sum("x")}).opened(schema)
    >>> [(_, page)] = first.on_page(0, Page.of(schema, {"ts": [12, 3, 14], "x": [1, 2, 4]}))
    >>> for row in page.to_pylist():
    ...     print(row)
    {'pane_start': 10, 'state0_carried_0': 5, 'state0_carried_1': 0, 'state1_count': 2}
    {'pane_start': 0, 'state0_carried_0': 2, 'state0_carried_1': 0, 'state1_count': 1}
    >>> list(first.on_punctuation(0, Linear(15)))
    [(0, Linear(below=10))]
    """

    def __init__(
        self,
        windows: Windows | Mapping[str, Windows],
        aggregates: Mapping[str, Aggregation],
        by: Sequence[str] = (),
    ) -> None:
        self.by = checked(aggregates, by, "end", "PartialAggregate")
        self.windows = windows
        self.aggregates = dict(aggregates)

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (self._rows_of(inputs[0]).schema,)

    def _rows_of(self, schema: Schema) -> PartialRows:
        return partial_rows(self.windows, self.aggregates, self.by, schema, "PartialAggregate")

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in self.by else None,)

    def open(self) -> None:
        self._rows = self._rows_of(self.schemas_in[0])
        self._progress = Progress(tables=IN_KERNELS)
        self._zeros = zeros_in(self.schemas_in[0], self.by)

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        page = with_unsigned_zeros(page, self._zeros)
        if len(page) and (rows := self._rows.of_page(page)) is not None:
            yield 0, rows

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        match punctuation:
            case Linear(below):
                yield from self._grown(Linear(int(self._rows.bound(below))))
            case GroupWise(groups, below) if set(punctuation.attributes) <= set(self.by):
                yield from self._grown(GroupWise(groups, self._rows.bound(below)))
            case Watermark(bound) if set(punctuation.attributes) <= set(self.by):
                yield from self._grown(punctuation.with_bounds(self._rows.bound(bound.below)))

    def _grown(self, punctuation: Punctuation) -> Iterator[Emission]:
        for grown in self._progress.advance(0, punctuation):
            yield 0, grown

    def state(self) -> State:
        return State(groups=self._progress.groups, nbytes=self._progress.nbytes)

    def save(self) -> dict[str, Any]:
        return {"progress": self._progress.save()}

    def load(self, state: Saved) -> None:
        self._progress.load(state.part("progress"))

    def describe(self) -> str:
        aggregates = ", ".join(
            f"{name}={describe_value(aggregate)}" for name, aggregate in self.aggregates.items()
        )
        by = f"; by {', '.join(self.by)}" if self.by else ""
        return f"PartialAggregate({describe_value(self.windows)}; {aggregates}{by})"
