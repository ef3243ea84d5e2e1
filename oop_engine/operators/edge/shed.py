"""Shed: lets one tuple of several through, by a hash of its values, and gives it the weight of those it stands for.

Under a load that cannot be borne, an answer that is known to be off by so much is better than none.  By ``by``, whole
keys are shed: joins and distinct counts of those that are left are right.  Each instance sheds the same, also after a
restart, for the hash follows from the values alone.

    Pass       the tuples that stay, at once, with their weight.
    Keep       how many were shed; with a budget three counts of the second; no tuple.
    Propagate  all punctuation, as it is: it holds for fewer tuples too.
    Cost       O(bytes of the columns that are hashed), in kernels.  Order needed: none; kept.
    Source     entry predicates and load shedding in Onyx's windowing notes; sampling by a hash and the variance of its
               sums after Horvitz and Thompson, JASA 1952.

A count of ``n`` weighted tuples is their sum of weights.  Each tuple stays with chance 1/k and then counts k, so the
sum is right in the mean, and its standard error is sqrt(n (k - 1)), for n tuples in all, if none share a key.  Where k
changes, each tuple that stays adds k (k - 1) to its square, for the weight k that it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.operator import Emission, Operator
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS
from oop_engine.operators.keys.key_codes import key_hashes
from oop_engine.operators.values.budget import Budget

__all__ = ["Shed"]

_HIGH = np.uint64(32)  # half of a hash; tables of groups go by the other
_MOST = 1 << 31


@checked_arguments
class Shed(Operator):
    """Keeps one tuple in ``one_in``, and adds ``weight``, an int64 column that is ``one_in``.

    ``budget``: so many tuples a second may stay, by the arrival clock; ``one_in`` is then the least number, and doubles
    whenever so many have stayed in a second; the next second begins with the number that the rate of this one asks
    for.  So the first second of a burst lets the budget through about once for each doubling: 4 times at 16 times the
    budget, 6 to 7 times at 100.  Those that stay at one number stay at all that are less,
    so keys do not come and go by chance.
    ``by``: all tuples with the same values of these columns stay, or none does; empty: all columns are looked at.
    ``counts()["shed"]`` is how many went, with a budget ``counts()["one_in"]`` the largest number so far.
    Sums are ``Sum`` of a value times the weight (``WithColumns``), counts ``Sum`` of
    the weight, means ``WeightedAvg``.  Raises ``GraphError`` unless ``one_in`` is from 1 to 2**31, for an unknown
    column, and if there is a column named as ``weight`` is; for a budget that is not positive, or a
    unit that is no time.  With a budget ``ContractError`` for a page without arrivals.

    >>> from oop_engine.testing import Driver
    >>> schema = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
    >>> driver = Driver(Shed(one_in=4, by=("k",)), schema)
    >>> _ = driver.feed(0, Page.of(schema, {"ts": [0] * 1000, "k": list(range(1000))}))
    >>> sum(row["weight"] for row in driver.rows()), driver.operator.counts()
    (996, {'shed': 751})
    """

    def __init__(
        self, one_in: int = 1, by: Sequence[str] = (), weight: str = "weight", *, budget: float | None = None
    ) -> None:
        if isinstance(one_in, bool) or not isinstance(one_in, int) or not 1 <= one_in <= _MOST:
            msg = f"Shed: one_in must be a whole number from 1 to {_MOST}; got {one_in!r}"
            raise GraphError(msg)
        if isinstance(by, str):
            msg = f"Shed: by must be a tuple of column names; got {by!r}: write by=({by!r},)"
            raise GraphError(msg)
        if budget is not None and (
            isinstance(budget, bool) or not isinstance(budget, int | float) or not budget > 0
        ):
            msg = f"Shed: budget must be more than 0 tuples a second; got {budget!r}"
            raise GraphError(msg)
        self.one_in, self.by, self.weight, self.budget = one_in, tuple(by), weight, budget

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        [schema] = inputs
        schema.require(self.by, "Shed: by")
        if self.weight in schema.names:
            msg = (
                f"Shed: weight must be a new column; got {self.weight!r} beside {schema.names}: name another"
            )
            raise GraphError(msg)
        if self.budget is not None and schema.unit not in TIME_UNITS:
            units = ", ".join(TIME_UNITS)
            msg = (
                f"Shed: with a budget arrivals must be in {units}; got the unit {schema.unit!r}: give one_in"
            )
            raise GraphError(msg)
        return (
            Schema(schema.fields.append(pa.field(self.weight, pa.int64())), schema.progressing, schema.unit),
        )

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]] | None:
        return None if self.budget is None else []  # the rate is that of all

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (None if column == self.weight else column,)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        if not self.by:
            return super().reads(inputs, downstream)
        return ((downstream[0] & frozenset(inputs[0].names)).union(self.by),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._shed = 0
        self._budget: Budget | None = None
        if self.budget is not None:
            self._budget = Budget(self.budget, self.one_in, TIME_UNITS[self.schemas_in[0].unit])

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        columns = [page.column(name) for name in self.by or page.schema.names]
        high = key_hashes(columns, len(page)).view(np.uint64) >> _HIGH
        weights = self._weights(high, page)
        sample = page.filter(weights > 0)
        self._shed += len(page) - len(sample)
        if len(sample):
            [schema] = self.schemas_out
            columns = [*sample.batch.columns, pa.array(weights[weights > 0])]
            yield 0, sample.with_batch(schema, pa.RecordBatch.from_arrays(columns, schema=schema.fields))

    def _weights(self, high: NDArray[np.uint64], page: Page) -> NDArray[np.int64]:
        if self._budget is None:
            return np.where(high % np.uint64(self.one_in) == 0, self.one_in, 0)
        if page.arrival is None and len(page):
            where = "stand it behind a source that has them"
            msg = f"Shed: with a budget tuples must have arrivals; got a page without: {where}"
            raise ContractError(msg)
        return high.view(np.int64)[:0] if page.arrival is None else self._budget.weights(high, page.arrival)

    def counts(self) -> dict[str, int]:
        return {"shed": self._shed} | ({} if self._budget is None else {"one_in": self._budget.most})

    def save(self) -> dict[str, Any]:
        return {"shed": self._shed} | ({} if self._budget is None else {"budget": self._budget.save()})

    def load(self, state: Saved) -> None:
        self._shed = state.integer("shed", least=0)
        if self._budget is not None:
            self._budget.load(state.part("budget"))

    def describe(self) -> str:
        by = f" of {', '.join(self.by)}" if self.by else ""
        budget = "" if self.budget is None else f", {self.budget:g} a second"
        return f"Shed(one in {self.one_in}{by}{budget})"

    def explain(self, inputs: tuple[Schema, ...]) -> str:
        if self.budget is not None:
            return (
                f"about {self.budget:g} tuples a second stay, one in {self.one_in} or in more, by the arrival clock; a "
                f"count by their weights w has the standard error sqrt(sum of w (w - 1))"
            )
        error = f"sqrt({self.one_in - 1} n)" if self.one_in > 2 else "sqrt(n)" if self.one_in == 2 else "0"
        what = "values of " + ", ".join(self.by) if self.by else "tuples"
        return f"one in {self.one_in} {what} stays; a count of n {what} by their weights has the standard error {error}"
