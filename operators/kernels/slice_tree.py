"""Slice tree: the steps that keep a tree of combined slices, and those that read windows from it.

Node ``n`` is of nodes ``2 n`` and ``2 n + 1`` together; the leaf of row ``r`` of the ring is node ``room + r``.  A
cell is a node of a group: ``n * groups + slot``; those of node 0 are scratch.  Steps int64 (3, n) are those of
``monoids.fold_steps``.

Source: Tangwongsan, Hirzel, Schneider, Wu, General incremental sliding-window aggregation, VLDB 2015 (FlatFAT).
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["climb", "descend"]


@njit(cache=True, nogil=True)
def climb(rows, shape, begin, stop, steps):
    """Write the steps that combine the nodes above leaves ``rows`` int64 (n,), ascending; return how many there are.

    shape: room and groups of the tree, and of how many leaves a node is at most.  For slots ``begin`` to ``stop``.
    O(n x log(leaves) x slots).
    """
    room, groups, top = shape
    nodes, left, size, used = rows + room, len(rows), 2, 0
    while size <= top:
        found = 0
        for i in range(left):
            node = nodes[i] >> 1
            if found and nodes[found - 1] == node:
                continue
            nodes[found] = node
            found += 1
            for slot in range(begin, stop):
                steps[0, used] = node * groups + slot
                steps[1, used] = 2 * node * groups + slot
                steps[2, used] = (2 * node + 1) * groups + slot
                used += 1
        left, size = found, 2 * size
    return used


@njit(cache=True, nogil=True)
def _nodes(shape, first, behind, nodes, used):
    """Write the nodes that leaves ``first`` to ``behind`` are together; return how many there are behind ``used``."""
    room, _, top = shape
    low, high, size = room + first, room + behind, 1
    while low < high:
        if size == top:
            for node in range(low, high):
                nodes[used] = node
                used += 1
            break
        if low & 1:
            nodes[used] = low
            low, used = low + 1, used + 1
        if high & 1:
            high -= 1
            nodes[used] = high
            used += 1
        low, high, size = low >> 1, high >> 1, 2 * size
    return used


@njit(cache=True, nogil=True)
def descend(sides, lowest, shape, begin, stop, steps, used):
    """Write the steps that read windows behind ``used`` others; return how many there are then.

    sides int64 (2, windows): first slice and the one behind, counted from ``lowest`` on; others as in ``climb``.
    Result ``w * (stop - begin) + slot - begin`` is window ``w``.  O(log(slices)) a window and slot.
    """
    room, groups, _ = shape
    nodes = np.empty(4 * 64 + 8, np.int64)
    for w in range(sides.shape[1]):
        first, size = (lowest + sides[0, w]) & (room - 1), sides[1, w] - sides[0, w]
        found = _nodes(shape, first, min(first + size, room), nodes, 0)
        found = _nodes(shape, 0, max(first + size - room, 0), nodes, found)
        for slot in range(begin, stop):
            for k in range(min(1, found - 1), found):
                steps[0, used] = slot if k < found - 1 else ~(w * (stop - begin) + slot - begin)
                steps[1, used] = slot if k > 1 else nodes[0] * groups + slot
                steps[2, used] = nodes[k] * groups + slot if k else -1
                used += 1
    return used
