"""Products and means that are not sums of values: of products, of logarithms, of weighted values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import (
    Aggregation,
    Arrays,
    OfColumn,
    Part,
    checked_type,
    fewer,
    is_number,
    stored,
)

__all__ = ["GeometricMean", "Product", "WeightedAvg"]

_FAR = 5000  # binary digits: behind the range of float64 to either side


class Product(OfColumn):
    """Product, float64 (IEEE: NaN stays, and so does infinity times zero); integers are multiplied as floats.

    Mantissa and exponent are kept apart, so that only the result may be too large for a float, and the order of
    values can be told from its last digits alone.
    """

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return Part("product", self.column, floating=True), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        mantissa, exponent = states[0]
        with np.errstate(over="ignore", under="ignore"):
            values = np.ldexp(mantissa, np.clip(exponent, -_FAR, _FAR).astype(np.int32))
        return pa.array(values, kind, mask=fewer(states[1][0], 1))


class GeometricMean(OfColumn):
    """The n-th root of the product of n values, float64, by the sum of their logarithms.

    0 if a value is 0, NaN if one is negative or NaN, and NaN for 0 beside infinity, as their product is.
    """

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return Part("logs", self.column, floating=True), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        (total,), (number,) = states
        mean = np.exp(total / np.maximum(stored(number), 1))
        return pa.array(mean, kind, mask=fewer(number, 1))


@checked_arguments
@dataclass(frozen=True)
class WeightedAvg(Aggregation):
    """Mean of ``column`` in which each value counts ``weight`` times, float64: the centre of mass.

    Tuples in which one of the two is null are skipped.  Values and weights are taken as floats (IEEE: where the
    weights add up to 0 the result is NaN or infinite).
    """

    column: str
    weight: str

    @property
    def columns(self) -> tuple[str, ...]:
        return self.column, self.weight

    def result_type(self, schema: Schema, operator: str) -> pa.DataType:
        for column in self.columns:
            checked_type(schema, column, is_number, OfColumn.wanted, f"{operator}: {self}")
        return pa.float64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        part = Part("weighted", self.column, floating=True, other=self.weight)
        return part, Part("count", self.column, other=self.weight)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        total, weight = states[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return pa.array(total / weight, kind, mask=fewer(states[1][0], 1))
