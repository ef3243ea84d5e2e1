"""Aggregate: groups tuples by window id and other columns, closes groups by punctuation.

The second half of window aggregation: it takes the window ids from the columns that
``Bucket`` has added, and does not ask how they came about.

    Pass       results, as soon as punctuation completes their window (and group); never tuples.
    Keep       one partial aggregate for each open (group, window); no tuple.
    Propagate  as ``WindowAggregate``.
    Cost       O(windows of the tuple) a tuple; O(windows closed) a punctuation.  Order
               needed: none.

Source: thesis 6.1.3.2, figure 6-4; a bound closes all windows with end <= bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.slicing.checks import MOST_PARTIALS, check_overlap, checked
from oop_engine.operators.slicing.closing import Closing
from oop_engine.operators.slicing.output import Output, Stamp
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.stores.pane_store import PaneStore
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.tagger import bind
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import (
    Over,
    Windows,
    completed_by_rows,
    divisible_by,
    is_grid,
)

__all__ = ["Aggregate"]

Integers = NDArray[np.int64]

_IDS = ("first_wid", "last_wid")


def _ids(page: Page) -> tuple[Integers, Integers]:
    first, last = (page.column(name).cast(pa.int64()).to_numpy() for name in _IDS)
    return first, last


def _checked(page: Page) -> tuple[Integers, Integers]:
    """Return the ids; raise ``ContractError`` if a tuple has more of them than its windows can be."""
    first, last = _ids(page)
    widths = last.astype(float) - first.astype(float) + 1  # ids may be anything: their distance must not wrap
    if widths.size and widths.max() > MOST_PARTIALS:
        row = int(np.argmax(widths))
        msg = (
            f"Aggregate: a tuple must be in at most {MOST_PARTIALS:,} windows; got first_wid={first[row]}, "
            f"last_wid={last[row]}: put the Bucket of the same windows before it"
        )
        raise ContractError(msg)
    return first, last


@checked_arguments
class Aggregate(Operator):
    """Aggregates of tuples tagged by ``Bucket(windows)``; parameters as of ``WindowAggregate``.

    Raises ``GraphError`` if the input has no window ids, or parameters do not fit.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators.aggregates import Count
    >>> from oop_engine.operators.windows import Tumbling
    >>> schema = Schema({"ts": pa.int64(), "first_wid": pa.int64(), "last_wid": pa.int64()}, "ts", "s")
    >>> count = Aggregate(Tumbling(10), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [7, 3], "first_wid": [0, 0], "last_wid": [0, 0]})))
    []
    >>> [m.to_pylist() for _, m in count.on_punctuation(0, Linear(10)) if isinstance(m, Page)]
    [[{'window_start': 0, 'window_end': 10, 'n': 2}]]
    """

    def __init__(
        self, windows: Windows, aggregates: Mapping[str, Aggregation], by: Sequence[str] = (),
        *, empty: bool = False, stamp: Stamp = "end",
    ) -> None:  # fmt: skip
        self.by = checked(aggregates, by, stamp, "Aggregate")
        self.windows = windows
        self.waits = None if completed_by_rows(windows) else "results"
        self.aggregates = dict(aggregates)
        self.empty = empty
        self.stamp: Stamp = stamp

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (self._output(inputs[0]).schema,)

    def _output(self, schema: Schema) -> Output:
        if not schema.has(_IDS):
            msg = f"Aggregate: needs the columns {' and '.join(_IDS)} in its input; put a Bucket before it"
            raise GraphError(msg)
        extents = bind(self.windows, schema, self.by, "Aggregate")
        if extents.over is not Over.ATTRIBUTE and schema.progressing != "row":
            msg = f"Aggregate: {self.windows} needs the 'row' of its Bucket; got progress by {schema.progressing!r}"
            raise GraphError(msg)
        if not is_grid(extents):
            msg = f"Aggregate: windows must have ids, as a Bucket gives them; got {self.windows}: use WindowAggregate"
            raise GraphError(msg)
        check_overlap(extents, "Aggregate", in_table=True)
        return Output({"": extents}, self.aggregates, schema, self.by, self.stamp, "Aggregate")

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return divisible_by(self.windows, self.by, inputs[0])

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in self.by else None,) * len(inputs)

    def open(self) -> None:
        schema = self.schemas_in[0]
        output = self._output(schema)
        [extents] = output.definitions
        assert is_grid(extents)
        rest = 0, extents, output.parts, self.stamp
        store: Store = (
            PaneStore(*rest, ids=_ids)
            if extents.landmark
            else WindowStore(*rest, panes=False, every=self.empty, ids=_checked)
        )
        self._closing = Closing(output, schema, self.by, [store])

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self._closing.add(page, page.times)
        yield from ()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        yield from self._closing.take(punctuation)

    def state(self) -> State:
        return self._closing.state()

    def counts(self) -> dict[str, int]:
        return self._closing.counts()

    def save(self) -> dict[str, Any]:
        return self._closing.save()

    def load(self, state: Saved) -> None:
        self._closing.load(state)

    def describe(self) -> str:
        asked = ", ".join(
            f"{name}={describe_value(aggregate)}" for name, aggregate in self.aggregates.items()
        )
        by = f"; by {', '.join(self.by)}" if self.by else ""
        return f"Aggregate({asked}{by})"
