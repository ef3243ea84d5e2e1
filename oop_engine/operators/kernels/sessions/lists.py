"""Open runs of sessions in lists, where each group has its runs from the newest to the oldest.

Common arguments: ``slots`` int64 (n,) of groups; ``gaps`` int64 (definitions,), the narrowest first; ``table``, the
lists.
"""

# Layout       heads[slot]: the newest run of a group; older[run]: the next older one, or the next free one; -1: none.
# Invariant    Runs of a group are further apart than the least gap, the newest first.
#              Runs that definitions have emitted are older than all others of their group, and of those that as many
#              have emitted a group has one.
#              until[slot] is not above the end of any open window of the group, nor least[block] above any of these.
#              Both may be too low: they are corrected when they are read.
# Not obvious  A run is covered where a newer one is so near that the next window of both is the same: that one ends it.
#              Most tuples fit the newest run of their group, but which cannot be predicted: a block is tried without a
#              branch, and those that do not fit are tried again.
#              A walk along a list waits for memory at each run, so those of the next groups are prefetched.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.kernels.monoids import STEP_A, STEP_B, STEP_TO
from oop_engine.operators.kernels.partials import SHIFT
from oop_engine.operators.kernels.sessions.leaving import (
    BOUND_END, BOUND_FIRST, FREE_RUN, WINDOW_END, WINDOW_FIRST, WINDOW_LEVEL, WINDOW_SLOT,
)  # fmt: skip
from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = [
    "FOUND",
    "FREE",
    "FULL",
    "OPEN",
    "USED",
    "WALKED",
    "Fingers",
    "RunLists",
    "assign_runs",
    "emit_closed",
    "fingers_of",
    "list_runs",
    "open_bounds",
    "release",
]

Integers = NDArray[np.int64]
USED, OPEN, FOUND, FULL, FREE, WALKED = range(6)
FIRST, LAST = range(2)  # columns of ``times``
_NONE = -1  # ``left`` of a free run
_BLOCK = kernel_knob(__name__, "_BLOCK", 256)  # tuples
_NEAR = kernel_knob(__name__, "_NEAR", 8)  # steps along a list before the fingers are searched
_APART = kernel_knob(__name__, "_APART", 16)  # runs from one finger to the next
_FOREVER = np.iinfo(np.int64).max


class RunLists(NamedTuple):
    """The newest run of each group is ``heads[slot]``, int32, the next older one ``older[run]``, int32; -1: none.

    ``until`` int64: no open window of the group ends before; ``least`` int64 (blocks,): nor one of those of a block.
    ``times`` int64 (runs, 2): the first and the last of a run; ``of`` int32: its group; ``left`` int16: how many
    definitions have put it out, the narrowest first, -1 where it is free.  ``counts`` int64 (6,): runs in use; groups
    with runs; pairs that ``assign_runs`` has found; whether it stopped for want of free runs; the first free run, whose
    ``older`` is the next one; the steps that it has taken along lists.
    """

    heads: NDArray[np.int32]
    until: Integers
    least: Integers
    older: NDArray[np.int32]
    times: Integers
    of: NDArray[np.int32]
    left: NDArray[np.int16]
    counts: Integers


class Fingers(NamedTuple):
    """Every ``_APART``-th run of all lists, by group, the newest first, as the lists were at some moment.

    ``slots`` int32, ``times`` int64 (the first time), ``runs`` int32, all (fingers,).  A run may have been freed since,
    used again, or have got an earlier first time, so a finger counts only if its run is as it must be (``_finger``).
    """

    slots: NDArray[np.int32]
    times: Integers
    runs: NDArray[np.int32]


@njit(cache=True, nogil=True)
def fingers_of(table):
    """Return the fingers of all lists as they are now.  O(groups + runs)."""
    heads, older, spans = table.heads, table.older, table.times
    size = (table.counts[USED] + len(heads)) // _APART + 1
    slots, times, runs = np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int32)
    seen, count = np.int64(0), np.int64(0)
    # Counted over all lists: a group with few runs may have no finger, and needs none.
    for slot in range(len(heads)):
        run = heads[slot]
        while run >= 0:
            seen += 1
            if seen % _APART == 0:
                slots[count], times[count], runs[count] = slot, spans[run, FIRST], run
                count += 1
            run = older[run]
    return slots[:count], times[:count], runs[:count]


@njit(cache=True, nogil=True)
def _finger(table, fingers, slot, time, gap):
    """Return a run of a group that is newer than a time by more than a gap, near it in the list; -1: none is known."""
    slots, times, runs = fingers
    low, high = 0, len(slots)
    while low < high:
        middle = (low + high) >> 1
        if slots[middle] < slot or (slots[middle] == slot and times[middle] - gap > time):
            low = middle + 1
        else:
            high = middle
    # The fingers are as old as their page: the nearest one whose run is still the same.
    for at in range(low - 1, max(low - 1 - _NEAR, -1), -1):
        run = runs[at]
        if slots[at] != slot:
            return np.int32(-1)
        if table.of[run] == slot and table.left[run] >= 0 and table.times[run, FIRST] - gap > time:
            return run
    return np.int32(-1)


@njit(cache=True, nogil=True)
def assign_runs(table, slots, times, gap, begin, most, runs_out, pairs, fingers):
    """Assign each tuple to the run within ``gap``, the least, or to a new one; write it into ``runs_out``.

    slots, times, runs_out int64 (n,), from ``begin`` on.  Where a tuple joins two runs the older one ends: ``pairs``
    int64 (3, n) takes the steps that merge their states; runs that end are not used again here.
    Returns the tuple at which there are no free runs, or more than ``most`` steps a tuple were taken along lists, or
    n.  A tuple of the same group as the one before it that is not later goes on from there; others begin at the newest
    run, and after ``_NEAR`` steps at the nearest finger.  O(log fingers) a tuple, and O(runs behind its finger).
    """
    heads, until, block_until, older, spans, owner, left, counts = table
    used, opened, pair_count, free, steps = counts[USED], counts[OPEN], counts[FOUND], counts[FREE], -1024
    newer, run, slot, time, rest = -1, -1, -1, 0, np.empty(_BLOCK, np.int64)
    counts[FULL] = False
    for block in range(begin, len(slots), _BLOCK):
        for i in rest[: _in_newest(table, slots, times, gap, block, runs_out, rest)]:
            if slots[i] != slot or times[i] > time:
                slot, newer, run = slots[i], -1, heads[slots[i]]
            # Along the list to the first run that is not newer than the tuple by more than a gap.
            time, near = times[i], 0
            while run >= 0 and spans[run, FIRST] - gap > time:
                newer, run, near = run, older[run], near + 1
                if near == _NEAR and len(fingers.runs):
                    nearer = _finger(table, fingers, slot, time, gap)
                    if nearer >= 0 and spans[nearer, FIRST] < spans[newer, FIRST]:
                        newer, run = nearer, older[nearer]
            steps += near
            counts[FULL] = free < 0
            if counts[FULL] or steps > most * (i - begin + 1):
                counts[USED], counts[OPEN], counts[FOUND], counts[FREE] = used, opened, pair_count, free
                counts[WALKED] += steps + 1024
                return i
            if run < 0 or time > spans[run, LAST] + gap:
                # None is near: a new run, between the newer and the older one.
                new, free, used = free, older[free], used + 1
                spans[new, FIRST], spans[new, LAST] = time, time
                owner[new], left[new], older[new] = slot, 0, run
                until[slot] = min(until[slot], time + gap)
                block_until[slot >> SHIFT] = min(block_until[slot >> SHIFT], time + gap)
                if newer >= 0:
                    older[newer] = new
                else:
                    opened += heads[slot] < 0
                    heads[slot] = new
                run = new
            else:
                # It joins the run, which may come near the older one by that, and then joins it, too.
                spans[run, LAST] = max(spans[run, LAST], time)
                if time < spans[run, FIRST]:
                    spans[run, FIRST], other = time, older[run]
                    if other >= 0 and time <= spans[other, LAST] + gap:
                        spans[run, FIRST], older[run] = spans[other, FIRST], older[other]
                        # No finger leads there.
                        owner[other] = -1
                        pairs[STEP_TO, pair_count], pairs[STEP_A, pair_count] = run, other
                        pairs[STEP_B, pair_count], pair_count = run, pair_count + 1
            runs_out[i] = run
    counts[USED], counts[OPEN], counts[FOUND], counts[FREE] = used, opened, pair_count, free
    counts[WALKED] += steps + 1024
    return len(slots)


@njit(cache=True, nogil=True)
def _in_newest(table, slots, times, gap, begin, runs_out, rest):
    """Add the tuples of a block that fit the newest run of their group to it; write the others into ``rest``.

    Most fit, but which ones cannot be predicted.  So there is no branch: signs become masks here, since comparisons
    would compile to one.  A tuple whose difference wraps counts as one of the others, which are checked again.
    Returns how many these are.
    """
    heads, spans, rest_count = table.heads, table.times, 0
    for i in range(np.uintp(begin), np.uintp(min(begin + _BLOCK, len(slots)))):  # unsigned: none is below 0
        run, time = np.int64(heads[slots[i]]), times[i]
        at = np.uintp(run & ~(run >> 63))
        first, last = spans[at, FIRST], spans[at, LAST]
        outside = (run | (time - first) | (last + gap - time)) >> 63
        later = time - last
        spans[at, LAST] = last + (later & ~(later >> 63) & ~outside)
        runs_out[i], rest[rest_count] = run, i
        rest_count -= outside
    return rest_count


@njit(cache=True, nogil=True)
def emit_closed(table, slots, bounds, gaps, begin, out):
    """Emit the windows that are complete by ``bounds`` int64 (n,) of groups, from the group in place ``begin`` on.

    Runs of one window are joined; runs emitted for all ``gaps`` are freed.  Fills ``out`` int64 (8, m):
    steps to take with states (``fold_steps``), in which the result of window ``w`` is ``~w``; runs that are free; the
    slot of each window, its end, its first time, and the number of its definition.  Returns the place at which there
    was no more room, and how many steps, free runs and windows there are.  O(runs of the groups).
    """
    heads, until, _, older, times, _, left, counts = table
    steps, free, windows = 0, 0, 0
    stack, wide = np.empty(_BLOCK + 1, np.int32), len(gaps)
    for i in range(begin, len(slots)):
        if (i - begin) % _BLOCK == 0:
            stack[-1] = _prefetch(table, slots[i : i + _BLOCK])
        slot, bound, depth, run = slots[i], bounds[i], 0, heads[slots[i]]
        if until[slot] >= bound:
            continue
        # The list is from the newest on, windows are emitted from the oldest on: so it is turned round.
        while run >= 0:
            if depth + 1 == len(stack):
                stack = np.concatenate((stack, stack))
            stack[depth] = run
            depth, run = depth + 1, older[run]
        counts[OPEN] -= depth > 0
        below, earliest = -1, _FOREVER
        while depth > 0:
            run, depth = stack[depth - 1], depth - 1
            if steps + 2 * wide > out.shape[1]:
                older[run], counts[OPEN] = below, counts[OPEN] + 1
                return i, steps, free, windows
            first, last, level, end = times[run, FIRST], times[run, LAST], left[run], _FOREVER
            next_first = times[stack[depth - 1], FIRST] if depth > 0 else _FOREVER
            # Definition after definition, while windows are complete; the run that as many have emitted joins first.
            while True:
                if level > 0 and below >= 0 and left[below] == level:
                    out[STEP_TO, steps], out[STEP_A, steps], out[STEP_B, steps] = run, below, run
                    out[FREE_RUN, free] = below
                    first, below = times[below, FIRST], _freed(table, below)
                    steps, free = steps + 1, free + 1
                if level == wide:
                    break
                end = last + gaps[level]
                if end >= bound or (level > 0 and next_first <= end):
                    break
                out[STEP_TO, steps], out[STEP_A, steps], out[STEP_B, steps] = ~windows, run, -1
                out[WINDOW_SLOT, windows], out[WINDOW_END, windows] = slot, end
                out[WINDOW_FIRST, windows], out[WINDOW_LEVEL, windows] = first, level
                steps, windows, level = steps + 1, windows + 1, level + 1
            if level == wide:
                out[FREE_RUN, free], free = run, free + 1
                _freed(table, run)
                continue
            if next_first > end:
                earliest = min(earliest, end)
            times[run, FIRST], left[run], older[run], below = first, level, below, run
        heads[slot], until[slot] = below, earliest
        counts[OPEN] += below >= 0
    return len(slots), steps, free, windows


@njit(cache=True, nogil=True)
def _prefetch(table, slots):
    """Prefetch the two newest runs of some groups; the number returned has no meaning.

    To walk along lists is to wait for memory, one run after the other; here no read waits for another group's.
    """
    heads, older, times, left, seen = table.heads, table.older, table.times, table.left, 0
    for slot in slots:
        run = np.uintp(max(heads[slot], 0))  # unsigned: no index is below 0
        below = np.uintp(max(older[run], 0))
        seen ^= times[run, FIRST] ^ left[run] ^ times[below, FIRST] ^ left[below] ^ older[below]
    return seen & 1


@njit(cache=True, nogil=True)
def _freed(table, run):
    """Free a run; return the next older one."""
    older, counts = table.older, table.counts
    # Free runs are a list, too: the last one that was freed is used again first, while it is in the cache.
    below, older[run] = older[run], counts[FREE]
    table.left[run], counts[FREE] = _NONE, run
    counts[USED] -= 1
    return below


@njit(cache=True, nogil=True)
def _open_bounds(table, slot, gaps):
    """Return the end of the earliest open window of a group, and its first time; the largest integer: none."""
    times, run, end, first = table.times, table.heads[slot], _FOREVER, _FOREVER
    # From the newest run on: an older one whose next window ends behind the begin of a newer one is covered.
    while run >= 0:
        stop = times[run, LAST] + gaps[table.left[run]]
        if stop < first:  # else it is covered
            end = min(end, stop)
        first, run = times[run, FIRST], table.older[run]
    table.until[slot] = end
    return end, first


@njit(cache=True, nogil=True)
def open_bounds(table, slots, gaps, out):
    """Return the least end of an open window of some groups, and the least first time; the largest integer: none.

    ``out`` int64 (2, n): both of each group; or (2, 0): the least end alone is asked for.
    """
    least, begin, each, until = _FOREVER, _FOREVER, out.shape[1] > 0, table.until
    for i in range(len(slots)):
        if each or until[slots[i]] < least:  # else its windows end later for sure
            end, first = _open_bounds(table, slots[i], gaps)
            least, begin = min(least, end), min(begin, first)
            if each:
                out[BOUND_END, i], out[BOUND_FIRST, i] = end, first
    return least, begin


@njit(cache=True, nogil=True)
def release(table, runs):
    """Free ``runs``, which are in no list any more."""
    for run in runs:
        _freed(table, run)


@njit(cache=True, nogil=True)
def list_runs(table, slots, rows):
    """Write the runs of some groups into ``rows``: by group, the newest first; return how many.  O(these)."""
    heads, older, runs = table.heads, table.older, 0
    for slot in slots:
        run = heads[slot]
        while run >= 0:
            rows[runs] = run
            run, runs = older[run], runs + 1
    return runs
