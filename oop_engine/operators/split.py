"""Split: one stream becomes several, each tuple goes to one of them.

    Pass       every tuple, to the port of the first predicate that is true, at once; a
               page that goes to one port as a whole is not copied.  A tuple that matches none
               goes to the port ``rest``, or is counted ("unmatched") and dropped.
    Keep       nothing.
    Propagate  every punctuation, to every port: a bound of a stream holds for its parts.
    Cost       O(rows x predicates) a page, in Arrow and NumPy; O(ports) a punctuation.

Source: J. Li, "Window Queries over Data Streams" (2008), ch. 4: select, once a port.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.values.expressions import (
    Expression,
    columns_of,
    evaluate,
    mask_of,
    require_boolean,
    text_of,
)

__all__ = ["Goes", "Split"]


@checked_arguments
class Split(Operator):
    """Divides a stream by ``predicates``: output port to predicate, tried in this order.

    ``rest`` names the port of the tuples for which no predicate is true (null is not
    true); None drops and counts them.  A single predicate instead of a mapping makes the
    ports ``out`` and ``rest``.  Raises ``GraphError`` for no port or one named twice, and
    when the graph is built for a predicate that is not boolean.

    >>> import pyarrow.compute as pc
    >>> schema = Schema({"ts": pa.int64(), "origin": pa.string()}, "ts", "s")
    >>> split = Split({"EWR": pc.field("origin") == "EWR"}, rest="other").opened(schema)
    >>> page = Page.of(schema, {"ts": [1, 2, 3], "origin": ["JFK", "EWR", None]})
    >>> [(split.outputs[port], part.times.tolist()) for port, part in split.on_page(0, page)]
    [('EWR', [2]), ('other', [1, 3])]
    """

    revisions = "passes"

    def __init__(self, predicates: Mapping[str, Expression] | Expression, rest: str | None = None) -> None:
        if not isinstance(predicates, Mapping):
            predicates, rest = {"out": predicates}, rest or "rest"
        self.predicates = dict(predicates)
        self.rest = rest
        if not predicates or rest in predicates:
            msg = f"Split needs ports of different names; got {list(predicates)} and rest={rest!r}"
            raise GraphError(msg)
        self.outputs = tuple(predicates) if rest is None else (*predicates, rest)

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        require_boolean("Split", list(self.predicates.values()), inputs[0])
        return inputs * len(self.outputs)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return (frozenset().union(columns_of(self.predicates.values(), inputs[0]), *downstream),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._unmatched = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        ports = self.ports_of(page.batch)
        ends = np.cumsum(np.bincount(ports, minlength=len(self.predicates) + 1)).tolist()
        if self.rest is None:
            self._unmatched += ends[-1] - ends[-2]
        by_port = page if _is_sorted(ports) else page.take(np.argsort(ports, kind="stable"))
        for out, (start, stop) in enumerate(zip([0, *ends], ends[: len(self.outputs)], strict=False)):
            if stop > start:
                yield out, by_port if stop - start == len(page) else by_port.slice(start, stop)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        for out in range(len(self.outputs)):
            yield out, punctuation

    def counts(self) -> dict[str, int]:
        return {"unmatched": self._unmatched} if self.rest is None else {}

    def save(self) -> dict[str, Any]:
        return {"unmatched": self._unmatched}

    def load(self, state: Saved) -> None:
        self._unmatched = state.integer("unmatched", least=0)

    def describe(self) -> str:
        ports = [f"{name}: {text_of(predicate)}" for name, predicate in self.predicates.items()]
        return f"Split {', '.join(ports)}{f', {self.rest}: the rest' if self.rest else ''}"

    def ports_of(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """Return the number of the first true predicate of each row (no one: how many there are), int64 (rows,)."""
        expressions = list(self.predicates.values())
        masks = evaluate("Split", expressions, [pa.bool_()] * len(expressions), batch)
        ports = np.full(batch.num_rows, len(expressions), np.int64)
        for number in reversed(range(len(expressions))):
            ports[mask_of(masks[number])] = number
        return ports


@dataclass(frozen=True)
class Goes:
    """The predicate of a ``Filter`` that passes the tuples that a split gives to one of its ports."""

    split: Split
    port: str

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """Return which rows go to the port."""
        return pa.array(self.split.ports_of(batch) == self.split.outputs.index(self.port))


def _is_sorted(ports: NDArray[np.int64]) -> bool:
    return bool((ports[1:] >= ports[:-1]).all())
