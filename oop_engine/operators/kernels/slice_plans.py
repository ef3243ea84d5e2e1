"""Slice plans: steps for a tree of slices, for long windows of shorter ones; and windows of one group by running sums.

Nested, a window is a path from its start to its end; each slice, and each shorter window that is put together too, is a
step on it.  The path with the fewest parts is taken.

Of one group, a window is the running sum over slices at its end, less that at its start.

Source: Tangwongsan, Hirzel, Schneider, Wu, General incremental sliding-window aggregation, VLDB 2015 (FlatFAT);
Madsen, Zhou, Su, Enorm, DEBS 2016 (figure 7: the consolidation plan).
"""

# Layout       shape, grid, span, windows, sides, steps  as of slices.py; `leaving` has the definitions by number
#              nodes of a tree     node n is nodes 2n and 2n + 1 together; the leaf of row r of the ring is room + r;
#                                  cell node * groups + slot; those of node 0 are scratch.  Steps of fold_steps
#              heads[place]        `nested`: the last shorter window that begins there, -1: none; following[w]: the one
#                                  before it
#              least[place]        the fewest parts from the start to there; came[place] the window that is the last of
#                                  these parts, -1: a slice
#              given[4, windows]   GIVEN_SHAPE, GIVEN_END, GIVEN_BEGIN, GIVEN_BEHIND: windows by definition, then end
# Invariant    Above leaves that are not stale, each node is both of its children together.
#              Row w of the scratch holds window w from its step on, so that longer windows can read it: `nested` plans
#              the shortest ones first.
# Not obvious  A window takes two nodes a level at most, one at each side; they are not in order of time, which does not
#              matter, for states commute.  Nodes end at `top` leaves, the largest power of two that a window can have.
#              Where a window goes round the end of the ring it is two ranges of leaves.
#              `leaving` sorts by counting: it counts the windows that end before each slice, which gives each slice its
#              place, and fills in windows by definition; so they come by end, then definition.
#              Windows without tuples are overwritten by the next: no branch.  Unsigned indices as in places.py.
#              Running sums wrap and differences wrap back: a window that fits is right.  `sums` tells whether all do.
# Tried        Without groups, steps of stacks, and a call for each aggregate and for the order of results: W5-1000 took
#              1.2 to 1.3 times as long.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.monoids import STEP_A, STEP_B, STEP_TO
from oop_engine.operators.kernels.partials import HIGH, LOW
from oop_engine.operators.kernels.slices import (
    ALONE,
    LENGTH,
    NUMBER,
    OFFSET,
    SIDE_FIRST,
    SIDE_STOP,
    SPAN_DONE,
    STEP,
    WINDOW_SHAPE,
    first_and_stop,
    slice_at,
)  # fmt: skip
from oop_engine.system.kernel import njit

__all__ = ["climb", "descend", "leaving", "nested", "sums"]

_SAFE = float(1 << 62)
WIDS_FIRST, WIDS_STOP = range(2)
GIVEN_SHAPE, GIVEN_END, GIVEN_BEGIN, GIVEN_BEHIND = range(4)


@njit(cache=True, nogil=True)
def climb(rows, shape, begin, stop, steps):
    """Write the steps that combine the nodes above leaves ``rows`` int64 (n,), ascending; return how many there are.

    shape: room and groups of the tree, and of how many leaves a node is at most.  For slots ``begin`` to ``stop``.
    O(n x log(leaves) x slots).
    """
    room, groups, top = shape
    nodes, left, size, used = rows + room, len(rows), 2, 0
    while size <= top:
        # Parents of the level before, each once: children are ascending, so brothers are neighbours.
        found = 0
        for i in range(left):
            node = nodes[i] >> 1
            if found and nodes[found - 1] == node:
                continue
            nodes[found] = node
            found += 1
            for slot in range(begin, stop):
                steps[STEP_TO, used] = node * groups + slot
                steps[STEP_A, used] = 2 * node * groups + slot
                steps[STEP_B, used] = (2 * node + 1) * groups + slot
                used += 1
        left, size = found, 2 * size
    return used


@njit(cache=True, nogil=True)
def _nodes(shape, first, behind, nodes, used):
    """Write the nodes that leaves ``first`` to ``behind`` are together; return how many there are behind ``used``."""
    room, _, top = shape
    low, high, size = room + first, room + behind, 1
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
def descend(sides, lowest, shape, begin, stop, steps, used):
    """Write the steps that read windows behind ``used`` others; return how many there are then.

    sides int64 (2, windows): first slice and the one behind, counted from ``lowest`` on; others as in ``climb``.
    Result ``w * (stop - begin) + slot - begin`` is window ``w``.  O(log(slices)) a window and slot.
    """
    room, groups, _ = shape
    # Two ranges of two nodes a level, and few of the top: a window has less than twice as many leaves as one of those.
    nodes = np.empty(4 * 64 + 8, np.int64)
    for w in range(sides.shape[1]):
        first, size = (lowest + sides[SIDE_FIRST, w]) & (room - 1), sides[SIDE_STOP, w] - sides[SIDE_FIRST, w]
        found = _nodes(shape, first, min(first + size, room), nodes, 0)
        found = _nodes(shape, 0, max(first + size - room, 0), nodes, found)
        # The first two nodes go to scratch, each later one is added to it, and the last step writes the result.
        for slot in range(begin, stop):
            for k in range(min(1, found - 1), found):
                steps[STEP_TO, used] = slot if k < found - 1 else ~(w * (stop - begin) + slot - begin)
                steps[STEP_A, used] = slot if k > 1 else nodes[0] * groups + slot
                steps[STEP_B, used] = nodes[k] * groups + slot if k else -1
                used += 1
    return used


@njit(cache=True, nogil=True)
def _path(start, end, sides, heads, following, least, came):
    """Find the fewest parts from ``start`` to ``end``: ``least`` and the part before it, of each place between."""
    # Begin with slices alone, then let each place pass on fewer: by a slice, or by a window from there on.
    least[start] = 0
    for at in range(start + 1, end + 1):
        least[at] = least[start] + at - start
        came[at] = -1
    for at in range(start, end):
        if least[at] + 1 < least[at + 1]:
            least[at + 1], came[at + 1] = least[at] + 1, -1
        shorter = heads[at]
        while shorter >= 0:
            behind = sides[SIDE_STOP, shorter]
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
        # Enter the windows of shorter definitions, which may serve.
        while windows[WINDOW_SHAPE, known] < windows[WINDOW_SHAPE, w]:
            if sides[SIDE_FIRST, known] < sides[SIDE_STOP, known]:
                following[known] = heads[sides[SIDE_FIRST, known]]
                heads[sides[SIDE_FIRST, known]] = known
            known += 1
        start, at = sides[SIDE_FIRST, w], sides[SIDE_STOP, w]
        # Find the path, then take its parts from the last to the first.
        _path(start, at, sides, heads, following, least, came)
        parts[w], first = least[at], ALONE
        while at > start:
            shorter = came[at]
            part = shorter if shorter >= 0 else ~((at - 1 + shift) & mask)
            at = sides[SIDE_FIRST, shorter] if shorter >= 0 else at - 1
            if first == ALONE and at > start:
                first = part
                continue
            steps[STEP_TO, used], steps[STEP_A, used] = w, part
            steps[STEP_B, used] = first
            first, used = w, used + 1
        steps[STEP_TO, used], steps[STEP_A, used], steps[STEP_B, used] = ~w, w, ALONE
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
    low, slices, definitions = span[LOW], span[HIGH] - span[LOW] + 1, np.uintp(shape.shape[1])
    # Tuples before each slice: a window has the difference.
    counted = np.zeros(slices + 1, np.int64)
    for at in range(slices):
        counted[at + 1] = counted[at] + tuples[(low + at) & mask]
    # How many windows close, and up to which slice they end.
    base = top = max(span[SPAN_DONE], low)
    wids, many = np.empty((2, shape.shape[1]), np.int64), 0
    for d in range(definitions):
        wids[WIDS_FIRST, d], wids[WIDS_STOP, d] = first, stop = first_and_stop(shape, grid, d, span)
        if first < stop:
            many += stop - first
            top = max(top, slice_at(grid, shape[OFFSET, d] + stop * shape[STEP, d]))
    # List those with tuples by definition, and count them by the slice they end before.
    given, places, found = np.empty((4, many), np.int64), np.zeros(top - base + 2, np.int64), np.uintp(0)
    for d in range(definitions):
        step, length = shape[STEP, d], shape[LENGTH, d]
        end = shape[OFFSET, d] + wids[WIDS_FIRST, d] * step
        for _ in range(wids[WIDS_FIRST, d], wids[WIDS_STOP, d]):
            end += step
            behind = slice_at(grid, end)
            begin = min(max(slice_at(grid, end - length) - low, 0), slices)
            (
                given[GIVEN_SHAPE, found],
                given[GIVEN_END, found],
                given[GIVEN_BEGIN, found],
                given[GIVEN_BEHIND, found],
            ) = d, end, begin, behind
            used = counted[np.uintp(min(behind - low, slices))] > counted[np.uintp(begin)]
            places[np.uintp(behind - base + 1)] += used
            found += np.uintp(used)
    # Where the windows of each slice begin among the results.
    for at in range(1, len(places)):
        places[at] += places[at - 1]
    # Write each window to its place.
    numbers, starts, ends = np.empty(found, np.int64), np.empty(found, np.int64), np.empty(found, np.int64)
    counts, sides = np.empty(found, np.int64), np.empty((2, found), np.int64)
    for w in range(found):
        definition, end, begin, behind = (
            np.uintp(given[GIVEN_SHAPE, w]),
            given[GIVEN_END, w],
            given[GIVEN_BEGIN, w],
            given[GIVEN_BEHIND, w],
        )
        to, stop = np.uintp(places[np.uintp(behind - base)]), min(behind - low, slices)
        places[np.uintp(behind - base)] += 1
        numbers[to], ends[to] = shape[NUMBER, definition], clock[0] + end * clock[1]
        starts[to] = ends[to] - shape[LENGTH, definition] * clock[1]
        counts[to] = counted[np.uintp(stop)] - counted[np.uintp(begin)]
        sides[SIDE_FIRST, to], sides[SIDE_STOP, to] = begin, stop
    return numbers, starts, ends, counts, sides


@njit(cache=True, nogil=True)
def sums(column, mask, span, sides, out):
    """Write the sum of each window into ``out`` int64 (n,), by its ``sides`` (``leaving``); false: they may not fit.

    ``column`` integers (rows,), as ``tuples`` there.  O(windows + slices).
    """
    low, slices = span[LOW], span[HIGH] - span[LOW] + 1
    # All that is added up, without signs: no window has more, so below _SAFE none can wrap.
    running, most = np.zeros(slices + 1, np.int64), 0.0
    for at in range(slices):
        value = np.int64(column[(low + at) & mask])
        running[at + 1] = running[at] + value
        most += abs(np.float64(value))
    for w in range(len(out)):
        out[w] = running[sides[SIDE_STOP, w]] - running[sides[SIDE_FIRST, w]]
    return most < _SAFE
