"""Filter: the tuples for which a predicate is true.

    Pass       every tuple for which the predicate is true, at once; a page in which it is
               true for all goes on as it is, without a copy.
    Keep       nothing.
    Propagate  every punctuation: a bound of a stream holds for a part of it.
    Cost       O(rows) a page, in Arrow, for the columns that are read behind it; O(1) a punctuation.

Source: J. Li, "Window Queries over Data Streams" (2008), ch. 4; pass, keep and propagate
invariants of Tucker et al., TKDE 15(3), 2003.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.late.late_page import LatePage
from oop_engine.core.operator import Emission, Operator
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.values.expressions import (
    Expression,
    columns_of,
    evaluate,
    filled,
    mask_of,
    require_boolean,
    text_of,
)
from oop_engine.system.knobs import knob

__all__ = ["Filter"]

_FEW = knob(__name__, "_FEW", 1024)  # rows; fewer are copied at once
_DENSE = knob(
    __name__, "_DENSE", 4
)  # rows for each that is dropped, from which on bits are sooner than numbers


@checked_arguments
class Filter(Operator):
    """Tuples for which ``predicate`` is true; null is not true, as in SQL.

    ``predicate``: a ``pyarrow.compute`` expression, the name of a boolean column, or a
    function from a record batch to a boolean array (see ``oop_engine.operators.values.expressions``).
    Raises ``GraphError`` when the graph is built if it is not boolean.

    >>> import pyarrow.compute as pc
    >>> schema = Schema({"ts": pa.int64(), "len": pa.int64()}, "ts", "s")
    >>> long = Filter(pc.field("len") > 40).opened(schema)
    >>> [(port, page)] = long.on_page(0, Page.of(schema, {"ts": [1, 2, 3], "len": [40, 1500, None]}))
    >>> page.to_pylist()
    [{'ts': 2, 'len': 1500}]
    """

    distributes = True
    revisions = "passes"

    def __init__(self, predicate: Expression) -> None:
        self.predicate = predicate

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        require_boolean("Filter", [self.predicate], inputs[0])
        return inputs

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return (downstream[0] | columns_of([self.predicate], inputs[0]),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        [predicate] = evaluate("Filter", [self.predicate], [pa.bool_()], page.batch)
        selected = predicate.true_count
        if selected == len(page):
            yield 0, page
        elif selected:
            yield 0, _filter(page, predicate)

    def describe(self) -> str:
        return f"Filter {text_of(self.predicate)}"


def _filter(page: Page, predicate: pa.BooleanArray) -> Page:
    if page.arrival is not None:
        return page.filter(mask_of(predicate))
    mask, batch, schema = filled(predicate), page.batch, page.schema  # Arrow's bits stay bits
    if (rows := predicate.true_count) < _FEW:
        return page.with_batch(schema, batch.filter(mask))
    # Column by column, and when it is asked for.  By the numbers of rows where a part is gone: a bit is a branch.
    numbers = None if rows >= _DENSE * (len(page) - rows) else pa.array(np.flatnonzero(mask_of(mask)))

    def made(place: int) -> pa.Array:
        column = batch.column(place)
        return column.filter(mask) if numbers is None else column.take(numbers)

    return LatePage(schema, rows, made)
