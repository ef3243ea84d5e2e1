"""Moments: variance and standard deviation.

Source: Welford 1962; Chan, Golub, LeVeque 1979.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Arrays, OfColumn, Part, fewer
from oop_engine.operators.aggregates.wide import deviations

__all__ = ["Stddev", "Var"]


@checked_arguments
@dataclass(frozen=True)
class Var(OfColumn):
    """Variance, float64, numerically stable: the sum of squared deviations over n - ``ddof``.

    Of integers of 32 bits or less the sums of values and of squares are kept, exactly, in 64 and 128 bits; of others
    count, mean and squared deviations, as floats.
    ``ddof``: 1 for that of a sample, null for fewer than two values; 0 for that of a population, null for none.
    """

    ddof: int = 1

    def result_type(self, schema: Schema, operator: str) -> pa.DataType:
        if self.ddof not in (0, 1):
            msg = (
                f"{operator}: {self}: ddof must be 0 (of a population) or 1 (of a sample); got {self.ddof!r}"
            )
            raise GraphError(msg)
        return super().result_type(schema, operator)

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        kind = schema.type_of(self.column)
        if pa.types.is_integer(kind) and kind.bit_width <= 32:
            return (
                Part("count", self.column),
                Part("sum", self.column),
                Part("total_of_squares", self.column),
            )
        return (Part("moments", self.column, floating=True),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        number, *_ = states[0]
        return pa.array(self._of(number, states), kind, mask=fewer(number, self.ddof + 1))

    def _of(self, number: NDArray[Any], states: Sequence[Arrays]) -> NDArray[np.float64]:
        if len(states) == 1:
            squares = states[0][-1]
        else:
            (total,) = states[1]
            squares = deviations((total, total >> 63), states[2], np.maximum(number, 1))
        variance: NDArray[np.float64] = squares / np.maximum(number - self.ddof, 1)
        return variance


class Stddev(Var):
    """Standard deviation, float64: the square root of ``Var``, and null where that is."""

    def _of(self, number: NDArray[Any], states: Sequence[Arrays]) -> NDArray[np.float64]:
        deviation: NDArray[np.float64] = np.sqrt(super()._of(number, states))
        return deviation
