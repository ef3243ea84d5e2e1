"""Merge: the union that keeps order, and pays for it by waiting for its slowest input.

In-order operators behind a union need it: in a ``Meld`` the skew of the inputs is disorder.

    Pass       tuples up to the time that every input has reached, sorted (equal ones by input).
    Keep       every tuple beyond the slowest input: the skew of the inputs, or as much as
               comes during a lull, unless punctuation comes in it.
    Propagate  that time, each time it has grown.  Of punctuation only the linear kind counts.
    Cost       O(log inputs) a tuple, in bulk; O(inputs) a message.  Order needed: every
               input sorted by the progressing attribute.
    Source     thesis 8.2 (order-preserving Merge, as in Gigascope).  ``Meld`` is the
               out-of-order twin, which keeps no tuple.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page, concat
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.ordering.kept_page import KeptPage
from oop_engine.operators.ordering.time_sorted import last_time
from oop_engine.system.knobs import knob

__all__ = ["Merge"]

_MOST = 10_000  # inputs
_SMALL = knob(__name__, "_SMALL", 4096)  # rows; smaller pages are put together, so that there are few of them


@checked_arguments
class Merge(Operator):
    """Order-preserving union of ``n_inputs`` sorted streams of one schema.

    Inputs are ``in0``, ``in1``, ...  Raises ``GraphError`` if ``n_inputs`` is below 1 or the
    schemas differ, and ``ContractError`` if an input is not sorted.

    >>> import pyarrow as pa
    >>> from oop_engine.testing import Driver
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> driver = Driver(Merge(n_inputs=2), schema, schema)
    >>> driver.feed(0, Page.of(schema, {"ts": [1, 4, 9]}))
    []
    >>> driver.feed(1, Linear(5))
    [(0, Page(2 rows of ts)), (0, Linear(below=5))]
    """

    needs_order = True

    def __init__(self, n_inputs: int) -> None:
        if not 1 <= n_inputs <= _MOST:
            msg = f"Merge: n_inputs must be a number of inputs from 1 to {_MOST:,}; got {n_inputs!r}"
            raise GraphError(msg)
        self.inputs = tuple(f"in{i}" for i in range(n_inputs))

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        for port, schema in enumerate(inputs):
            if schema != inputs[0]:
                msg = f"Merge: inputs must have the same schema; in0 has {inputs[0]}, in{port} has {schema}"
                raise GraphError(msg)
        return (inputs[0],)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return downstream * len(inputs)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._reached = Progress(len(self.inputs), tables=IN_KERNELS)  # how far each input has come
        self._waiting: list[list[KeptPage]] = [[] for _ in self.inputs]
        self._tuples = self._nbytes = 0  # of those that wait

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if len(page):
            reached = last_time(page, self._reached.linear_of(port), f"Merge: in{port}")
            stored = KeptPage.of(page.without_arrival())
            self._count(stored, 1)
            self._waiting[port].append(stored)
            self._join_small(self._waiting[port])
            yield from self._advance(port, reached)

    def _join_small(self, waiting: list[KeptPage]) -> None:
        """Put small pages together as they come, for each costs as much memory as many rows; O(log rows) a row."""
        while len(waiting) > 1 and len(waiting[-2].page) <= 2 * len(waiting[-1].page) < 2 * _SMALL:
            after, before = waiting.pop(), waiting.pop()
            made = KeptPage.made(concat(self.schemas_in[0], [before.page, after.page]))
            for stored, sign in ((after, -1), (before, -1), (made, 1)):
                self._count(stored, sign)
            waiting.append(made)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if isinstance(punctuation, Linear):
            yield from self._advance(port, punctuation.below)

    def _advance(self, port: int, time: int) -> Iterator[Emission]:
        for grown in self._reached.advance(port, Linear(time)):
            going = [page for each in self._waiting for page in self._leaving(each, self._reached.linear)]
            if going:
                page = concat(self.schemas_in[0], going)
                yield 0, page.take(np.argsort(page.times, kind="stable")) if len(going) > 1 else page
            yield 0, grown

    def _leaving(self, waiting: list[KeptPage], reached: int) -> list[Page]:
        """Take out the tuples that need not wait; equal ones may go too, for none smaller follows."""
        whole = next((i for i, stored in enumerate(waiting) if stored.page.times[-1] > reached), len(waiting))
        going = [stored.page for stored in waiting[:whole]]
        for stored in waiting[:whole]:
            self._count(stored, -1)
        del waiting[:whole]
        if waiting and (stop := int(waiting[0].page.times.searchsorted(reached, side="right"))):
            first, rest = waiting[0], waiting[0].after(stop)
            self._count(first, -1)
            self._count(rest, 1)
            going.append(first.page.slice(0, stop))
            waiting[0] = rest
        return going

    def _count(self, stored: KeptPage, sign: int) -> None:
        self._tuples += sign * len(stored.page)
        self._nbytes += sign * stored.nbytes

    def state(self) -> State:
        return State(tuples=self._tuples, nbytes=self._nbytes + self._reached.nbytes)

    def save(self) -> dict[str, Any]:
        waiting = [[stored.page.batch for stored in each] for each in self._waiting]
        return {"reached": self._reached.save(), "waiting": waiting}

    def load(self, state: Saved) -> None:
        self._reached.load(state.part("reached"))
        waiting = state.parts("waiting", len(self.inputs))
        self._waiting = [KeptPage.loaded(each, self.schemas_in[0]) for each in waiting]
        for each in self._waiting:
            for stored in each:
                self._count(stored, 1)
