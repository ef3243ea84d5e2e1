"""ArrivalTime: the arrival of each tuple as a column, by which the stream progresses from there on.

Windows over it are windows of processing time.  Behind it, ``Punctuate(Ordered(), ...)`` makes the punctuation:
arrivals never decrease, so no tuple is late, and none waits.

    Pass       every tuple, at once, with its arrival; the progressing attribute it had is a column like others.
    Keep       nothing.
    Propagate  the end of the stream.  Other punctuation speaks of times, and is dropped.
    Cost       O(1) a tuple.
    Source     Gigascope and Aurora stamp tuples so (thesis 2.3); Flink's and Beam's processing time.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.operator import Emission, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, Linear, Punctuation
from oop_engine.core.schema import Schema

__all__ = ["ArrivalTime"]


@checked_arguments
class ArrivalTime(Operator):
    """Adds ``column``, the arrival of each tuple, in the place of the progressing attribute, with its type and unit.

    It stands behind a source.  Raises ``GraphError`` if there is a column of this name; ``ContractError`` for a page
    without arrivals, and for an arrival that the type cannot hold.

    >>> from oop_engine.testing import Driver
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> driver = Driver(ArrivalTime("came"), schema)
    >>> [(_, page)] = driver.feed(0, Page.of(schema, {"ts": [9, 3]}, arrival=[10, 12]))
    >>> page.to_pylist(), page.schema.progressing
    ([{'ts': 9, 'came': 10}, {'ts': 3, 'came': 12}], 'came')
    """

    def __init__(self, column: str) -> None:
        self.column = column

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        [schema] = inputs
        if self.column in schema.names:
            msg = f"ArrivalTime: column must be a new one; got {self.column!r} beside {schema.names}: name another"
            raise GraphError(msg)
        fields = schema.fields.append(pa.field(self.column, schema.type_of(schema.progressing)))
        return (Schema(fields, self.column, schema.unit),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (None if column == self.column else column,)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return (downstream[0] & frozenset(inputs[0].names),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if not len(page):
            return
        if page.arrival is None:
            msg = "ArrivalTime: tuples must have arrivals; got a page without: stand it behind a source that has them"
            raise ContractError(msg)
        [schema] = self.schemas_out
        try:
            came = pa.array(page.arrival).cast(schema.type_of(self.column))
        except pa.ArrowInvalid as error:
            msg = f"ArrivalTime: arrivals must fit {self.column!r}, {schema.type_of(self.column)}: {error}"
            raise ContractError(msg) from error
        columns = [*page.batch.columns, came]
        yield 0, page.with_batch(schema, pa.RecordBatch.from_arrays(columns, schema=schema.fields))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if punctuation == Linear(FOREVER):
            yield 0, punctuation

    def describe(self) -> str:
        return f"ArrivalTime({self.column})"
