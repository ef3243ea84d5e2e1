"""Sums, and means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Arrays, OfColumn, Part, column_of, fewer, stored

__all__ = ["Avg", "Sum"]


class Sum(OfColumn):
    """Sum: of integers int64, of floats float64 (IEEE: NaN and infinities stay).

    Integer sums are checked: one that leaves 64 bits raises ``ContractError``, it never wraps,
    not even if later values would bring it back (so near the limit the order can tell).
    """

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return Part("sum", self.column, self._floating(schema)), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        return column_of(states[0][0], kind, fewer(states[1][0], 1))


class Avg(OfColumn):
    """Mean, float64; integers are added up as floats, so that nothing overflows."""

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return Part("sum", self.column, floating=True), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        (total,), (number,) = states
        null = fewer(number, 1)
        divisor = np.maximum(stored(number), 1)
        return pa.array(total / divisor, kind, mask=null)
