"""Guard: turns away tuples from the far future, before one wrong clock closes everybody's windows.

A bound never shrinks: a single tuple dated next year would move the watermark
there, and all tuples after it would be late.  So a guard stands before ``Punctuate``.

    Pass       every tuple that is not too far ahead, in order; punctuation.
    Keep       by arrival: nothing.  By the stream: three integers.
    Propagate  punctuation as it is: a part of a stream keeps to the stream's bounds.
    Cost       O(1) a tuple, vectorised (by arrival) or compiled (by the stream).
    Source     design of this engine; the thesis (8.1) takes the clocks of its sources as right.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER, shift
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.kernels.ordering import accept
from oop_engine.operators.policies.late import Late
from oop_engine.operators.policies.running_bound import length_of

__all__ = ["Ahead", "Guard"]


class Ahead(StrEnum):
    """The reference from which the far future is measured."""

    ARRIVAL = "arrival"
    """The arrival clock: the page's arrivals."""
    STREAM = "stream"
    """The largest value that was accepted before."""


@checked_arguments
class Guard(Operator):
    """Diverts tuples that are more than ``limit`` ahead of the arrival clock or of the stream.

    ``of="arrival"`` needs pages with arrivals (``ContractError`` otherwise) and judges each
    tuple by itself.  ``of="stream"`` needs none, but has only the stream to go by: the first
    tuple is believed, and a true gap longer than ``limit`` looks like a wrong clock, so after
    ``patience`` refusals in a row (None: never) the stream is taken to have moved on, to the
    least of the refused; those before stay refused.  ``late``: drop, divert or raise for refused
    tuples; with ``Late.DIVERT`` there is a second output, ``future``.
    Raises ``GraphError`` for a negative limit or patience.

    >>> import pyarrow as pa
    >>> from oop_engine.testing import Driver
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> driver = Driver(Guard(60, of="stream"), schema)
    >>> _ = driver.feed(0, Page.of(schema, {"ts": [10, 12, 9_999, 11]}))
    >>> [row["ts"] for row in driver.rows()], driver.operator.counts()
    ([10, 12, 11], {'future': 1})
    """

    def __init__(
        self,
        limit: Length,
        *,
        of: Ahead | str = Ahead.ARRIVAL,
        patience: int | None = 1000,
        late: Late = Late.DROP,
    ) -> None:
        if of not in list(Ahead):
            msg = f"Guard: of must be one of {', '.join(Ahead)}; got {of!r}{did_you_mean(of, Ahead)}"
            raise GraphError(msg)
        if patience is not None and patience < 0:
            msg = f"Guard: patience must be at least 0 tuples, or None for ever; got {patience}"
            raise GraphError(msg)
        self._limit = limit
        self._of = Ahead(of)
        self._patience = -1 if patience is None else patience
        self._late = late
        self.outputs = late.ports("future")

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        length_of(self._limit, inputs[0], "Guard: limit")
        return super().output_schemas(inputs)

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return (frozenset().union(*downstream),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._ahead = length_of(self._limit, self.schemas_in[0], "Guard: limit")
        self._memory = np.array([NEVER, 0, 0])  # see the kernel
        self._future = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if not len(page):
            return
        accepted = self._accepted(page)
        if accepted.all():
            yield 0, page
            return
        if self._late is Late.RAISE:
            raise self._error(page, int(np.argmin(accepted)))
        self._future += len(page) - int(accepted.sum())
        if self._late is Late.DIVERT:
            yield 1, page.filter(~accepted)
        if accepted.any():
            yield 0, page.filter(accepted)

    def _accepted(self, page: Page) -> NDArray[np.bool_]:
        if self._of is Ahead.STREAM:
            accepted: NDArray[np.bool_] = accept(page.times, self._ahead, self._patience, self._memory)
            return accepted
        if page.arrival is None:
            msg = "Guard: tuples must have arrivals; got a page without: name the arrival column, or use of='stream'"
            raise ContractError(msg)
        return page.times <= shift(page.arrival, self._ahead)

    def _error(self, page: Page, row: int) -> ContractError:
        schema = page.schema
        got = f"{schema.progressing}={page.times[row]} (row {row} of the page)"
        return ContractError(
            f"Guard: tuples must be at most {self._ahead} {schema.unit} ahead of the {self._of}; got {got}: "
            "mend the source's clock, or divert such tuples with late=Late.DIVERT"
        )

    def state(self) -> State:
        return State(nbytes=self._memory.nbytes)

    def counts(self) -> dict[str, int]:
        return {"future": self._future}

    def save(self) -> dict[str, Any]:
        return {"memory": self._memory, "future": self._future}

    def load(self, state: Saved) -> None:
        self._memory = state.integers("memory", (3,))
        self._future = state.integer("future", least=0)

    def describe(self) -> str:
        return f"Guard({self._limit} ahead of the {self._of})"
