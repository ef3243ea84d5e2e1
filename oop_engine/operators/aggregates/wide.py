"""Wide integers: those of 128 or 192 bits as two or three int64 columns (words), the lowest first, the last one signed.

States are combined in such columns (``Total`` and ``Triple`` of ``kernels.monoids``), or as ``Carried`` has them, which
``unwrapped`` makes words; here they become results.  Where all fit 64 bits, as they mostly do, that is a step or two of
NumPy; others take a step in Python each.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.operators.aggregates.base import Arrays

__all__ = ["FITTING", "SumOverflowError", "beyond", "deviations", "divided", "fits", "floats", "unwrapped"]

Integers = NDArray[np.int64]

FITTING = 28
"""Digits of decimals of which ten thousand million fit 128 bits; those with more are added up in 192."""
_SMALL = 1 << 62
_DIGITS = 10**38  # of decimal128


class SumOverflowError(Exception):
    """A sum of ``column`` does not fit its type ``at`` a row, a step or a run; of ``fold_rows`` in ``group``."""

    def __init__(self, column: str | None, at: int, group: int = 0) -> None:
        super().__init__(column, at, group)
        self.column, self.at, self.group = column, at, group


def unwrapped(state: Arrays) -> Arrays:
    """Return sums of ``kernels.monoids.Carried``, int64 and int32 how often each wrapped upwards, in two words."""
    low, wraps = state
    return low, wraps + (low >> 63)


def fits(wide: Arrays) -> NDArray[np.bool_]:
    """Return which of some integers fit int64."""
    sign = wide[0] >> 63
    inside: NDArray[np.bool_] = wide[1] == sign
    for word in wide[2:]:
        inside &= word == sign
    return inside


def beyond(wide: Arrays, kind: pa.DataType) -> Integers:
    """Return which rows of some integers do not fit ``kind``: int64, uint64, a duration or a decimal of 38 digits."""
    if pa.types.is_uint64(kind):
        return np.flatnonzero(wide[1])
    large = np.flatnonzero(~fits(wide))
    if not large.size or not pa.types.is_decimal(kind):
        return large
    return large[[abs(value) >= _DIGITS for value in _exact(wide, large)]]


def floats(wide: Arrays) -> NDArray[np.float64]:
    """Return integers as the nearest floats."""
    floats = wide[0].astype(np.float64)
    large = np.flatnonzero(~fits(wide))
    floats[large] = [float(value) for value in _exact(wide, large)]
    return floats


def divided(wide: Arrays, number: Integers) -> Arrays:
    """Return integers divided by some at least 1, rounded to the nearest integer, a half away from zero, in 2 words."""
    low, high = (word.copy() for word in wide[:2])
    small = fits(wide) & (low > -_SMALL) & (low < _SMALL) & (number < _SMALL)
    size = np.abs(low[small])
    quotient, rest = np.divmod(size, number[small])
    low[small] = np.sign(low[small]) * (quotient + (rest >= number[small] - rest))
    high[small] = low[small] >> 63
    for row, value in zip(large := np.flatnonzero(~small), _exact(wide, large), strict=True):
        by = int(number[row])
        found = (2 * abs(value) + by) // (2 * by)
        low[row], high[row] = _words(found if value >= 0 else -found)
    return low, high


def deviations(total: Arrays, squares: Arrays, number: Integers) -> NDArray[np.float64]:
    """Return sums of squared deviations from the mean, of ``number`` integers (at least 1) with these two sums.

    With q the integer next to the mean and r what the total is beyond number * q, that is squares - q (total + r),
    an integer, less r * r / number, which is at most half of it: no digit is lost.
    """
    middle = np.rint(floats(total) / number).astype(np.int64)
    beyond = total[0] - middle * number  # it fits; so the upper words do not matter
    whole = (squares[0] - middle * (total[0] + beyond)).astype(np.float64)
    large = np.flatnonzero(~fits(squares))
    of_large = zip(_exact(squares, large), _exact(total, large), middle[large], beyond[large], strict=True)
    whole[large] = [float(s - int(q) * (t + int(r))) for s, t, q, r in of_large]
    rest = beyond.astype(np.float64)
    found: NDArray[np.float64] = whole - rest * rest / number
    return found


def _exact(wide: Arrays, rows: Integers) -> list[int]:
    """Return some integers as those of Python."""
    *lower, integers = (word[rows].tolist() for word in wide)
    for words in reversed(lower):
        integers = [(high << 64) + (low & (1 << 64) - 1) for low, high in zip(words, integers, strict=True)]
    return list(integers)


def _words(number: int) -> tuple[int, int]:
    low = number & (1 << 64) - 1
    return low - (1 << 64) if low >> 63 else low, number >> 64
