"""Levels of steps: which steps of a plan can be taken together, where a step is taken with whole columns."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["step_levels"]


@njit(cache=True, nogil=True)
def step_levels(to, a, b, rows, level):
    """Write the level of each step of ``kernels.panes.plan``: those of a level touch different rows; return how many.

    A step comes behind those that write what it reads, and those that read or write what it writes.  O(steps + rows).
    """
    written, read = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    for i in range(len(to)):
        least = written[a[i]]
        if b[i] >= 0:
            least = max(least, written[b[i]])
        if to[i] >= 0:
            least = max(least, written[to[i]], read[to[i]])
        level[i] = least + 1
        read[a[i]] = max(read[a[i]], least + 1)
        if b[i] >= 0:
            read[b[i]] = max(read[b[i]], least + 1)
        if to[i] >= 0:
            written[to[i]] = least + 1
    return len(to)
