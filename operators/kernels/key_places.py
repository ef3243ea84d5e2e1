"""Looking keys up: the codes of integers, as ``IntegerTable`` keeps them, in one pass instead of ten in NumPy."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["look_up"]

SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, as in ``IntegerTable``


@njit(cache=True)
def look_up(values, near, lowest, keys, places, codes):
    """Write the code of each value into ``codes`` int64 (rows,), -1 if it has none; return how many have none.

    values integers (rows,); places int64: codes, or below 0; keys int64: by code.  ``near``: the place of
    a value is its distance from ``lowest``; else it is found by hashing and linear probing, and ``places``
    are a power of two.
    """
    unknown = 0
    if near:
        for i in range(len(values)):
            away = np.uint64(np.int64(values[i]) - lowest)
            code = places[away] if away < np.uint64(len(places)) else -1
            codes[i] = code
            unknown += code < 0
        return unknown
    bits, last = 0, len(places) - 1
    while (1 << bits) < len(places):
        bits += 1
    for i in range(len(values)):
        value = np.int64(values[i])
        home = np.uint64(value) * SPREAD >> np.uint64(64 - bits)
        at = np.int64(home)
        code = places[at]
        while code >= 0 and keys[code] != value:
            at = (at + 1) & last
            code = places[at]
        codes[i] = code
        unknown += code < 0
    return unknown
