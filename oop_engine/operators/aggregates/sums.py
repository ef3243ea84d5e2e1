"""Sums, and means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import (
    Arrays,
    OfColumn,
    Part,
    column_of,
    fewer,
    is_number,
    of_words,
    stored,
)
from oop_engine.operators.aggregates.wide import FITTING, SumOverflowError, beyond, divided, floats, unwrapped

__all__ = ["Avg", "Sum"]


class _Added(OfColumn):
    wanted = "an integer, a float, a decimal of at most 128 bits or a duration"

    def _takes(self, kind: pa.DataType) -> bool:
        more = (pa.types.is_uint64, pa.types.is_decimal128, pa.types.is_duration)
        return is_number(kind) or any(test(kind) for test in more)

    def _wide(self, schema: Schema) -> Part:
        """Return the part that adds up all but floats exactly: integers of 32 bits or less in 64, all else in 128."""
        kind = schema.type_of(self.column)
        if pa.types.is_integer(kind) and kind.bit_width <= 32:
            return Part("sum", self.column)
        plain = pa.types.is_decimal(kind) or pa.types.is_uint64(kind)
        return Part("total", self.column, types=(kind,) if plain else ())


class Sum(_Added):
    """Sum: of integers int64, of uint64 uint64, of floats float64 (IEEE: NaN and infinities stay), of durations theirs.

    The sum of decimals is decimal128(38, their scale).  Sums of all but floats are exact, in any order of arrival: a
    result that fits neither 64 bits nor 38 digits raises ``ContractError``.  Sums on the way to a result may be larger.
    """

    def _type(self, kind: pa.DataType) -> pa.DataType:
        if pa.types.is_decimal(kind):
            return pa.decimal128(38, kind.scale)
        if pa.types.is_uint64(kind) or pa.types.is_duration(kind):
            return kind
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        part = Part("sum", self.column, floating=True) if self._floating(schema) else self._wide(schema)
        if part.kind == "total":
            part = part._replace(kind="checked" if part.types else "carried")
        return part, Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        total = states[0]
        if len(total) == 2 and total[1].dtype == np.int32:  # carried
            total = unwrapped(total) if np.logical_or.reduce(total[1]) else total[:1]
        if len(total) > 1 and (rows := beyond(total, kind)).size:
            raise SumOverflowError(self.column, int(rows[0]))
        if len(total) > 1:
            return super().result([total, *states[1:]], kind)
        return column_of(total[0], kind, fewer(states[1][0], 1))


class Avg(_Added):
    """Mean: float64 for numbers, for decimals and durations of their type, a half rounded away from zero.

    Sums of all but floats are exact, and never overflow, so the order of arrival does not matter; floats follow IEEE.
    """

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return kind if pa.types.is_decimal(kind) or pa.types.is_duration(kind) else pa.float64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        if self._floating(schema):
            return Part("sum", self.column, floating=True), Part("count", self.column)
        wide, kind = self._wide(schema), schema.type_of(self.column)
        if pa.types.is_decimal(kind) and kind.precision > FITTING:
            wide = wide._replace(kind="checked")
        return wide, Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        total, (number,) = states
        null = fewer(number, 1)
        divisor = np.maximum(stored(number), 1)
        if pa.types.is_floating(kind):
            return column_of((total[0] if len(total) == 1 else floats(total)) / divisor, kind, null)
        words = divided(total, np.broadcast_to(divisor, total[0].shape))
        return of_words(words[: kind.bit_width // 64], null, kind)
