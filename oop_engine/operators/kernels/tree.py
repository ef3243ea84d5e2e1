"""A tree over the slices of a ring, for all groups side by side: which nodes are made anew, and which make a window.

Source: Tangwongsan, Hirzel, Schneider, Wu, General incremental sliding-window aggregation, VLDB 2015 (FlatFAT).
"""

# Layout       node n, from 1 on, is nodes 2n and 2n + 1 together; nodes from `room` on are the leaves: node room + r is
#              row r of the ring itself.  Nodes below are rows of scratch; row 0 is no node, windows are combined there.
#              steps[3, n]  in the words of fold_rows (monoids.py): row r of the ring is ~r
# Invariant    Above leaves that are not stale, each node is both of its children together.
# Not obvious  A window takes two nodes a level at most, one at each side; they are not in order of time, which does not
#              matter, for states commute.  Nodes end at `top` leaves, the largest power of two that a window can have.
#              Where a window goes round the end of the ring it is two ranges of leaves.
# Tried        A step for each node and group, from leaves that were copies of slices: as fast, in 1.5
#              times the memory.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.monoids import STEP_A, STEP_B, STEP_TO
from oop_engine.operators.kernels.sliding import ALONE
from oop_engine.operators.kernels.slices import SIDE_FIRST, SIDE_STOP
from oop_engine.system.kernel import njit

__all__ = ["climb", "descend"]


@njit(cache=True, nogil=True)
def _row(node, room):
    """Return where a node is, in the words of ``fold_rows``."""
    return node if node < room else ~(node - room)


@njit(cache=True, nogil=True)
def climb(stale, room, top, steps):
    """Write the steps that combine the nodes above leaves ``stale`` int64 (n,), ascending; return how many there are.

    ``top``: of how many leaves a node is at most.  O(n log(leaves)).
    """
    nodes, left, size, used = stale + room, len(stale), 2, 0
    while size <= top:
        # Parents of the level before, each once: children are ascending, so brothers are neighbours.
        count = 0
        for i in range(left):
            node = nodes[i] >> 1
            if count and nodes[count - 1] == node:
                continue
            nodes[count] = node
            count += 1
            steps[STEP_TO, used] = node
            steps[STEP_A, used], steps[STEP_B, used] = _row(2 * node, room), _row(2 * node + 1, room)
            used += 1
        left, size = count, 2 * size
    return used


@njit(cache=True, nogil=True)
def _nodes(room, top, first, end, nodes, used):
    """Write the nodes that leaves ``first`` to ``end`` are together; return how many there are behind ``used``."""
    low, high, size = room + first, room + end, 1
    while low < high:
        # A node on its own at a side is taken; the others go up to their parents.
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
def descend(sides, lowest, room, top, steps, used):
    """Write the steps that read windows behind ``used`` others; return how many there are then.

    sides int64 (2, windows): first slice and the one behind, counted from ``lowest`` on.  O(log(slices)) a window.
    """
    # Two ranges of two nodes a level, and few of the top: a window has less than twice as many leaves as one of those.
    nodes = np.empty(4 * 64 + 8, np.int64)
    for w in range(sides.shape[1]):
        first, size = (lowest + sides[SIDE_FIRST, w]) & (room - 1), sides[SIDE_STOP, w] - sides[SIDE_FIRST, w]
        count = _nodes(room, top, first, min(first + size, room), nodes, 0)
        count = _nodes(room, top, 0, max(first + size - room, 0), nodes, count)
        # The first two nodes go to row 0, each later one is added to it, and the last step writes the result.
        for k in range(min(1, count - 1), count):
            steps[STEP_TO, used] = 0 if k < count - 1 else ~w
            steps[STEP_A, used] = 0 if k > 1 else _row(nodes[0], room)
            steps[STEP_B, used] = _row(nodes[k], room) if k else ALONE
            used += 1
    return used
