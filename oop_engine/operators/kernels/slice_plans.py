"""Slice plans: steps for a tree of slices, for long windows of shorter ones; and windows of one group by running sums.

Node ``n`` is of nodes ``2 n`` and ``2 n + 1`` together; the leaf of row ``r`` of the ring is node ``room + r``.  A
cell is a node of a group: ``n * groups + slot``; those of node 0 are scratch.  Steps int64 (3, n) are those of
``monoids.fold_steps``.

Nested, a window is a path from its start to its end; each slice, and each shorter window that is put together too, is a
step on it.  The path with the fewest parts is taken.  Steps of this plan are those of ``kernels/slices.py``.

Of one group, a window is the running sum over slices at its end, less that at its start.  Windows are numbered
definition by definition, then counted by the slice they end before (a counting sort): so they come by end, then
definition.

Source: Tangwongsan, Hirzel, Schneider, Wu, General incremental sliding-window aggregation, VLDB 2015 (FlatFAT);
Madsen, Zhou, Su, Enorm, DEBS 2016 (figure 7: the consolidation plan).
"""

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.slices import ALONE, first_and_stop, slice_at
from oop_engine.system.kernel import njit

__all__ = ["climb", "descend", "leaving", "nested", "sums"]

_SAFE = float(1 << 62)


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


@njit(cache=True, nogil=True)
def _path(start, end, sides, heads, following, least, came):
    """Find the fewest parts from ``start`` to ``end``: ``least`` and the part before it, of each place between."""
    least[start] = 0
    for at in range(start + 1, end + 1):
        least[at] = least[start] + at - start
        came[at] = -1
    for at in range(start, end):
        if least[at] + 1 < least[at + 1]:
            least[at + 1], came[at + 1] = least[at] + 1, -1
        shorter = heads[at]
        while shorter >= 0:
            behind = sides[1, shorter]
            if behind <= end and least[at] + 1 < least[behind]:
                least[behind], came[behind] = least[at] + 1, shorter
            shorter = following[shorter]


@njit(cache=True, nogil=True)
def nested(windows, sides, ring, steps, parts):
    """Write the steps that put windows together, and of how many parts each is; return how many steps there are.

    windows and sides as of ``kernels.slices.closing``, the shortest windows first; ring: shift and mask, slice ``s`` of
    ``sides`` is row ``(s + shift) & mask``.  steps int64 (3, room); parts int64 (windows,).  Window ``w`` is result
    ``w``, and row ``w`` of the scratch.  O(slices of each window + shorter windows in it).
    """
    shift, mask = ring
    places, count, used, known = sides.max() + 1, windows.shape[1], 0, 0
    heads, following = np.full(places, -1), np.full(count, -1)
    least, came = np.empty(places, np.int64), np.empty(places, np.int64)
    for w in range(count):
        while windows[0, known] < windows[0, w]:  # those of shorter definitions may serve
            if sides[0, known] < sides[1, known]:
                following[known] = heads[sides[0, known]]
                heads[sides[0, known]] = known
            known += 1
        start, at = sides[0, w], sides[1, w]
        _path(start, at, sides, heads, following, least, came)
        parts[w], first = least[at], ALONE
        while at > start:
            shorter = came[at]
            part = shorter if shorter >= 0 else ~((at - 1 + shift) & mask)
            at = sides[0, shorter] if shorter >= 0 else at - 1
            if first == ALONE and at > start:
                first = part
                continue
            steps[0, used], steps[1, used] = w, part
            steps[2, used] = first
            first, used = w, used + 1
        steps[0, used], steps[1, used], steps[2, used] = ~w, w, ALONE
        used += 1
    return used


@njit(cache=True, nogil=True)
def leaving(shape, grid, clock, span, tuples, mask):
    """Return the windows that close and have tuples, by end, then definition: a column (n,) of each of four things.

    These are the definition's number, the start and the end in time, and how many tuples there are.  Behind them:
    the first slice of each and the one behind, counted from the lowest slice there is on, int64 (2, n).  shape int64
    (4, definitions) as in ``slices.measure``, by number; grid and span likewise; clock: where unit 0 begins, and how
    long each is; tuples integers (rows,): slice ``s`` is row ``s & mask``.  O(windows + slices + definitions).
    """
    low, slices, definitions = span[0], span[1] - span[0] + 1, np.uintp(shape.shape[1])  # no index is below 0
    counted = np.zeros(slices + 1, np.int64)
    for at in range(slices):
        counted[at + 1] = counted[at] + tuples[(low + at) & mask]
    base = top = max(span[2], low)
    wids, many = np.empty((2, shape.shape[1]), np.int64), 0
    for d in range(definitions):
        wids[0, d], wids[1, d] = first, stop = first_and_stop(shape, grid, d, span)
        if first < stop:
            many += stop - first
            top = max(top, slice_at(grid, shape[2, d] + stop * shape[0, d]))
    given, places, found = np.empty((4, many), np.int64), np.zeros(top - base + 2, np.int64), np.uintp(0)
    for d in range(definitions):
        step, length = shape[0, d], shape[1, d]
        end = shape[2, d] + wids[0, d] * step
        for _ in range(wids[0, d], wids[1, d]):
            end += step
            behind = slice_at(grid, end)
            begin = min(max(slice_at(grid, end - length) - low, 0), slices)
            given[0, found], given[1, found], given[2, found], given[3, found] = d, end, begin, behind
            some = counted[np.uintp(min(behind - low, slices))] > counted[np.uintp(begin)]
            places[np.uintp(behind - base + 1)] += some  # no branch
            found += np.uintp(some)
    for at in range(1, len(places)):
        places[at] += places[at - 1]
    numbers, starts, ends = np.empty(found, np.int64), np.empty(found, np.int64), np.empty(found, np.int64)
    counts, sides = np.empty(found, np.int64), np.empty((2, found), np.int64)
    for w in range(found):
        of, end, begin, behind = np.uintp(given[0, w]), given[1, w], given[2, w], given[3, w]
        to, stop = np.uintp(places[np.uintp(behind - base)]), min(behind - low, slices)
        places[np.uintp(behind - base)] += 1
        numbers[to], ends[to] = shape[3, of], clock[0] + end * clock[1]
        starts[to] = ends[to] - shape[1, of] * clock[1]
        counts[to] = counted[np.uintp(stop)] - counted[np.uintp(begin)]
        sides[0, to], sides[1, to] = begin, stop
    return numbers, starts, ends, counts, sides


@njit(cache=True, nogil=True)
def sums(column, mask, span, sides, out):
    """Write the sum of each window into ``out`` int64 (n,), by its ``sides`` (``leaving``); false: they may not fit.

    ``column`` integers (rows,), as ``tuples`` there.  O(windows + slices).
    """
    low, slices = span[0], span[1] - span[0] + 1
    running, most = np.zeros(slices + 1, np.int64), 0.0
    for at in range(slices):
        value = np.int64(column[(low + at) & mask])
        running[at + 1] = running[at] + value
        most += abs(np.float64(value))
    for w in range(len(out)):
        out[w] = running[sides[1, w]] - running[sides[0, w]]
    return most < _SAFE
