"""Row lists: the rows of each group, linked in both directions, so that a row joins or leaves its list at once.

Common arguments: head int32 (groups,): the last row of each, or -1; after, before int32 (rows,): the next row of the
group, or -1, and the one before it, or ``~group`` where it is the first, or ``APART``.
"""

from __future__ import annotations

import numpy as np

from oop_engine.system.kernel import njit

__all__ = ["APART", "length", "link", "stretches", "unlink", "walk"]

APART = int(np.iinfo(np.int32).min)
"""Of a row that is in no list."""


@njit(cache=True, nogil=True)
def link(head, after, before, rows, of):
    """Put rows int64 (n,) in front of those of their groups ``of`` int64 (n,), unless they are in a list."""
    for i in range(len(rows)):
        row, group = rows[i], of[i]
        if before[row] != APART:  # a row may be given twice
            continue
        first = head[group]
        after[row], before[row], head[group] = first, ~group, row
        if first >= 0:
            before[first] = row


@njit(cache=True, nogil=True)
def unlink(head, after, before, rows):
    """Take rows int64 (n,) out of their lists, if they are in one."""
    for i in range(len(rows)):
        last, following = before[rows[i]], after[rows[i]]
        if last == APART:
            continue
        if last >= 0:
            after[last] = following
        else:
            head[~last] = following
        if following >= 0:
            before[following] = last
        before[rows[i]] = APART


@njit(cache=True, nogil=True)
def length(head, after, groups):
    """Return how many rows some groups int64 (n,) have; of groups that are unknown (-1) none."""
    many = 0
    for i in range(len(groups)):
        row = head[groups[i]] if groups[i] >= 0 else -1
        while row >= 0:
            many += 1
            row = after[row]
    return many


@njit(cache=True, nogil=True)
def walk(head, after, groups, rows, at):
    """Write the rows of some groups, and for each the number ``at`` of its group among these, int64 (length,)."""
    many = 0
    for i in range(len(groups)):
        row = head[groups[i]] if groups[i] >= 0 else -1
        while row >= 0:
            rows[many], at[many] = row, i
            many += 1
            row = after[row]


@njit(cache=True, nogil=True)
def stretches(of, order, groups, begin, end):
    """Write where the rows of some groups int64 (n,) begin and end in ``order`` int32 (rows,), by group.

    of int32 (rows,): the group of each row.  NumPy's search would copy an order of 32 bits.  O(n log rows).
    """
    for i in range(len(groups)):
        for side in range(2):
            low, high = 0, len(order)
            while low < high:
                middle = (low + high) // 2
                if of[order[middle]] < groups[i] + side:
                    low = middle + 1
                else:
                    high = middle
            if side == 0:
                begin[i] = low
            else:
                end[i] = low
