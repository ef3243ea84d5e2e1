"""Punctuate: generates the punctuation of a stream, and turns tuples away that would contradict it.

It stands downstream of a source.  With a granularity, a page with arrivals is cut where the bound passes a multiple, so
punctuation does not wait for the end of a page.  Without one, or without arrivals, the bound follows at the end of each
page.  Inside the graph no operator guesses progress
from tuples.

    Pass       every tuple that is not behind a bound, at once, in the order it came.
    Keep       the state of the policy, and the bounds emitted.  Never a tuple.  ``PerGroup`` without ``linear``: of
               each key, until a linear bound of the stream itself passes it.
    Propagate  the bound of the policy, rounded down to a multiple of the granularity, each time it passes
               one; for groups, all that has grown, in one message, when the fastest
               group has passed one.  Punctuation that comes in is merged: the larger
               bound goes on.  With ``watermark`` that policy's bound in the same way, as a
               ``Watermark``, after the tuple that made it grow.
    Cost       O(1) a tuple, vectorised; O(log n) for ``BoundedCount(n)``; a hash look-up
               a tuple for ``PerGroup``, and O(groups whose bound has grown) a group-wise punctuation.
    Source     thesis 8.1 (Gigascope's heartbeat; punctuation closes the batch; granularity
               of the smallest slide).  ``Sort`` is the in-order twin.

A tuple is late if it is behind the bound that held for its stream or group when it came: with a granularity, the bound
*emitted*; without one, the bound that follows from the tuples before it, though it goes out once a page, at its end.
So lateness depends on the tuples and the clock alone, never on where pages end.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError, LateTuple
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.policies.late import Late
from oop_engine.operators.policies.policies import PerGroup, Upstream
from oop_engine.operators.policies.running_bound import Policy, check_policy
from oop_engine.operators.policies.source_progress import PagePart, SourceProgress
from oop_engine.operators.values.describe_value import describe_value

__all__ = ["Punctuate"]

Bounds = int | NDArray[np.int64] | None


@checked_arguments
class Punctuate(Operator):
    """Generator of punctuation after ``policy``.

    ``granularity``: emits only multiples of it (best: the smallest slide downstream), but passes on the bounds that the
    stream brings as they are; None: the bound itself, at the end of each page.  ``late``: drop, divert or raise
    for late tuples; with ``Late.DIVERT`` there is a second output, ``late``, without punctuation: ``stream.late``.
    ``watermark``: a second policy, less patient, whose bound is soft: tuples behind it are let through and counted
    (``counts()["allowed_late"]``), as long as they are not behind punctuation.  The stretch between both is the allowed
    lateness of Flink and Beam.
    Raises ``GraphError`` if a length or a column does not fit the stream, and if both policies are equal.

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
    revisions = "passes"

    def __init__(
        self, policy: Policy, granularity: Length | None = None, late: Late = Late.DROP,
        *, watermark: Policy | None = None,
    ) -> None:  # fmt: skip
        check_policy(policy, "Punctuate")
        if watermark is not None:
            check_policy(watermark, "Punctuate: watermark")
        if watermark == policy:
            msg = f"Punctuate: a watermark must be less patient than the policy; got {policy!r} for both: leave it out"
            raise GraphError(msg)
        self.policy = policy
        self.watermark = watermark
        self.granularity = granularity
        self.late = late
        self.outputs = late.ports("late")

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        if not isinstance(self.policy, PerGroup) or self.policy.linear is not None:
            return None
        return (
            "the bound of each key, until a linear bound of the stream itself passes it: PerGroup(..., linear=policy) "
            "makes such bounds"
        )

    def uses_arrival(self) -> bool:
        return self.policy.uses_arrival() or (self.watermark is not None and self.watermark.uses_arrival())

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self._progress(inputs[0], self.policy)
        if self.watermark is not None:
            self._progress(inputs[0], self.watermark)
        return super().output_schemas(inputs)

    def _progress(self, schema: Schema, policy: Policy) -> SourceProgress:
        return SourceProgress(policy, self.granularity, schema, "Punctuate")

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def at_rest(self) -> Operator:
        """Return the operator without bounds of its own: for input that is all there, in no order of arrival."""
        resting = copy.copy(self)
        resting.policy, resting.watermark = Upstream(), None
        return resting

    def open(self) -> None:
        self._edge = self._progress(self.schemas_in[0], self.policy)
        self._soft = None if self.watermark is None else self._progress(self.schemas_in[0], self.watermark)
        clocks = [running.clock_every for running in (self._edge, self._soft) if running is not None]
        self.clock_every = min((every for every in clocks if every is not None), default=None)
        self._rows = 0
        self._late_rows = self._allowed_rows = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        apart = self.late is Late.RAISE
        items = self._edge.take(page, apart=apart) if self._soft is None else self._with_watermarks(page)
        for item in items:
            if not isinstance(item, PagePart):
                yield 0, item
                continue
            if item.late is None:
                yield 0, item.page
            else:
                yield from self._refuse(item.page, item.late, item.bounds)
            self._rows += item.page.rows

    def _with_watermarks(self, page: Page) -> Iterator[PagePart | Punctuation]:
        """Yield the parts of a page and the punctuation behind them; count the tuples that are late and allowed."""
        assert self._soft is not None
        if self.late is not Late.RAISE and self._edge.takes_with(self._soft, page):
            whole, many, after = self._edge.take_with(self._soft, page)
            self._allowed_rows += many
            yield whole
            yield from after
            return
        for part in self._soft.take(page):
            if not isinstance(part, PagePart):
                yield from self._expected(part)
                continue
            start = 0
            for item in self._edge.take(part.page, apart=self.late is Late.RAISE):
                yield item
                if isinstance(item, PagePart):
                    rows = slice(start, start := start + len(item.page))
                    if part.late is not None:
                        allowed = part.late[rows] if item.late is None else part.late[rows] & ~item.late
                        self._allowed_rows += int(np.count_nonzero(allowed))

    def _expected(self, bound: Punctuation) -> Iterator[Punctuation]:
        """Yield the watermark of a bound, if no punctuation has passed it already."""
        if isinstance(bound, Linear | GroupWise):
            yield from self._edge.upstream(Watermark(bound))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        for message in self._edge.upstream(punctuation):
            yield 0, message
        if self._soft is not None:
            for bound in self._soft.upstream(punctuation):
                for message in self._expected(bound):
                    yield 0, message

    def on_clock(self, now: int) -> Iterator[Emission]:
        for message in self._edge.clock(now):
            yield 0, message
        if self._soft is not None:
            for bound in self._soft.clock(now):
                for message in self._expected(bound):
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
        schema, below = part.schema, bounds[row] if isinstance(bounds, np.ndarray) else bounds
        assert below is not None  # something is late
        time, bound = schema.moment(int(part.times[row])), schema.moment(int(below))
        return LateTuple(
            f"Punctuate: {schema.progressing}={time} (row {self._rows + row} of the stream, the first is 0) is behind "
            f"the bound {bound} of {describe_value(self.policy)}: allow for more disorder, or set late=Late.DIVERT"
        )

    def state(self) -> State:
        return self._edge.state() if self._soft is None else self._edge.state() + self._soft.state()

    def counts(self) -> dict[str, int]:
        allowed = {} if self._soft is None else {"allowed_late": self._allowed_rows}
        return {"late": self._late_rows} | allowed

    def save(self) -> dict[str, Any]:
        soft = None if self._soft is None else self._soft.save()
        rows = [self._rows, self._late_rows, self._allowed_rows]
        return {"edge": self._edge.save(), "soft": soft, "rows": rows}

    def load(self, state: Saved) -> None:
        self._edge.load(state.part("edge"))
        if self._soft is not None:
            self._soft.load(state.part("soft"))
        rows = state.part("rows")
        self._rows, self._late_rows, self._allowed_rows = (rows.integer(i, least=0) for i in range(3))

    def describe(self) -> str:
        return f"Punctuate({describe_value(self.policy)})"
