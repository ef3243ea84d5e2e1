"""IfNone: one row for a stream that has none when it ends.

Pass       every row as it comes; one given row at the end of a stream that had no other.
Keep       whether a row has come, and the bound until then.
Propagate  linear punctuation, from the first row on: before it the given row may still be emitted.  All other kinds end
           here, for they could contradict that row.
Cost       O(1) a message.  Order needed: none.
Source     SQL: aggregates without GROUP BY over no rows are one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema

__all__ = ["IfNone"]


@checked_arguments
class IfNone(Operator):
    """The rows of a stream, or ``row`` where it ends without one.

    ``row``: values by columns; those without one are null, and the event time is 0, the beginning of 1970.
    Raises ``GraphError`` when the graph is built for unknown columns and values of another type.

    >>> schema = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
    >>> some = IfNone({"n": 0}).opened(schema)
    >>> (_, page), _ = some.on_punctuation(0, Linear(FOREVER))
    >>> page.to_pylist()
    [{'ts': 0, 'n': 0}]
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.row = dict(row)

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        inputs[0].require(self.row, "IfNone")
        self._page(inputs[0])
        return inputs

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._any, self._below = False, NEVER

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        yield 0, page
        if len(page) and not self._any:
            self._any = True
            if self._below != NEVER:
                yield 0, Linear(self._below)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if not isinstance(punctuation, Linear):
            return
        if not self._any and punctuation.below == FOREVER:
            self._any = True
            yield 0, self._page(self.schemas_out[0])
        if self._any:
            yield 0, punctuation
        else:
            self._below = max(self._below, punctuation.below)

    def save(self) -> dict[str, Any]:
        return {"any": self._any, "below": self._below}

    def load(self, state: Saved) -> None:
        self._any, self._below = state.flag("any"), state.integer("below")

    def _page(self, schema: Schema) -> Page:
        """Return a page of the given row."""
        columns = []
        for name in schema.names:
            kind = schema.type_of(name)
            value = self.row.get(name, 0 if name == schema.progressing else None)
            try:
                is_time = name == schema.progressing and isinstance(value, int)
                columns.append(
                    pa.array([value], pa.int64()).view(kind) if is_time else pa.array([value], kind)
                )
            except (pa.ArrowException, OverflowError) as error:
                msg = f"IfNone: row[{name!r}] must be of type {kind}; got {value!r:.60}: {error}"
                raise GraphError(msg) from error
        return Page.from_arrow(schema, pa.RecordBatch.from_arrays(columns, schema=schema.fields))
