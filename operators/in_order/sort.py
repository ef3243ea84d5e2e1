"""Sort: holds tuples back until none smaller can come, and lets them go in order.

The edge of an in-order plan, and the twin of ``Punctuate``: the same policy tells the same
bounds at the same tuples.  There the bound goes on as punctuation while the tuples pass;
here the tuples wait for it.

    Pass       the tuples below a bound, sorted (equal ones as they came), as soon as it is
               reached, which of a page without arrivals is its end; with generous slack, late
               tuples at once on their own port.
    Keep       every tuple that is not below the bound: ``slack`` of the stream.
    Propagate  the bound, after the tuples below it.  Linear punctuation that comes in counts
               as a bound too; other kinds mean nothing to in-order operators.
    Cost       O(log pages) a tuple, in bulk: pages are sorted when they come, and merged
               when they leave; and the delay, for every tuple.
    Source     thesis 8.1 and 2.4 (slack; Aurora's BSort), 6.1.5.2 (consistent and generous).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oop_engine.errors import GraphError
from oop_engine.operator import Emission, Operator, State
from oop_engine.page import Page
from oop_engine.progress import Progress
from oop_engine.punctuation import Linear, Punctuation
from oop_engine.schema import Schema
from oop_engine.units import Length
from operators.in_order.reorder_buffer import ReorderBuffer
from operators.late import Slack
from operators.policies import PerGroup, Policy, check_policy, cut_rows, floored, length_of, promised_after
from operators.spelled import spelled

__all__ = ["Sort"]


class Sort(Operator):
    """Sorts by the progressing attribute, as far as ``policy`` can tell what is complete.

    ``granularity``: as in ``Punctuate``; tuples leave when a multiple of it is passed; None:
    at most once a page.  ``late``: ``"consistent"`` drops and counts a tuple that comes
    behind the bound; ``"generous"`` puts it out on a second output, ``late``, in the order
    it came, for the window extents that are still open.  With ``PerGroup`` its ``linear``
    policy is used: sorted streams have no use for the progress of groups.
    Raises ``GraphError`` if there is none, or if a length does not fit the stream.

    >>> import pyarrow as pa
    >>> from oop_engine.testing import Driver
    >>> from operators.policies import BoundedDisorder
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> driver = Driver(Sort(BoundedDisorder(slack=5), granularity=10), schema)
    >>> driver.feed(0, Page.of(schema, {"ts": [9, 12, 6, 16, 8]}))
    [(0, Page(2 rows of ts)), (0, Linear(below=10))]
    >>> [row["ts"] for row in driver.rows()], driver.operator.counts()
    ([6, 9], {'late': 1})
    """

    makes_progress = True

    def __init__(
        self, policy: Policy, granularity: Length | None = None, late: Slack | str = Slack.CONSISTENT
    ) -> None:
        check_policy(policy, "Sort")
        if isinstance(policy, PerGroup) and policy.linear is None:
            msg = f"Sort: policy must tell the progress of the whole stream; got {policy}: give PerGroup a linear=..."
            raise GraphError(msg)
        if late not in list(Slack):
            msg = f"Sort: late must be one of {', '.join(Slack)}; got {late!r}"
            raise GraphError(msg)
        self._policy = policy
        self._granularity = granularity
        self.page_by_page = granularity is None  # a promise at the end of each
        self._slack = Slack(late)
        self.outputs = ("out", "late") if self._slack is Slack.GENEROUS else ("out",)

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self._policy.watermark(inputs[0], "Sort")
        self._granule(inputs[0])
        return super().output_schemas(inputs)

    def _granule(self, schema: Schema) -> int | None:
        if self._granularity is None:
            return None
        return length_of(self._granularity, schema, "Sort: granularity", least=1)

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def open(self) -> None:
        self._every = self._granule(self.schemas_in[0])
        self._watermark = self._policy.watermark(self.schemas_in[0], "Sort")
        self.clock_every = self._watermark.clock_every
        self._promised = Progress(1)
        self._waiting = ReorderBuffer(self.schemas_in[0])
        self._now: int | None = None  # the last arrival
        self._late = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if page.arrival is None and self._slack is Slack.CONSISTENT:
            yield from self._at_once(page)
            return
        before = self._promised.linear
        after = promised_after(self._watermark.after(page), before, self._every)
        start = 0
        for stop in cut_rows(after, before).tolist():
            yield from self._take(page.slice(start, stop))
            yield from self._release(int(after[stop - 1]))
            start = stop
        yield from self._take(page.slice(start, len(page)))

    def _at_once(self, page: Page) -> Iterator[Emission]:
        """Take a page that came as a whole, and let go of what is complete by its end."""
        below, late = self._watermark.over(page, self._promised.linear, self._every)
        if late is not None:
            self._late += int(late.sum())
            page = page.filter(~late)
        self._waiting.add(page)
        yield from self._release(below)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if isinstance(punctuation, Linear):
            yield from self._release(punctuation.below)

    def on_clock(self, now: int) -> Iterator[Emission]:
        below = int(floored(np.array([self._watermark.on_clock(now)]), self._every)[0])
        self._now = now if self._now is None else max(self._now, now)
        yield from self._release(below)

    def _take(self, part: Page) -> Iterator[Emission]:
        if not len(part):
            return
        if part.arrival is not None:
            self._now = int(part.arrival[-1])
        late = part.times < self._promised.linear
        if late.any():
            self._late += int(late.sum())
            if self._slack is Slack.GENEROUS:
                yield 1, part.filter(late)
            part = part.filter(~late)
        self._waiting.add(part.owned())

    def _release(self, below: int) -> Iterator[Emission]:
        """Let go of the tuples below a bound, then promise it."""
        said = self._promised.advance(0, Linear(below))
        if not said:
            return
        page = self._waiting.release(below)
        if page is not None:
            yield 0, page
        for promise in said:
            yield 0, promise

    @property
    def moment(self) -> int | None:
        return self._now

    def state(self) -> State:
        return State(tuples=self._waiting.tuples, nbytes=self._waiting.nbytes + self._watermark.nbytes)

    def counts(self) -> dict[str, int]:
        return {"late": self._late}

    def save(self) -> dict[str, Any]:
        return {
            "watermark": self._watermark.save(),
            "promised": self._promised.save(),
            "waiting": self._waiting.save(),
            "now": self._now,
            "late": self._late,
        }

    def load(self, state: dict[str, Any]) -> None:
        self._watermark.load(state["watermark"])
        self._promised.load(state["promised"])
        self._waiting.load(state["waiting"])
        self._now, self._late = state["now"], state["late"]

    def describe(self) -> str:
        return f"Sort({spelled(self._policy)})"
