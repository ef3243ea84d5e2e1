"""OPOB-Join: the order-preserving, output-buffered window join.

Tuples are matched on arrival, as an OA-Join does, and the results are put in order behind
the matching: the price of order is a buffer of results.

    Pass       nothing at once: results, and tuples that leave without a match, in the order of their
               left timestamp (full: of the earlier of both).
    Keep       the tuples an OA-Join keeps, and every result until no result with a smaller
               left timestamp can come.  The last tuple of an input is its progress; so
               does linear punctuation, in a lull.  ``AsOf()`` without ``within``: the newest right tuple of
               each key, also of keys that end.
    Propagate  left time   min(bL, bR - after) (tumbling: min(bL, start of the
               window of bR)), linear only; full: that of the earlier of both; group-wise and joint
               punctuation is dropped.
    Cost       O(log n) a tuple, O(log results buffered) a result, O(1) a tuple purged.  Order needed: each input
               sorted by its progressing attribute; else ``ContractError``.
    Source     J. Li, "Window Queries over Data Streams", 7.3 (experiment 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.groups.zeros import with_unsigned_zeros, zeros_in_keys
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.in_order.sorted_rows import SortedRows
from oop_engine.operators.joining.bands import Bands
from oop_engine.operators.joining.speculative import join_state
from oop_engine.operators.joining.terms import JoinTerms, Residual, key_columns
from oop_engine.operators.ordering.time_sorted import last_time

__all__ = ["OPOBJoin"]


@checked_arguments
class OPOBJoin(Operator):
    """The join that ``OAJoin`` is, of sorted inputs, with sorted results.

    Parameters and output columns are those of ``OAJoin`` (without ``punctuation``); results
    with equal left timestamps come in any order.  ``columns``: those of the results that are buffered and emitted,
    with the progressing attribute; None: all.

    >>> s = Schema({"ts": pa.int64()}, "ts", "s")
    >>> from oop_engine.operators import Band
    >>> join = OPOBJoin(keys=[], band=Band(before=0, after=2)).opened(s, s)
    >>> list(join.on_page(0, Page.of(s, {"ts": [5, 7]})))
    []
    >>> output = list(join.on_page(1, Page.of(s, {"ts": [7, 8]})))
    >>> output[0][1].to_pylist(), output[1]
    ([{'ts': 5, 'ts_right': 7}], (0, Linear(below=6)))
    """

    inputs = ("left", "right")
    needs_order = True

    def __init__(
        self,
        keys: Sequence[str | tuple[str, ...]] | str,
        band: Bands,
        *,
        residual: Residual | None = None,
        suffix: str = "_right",
        how: str = "inner",
        columns: Sequence[str] | None = None,
    ) -> None:
        self.terms = JoinTerms(
            "OPOBJoin", key_columns(keys, self.inputs, "OPOBJoin"), band, residual, suffix, how
        )
        self.columns = None if columns is None else list(columns)

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        joined = self.terms.output_schema(*inputs)
        return (joined if self.columns is None else joined.select(self.columns),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return list(self.terms.keys)

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        return self.terms.retains(", also of keys that end")

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return self.terms.lineage(column, *inputs)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return self.terms.reads(downstream[0], *inputs)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._zeros = zeros_in_keys(self.schemas_in, self.terms.keys)
        self._held = join_state(self.terms, self.schemas_in)
        self._results = SortedRows(self.schemas_out[0])

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        page = with_unsigned_zeros(page, self._zeros[port])
        reached = last_time(page, self._held.bounds.linear[port], f"OPOBJoin: input {self.inputs[port]!r}")
        for joined in self._held.arrive(port, page):
            self._results.add(self._result(joined))
        yield from self.on_punctuation(port, Linear(reached))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if not isinstance(punctuation, Linear):
            return
        for out in self._held.advance(port, punctuation):
            if isinstance(out, pa.RecordBatch):
                self._results.add(self._result(out))
                continue
            if isinstance(out, Linear):
                for page in self._results.release(out.below):
                    yield 0, page
            yield 0, out

    def _result(self, joined: pa.RecordBatch) -> Page:
        return Page(self.schemas_out[0], joined if self.columns is None else joined.select(self.columns))

    def state(self) -> State:
        return self._held.state() + State(tuples=self._results.rows, nbytes=self._results.nbytes)

    def save(self) -> dict[str, Any]:
        return {"held": self._held.save(), "results": self._results.save()}

    def load(self, state: Saved) -> None:
        self._held.load(state.part("held"))
        self._results.load(state.part("results"))

    def describe(self) -> str:
        columns = "" if self.columns is None else f"; {', '.join(self.columns)}"
        return f"OPOBJoin {self.terms}{columns}"
