"""Extremes: one of the column's own values, the smallest, largest, first or last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Arrays, OfColumn, Part, fewer

__all__ = ["First", "Last", "Max", "Min"]


class _Chosen(OfColumn):
    """One of the column's own values."""

    kind: ClassVar[str]
    ordered = True

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return kind

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return Part(self.kind, self.column, self._floating(schema)), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        return _as_type(states[0][0], fewer(states[1][0], 1), kind)


class Min(_Chosen):
    """Smallest value, of the column's type; NaN counts only where there is nothing else."""

    kind = "min"


class Max(_Chosen):
    """Largest value, of the column's type; NaN counts only where there is nothing else."""

    kind = "max"


class First(_Chosen):
    """Value of the first tuple by the windowing attribute; of several, the smallest.

    The windowing attribute is the progressing attribute, or in tuple-based windows the
    arrival number.  Nulls are skipped.
    """

    kind = "first"


class Last(_Chosen):
    """Value of the last tuple by the windowing attribute; of several, the largest."""

    kind = "last"


def _as_type(values: NDArray[Any], null: NDArray[np.bool_] | None, kind: pa.DataType) -> pa.Array:
    """Return numbers as the column's own type; those of no values are not looked at."""
    numbers = pa.array(values if null is None else np.where(null, values.dtype.type(0), values), mask=null)
    if pa.types.is_temporal(kind):
        return numbers.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return numbers if numbers.type == kind else numbers.cast(kind)
