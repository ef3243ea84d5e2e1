"""Windows of sessions as they leave: their order.

The loops over open runs are in ``cells`` and ``lists``.
"""

# Layout       windows int64 (4, n): slots, ends, first times, levels (which definition, from the narrowest)
# Invariant    A rank is (end, definition): windows leave by their ends, of one end in the order of definitions.
# Not obvious  A rank must fit 62 bits; where ends are too far apart for that, the caller sorts by columns.
#              Windows of one rank come nearly by slot, so insertion puts them in order in about one step each.

from __future__ import annotations

import numpy as np

from oop_engine.system.kernel import njit

__all__ = [
    "BOUND_END", "BOUND_FIRST", "FREE_RUN", "WINDOW_END", "WINDOW_FIRST", "WINDOW_LEVEL", "WINDOW_SLOT",
    "order_windows", "rank_windows",
]  # fmt: skip

# Rows of what ``emit_closed`` writes: the steps to take with states come first, as in ``monoids``.
FREE_RUN, WINDOW_SLOT, WINDOW_END, WINDOW_FIRST, WINDOW_LEVEL = range(3, 8)
BOUND_END, BOUND_FIRST = range(2)  # rows of what ``open_bounds`` writes

_FOREVER = np.iinfo(np.int64).max


@njit(cache=True, nogil=True)
def rank_windows(windows, numbers, out):
    """Write the rank of ``windows`` int64 (4, n), as of ``emit_closed``, by end and number; return whether they fit.

    ``numbers`` int64 (definitions,): of the definitions, the narrowest first.
    """
    _, ends, _, levels = windows
    earliest, latest, many = _FOREVER, -_FOREVER, 0
    for end in ends:
        earliest, latest = min(earliest, end), max(latest, end)
    for number in numbers:
        many = max(many, number + 1)
    if float(latest) - float(earliest) > 2.0**62 / many:
        return False
    for i in range(len(ends)):
        out[i] = (ends[i] - earliest) * many + numbers[levels[i]]
    return True


@njit(cache=True, nogil=True)
def order_windows(windows, numbers, rank, order, out):
    """Write slots, ends, first times and numbers of windows into ``out`` int64 (4, n), in the order of their ranks.

    ``order`` int64 (n,) sorts by rank; those of one rank, nearly by slot, are put into the order of slots.
    """
    slots, ends, first, levels = windows
    for i in range(len(order)):
        row, at = order[i], i
        while at > 0 and rank[order[at - 1]] == rank[row] and slots[order[at - 1]] > slots[row]:
            order[at], at = order[at - 1], at - 1
        order[at] = row
    for i in range(len(order)):
        row = order[i]
        out[0, i], out[1, i], out[2, i], out[3, i] = slots[row], ends[row], first[row], numbers[levels[row]]
