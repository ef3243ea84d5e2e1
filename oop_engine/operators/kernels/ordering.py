"""Kernels of punctuation: low-watermarks per group and by quantiles, rows after which bounds are due, future rows."""

# Layout       heaps[slot]       the k largest values of a group, a min-heap: heaps[slot, 0] is the k-th largest
#              table[SEEN, slot] the bound of the group when it last grew     table[GREW, slot] the epoch of that
#              last[EPOCH, LEADER]
#              memory            the numbers that one kernel keeps; they are listed at the kernel
# Invariant    A bound never falls: each is the maximum of itself and that of the row at hand.
#              trail: no row below `due` moves the first bound, none below `soon` moves the second one.
# Not obvious  Sums and differences may pass 64 bits where times lie at their ends, so each is asked about first.
#              A time may be the largest integer, which as a bound would end the stream: it counts as one less.
#              A stream that is nearly in order moves a bound once a block: all other rows of ``trail`` are compared
#              with the bounds of before in vector instructions; the only branch is in the search for that row.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = ["CELLS", "GREW", "SEEN", "accept", "due", "nth_largest", "quantile_behind", "trail"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Cells = NDArray[np.int16]
SEEN, GREW = range(2)  # rows of ``table`` of ``due``
EPOCH, LEADER = range(2)  # of ``last``
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max - 1
_BLOCK = kernel_knob(__name__, "_BLOCK", 512)  # rows
CELLS = 8 * 62
"""Cells of a histogram of lateness: eight for each power of two, and one for each number below eight."""


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def nth_largest(times: Ints, slots: Ints, heaps: Ints) -> Ints:
    """Return for each row the ``k``-th largest value of its slot so far; update ``heaps``.

    ``times, slots``: int64 (rows,).  ``heaps``: int64 (slots, k), each the ``k`` largest
    values of a slot as a min-heap, filled up with the smallest integer.  Returns int64
    (rows,).  O(rows x log k).
    """
    rows, size = times.size, heaps.shape[1]
    nth = np.empty(rows, np.int64)
    for i in range(rows):
        heap = heaps[slots[i]]
        value = times[i]
        if value > heap[0]:
            # The least of the k largest gives way: smaller children move up until the new value fits.
            at, child = 0, 1
            while child < size:
                if child + 1 < size and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= value:
                    break
                heap[at] = heap[child]
                at, child = child, 2 * child + 1
            heap[at] = value
        nth[i] = heap[0]
    return nth


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def due(bounds: Ints, slots: Ints, linear: Ints, table: Ints, last: Ints) -> Mask:
    """Return the rows after which bounds of groups are due.

    ``bounds``: int64 (rows,), the bound of each row's group after it.  ``linear``: int64
    (rows + 1,), the bound of the whole stream before the first row and after each; where it
    grows, all bounds are emitted anyway.  ``table``: int64 (2 or more, slots): the bound last
    seen, and the epoch when it last grew.  ``last``: int64 (2,): the epoch, and the slot
    that made the last cut.  Both are updated.  Returns bool (rows,).  O(rows).

    Due, when a group grows that has grown before in this epoch, or that made the last cut:
    so one cut covers the growth of all groups, the fastest group sets the pace, and none
    waits for a group that stands still.
    """
    rows = bounds.size
    cut = np.zeros(rows, np.bool_)
    epoch, leader = last[EPOCH], last[LEADER]
    for i in range(rows):
        slot = slots[i]
        put_out = linear[i + 1] > linear[i]
        if bounds[i] > max(table[SEEN, slot], linear[i + 1]):
            table[SEEN, slot] = bounds[i]
            if leader < 0 or slot == leader or table[GREW, slot] == epoch:
                cut[i] = put_out = True
                leader = slot
            else:
                table[GREW, slot] = epoch
        if put_out:
            epoch += 1
    last[EPOCH], last[LEADER] = epoch, leader
    return cut


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def trail(times: Ints, slack: int, soft: int, every: int, memory: Ints, late: Mask) -> tuple[int, int]:
    """Count the rows below the bounds at their arrival: multiples of ``every``, a slack below the largest value before.

    There are two, ``slack`` behind, and ``soft``, which is expected.  ``times``: int64 (rows,).  ``memory``: int64
    (5,), updated: the largest value, both bounds, and the least and the greatest of ``times``.  ``late``: bool (rows,),
    written: which rows are below the first bound.  Returns how many are, and how many are below the second one alone.
    O(rows), a few instructions each.
    """
    holding, expected = memory[1], memory[2]
    earliest, latest, late_rows, soft_late, start = _MOST + 1, _LEAST, 0, 0, 0
    due, soon, moved = _due(holding, slack, every), _due(expected, soft, every), False
    while start < times.size:
        block, block_late = times[start : start + _BLOCK], late[start : start + _BLOCK]
        lowest, highest = _reach(block)
        earliest, latest, stop = min(earliest, lowest), max(latest, highest), block.size
        # A bound has moved and would again: the stream is far out of order, so this block goes row by row.
        if moved and highest >= min(due, soon):
            for i in range(stop):
                value = block[i]
                block_late[i] = value < holding
                late_rows += block_late[i]
                soft_late += (value >= holding) & (value < expected)
                if value >= due:
                    holding, due = _grown(value, holding, slack, every)
                if value >= soon:
                    expected, soon = _grown(value, expected, soft, every)
        else:
            # Up to the first row that moves a bound, and with it, all are compared with the bounds of before.
            moved, value = highest >= min(due, soon), highest
            if moved:
                stop = 1
                while block[stop - 1] < due and block[stop - 1] < soon:
                    stop += 1
                value = block[stop - 1]
            if lowest < max(holding, expected):
                late_here, soft_here = _count_late(block[:stop], block_late[:stop], holding, expected)
                late_rows, soft_late = late_rows + late_here, soft_late + soft_here
            else:
                block_late[:stop] = False
            if value >= due:
                holding, due = _grown(value, holding, slack, every)
            if value >= soon:
                expected, soon = _grown(value, expected, soft, every)
        start += stop
    memory[0], memory[1], memory[2] = min(max(memory[0], latest), _MOST), holding, expected
    memory[3], memory[4] = earliest, latest
    return late_rows, soft_late


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _reach(times: Ints) -> tuple[int, int]:
    """Return the least and the greatest of some times.  Vector instructions."""
    lowest, highest = times[0], times[0]
    for i in range(times.size):
        lowest, highest = min(lowest, times[i]), max(highest, times[i])
    return lowest, highest


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _count_late(times: Ints, late: Mask, holding: int, expected: int) -> tuple[int, int]:
    """Write which rows are below the bound ``holding``; return how many are, and how many below ``expected`` alone."""
    late_rows, unexpected = 0, 0
    for i in range(times.size):  # vector instructions
        late_rows += times[i] < holding
        unexpected += times[i] < expected
    late[:] = False
    if late_rows:
        for i in range(times.size):
            late[i] = times[i] < holding
    return late_rows, max(unexpected - late_rows, 0)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _grown(value: int, promised: int, slack: int, every: int) -> tuple[int, int]:
    """Return the bound after a value that was due, and the value from which on the bound may grow again."""
    value = min(value, _MOST)  # a tuple may have the largest integer; the stream goes on
    bound = value - slack if value >= _LEAST + slack else _LEAST
    if every == 1:
        return max(promised, bound), value + 1
    # Multiples of very small numbers would be none any more.
    promised = max(promised, bound if bound < _LEAST + every else bound // every * every)
    return promised, _due(promised, slack, every)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _due(promised: int, slack: int, every: int) -> int:
    """Return the value from which on the bound may grow; the largest integer: perhaps never."""
    if promised > _MOST - every:
        return _MOST + 1
    following = _LEAST if promised < _LEAST + every else promised // every * every + every
    return following + slack if following <= _MOST - slack else _MOST + 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def accept(times: Ints, limit: int, patience: int, memory: Ints) -> Mask:
    """Return which rows are at most ``limit`` ahead of the largest one accepted before.

    ``times``: int64 (rows,).  ``memory``: int64 (3,), updated: the largest value accepted
    (the smallest integer: none), how many rows in a row were refused, the least of those.
    After ``patience`` refusals in a row the stream has moved on: the least of the
    refused is its new time.  ``patience < 0``: never.  Returns bool (rows,).  O(rows).
    """
    accepted = np.ones(times.size, np.bool_)
    highest, refused, earliest_refused = memory[0], memory[1], memory[2]
    none = np.iinfo(np.int64).min
    # Refusals in a row count only as long as no row in between is accepted.
    for i in range(times.size):
        value = times[i]
        needs = max(value, none + limit) - limit  # what must have been seen; does not wrap round
        if highest != none and needs > highest:
            earliest_refused = value if refused == 0 else min(earliest_refused, value)
            refused += 1
            if 0 <= patience < refused:
                highest, refused = earliest_refused, 0
            if needs > highest:
                accepted[i] = False
                continue
        refused = 0
        highest = max(highest, value)
    memory[0], memory[1], memory[2] = highest, refused, earliest_refused
    return accepted


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def quantile_behind(times: Ints, share: float, last: Cells, counts: Ints, memory: Ints) -> Ints:
    """Return after each row the largest value so far, minus the quantile ``share`` of the lateness of the last rows.

    ``times``: int64 (rows,).  ``last``: int16 (n,), a ring of the cells of the last ``n`` rows.  ``counts``: int64
    (CELLS,).  ``memory``: int64 (5,): the largest value, the bound, how many rows came, the cell of the quantile, how
    many of the last rows are in it or below.  The last three are updated.  Returns int64 (rows,), never decreasing.
    O(rows), amortised, as long as the quantile moves by a few cells at a time.
    """
    bounds = np.empty(times.size, np.int64)
    largest, bound, came, cell, below = memory[0], memory[1], memory[2], memory[3], memory[4]
    for i in range(times.size):
        value = min(times[i], _MOST)  # a tuple may have the largest integer; that does not end the stream
        if came == 0 or value > largest:
            largest = value
        # The oldest row of the ring leaves the histogram, the new one enters it.
        at = came % last.size
        if came >= last.size:
            counts[last[at]] -= 1
            below -= last[at] <= cell
        last[at] = _cell(largest - value if value >= 0 or largest <= _MOST + value else _MOST)
        counts[last[at]] += 1
        below += last[at] <= cell
        came += 1
        # `below` rows are in `cell` or lower: the cell moves until that is the share, by a few cells as a rule.
        needed = int(np.ceil(share * min(came, last.size)))
        while below < needed:
            cell += 1
            below += counts[cell]
        while below - counts[cell] >= needed:
            below -= counts[cell]
            cell -= 1
        late = _most(cell)
        bound = max(bound, largest - late if largest >= _LEAST + late else _LEAST)
        bounds[i] = bound
    memory[0], memory[1], memory[2], memory[3], memory[4] = largest, bound, came, cell, below
    return bounds


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _cell(late: int) -> int:
    """Return the cell of a lateness."""
    # Its four highest bits decide: as a float, it has an exponent and three bits of mantissa.
    power = 0
    while late >> (power + 4) > 0:
        power += 1
    return 8 * power + (late >> power)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _most(cell: int) -> int:
    """Return the largest lateness of a cell."""
    if cell < 16:
        return cell
    power = cell // 8 - 1
    return min(((cell - 8 * power + 1) << power) - 1, _MOST) if power < 59 else _MOST
