"""Consolidate: the second half of window aggregation, which merges partial aggregates.

It takes the rows of any number of ``PartialAggregate``, melded in any order, and
gives the results of one ``WindowAggregate`` on their tuples.  Where a tuple went,
and whether its group went elsewhere before, makes no difference.

    Pass       results, as soon as a punctuation completes their window (and group).
    Keep       one partial aggregate for each group and pane (run, of sessions) of an open window
               (up to two until they are merged), and the keys of groups that have one.  Group-wise
               bounds until the linear one catches up.  ``empty=True``: the last window of each key until it ends.
    Propagate  linear      the end (start, by ``stamp``) of the earliest window still open
               group-wise  the same for each group, if its attributes are among ``by``
               each only when it has grown.  Joint ones are dropped.
    Cost       O(log rows) a row, amortised; a punctuation that closes something O(rows
               kept + panes of the windows closed x log(panes a window)).  Order needed: none.
    Source     thesis 6.2 (panes); compute and consolidate: Madsen, Zhou, Su, Enorm, DEBS
               2016, section 4.

``empty=True`` is as in ``WindowAggregate``: the bound stays behind the last window of
each group until its next row has come, or the group is ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Joint, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.slicing.checks import checked
from oop_engine.operators.slicing.closing import Closing
from oop_engine.operators.slicing.explained import retained
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.partial_rows import PaneRows, PartialRows, partial_rows
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Windows

__all__ = ["Consolidate"]


@checked_arguments
class Consolidate(Operator):
    """Results of ``windows`` from the rows of ``PartialAggregate(windows, aggregates, by)``.

    ``tuples`` is the schema of the tuples in front of ``PartialAggregate``: results have the
    types of its columns.  Output, ``empty`` and ``stamp`` are those of ``WindowAggregate``.
    Raises ``GraphError`` if the input is not that of ``PartialAggregate`` for the same
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
    >>> (_, page), bound = second.on_punctuation(0, Linear(10))
    >>> page.to_pylist(), bound
    ([{'window_start': -10, 'window_end': 10, 'n': 5}], (0, Linear(below=20)))
    """

    waits = "results"

    def __init__(
        self, windows: Windows | Mapping[str, Windows], aggregates: Mapping[str, Aggregation], by: Sequence[str] = (),
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
        if self.empty and not isinstance(rows, PaneRows):
            msg = f"Consolidate: empty=True needs windows on a grid; got {self.windows}: leave it out"
            raise GraphError(msg)
        if inputs[0] != rows.schema:
            msg = (
                f"Consolidate: its input must be {rows.schema}; got {inputs[0]}: put a PartialAggregate with the "
                f"same windows, aggregates and by before it, and the schema of its input as tuples"
            )
            raise GraphError(msg)
        return (rows.output.schema,)

    def _rows_of_input(self) -> PartialRows:
        return partial_rows(self.windows, self.aggregates, self.by, self.tuples, "Consolidate", self.stamp)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return [(name,) for name in self.by]

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        return retained(self._rows_of_input().output.definitions, self.by, empty=self.empty)

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in self.by else None,)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return self.stamp == "end" or isinstance(self._rows_of_input(), PaneRows)

    def open(self) -> None:
        rows = self._rows_of_input()
        self._closing = Closing(rows.output, self.schemas_in[0], self.by, rows.stores(every=self.empty))

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self._closing.add(page, page.times)
        yield from ()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if not isinstance(punctuation, Joint):
            yield from self._closing.take(punctuation)

    def state(self) -> State:
        return self._closing.state()

    def slowest_groups(self, most: int) -> list[tuple[dict[str, Any], int]]:
        return self._closing.slowest(most)

    def counts(self) -> dict[str, int]:
        return self._closing.counts()

    def save(self) -> dict[str, Any]:
        return self._closing.save()

    def load(self, state: Saved) -> None:
        self._closing.load(state)

    def describe(self) -> str:
        aggregates = ", ".join(
            f"{name}={describe_value(aggregate)}" for name, aggregate in self.aggregates.items()
        )
        by = f"; by {', '.join(self.by)}" if self.by else ""
        return f"Consolidate({describe_value(self.windows)}; {aggregates}{by})"
