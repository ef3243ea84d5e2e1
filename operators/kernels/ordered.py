"""Ordered: floats as integers of the same order, for integers are compared in one instruction.

NaN comes behind all numbers, and nothing at all behind NaN.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["as_floats", "as_integers"]

MOST = np.iinfo(np.int64).max
INFINITY = 0x7FF0000000000000
NAN = 0x7FF8000000000000


@njit(cache=True, nogil=True)
def as_integers(bits, reverse, out):
    """Write the integers for floats, given as ``bits`` int64 (n,); ``reverse``: the largest first."""
    for i in range(len(bits)):
        ordered = bits[i] ^ ((bits[i] >> 63) & MOST)
        out[i] = NAN if (bits[i] & MOST) > INFINITY else ~ordered if reverse else ordered


@njit(cache=True, nogil=True)
def as_floats(integers, reverse, out):
    """Write the bits of the floats for integers (n,) of ``as_integers``."""
    for i in range(len(integers)):
        ordered = ~integers[i] if reverse else integers[i]
        out[i] = NAN if integers[i] > INFINITY else ordered ^ ((ordered >> 63) & MOST)
