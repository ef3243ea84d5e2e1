"""Wide integers: those of 128 bits as two int64 columns, the lower 64 bits, unsigned, and the upper 64.

States are combined in such columns (``kernels.monoids.Total``); here they become results.  Where all fit 64 bits,
as they mostly do, that is a step or two of NumPy; others take a step in Python each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates.base import Arrays

__all__ = ["deviations", "divided", "fits", "floats"]

Integers = NDArray[np.int64]

_SMALL = 1 << 62


def fits(wide: Arrays) -> NDArray[np.bool_]:
    """Tell which of some integers fit int64."""
    low, high = wide
    found: NDArray[np.bool_] = (low >> 63) == high
    return found


def floats(wide: Arrays) -> NDArray[np.float64]:
    """Return integers as the nearest floats."""
    found = wide[0].astype(np.float64)
    large = np.flatnonzero(~fits(wide))
    found[large] = [float(one) for one in _exact(wide, large)]
    return found


def divided(wide: Arrays, number: Integers) -> Arrays:
    """Return integers divided by some at least 1, rounded to the nearest integer, a half away from zero."""
    low, high = (word.copy() for word in wide)
    small = fits(wide) & (low > -_SMALL) & (low < _SMALL) & (number < _SMALL)
    size = np.abs(low[small])
    quotient, rest = np.divmod(size, number[small])
    low[small] = np.sign(low[small]) * (quotient + (rest >= number[small] - rest))
    high[small] = low[small] >> 63
    for row, one in zip(large := np.flatnonzero(~small), _exact(wide, large), strict=True):
        by = int(number[row])
        found = (2 * abs(one) + by) // (2 * by)
        low[row], high[row] = _words(found if one >= 0 else -found)
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
    low, high = (word[rows].tolist() for word in wide)
    return [(h << 64) + (w & (1 << 64) - 1) for w, h in zip(low, high, strict=True)]


def _words(number: int) -> tuple[int, int]:
    low = number & (1 << 64) - 1
    return low - (1 << 64) if low >> 63 else low, number >> 64
