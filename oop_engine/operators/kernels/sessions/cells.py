"""Open runs of sessions in cells of time, each as long as the least gap.

Common arguments: ``slots`` int64 (n,) of groups; ``gaps`` int64 (definitions,), the narrowest first; ``cells``.
"""

# Layout       spans[2 * (place * groups + slot)]: the first time, and behind it the last one; first > last: no tuples.
#              place cell % ring     cells LOW to TOP, side by side: a ring
#              place ring + level-1  the run of a group that `level` definitions have emitted, and a wider one has not
# Invariant    Two tuples of a group in one cell are at most a gap apart, so they are of one run.
#              Runs of cells c and c + 1 are one where first[c + 1] - last[c] <= gap; those of c and c + 2 never are:
#              a whole cell lies between.  So a run is a chain of neighbours, and ends where the next one is too far.
#              A run may begin before its cell, once no tuple can come there any more: then it was carried on.
#              until[slot] is not above the end of any open window of the group; it may be too low.
#              Nor is least[block], of the 2**SHIFT groups of a block.
# Not obvious  A pass lists groups without a branch, the next one works on the list: which groups have tuples in a
#              cell cannot be predicted.  Blocks of groups stay in the first cache over all cells.
#              Unsigned indices: Numba tests signed ones for numbers below 0.
#              A run that definitions have emitted is covered where a newer one is so near that the next window of both
#              is the same; that one ends it.
# Tried        Group by group with a branch for each cell: 1.8 times as long.
#              Not tried: no levels, runs in their cells until the widest definition has emitted them.  A gap of a
#              second beside one of an hour would need 3,600 cells a group.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.kernels.monoids import STEP_A, STEP_B, STEP_TO
from oop_engine.operators.kernels.partials import SHIFT
from oop_engine.operators.kernels.sessions.leaving import BOUND_END, BOUND_FIRST, FREE_RUN
from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = [
    "LOW",
    "OPEN",
    "TOP",
    "USED",
    "Cells",
    "advance",
    "assign_cells",
    "emit_closed",
    "list_runs",
    "open_bounds",
]

Integers = NDArray[np.int64]
USED, OPEN, LOW, TOP = range(4)
_BLOCK = kernel_knob(__name__, "_BLOCK", 256)  # tuples, or groups
_FOREVER = np.iinfo(np.int64).max
_ONE = np.uintp(1)
_BLOCKS = np.uintp(SHIFT)


class Cells(NamedTuple):
    """Cells of time, a ring of them: cell ``c`` is the times from ``c`` least gaps on.

    ``spans`` int64 (2 x places x groups,): the first and the last time of the tuples in each, the first the greater
    where there are none.  Place ``c % ring`` is of cell ``c``; behind the ring are those of the runs that 1, 2, ...
    definitions have emitted.  The row of a group in a place is ``place * groups + slot``.
    Runs in a cell may begin before it, where no tuple can come before the cell any more.
    ``until`` int64 (groups,): no open window of the group ends before; the largest integer: it has none.
    ``least`` int64 (blocks,): the same of blocks of groups, as in ``slot_times``.
    ``counts`` int64 (4,): rows in use; groups that have some; the lowest cell and the highest one there may be.
    """

    spans: Integers
    until: Integers
    least: Integers
    counts: Integers


@njit(cache=True, nogil=True)
def assign_cells(cells, slots, times, gap, ring, rows_out):
    """Assign each tuple to its cell; write its row into ``rows_out`` int64 (n,).  All cells are in the ring.

    The first and last time are written without a branch; only the first tuple of a cell reads its group.
    """
    spans, until, block_until, counts = cells
    groups, used, opened, fresh = len(until), counts[USED], counts[OPEN], np.empty(_BLOCK, np.int64)
    begin, shift, part = counts[LOW] * gap, counts[LOW] % ring, 1 / gap
    for block in range(0, len(slots), _BLOCK):
        block_slots, block_times, rows = (
            slots[block : block + _BLOCK],
            times[block : block + _BLOCK],
            rows_out[block : block + _BLOCK],
        )
        for i in range(len(block_times)):  # vector instructions
            away = block_times[i] - begin
            cell = np.int64(away * part)
            rest = away - cell * gap
            cell += np.int64(rest >= gap) - np.int64(rest < 0) + shift
            rows[i] = (cell - ring if cell >= ring else cell) * groups + block_slots[i]
        fresh_count = 0
        for i in range(len(block_times)):
            at, time = np.uintp(rows[i]) << _ONE, block_times[i]  # unsigned: none is below 0
            first, last = spans[at], spans[at | _ONE]
            spans[at], spans[at | _ONE] = min(first, time), max(last, time)
            fresh[fresh_count] = i
            fresh_count += first > last
        for i in fresh[:fresh_count]:
            slot = block_slots[i]
            opened += until[slot] == _FOREVER
            until[slot] = min(until[slot], block_times[i] + gap)
            of_block = np.uintp(slot) >> _BLOCKS
            # Seldom: a branch is sooner than to store each time.
            if block_times[i] + gap < block_until[of_block]:
                block_until[of_block] = block_times[i] + gap
        used += fresh_count
    counts[USED], counts[OPEN] = used, opened


@njit(cache=True, nogil=True)
def emit_closed(cells, slots, bounds, gaps, begin, out):
    """Emit the windows that are complete by ``bounds``, as ``lists.emit_closed`` does: by blocks of groups and cells.

    A block has as many groups as ``out`` has room for, whatever they emit.
    """
    spans, until, _, counts = cells
    wide, low, top, gap = len(gaps), counts[LOW], counts[TOP], gaps[0]
    done, i = np.zeros(3, np.int64), begin
    # The groups whose runs a level emits, and how many; the last row is scratch for the runs that go on.
    lists = np.empty((wide + 1, _BLOCK), np.int64), np.zeros(wide, np.int64)
    most = wide * len(spans) // max(len(until), 1) + 2 * wide  # steps of a group
    while i < len(slots):
        block_size = min(_BLOCK, (out.shape[1] - done[0]) // most)
        if block_size == 0:
            break
        block_slots, block_bounds, bound = slots[i : i + block_size], bounds[i : i + block_size], bounds[i]
        for group_bound in block_bounds:
            bound = max(bound, group_bound)
        for cell in range(low, max(min(bound // gap, top + 1), low)):  # nothing of a later one is complete
            _close_cell(cells, block_slots, block_bounds, cell, gaps, lists, out, done)
        _close_emitted(cells, block_slots, block_bounds, gaps, lists, out, done)
        i += len(block_slots)
    return i, done[0], done[1], done[2]


@njit(cache=True, nogil=True)
def _base(cells, place):
    """Return where in ``spans`` a place begins."""
    return np.uintp(2 * place * len(cells.until))


@njit(cache=True, nogil=True)
def _close_cell(cells, slots, bounds, cell, gaps, lists, out, done):
    """Merge runs that go on from a cell which gets no more tuples into the next one; emit complete ones."""
    spans, until, _, counts = cells
    wide, gap, go_on, ends, is_last = len(gaps), gaps[0], 0, 0, cell == counts[TOP]
    ring = len(spans) // (2 * len(until)) + 1 - wide
    here, there, on, end = (
        _base(cells, cell % ring),
        _base(cells, (cell + 1) % ring),
        lists[0][wide],
        lists[0][0],
    )
    next_start = (cell + 1) * gap
    # Which runs go on into the next cell, and which end here: listed without a branch, then worked off.
    for i in range(len(slots)):
        slot, bound = np.uintp(slots[i]) << _ONE, bounds[i]
        first, stop, following = spans[here + slot], spans[(here + slot) | _ONE] + gap, spans[there + slot]
        full, joined = first < stop, (following <= stop) & (not is_last)
        on[go_on] = end[ends] = i
        go_on += full & joined & (next_start <= bound)
        ends += full & (not joined) & (stop < bound)
    to, a, b, free = out[STEP_TO], out[STEP_A], out[STEP_B], out[FREE_RUN]
    steps, freed = done[0], done[1]
    for i in on[:go_on]:
        slot = np.uintp(slots[i]) << _ONE
        row, at = (here + slot) >> _ONE, there + slot
        to[steps], a[steps], b[steps], free[freed] = at >> _ONE, row, at >> _ONE, row
        spans[at], spans[here + slot], spans[(here + slot) | _ONE] = spans[here + slot], _FOREVER, -_FOREVER
        steps, freed = steps + 1, freed + 1
    done[0], done[1], lists[1][0] = steps, freed, ends
    counts[USED] -= go_on
    _emit_level(cells, slots, cell % ring, 0, gaps, lists, out, done)


@njit(cache=True, nogil=True)
def _emit_level(cells, slots, place, level, gaps, lists, out, done):
    """Emit the windows of the runs that are listed for ``level``, all in one place; the runs go on to the next level.

    A run that is there and that they do not cover is emitted first.
    """
    (spans, until, _, _), (listed, lengths) = cells, lists
    wide = len(gaps)
    ring = len(spans) // (2 * len(until)) + 1 - wide
    for up in range(level + 1, wide):
        here, there, count = (
            _base(cells, place if up == level + 1 else ring + up - 2),
            _base(cells, ring + up - 1),
            0,
        )
        into = listed[up]
        for i in listed[up - 1, : lengths[up - 1]]:
            slot = np.uintp(slots[i]) << _ONE
            stop = spans[(there + slot) | _ONE] + gaps[up]
            into[count] = i
            count += (spans[there + slot] < stop) & (spans[here + slot] > stop)
        lengths[up] = count
    for up in range(wide - 1, level - 1, -1):
        here, last_one = _base(cells, place if up == level else ring + up - 1), up + 1 == wide
        there = here if last_one else _base(cells, ring + up)
        _emit_into(cells, slots, (here, there, up), gaps, listed[up, : lengths[up]], out, done)


@njit(cache=True, nogil=True)
def _emit_into(cells, slots, places, gaps, listed, out, done):
    """Emit the windows of the listed runs, which move to another place; to the same one: they are dropped."""
    spans, _, _, counts = cells
    (here, there, level), (steps, freed, windows) = places, done
    to, a, b, free, window_slots, ends, starts, levels = out
    for i in listed:
        slot = np.uintp(slots[i]) << _ONE
        at, into = here + slot, there + slot
        row, first, last = at >> _ONE, spans[at], spans[at | _ONE]
        to[steps], a[steps], b[steps], steps = ~windows, row, -1, steps + 1
        window_slots[windows], ends[windows], starts[windows] = slots[i], last + gaps[level], first
        levels[windows], windows = level, windows + 1
        free[freed] = row
        # States of others are written over when something comes there, which may be now.
        freed += level == 0
        spans[at], spans[at | _ONE] = _FOREVER, -_FOREVER
        if here != there:
            first_there = spans[into]
            full = first_there <= spans[into | _ONE]
            to[steps], a[steps], b[steps], steps = (
                into >> _ONE,
                row,
                (into >> _ONE) if full else -1,
                steps + 1,
            )
            spans[into], spans[into | _ONE] = min(first, first_there), last
            counts[USED] += not full
    counts[USED] -= len(listed)
    done[0], done[1], done[2] = steps, freed, windows


@njit(cache=True, nogil=True)
def _close_emitted(cells, slots, bounds, gaps, lists, out, done):
    """Emit complete windows of the runs that definitions have emitted; write the next end of each group."""
    spans, until, _, counts = cells
    wide, gap = len(gaps), gaps[0]
    ring = len(spans) // (2 * len(until)) + 1 - wide
    end, next_first, bound = np.full(len(slots), _FOREVER), np.full(len(slots), _FOREVER), bounds[0]
    for group_bound in bounds:
        bound = min(bound, group_bound)
    low, top = counts[LOW], counts[TOP]
    for cell in range(top, max(min(bound // gap, top + 2), low + 1) - 2, -1):  # earlier ones are empty
        here = _base(cells, cell % ring)
        for i in range(len(slots)):
            at = here + (np.uintp(slots[i]) << _ONE)
            first, stop = spans[at], spans[at | _ONE] + gap
            end[i] = stop if (first < stop) & (next_first[i] > stop) else end[i]
            next_first[i] = min(first, next_first[i])
    for level in range(1, wide):
        here, count, listed = _base(cells, ring + level - 1), 0, lists[0][level]
        for i in range(len(slots)):
            at = here + (np.uintp(slots[i]) << _ONE)
            stop = spans[at | _ONE] + gaps[level]
            listed[count] = i
            count += (spans[at] < stop) & (stop < bounds[i]) & (next_first[i] > stop)
        lists[1][level] = count
        _emit_level(cells, slots, ring + level - 1, level, gaps, lists, out, done)
        for i in range(len(slots)):
            at = here + (np.uintp(slots[i]) << _ONE)
            first, stop = spans[at], spans[at | _ONE] + gaps[level]
            end[i] = stop if (first < stop) & (next_first[i] > stop) & (stop < end[i]) else end[i]
            next_first[i] = min(first, next_first[i])
    for i in range(len(slots)):
        counts[OPEN] -= (until[slots[i]] < _FOREVER) & (end[i] == _FOREVER)
        until[slots[i]] = end[i]


@njit(cache=True, nogil=True)
def advance(cells, gap, ring, groups, stop, steps):
    """Merge runs that go on from cells below ``stop``, to which no tuple can come any more, into the next one.

    The first cell in which a run ends, if not ``stop``, is the lowest one then.  ``groups``: how many there are.
    Writes a step for each merge, in the order of cells, into ``steps`` int64 (3, rows in use); returns how many.
    O(cells x groups).
    """
    spans, _, _, counts = cells
    merges, ends, (to, a, b) = 0, False, steps
    while counts[LOW] < stop and not ends:
        here, there = _base(cells, counts[LOW] % ring), _base(cells, (counts[LOW] + 1) % ring)
        for slot in range(np.uintp(0), np.uintp(2 * groups), np.uintp(2)):
            row, at = here + slot, there + slot
            first, until, following = spans[row], spans[row | _ONE] + gap, spans[at]
            on = (first < until) & (following <= until)
            ends |= (first < until) & (following > until)
            if on:
                to[merges], a[merges], b[merges] = at >> _ONE, row >> _ONE, at >> _ONE
                merges += 1
                spans[at], spans[row], spans[row | _ONE] = first, _FOREVER, -_FOREVER
        counts[LOW] += not ends
    counts[USED] -= merges
    return merges


@njit(cache=True, nogil=True)
def _open_bounds(cells, slot, gaps):
    """Return the end of the earliest open window of a group, and its first time; the largest integer: none."""
    spans, until, _, counts = cells
    groups, wide, low = len(until), len(gaps), counts[LOW]
    ring, end, begin, stop, level = len(spans) // (2 * groups) + 1 - wide, _FOREVER, _FOREVER, _FOREVER, -1
    for place in range(1 - wide, counts[TOP] - low + 1):
        row = (ring - 1 - place if place < 0 else (low + place) % ring) * groups + slot
        first = spans[2 * row]
        if first > spans[2 * row + 1]:
            continue
        begin = min(begin, first)
        if first > stop:  # else it is covered, or goes on
            end = min(end, stop)
            if level == 0:
                break
        level = max(-place, 0)
        stop = spans[2 * row + 1] + gaps[level]
    else:
        end = min(end, stop)
    until[slot] = end
    return end, begin


@njit(cache=True, nogil=True)
def open_bounds(cells, slots, gaps, out):
    """Return the least end of an open window of some groups, and the least first time; the largest integer: none.

    ``out`` int64 (2, n): both of each group; or (2, 0): the least end alone is asked for.
    """
    least, begin, each, until = _FOREVER, _FOREVER, out.shape[1] > 0, cells.until
    for i in range(len(slots)):
        if each or until[slots[i]] < least:  # else its windows end later for sure
            end, first = _open_bounds(cells, slots[i], gaps)
            least, begin = min(least, end), min(begin, first)
            if each:
                out[BOUND_END, i], out[BOUND_FIRST, i] = end, first
    return least, begin


@njit(cache=True, nogil=True)
def list_runs(cells, slots, gaps, rows, begins, left):
    """Write the rows in use of some groups into ``rows``, the newest first of each; return how many rows and runs.

    begins, left int64: where each run begins, and how many definitions have put it out.  O(groups x cells).
    """
    spans, until, _, counts = cells
    groups, wide, low, listed, runs = len(until), len(gaps), counts[LOW], 0, 0
    ring = len(spans) // (2 * max(groups, 1)) + 1 - wide
    for slot in slots:
        newer = _FOREVER
        for place in range(counts[TOP] - low, -wide, -1):
            row = (ring - 1 - place if place < 0 else (low + place) % ring) * groups + slot
            if until[slot] == _FOREVER or spans[2 * row] > spans[2 * row + 1]:
                continue
            if place < 0 or newer > spans[2 * row + 1] + gaps[0]:
                begins[runs], left[runs], runs = listed, max(-place, 0), runs + 1
            rows[listed], newer, listed = row, spans[2 * row], listed + 1
    return listed, runs
