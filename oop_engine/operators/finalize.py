"""Finalize: a revision stream becomes a plain one, of the rows that are left when they are final.

Pass       nothing at once, of a revision stream; a plain stream as it is.
Keep       the rows that are there, each once with a count, until a bound has passed them.
Propagate  linear and group-wise punctuation, behind the rows below it.  Joint punctuation and
           watermarks end here: rows that leave are final.
Cost       O(1) a row, a hash look-up of all columns; O(rows passed) a punctuation, and one of
           groups O(their rows); the first one of groups looks at all rows.
Source     punctuation (thesis ch. 4, eq. 4.1), which holds for changes too;
           Kafka Streams' ``suppress(untilWindowCloses)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.revisions.net_rows import NetRows

__all__ = ["Finalize"]


class Finalize(Operator):
    """The net rows of a revision stream, once punctuation has passed them, so that nothing changes them any more.

    The output has all columns but ``change``.  A graph with versions of results and ``Finalize`` at its end has the
    results of the same graph without versions.  Raises ``ContractError`` if a row is retracted more often than it
    was emitted.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> schema = Schema({"ts": pa.int64(), "n": pa.int64(), "change": pa.int8()}, "ts", "s", change="change")
    >>> finalize = Finalize().opened(schema)
    >>> page = Page.of(schema, {"ts": [10, 10, 10], "n": [1, 1, 2], "change": [1, -1, 1]})
    >>> list(finalize.on_page(0, page))
    []
    >>> [(_, page), _] = finalize.on_punctuation(0, Linear(20))
    >>> page.to_pylist()
    [{'ts': 10, 'n': 2}]
    """

    revisions = "takes"
    waits = "rows that may be retracted"

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (inputs[0].plain(),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        plain = inputs[0].plain()
        return [(name,) for name in plain.names if name != plain.progressing]

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return downstream

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._net = None if self.schemas_in[0].change is None else NetRows(self.schemas_in[0])

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if self._net is None:
            yield 0, page
        else:
            self._net.add(page)
            self._net.tidy()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if not isinstance(punctuation, Linear | GroupWise):
            return
        if self._net is not None:
            if not self._net.knows(punctuation):
                return
            if (page := self._net.take(punctuation)) is not None:
                yield 0, page
        yield 0, punctuation

    def state(self) -> State:
        return State() if self._net is None else self._net.state()

    def counts(self) -> dict[str, int]:
        return {} if self._net is None else {"behind": self._net.behind.count}

    def save(self) -> dict[str, Any]:
        return {} if self._net is None else {"net": self._net.save()}

    def load(self, state: Saved) -> None:
        if self._net is not None:
            self._net.load(state.part("net"))
