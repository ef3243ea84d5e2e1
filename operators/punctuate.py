"""Punctuate: generates the punctuation of a stream, and turns tuples away that would contradict it.

It stands behind a source.  A page with arrivals is cut where the bound grows: no punctuation is ever held
back behind a half-full page.  A page without has come as a whole: nothing would be known sooner, so
it goes on as a whole, and the bound at its end follows it.  Inside the graph no operator guesses progress
from tuples.

    Pass       every tuple that is not behind a bound, at once, in the order it came.
    Keep       the state of the policy, and the bounds put out.  Never a tuple.
    Propagate  the watermark of the policy, each time it passes a multiple of the
               granularity; for groups, all that has grown, in one message, when the fastest
               group has passed one.  Punctuation that comes in is merged: the larger
               bound goes on.
    Cost       O(1) a tuple, vectorised; O(log n) for ``BoundedCount(n)``; a hash look-up
               a tuple and O(groups) a group-wise punctuation for ``PerGroup``.
    Source     thesis 8.1 (Gigascope's heartbeat; punctuation closes the batch; granularity
               of the smallest slide).  ``Sort`` is the in-order twin.

A tuple is late if it is behind the bound that held for its stream or group when it came: with a granularity, the bound
*put out*; without one, the bound that follows from the tuples before it, though it goes out once a page, at its end.
So lateness depends on the tuples and the clock alone, never on where pages end.
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
from oop_engine.operators.policies.late import Late
from oop_engine.operators.policies.source_progress import PagePart, SourceProgress
from oop_engine.operators.policies.watermark import Policy, check_policy
from oop_engine.operators.values.describe_value import describe_value

__all__ = ["Punctuate"]

Bounds = int | NDArray[np.int64] | None


class Punctuate(Operator):
    """Generator of punctuation after ``policy``.

    ``granularity``: put out only multiples of it (best: the smallest slide behind); None: the
    bound itself, once a page.  ``late``: drop, divert or raise for tuples behind it; with
    ``Late.DIVERT`` there is a second output, ``late``, without punctuation.
    Raises ``GraphError`` if a length or a column does not fit the stream.

    >>> import pyarrow as pa
    >>> from oop_engine.testing import Driver
    >>> from oop_engine.operators.policies.policies import BoundedDisorder
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

    def _progress(self, schema: Schema) -> SourceProgress:
        return SourceProgress(self.policy, self.granularity, schema, "Punctuate")

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
            sides.insert(0 if late[-1] else 1, (0, ~late))  # the last to come has the moment
        for port, rows in sides:
            yield port, part.filter(rows)

    def _error(self, part: Page, row: int, bounds: Bounds) -> LateTuple:
        name, unit = part.schema.progressing, part.schema.unit
        below = bounds[row] if isinstance(bounds, np.ndarray) else bounds
        return LateTuple(
            f"Punctuate: tuple {name}={part.times[row]} (row {self._rows + row} of the stream) came behind "
            f"the bound {name} >= {below} (unit {unit}): allow for more disorder, or set late=Late.DIVERT"
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
