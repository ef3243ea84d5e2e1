"""Moments: variance and standard deviation.

Source: Welford 1962; Chan, Golub, LeVeque 1979.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Arrays, OfColumn, Part, fewer

__all__ = ["Stddev", "Var"]


class Var(OfColumn):
    """Sample variance (n - 1), float64, numerically stable; null for fewer than two values."""

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("moments", self.column, floating=True),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        number, _, squares = states[0]
        return pa.array(squares / np.maximum(number - 1, 1), kind, mask=fewer(number, 2))


class Stddev(Var):
    """Sample standard deviation (n - 1), float64; null for fewer than two values."""

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        number, _, squares = states[0]
        return pa.array(np.sqrt(squares / np.maximum(number - 1, 1)), kind, mask=fewer(number, 2))
