"""Distances: whether two numbers are further apart than a bound, exactly for all but floats.

A float has 53 bits: two decimals or large integers may be equal there, or apart by a digit that neither has.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["are_apart", "is_measured"]

Mask = NDArray[np.bool_]
_DIGITS = 80  # more than the difference of two decimals has
_MOST = 2**64 - 1  # no two integers of 64 bits are further apart


def is_measured(kind: pa.DataType) -> bool:
    """Return whether values of a type have distances: numbers, booleans, moments and lengths of time."""
    types = pa.types
    tests = types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_temporal
    return any(is_one(kind) for is_one in tests) and not types.is_interval(kind)


def are_apart(now: pa.Array, last: pa.Array, by: float) -> Mask:
    """Return which values of two columns of one type differ by more than ``by``; not beside a null or NaN.

    >>> cents = pa.array([Decimal("0.30"), Decimal("0.30")])
    >>> are_apart(cents, pa.array([Decimal("0.20"), Decimal("0.19")]), 0.1)
    array([False,  True])
    """
    if pa.types.is_floating(now.type):
        with np.errstate(invalid="ignore"):  # infinite less infinite
            return np.abs(_floats(now) - _floats(last)) > by
    known: Mask = pc.and_(now.is_valid(), last.is_valid()).to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(now.type):
        return known & _decimals_apart(now, last, by)
    return known & _integers_apart(_integers(now), _integers(last), by)


def _floats(column: pa.Array) -> NDArray[np.float64]:
    floats: NDArray[np.float64] = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return floats


def _integers(column: pa.Array) -> NDArray[Any]:
    """Return integers of 64 bits, signed unless the column is not; moments in their unit."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    integers: NDArray[Any] = (
        column.cast(pa.uint64() if pa.types.is_uint64(kind) else pa.int64()).fill_null(0).to_numpy()
    )
    return integers


def _integers_apart(now: NDArray[Any], last: NDArray[Any], by: float) -> Mask:
    """Compare without a sign: the distance of two integers of 64 bits needs all bits."""
    if not by < _MOST:
        return np.zeros(now.size, np.bool_)
    high, low = (choose(now, last).view(np.uint64) for choose in (np.maximum, np.minimum))
    far: Mask = high - low > np.uint64(math.floor(by))
    return far


def _decimals_apart(now: pa.Array, last: pa.Array, by: float) -> Mask:
    """Compare with the digits of ``by`` as it is written: 0.1 is a tenth."""
    if not math.isfinite(by):
        return np.zeros(len(now), np.bool_)
    bound = Decimal(repr(float(by)))
    with localcontext(Context(prec=_DIGITS)):
        pairs = zip(now.to_pylist(), last.to_pylist(), strict=True)
        return np.array([None not in pair and abs(pair[0] - pair[1]) > bound for pair in pairs], np.bool_)
