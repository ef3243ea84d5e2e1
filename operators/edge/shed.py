"""Shed: lets one tuple of several through, by a hash of its values, and gives it the weight of those it stands for.

Under a load that cannot be borne, an answer that is known to be off by so much is better than none.  By ``by``, whole
keys are shed: joins and distinct counts of those that are left are right.  Each instance sheds the same, also after a
restart, for the hash follows from the values alone.

    Pass       the tuples that stay, at once, with their weight.
    Keep       how many were shed; no tuple.
    Propagate  all punctuation, as it is: it holds for fewer tuples too.
    Cost       O(bytes of the columns that are hashed), in kernels.  Order needed: none; kept.
    Source     entry predicates and load shedding in Onyx's windowing notes; sampling by a hash and the variance of its
               sums after Horvitz and Thompson, JASA 1952.

A count of ``n`` weighted tuples is their sum of weights.  Each tuple stays with chance 1/k and then counts k, so the
sum is right in the mean, and its standard error is sqrt(n (k - 1)), for n tuples in all, if none share a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.key_codes import key_hashes

__all__ = ["Shed"]

_HIGH = np.uint64(32)  # half of a hash; tables of groups go by the other
_MOST = 1 << 31


class Shed(Operator):
    """Keeps one tuple in ``one_in``, and adds ``weight``, an int64 column that is ``one_in``.

    ``by``: all tuples with the same values of these columns stay, or none does; empty: all columns are looked at.
    ``counts()["shed"]`` is how many went.  Sums are ``Sum`` of a value times the weight (``Apply``), counts ``Sum`` of
    the weight, means ``WeightedAvg``.  Raises ``GraphError`` unless ``one_in`` is from 1 to 2**31, for an unknown
    column, and if there is a column named as ``weight`` is.

    >>> from oop_engine.testing import Driver
    >>> schema = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
    >>> driver = Driver(Shed(one_in=4, by=("k",)), schema)
    >>> _ = driver.feed(0, Page.of(schema, {"ts": [0] * 1000, "k": list(range(1000))}))
    >>> sum(row["weight"] for row in driver.rows()), driver.operator.counts()
    (996, {'shed': 751})
    """

    def __init__(self, one_in: int, by: Sequence[str] = (), weight: str = "weight") -> None:
        if isinstance(one_in, bool) or not isinstance(one_in, int) or not 1 <= one_in <= _MOST:
            msg = f"Shed: one_in must be a whole number from 1 to {_MOST}; got {one_in!r}"
            raise GraphError(msg)
        if isinstance(by, str):
            msg = f"Shed: by must be a tuple of column names; got {by!r}: write by=({by!r},)"
            raise GraphError(msg)
        self.one_in, self.by, self.weight = one_in, tuple(by), weight

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        [schema] = inputs
        schema.require(self.by, "Shed: by")
        if self.weight in schema.names:
            msg = (
                f"Shed: weight must be a new column; got {self.weight!r} beside {schema.names}: name another"
            )
            raise GraphError(msg)
        return (
            Schema(schema.fields.append(pa.field(self.weight, pa.int64())), schema.progressing, schema.unit),
        )

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (None if column == self.weight else column,)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._shed = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        columns = [page.column(name) for name in self.by or page.schema.names]
        high = key_hashes(columns, len(page)).view(np.uint64) >> _HIGH
        stay = high % np.uint64(self.one_in) == 0
        kept = page.filter(stay)
        self._shed += len(page) - len(kept)
        if len(kept):
            [schema] = self.schemas_out
            weights = pa.array(np.full(len(kept), self.one_in, np.int64))
            batch = pa.RecordBatch.from_arrays([*kept.batch.columns, weights], schema=schema.fields)
            yield 0, kept.with_batch(schema, batch)

    def counts(self) -> dict[str, int]:
        return {"shed": self._shed}

    def save(self) -> dict[str, Any]:
        return {"shed": self._shed}

    def load(self, state: Saved) -> None:
        self._shed = state.integer("shed", least=0)

    def describe(self) -> str:
        by = f" of {', '.join(self.by)}" if self.by else ""
        return f"Shed(one in {self.one_in}{by})"

    def explain(self, inputs: tuple[Schema, ...]) -> str:
        error = f"sqrt({self.one_in - 1} n)" if self.one_in > 2 else "sqrt(n)" if self.one_in == 2 else "0"
        of = "values of " + ", ".join(self.by) if self.by else "tuples"
        return f"one in {self.one_in} {of} stays; a count of n {of} by their weights has the standard error {error}"
