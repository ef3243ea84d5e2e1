"""Sort: holds tuples back until none smaller can come, and lets them go in order.

It stands behind a source of an in-order plan, the twin of ``Punctuate``: the same policy gives the same
bounds at the same tuples.  There the bound goes on as punctuation while the tuples pass;
here the tuples wait for it.

    Pass       the tuples below a bound, sorted (equal ones as they came), as soon as it is
               reached, which of a page without arrivals is its end; with generous slack, late
               tuples at once on their own port.
    Keep       every tuple that is not below the bound: ``slack`` of the stream.  With
               ``PerGroup`` the bounds of groups too.
    Propagate  the bound, after the tuples below it.  Linear punctuation that comes in counts
               as a bound too; bounds of groups only decide which tuples are late.
    Cost       O(log pages) a tuple, in bulk: pages are sorted when they come, and merged
               when they leave; a bound the tuples that it releases; and the delay, for every tuple.
    Source     thesis 8.1 and 2.4 (slack; Aurora's BSort), 6.1.5.2 (consistent and generous).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.ordering.reorder_buffer import ReorderBuffer
from oop_engine.operators.policies.late import Slack
from oop_engine.operators.policies.policies import PerGroup, Upstream
from oop_engine.operators.policies.running_bound import Policy, check_policy
from oop_engine.operators.policies.source_progress import PagePart, SourceProgress
from oop_engine.operators.values.describe_value import describe_value

__all__ = ["Sort"]


@checked_arguments
class Sort(Operator):
    """Sorts by the progressing attribute, up to the bound of ``policy``.

    ``granularity``: as in ``Punctuate``; tuples leave when a multiple of it is passed; None:
    at most once a page.  ``late``: ``"consistent"`` drops and counts a tuple that comes
    behind the bound; ``"generous"`` puts it out on a second output, ``late``, in the order
    it came, for the window extents that are still open, after the punctuation that it is behind.  The same
    tuples are late as in a ``Punctuate`` of the same policy and granularity.  With ``PerGroup`` tuples leave by its
    ``linear`` policy: sorted streams have no use for the progress of groups, but it decides which tuples are late.
    ``columns``: those that are buffered and emitted, with the progressing attribute; None: all.  Which tuples are late
    does not depend on it.
    Raises ``GraphError`` if there is none, or if a length does not fit the stream.

    >>> import pyarrow as pa
    >>> from oop_engine.testing import Driver
    >>> from oop_engine.operators.policies.policies import BoundedDisorder
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> driver = Driver(Sort(BoundedDisorder(slack=5), granularity=10), schema)
    >>> driver.feed(0, Page.of(schema, {"ts": [9, 12, 6, 16, 8]}))
    [(0, Page(2 rows of ts)), (0, Linear(below=10))]
    >>> [row["ts"] for row in driver.rows()], driver.operator.counts()
    ([6, 9], {'late': 1})
    """

    makes_progress = True

    def __init__(
        self, policy: Policy, granularity: Length | None = None, late: Slack | str = Slack.CONSISTENT,
        *, columns: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        check_policy(policy, "Sort")
        if isinstance(policy, PerGroup) and policy.linear is None:
            msg = f"Sort: policy must tell the progress of the whole stream; got {policy}: give PerGroup a linear=..."
            raise GraphError(msg)
        if late not in list(Slack):
            msg = f"Sort: late must be one of {', '.join(Slack)}; got {late!r}{did_you_mean(late, Slack)}"
            raise GraphError(msg)
        self._policy = policy
        self._granularity = granularity
        self._slack = Slack(late)
        self.columns = None if columns is None else list(columns)
        self.outputs = ("out", "late") if self._slack is Slack.GENEROUS else ("out",)

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self._progress(inputs[0])
        narrow = inputs[0] if self.columns is None else inputs[0].select(self.columns)
        return (narrow,) * len(self.outputs)

    def _progress(self, schema: Schema) -> SourceProgress:
        return SourceProgress(self._policy, self._granularity, schema, "Sort")

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def at_rest(self) -> Operator:
        """Return the operator without bounds of its own: for input that is all there, in no order of arrival."""
        resting = copy.copy(self)
        resting._policy = Upstream()
        return resting

    def open(self) -> None:
        self._edge = self._progress(self.schemas_in[0])
        self.clock_every = self._edge.clock_every
        self._waiting = ReorderBuffer(self.schemas_out[0])
        self.moment = None
        self._late = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        for item in self._edge.take(page, apart=self._slack is Slack.GENEROUS):
            if isinstance(item, PagePart):
                yield from self._take(item, page)
            else:
                yield from self._release(item)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        for message in self._edge.upstream(punctuation):
            yield from self._release(message)

    def on_clock(self, now: int) -> Iterator[Emission]:
        self.moment = now if self.moment is None else max(self.moment, now)
        for message in self._edge.clock(now):
            yield from self._release(message)

    def _take(self, part: PagePart, arrived: Page) -> Iterator[Emission]:
        page, as_it_came = part.page, part.page is arrived and arrived.arrival is None
        if page.arrival is not None:
            self.moment = int(page.arrival[-1])
        if part.late is not None:
            self._late += int(part.late.sum())
            if self._slack is Slack.GENEROUS:
                yield 1, self._narrow(page.filter(part.late))
            page = page.filter(~part.late)
        page = self._narrow(page)
        self._waiting.add(page if as_it_came else page.owned())

    def _narrow(self, page: Page) -> Page:
        return (
            page
            if self.columns is None
            else page.with_batch(self.schemas_out[0], page.batch.select(self.columns))
        )

    def _release(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Release the tuples below a bound, then the punctuation; those of groups only decide which tuples are late."""
        if not isinstance(punctuation, Linear):
            return
        page = self._waiting.release(punctuation.below)
        if page is not None:
            yield 0, page
        yield 0, punctuation

    def state(self) -> State:
        return State(tuples=self._waiting.tuples, nbytes=self._waiting.nbytes) + self._edge.state()

    def counts(self) -> dict[str, int]:
        return {"late": self._late}

    def save(self) -> dict[str, Any]:
        waiting = self._waiting.save()
        return {"edge": self._edge.save(), "waiting": waiting, "now": self.moment, "late": self._late}

    def load(self, state: Saved) -> None:
        self._edge.load(state.part("edge"))
        self._waiting.load(state.part("waiting"))
        self.moment = None if state["now"] is None else state.integer("now")
        self._late = state.integer("late", least=0)

    def describe(self) -> str:
        columns = "" if self.columns is None else f"; {', '.join(self.columns)}"
        return f"Sort({describe_value(self._policy)}{columns})"
