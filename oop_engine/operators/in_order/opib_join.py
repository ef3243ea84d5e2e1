"""OPIB-Join: the order-preserving, input-buffered window join.

Tuples are matched in such an order that results come sorted: the price of order is that
left tuples wait, and right ones for them.

    Pass       a left tuple's results (or, by the kind, the tuple without a match) once the right input
               has come past ``ts + after`` (tumbling: past the tuple's window), in the order of the
               left timestamp; full: of the earlier of both.
    Keep       left tuples until then; right tuples while a left one that waits, or is still
               to come, can match them.  Never a result, but for those of as many left tuples
               as have about a page of them, to be sorted; full: results until none with an
               earlier right time can come, which is ``before`` behind the left tuples.
    Propagate  left time   the least of the left tuples that wait and of bL, linear only;
               group-wise and joint punctuation is dropped.
    Cost       O(log n) a tuple, O(log matches) a match, to sort those of a batch of left
               tuples; O(1) a tuple purged.  Order needed: each input sorted by its progressing attribute; else
               ``ContractError``.
    Source     J. Li, "Window Queries over Data Streams", 7.3 (experiment 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.groups.zeros import with_unsigned_zeros, zeros_in_keys
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.in_order.sorted_rows import SortedRows
from oop_engine.operators.joining.bands import Bands
from oop_engine.operators.joining.index import PAGE_ROWS
from oop_engine.operators.joining.speculative import join_state
from oop_engine.operators.joining.terms import JoinTerms, Residual, key_columns
from oop_engine.operators.ordering.time_sorted import last_time
from oop_engine.system.knobs import knob

__all__ = ["OPIBJoin"]

_ROWS_AT_ONCE = knob(__name__, "_ROWS_AT_ONCE", 8192)
"""The most left tuples that are joined together: their results are held, to be sorted, for a moment."""
_AT_FIRST = knob(__name__, "_AT_FIRST", 64)
_MORE = knob(__name__, "_MORE", 4, least=2)
"""How many at first, and how many times more than before: so many that their results are about a page."""


@checked_arguments
class OPIBJoin(Operator):
    """The join that ``OAJoin`` is, of sorted inputs, with sorted results and no buffer of them.

    Parameters and output columns are those of ``OAJoin`` (without ``punctuation``); results
    with equal left timestamps come in any order.

    >>> s = Schema({"ts": pa.int64()}, "ts", "s")
    >>> from oop_engine.operators import Band
    >>> join = OPIBJoin(keys=[], band=Band(before=0, after=2)).opened(s, s)
    >>> list(join.on_page(0, Page.of(s, {"ts": [5, 7]})))
    [(0, Linear(below=5))]
    >>> output = list(join.on_page(1, Page.of(s, {"ts": [7, 8]})))
    >>> output[0][1].to_pylist(), output[1]
    ([{'ts': 5, 'ts_right': 7}], (0, Linear(below=7)))
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
    ) -> None:
        self.terms = JoinTerms(
            "OPIBJoin", key_columns(keys, self.inputs, "OPIBJoin"), band, residual, suffix, how
        )

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (self.terms.output_schema(*inputs),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return list(self.terms.keys)

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        return self.terms.retains()

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
        self._right = join_state(self.terms, self.schemas_in)  # its left side stays empty
        self._left = SortedRows(self.schemas_in[0])
        self._held = SortedRows(self.schemas_out[0])  # of a full join
        self._is_full = all(self._right.kind.alone)
        self._linear_out = NEVER
        self._at_once = _AT_FIRST

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        page = with_unsigned_zeros(page, self._zeros[port])
        reached = last_time(page, self._right.bounds.linear[port], f"OPIBJoin: input {self.inputs[port]!r}")
        if port == 0:
            alone = self._right.kind.alone[0]
            self._left.add(page if alone else self._right.without_null_keys(0, page))
        else:  # nothing matches: the left tuples are not there but wait
            self._hold(self._right.arrive(1, page, self._right.keep_right(self._next_left())))
        yield from self.on_punctuation(port, Linear(reached))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if not isinstance(punctuation, Linear) or punctuation.below <= self._right.bounds.linear[port]:
            return
        self._right.bounds.linear[port] = punctuation.below
        for waited in self._left.release(self._right.bounds.keep_from(0), _ROWS_AT_ONCE):
            yield from self._join_parts(waited)
        next_left = self._next_left()
        self._hold(self._right.purge_right(next_left))
        linear = self._bound(next_left)
        if linear > self._linear_out:
            self._linear_out = linear
            for page in self._held.release(linear):
                yield 0, page
            yield 0, Linear(linear)

    def state(self) -> State:
        tuples, nbytes = self._left.rows + self._held.rows, self._left.nbytes + self._held.nbytes
        return self._right.state() + State(tuples=tuples, nbytes=nbytes)

    def save(self) -> dict[str, Any]:
        parts = {"left": self._left.save(), "held": self._held.save()}
        return {
            "right": self._right.save(),
            **parts,
            "linear_out": self._linear_out,
            "at_once": self._at_once,
        }

    def load(self, state: Saved) -> None:
        self._right.load(state.part("right"))
        self._left.load(state.part("left"))
        self._held.load(state.part("held"))
        self._linear_out = state.integer("linear_out")
        if "at_once" in state:  # pages are cut as they would have been
            self._at_once = state.integer("at_once", least=1)

    def describe(self) -> str:
        return f"OPIBJoin {self.terms}"

    def _next_left(self) -> int:
        """Return the least left timestamp that is still to be joined."""
        waits = (
            min(self._left.first, FOREVER - 1) if self._left.rows else FOREVER
        )  # one may have the largest integer
        return min(waits, self._right.bounds.linear[0])

    def _bound(self, next_left: int) -> int:
        """Return the bound of later results: those of a full join may have a right time."""
        if not self._is_full:
            return next_left
        return min(next_left, self._right.bounds.linear[1], self._right.keep_right(next_left))

    def _hold(self, alone: Iterator[pa.RecordBatch]) -> None:
        """Hold right tuples that have matched nothing: the full join has them."""
        for batch in alone:
            self._held.add(Page(self.schemas_out[0], batch))

    def _join_parts(self, waited: Page) -> Iterator[Emission]:
        start = 0
        while start < len(waited):
            stop = min(start + self._at_once, len(waited))
            results = self._joined(waited.slice(start, stop))
            fitting = (stop - start) * PAGE_ROWS // max(results.rows, 1)
            self._at_once = max(1, min(fitting, _MORE * self._at_once, _ROWS_AT_ONCE))
            start = stop
            for page in results.release(FOREVER):
                if self._is_full:
                    self._held.add(page)
                else:
                    yield 0, page

    def _joined(self, waited: Page) -> SortedRows:
        results = SortedRows(self.schemas_out[0])
        for joined in self._right.arrive(0, waited, FOREVER):
            results.add(Page(self.schemas_out[0], joined))
        return results
