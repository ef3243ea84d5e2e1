"""Sketches: the questions of ``values.py`` to within an error that is known beforehand, for little memory.

Both are deterministic, and a state is a function of the set of tuples: it does not depend on their order, nor on
how they were divided, and merging loses nothing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Arrays, OfColumn, Part
from oop_engine.operators.aggregates.values import CountDistinct

if TYPE_CHECKING:
    from oop_engine.operators.aggregates.ragged import Ragged

__all__ = ["ApproxCountDistinct", "ApproxQuantile", "Bins"]

_LEAST, _MOST = 0.0001, 0.5


@dataclass(frozen=True)
class Bins:
    """Bins of numbers whose limits grow by ``1 + 2 error / (1 - error)``: any number is within ``error`` of its bin's.

    Bins are integers in the order of numbers: 0 is zero, those of negative numbers are negative; infinities and NaN,
    which is the largest, have bins of their own.
    """

    error: float

    @property
    def _log(self) -> float:
        return math.log((1 + self.error) / (1 - self.error))

    @property
    def _first(self) -> int:
        """The bin of the least positive float, before it is made 1."""
        return math.ceil(math.log(5e-324) / self._log)

    @property
    def last(self) -> int:
        """The bin of infinity; behind it is that of NaN."""
        return math.ceil(math.log(sys.float_info.max) / self._log) - self._first + 2

    def of(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Return the bins of numbers, int32, int64 or float64."""
        from oop_engine.operators.kernels.lists import bins

        numbers = np.empty(values.size, np.int32)
        bins(values, 1 / self._log, self._first, self.last, numbers)
        return numbers

    def middle(self, bins: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the number that stands for each of some bins."""
        size = (np.abs(bins) + self._first - 1) * self._log + math.log(2 / (1 + math.exp(self._log)))
        values = np.where(bins == 0, 0.0, np.copysign(np.exp(np.minimum(size, 709.78)), bins))
        values = np.where(np.abs(bins) == self.last, np.copysign(np.inf, bins), values)
        middles: NDArray[np.float64] = np.where(bins > self.last, np.nan, values)
        return middles


@checked_arguments
@dataclass(frozen=True)
class ApproxQuantile(OfColumn):
    """The value below which a share ``q`` of the values lies, float64, within ``error`` (relative) of the exact one.

    The exact one is ``Quantile(c, q, "lower")``.  Values are counted in bins that grow by a constant factor, so memory
    follows the orders of magnitude they reach over: 115 bins of 16 bytes for one, with an error of 0.01.

    Source: Masson, Rim, Lee, DDSketch, VLDB 2019.
    """

    q: float
    error: float = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.q, int | float) or not 0 <= self.q <= 1:
            msg = f"ApproxQuantile: q must be from 0 to 1; got {self.q!r}"
            raise GraphError(msg)
        _check_error("ApproxQuantile", self.error)

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("bins", self.column, types=(pa.float64(),), parameter=self.error),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        counts = cast("Ragged", states[0][0])
        last = counts.totals() - 1
        null = last < 0
        if null.all():
            return pa.nulls(null.size, kind)
        places = counts.places(np.floor(self.q * np.maximum(last, 0)).astype(np.int64))
        bins = counts.flat[0][np.where(null, 0, places)]
        return pa.array(Bins(self.error).middle(bins), kind, mask=null, from_pandas=False)


@checked_arguments
@dataclass(frozen=True)
class ApproxCountDistinct(CountDistinct):
    """Number of different values, int64, 0 for none, with a standard error of ``error`` (relative).

    Of any type that ``CountDistinct`` takes.  A state is m registers of a byte, m the power of two that is nearest to
    (1.04 / error)^2: 4096 bytes for 0.016.  A state of which at most an eighth is set has 3 bytes for each that is.
    Below 2.5 m the registers that are not set are counted, which is nearly exact for a few values.

    Source: Flajolet, Fusy, Gandouet, Meunier, HyperLogLog, AofA 2007.
    """

    error: float = 0.016

    def __post_init__(self) -> None:
        _check_error("ApproxCountDistinct", self.error)

    @property
    def registers(self) -> int:
        """How many registers there are: the power of two that comes nearest to ``error``."""
        return 1 << min(max(round(2 * math.log2(1.04 / self.error)), 4), 16)

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        kind = schema.type_of(self.column)
        return (Part("registers", self.column, types=(kind,), parameter=self.registers),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        from oop_engine.operators.kernels.hashing import harmonic

        column, m = cast("Ragged", states[0][0]), self.registers
        total, unset = np.empty(len(column)), np.empty(len(column))
        harmonic(column.begins, column.lengths, np.ascontiguousarray(column.flat[0]), m, total, unset)
        bias = {16: 0.673, 32: 0.697, 64: 0.709}.get(m, 0.7213 / (1 + 1.079 / m))
        estimate = bias * m * m / total
        few = (estimate <= 2.5 * m) & (unset > 0)
        estimate[few] = m * np.log(m / unset[few])
        return pa.array(np.rint(estimate).astype(np.int64), kind)


def _check_error(name: str, error: float) -> None:
    if not isinstance(error, int | float) or not _LEAST <= error <= _MOST:
        msg = f"{name}: error must be from {_LEAST} to {_MOST}, a share of the result; got {error!r}"
        raise GraphError(msg)
