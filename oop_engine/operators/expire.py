"""Expire: each tuple twice, once to count it and once, ``range`` later, to count it no more (negative tuples).

A sliding window is then a sum since the beginning: a tuple that has left it has added its weight and taken it away.
Where order is kept, negative tuples have to wait until their time; here they leave with their tuple, and whoever
needs order of time waits for punctuation anyway.

    Pass       for each tuple, at once, one with weight +1 at its time and one with -1 at its time + ``range``.
    Keep       nothing.
    Propagate  linear and group-wise punctuation and watermarks, as they are; joint ones on the time are dropped.
    Cost       O(1) a tuple, twice the tuples behind it; a punctuation its groups.  Order needed: none, none kept.
    Source     negative tuples: Hammad et al., ICDE 2004; Ghanem et al., TKDE 19(1), 2007; they need order there.

A sliding count is ``WindowAggregate(Landmark(slide), {"n": Sum("weight")})`` behind it, with one partial aggregate a
slide until a bound passes it, however long the range is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.operator import Emission, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, Joint, Punctuation
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.policies.running_bound import length_of

__all__ = ["Expire"]


@checked_arguments
class Expire(Operator):
    """Adds ``at``, the progressing attribute of the output, and ``weight``, an int64 column of +1 and -1.

    ``range``: how long a tuple counts, in units of the progressing attribute or as text ("10 min").  Aggregates behind
    it take the weight as a value: ``Sum("weight")`` is how many tuples there are.  Raises ``GraphError`` unless the
    range is positive, and for names that are taken; ``ContractError`` for a time that cannot be shifted.

    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> [(_, page)] = Expire(5).opened(schema).on_page(0, Page.of(schema, {"ts": [3]}))
    >>> page.to_pylist()
    [{'ts': 3, 'at': 3, 'weight': 1}, {'ts': 3, 'at': 8, 'weight': -1}]
    """

    distributes = True

    def __init__(self, range: Length, at: str = "at", weight: str = "weight") -> None:
        self.range, self.at, self.weight = range, at, weight

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        [schema] = inputs
        length_of(self.range, schema, "Expire: range", least=1)
        names = [*schema.names, self.at, self.weight]
        if len(set(names)) < len(names):
            msg = f"Expire: at and weight must be new columns; got {self.at!r}, {self.weight!r} beside {schema.names}"
            raise GraphError(msg)
        fields = schema.fields.append(pa.field(self.at, schema.type_of(schema.progressing)))
        return (Schema(fields.append(pa.field(self.weight, pa.int64())), self.at, schema.unit),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (None if column in (self.at, self.weight) else column,)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return (downstream[0] & frozenset(inputs[0].names),)

    def open(self) -> None:
        self._range = length_of(self.range, self.schemas_in[0], "Expire: range", least=1)

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if not len(page):
            return
        if (latest := int(page.times.max())) > FOREVER - 1 - self._range:
            msg = f"Expire: times must be at most {FOREVER - 1 - self._range} for {self._range} more; got {latest}"
            raise ContractError(msg)
        [schema] = self.schemas_out
        rows = np.repeat(np.arange(len(page)), 2)
        later = np.tile(np.array([0, self._range]), len(page))
        weights = np.tile(np.array([1, -1]), len(page))
        twice = page.batch.take(pa.array(rows)).columns
        at = self._typed(page.times[rows] + later)
        yield (
            0,
            Page(schema, pa.RecordBatch.from_arrays([*twice, at, pa.array(weights)], schema=schema.fields)),
        )

    def _typed(self, times: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> pa.Array:
        kind = self.schemas_out[0].type_of(self.at)
        try:
            return pa.array(times).cast(kind)
        except pa.ArrowInvalid as error:
            msg = f"Expire: times and {self._range} more must fit {self.at!r}, {kind}: {error}"
            raise ContractError(msg) from error

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if not isinstance(punctuation, Joint):
            yield 0, punctuation

    def describe(self) -> str:
        return f"Expire({self.range})"
