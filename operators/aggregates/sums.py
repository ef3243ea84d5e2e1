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
from oop_engine.operators.aggregates.wide import divided, floats

__all__ = ["Avg", "Sum"]

_FITTING = 28  # digits of decimals of which ten thousand million fit 128 bits


class _Added(OfColumn):
    wanted = "an integer, a float, a decimal of at most 128 bits or a duration"

    def _takes(self, kind: pa.DataType) -> bool:
        more = (pa.types.is_uint64, pa.types.is_decimal128, pa.types.is_duration)
        return is_number(kind) or any(of(kind) for of in more)

    def _wide(self, schema: Schema) -> Part:
        """Return the part that adds up all but floats exactly: integers of 32 bits or less in 64, all else in 128."""
        kind = schema.type_of(self.column)
        if pa.types.is_integer(kind) and kind.bit_width <= 32:
            return Part("sum", self.column)
        plain = pa.types.is_decimal(kind) or pa.types.is_uint64(kind)
        return Part("total", self.column, types=(kind,) if plain else ())


class Sum(_Added):
    """Sum: of integers int64, of uint64 uint64, of floats float64 (IEEE: NaN and infinities stay), of durations theirs.

    That of decimals is decimal128(38, their scale).  All but floats are checked: a sum that leaves its 64 bits or 38
    digits raises ``ContractError``, it never wraps, not even if later values would bring it back (so near the
    limit the order can tell).
    """

    def _type(self, kind: pa.DataType) -> pa.DataType:
        if pa.types.is_decimal(kind):
            return pa.decimal128(38, kind.scale)
        if pa.types.is_uint64(kind) or pa.types.is_duration(kind):
            return kind
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        wide = self._wide(schema)
        part = (
            wide._replace(kind="checked") if wide.types else Part("sum", self.column, self._floating(schema))
        )
        return part, Part("count", self.column)


class Avg(_Added):
    """Mean: float64 for numbers, for decimals and durations of their type, a half rounded away from zero.

    Integers of 32 bits or less are added up in 64 bits, others, decimals and durations in 128: so nothing overflows
    (of 32 bits, not before four thousand million values) and the order of values never matters; floats follow IEEE.
    The sum of decimals of more than 28 digits is checked as that of ``Sum``.
    """

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return kind if pa.types.is_decimal(kind) or pa.types.is_duration(kind) else pa.float64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        if self._floating(schema):
            return Part("sum", self.column, floating=True), Part("count", self.column)
        wide, kind = self._wide(schema), schema.type_of(self.column)
        if pa.types.is_decimal(kind) and kind.precision > _FITTING:
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
