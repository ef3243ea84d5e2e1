"""Punctuate: makes the promises of a stream, and makes the stream keep to them.

The edge of the graph.  A page with arrivals is cut where the promise grows: no punctuation is ever held
back behind a half-full page.  A page without has come as a whole: nothing would be known sooner, so
it goes on as a whole, and what can be promised by its end follows it.  Inside the graph nobody looks at tuples
to guess progress.

    Pass       every tuple that is not behind a promise, at once, in the order it came.
    Keep       what the policy keeps, and what was promised.  Never a tuple.
    Propagate  the watermark of the policy, each time it passes a multiple of the
               granularity; for groups, all that has grown, in one message, when the fastest
               group has passed one.  Punctuation that comes in is merged: the stronger
               promise goes on.
    Cost       O(1) a tuple, vectorised; O(log n) for ``BoundedCount(n)``; a hash look-up
               a tuple and O(groups) a group-wise promise for ``PerGroup``.
    Source     thesis 8.1 (Gigascope's heartbeat; punctuation closes the batch; granularity
               of the smallest slide).  ``Sort`` is the in-order twin.

A tuple is late if it is behind what held by then for its stream or group: what was *promised*, with a
granularity; without one, the bound that the tuples before it give, though it goes out once a page, at its end.  So
what is late depends on the tuples and the clock alone, never on where pages end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import LateTuple
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.edge.edge_progress import EdgeProgress, PagePart
from oop_engine.operators.edge.late import Late
from oop_engine.operators.edge.watermark import Policy, check_policy
from oop_engine.operators.values.describe_value import describe_value

__all__ = ["Punctuate"]

Bounds = int | NDArray[np.int64] | None


class Punctuate(Operator):
    """Generator of punctuation after ``policy``.

    ``granularity``: promise only multiples of it (best: the smallest slide behind); None: the
    bound itself, once a page.  ``late``: what becomes of tuples behind it; with
    ``Late.DIVERT`` there is a second output, ``late``, which promises nothing.
    Raises ``GraphError`` if a length or a column does not fit the stream.

    >>> import pyarrow as pa
    >>> from oop_engine.testing import Driver
    >>> from oop_engine.operators.edge.policies import BoundedDisorder
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> driver = Driver(Punctuate(BoundedDisorder(slack=5), granularity=10), schema)
    >>> driver.feed(0, Page.of(schema, {"ts": [16, 9, 14]}))
    [(0, Page(2 rows of ts)), (0, Linear(below=10))]
    >>> driver.operator.counts()
    {'late': 1}
    """

    makes_progress = True

    def __init__(self, policy: Policy, granularity: Length | None = None, late: Late = Late.DROP) -> None:
        check_policy(policy, "Punctuate")
        self.policy = policy
        self.granularity = granularity
        self.late = late
        self.outputs = late.ports("late")

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self._progress(inputs[0])
        return super().output_schemas(inputs)

    def _progress(self, schema: Schema) -> EdgeProgress:
        return EdgeProgress(self.policy, self.granularity, schema, "Punctuate")

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def open(self) -> None:
        self._edge = self._progress(self.schemas_in[0])
        self.clock_every = self._edge.clock_every
        self._rows = 0
        self._late_rows = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        for item in self._edge.take(page, apart=self.late is Late.RAISE):
            if not isinstance(item, PagePart):
                yield 0, item
                continue
            if item.late is None:
                yield 0, item.page
            else:
                yield from self._refuse(item.page, item.late, item.bounds)
            self._rows += item.page.batch.num_rows

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        for message in self._edge.upstream(punctuation):
            yield 0, message

    def on_clock(self, now: int) -> Iterator[Emission]:
        for message in self._edge.clock(now):
            yield 0, message

    def _refuse(self, part: Page, late: NDArray[np.bool_], bounds: Bounds) -> Iterator[Emission]:
        if self.late is Late.RAISE:
            raise self._error(part, int(np.argmax(late)), bounds)
        self._late_rows += int(late.sum())
        sides = [(1, late)] if self.late is Late.DIVERT else []
        if not late.all():
            sides.insert(0 if late[-1] else 1, (0, ~late))  # the last to come tells the moment
        for port, rows in sides:
            yield port, part.filter(rows)

    def _error(self, part: Page, row: int, bounds: Bounds) -> LateTuple:
        name, unit = part.schema.progressing, part.schema.unit
        below = bounds[row] if isinstance(bounds, np.ndarray) else bounds
        return LateTuple(
            f"Punctuate: tuple {name}={part.times[row]} (row {self._rows + row} of the stream) came behind "
            f"the promise {name} >= {below} (unit {unit}): allow for more disorder, or set late=Late.DIVERT"
        )

    def state(self) -> State:
        return self._edge.state()

    def counts(self) -> dict[str, int]:
        return {"late": self._late_rows}

    def save(self) -> dict[str, Any]:
        return {"edge": self._edge.save(), "rows": [self._rows, self._late_rows]}

    def load(self, state: Saved) -> None:
        self._edge.load(state.part("edge"))
        self._rows, self._late_rows = (state.part("rows").integer(i, least=0) for i in range(2))

    def describe(self) -> str:
        return f"Punctuate({describe_value(self.policy)})"
