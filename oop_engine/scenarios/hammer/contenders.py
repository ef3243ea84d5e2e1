"""Contenders of one purpose: the least of the last values of a column, with no engine around them.

recompute    each window is looked at anew, vectorised (the paper's non-incremental algorithm)
evict        subtract-on-evict: the least value is kept, and the window is looked through when it leaves
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.kernel import njit

__all__ = ["evict", "recompute"]

Integers = NDArray[np.int64]


def recompute(values: Integers, range_: int, slide: int) -> Integers:
    """Return the least value of each full window, that ends after each ``slide`` tuples.  O(range) a window."""
    windows = np.lib.stride_tricks.sliding_window_view(values, range_)
    first = -range_ % slide  # of the windows, whose ends are multiples of the slide
    found: Integers = windows[first::slide].min(axis=1)
    return found


def _evict(values: Integers, range_: int, slide: int) -> Integers:
    """Return the same, tuple by tuple: O(1), and O(range) where the least value leaves and a greater one comes."""
    found = np.empty(max((values.size - range_ + range_ % slide) // slide + 1, 0), values.dtype)
    least, at = values[0], 0
    for i in range(values.size):
        value = values[i]
        if value <= least:
            least = value
        elif i >= range_ and values[i - range_] == least:
            least = value
            for j in range(i - range_ + 1, i):
                least = min(least, values[j])
        if i + 1 >= range_ and (i + 1) % slide == 0:
            found[at] = least
            at += 1
    rest: Integers = found[:at]
    return rest


evict = njit(cache=True)(_evict)
"""``_evict``, compiled."""
