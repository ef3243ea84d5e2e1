"""The ring of panes: how windows are put together from it (where tuples go: ``places.py``).

A group's windows are put together in order, by two stacks.  A window is one cell of the *front* and the *back*, however
many panes it has.  When its start passes the turn, the panes of the window become the new front.  Plans only write down
the steps (``monoids.py``); loops combine states (``loops.py``).

Source: van Herk 1992; Tangwongsan, Hirzel, Schneider, DEBS 2017 (two stacks).
"""

# Layout       cells[row * groups + slot]  row = row_of(geometry, pane): a ring, a pane a row, a group a column
#              cells[(last + 1) * groups + slot]  the back of a group
#              turns[4, groups]            TURN  the first pane that is not in the front; NEVER: there are no stacks
#                                          DONE  the first pane that is in neither front nor back
#                                          FRONT the first pane of the front with tuples; TURN: none is left
#                                          BACK  1 if the back holds something
#              spans, counts               as of partials.py
#              results[2, room]            RESULT_SLOT, RESULT_WINDOW
#              ranges[3, n]                RANGE_SLOT; RANGE_FIRST to RANGE_STOP (exclusive): windows of the slot
# Invariant    A cell without tuples holds the state of no values if its pane is from low to high and a window that is
#              open still needs it; else it may hold any state.
#              For a pane p of the front with tuples, cell[p] has p to TURN - 1 together; the back has TURN to DONE - 1.
#              So window [a, DONE) is cell[FRONT] and the back, once FRONT is the first such pane from a on.
#              No tuple comes to a pane of the front or the back: a window with that pane has closed, so it is late.
# Not obvious  row_of has no division: the ring need not be a power of two, and `pane` is at most one round away.
#              Numbers of tuples go through the steps as states do, so those of a front's cell tell that it is in use.
#              Cells are listed without a branch: the next one overwrites a cell that is not in use.
# Tried        Group by group where most groups have tuples in most panes: ten times as long as row by row
#              (pane_rows.py); closing the windows of W2 took 293 ms, and takes 72.
#              Groups that close are clipped and counted here: passes of NumPy took 4 ns a tuple more (W3).

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oop_engine.operators.kernels.monoids import STEP_A, STEP_B, STEP_TO
from oop_engine.operators.kernels.partials import ALIVE, HIGH, LOW, LOWEST, NO_WINDOW, SHIFT, settle
from oop_engine.system.kernel import njit

__all__ = [
    "BACK", "DONE", "FRONT", "RANGE_FIRST", "RANGE_SLOT", "RANGE_STOP", "RESULT_SLOT", "RESULT_WINDOW", "TURN",
    "Geometry", "between", "clipped", "close_below", "closing", "forget", "plan", "read", "reopen", "reopen_all",
    "row_of", "step_levels", "used",
]  # fmt: skip

NEVER = np.iinfo(np.int64).min
TURN, DONE, FRONT, BACK = range(4)
RESULT_SLOT, RESULT_WINDOW = range(2)
RANGE_SLOT, RANGE_FIRST, RANGE_STOP = range(3)


class Geometry(NamedTuple):
    """Windows in panes and the ring's measures, all plain integers.

    Window ``w`` has the panes ``(w + 1) * step - length`` to ``(w + 1) * step`` (exclusive);
    panes ``low`` to ``high`` (inclusive) may have cells, of the slots below ``groups``;
    rows are numbered up to ``last``, and pane ``low`` is row ``first``.
    """

    step: int
    length: int
    low: int
    high: int
    last: int
    groups: int
    first: int


@njit(cache=True, nogil=True)
def row_of(geometry, pane):
    """Return the row of a pane from ``low`` to ``high``, without a division or a branch."""
    at = geometry.first + (pane - geometry.low)
    return at - (geometry.last + 1) * np.int64(at > geometry.last)


@njit(cache=True, nogil=True)
def used(geometry, tuples, cells, panes, slots):
    """Write which cells have something, and their panes and slots, int64 (cells in use,); return how many."""
    groups, count = geometry.groups, 0
    for pane in range(geometry.low, geometry.high + 1):
        first = row_of(geometry, pane) * groups
        for slot in range(groups):
            if tuples[first + slot]:
                cells[count], panes[count], slots[count] = first + slot, pane, slot
                count += 1
    return count


@njit(cache=True, nogil=True)
def _turn(geometry, tuples, turns, slot, begin, end, steps, used):
    """Make panes ``begin`` to ``end`` the front; return the number of steps."""
    # From the last pane down, so that each is combined with all behind it; panes without tuples are passed over.
    above, front = -1, end
    for pane in range(end - 1, begin - 1, -1):
        cell = row_of(geometry, pane) * geometry.groups + slot
        if tuples[cell]:
            if above >= 0:
                steps[STEP_TO, used], steps[STEP_A, used], steps[STEP_B, used] = cell, cell, above
                used += 1
            above, front = cell, pane
    turns[TURN, slot], turns[DONE, slot], turns[FRONT, slot], turns[BACK, slot] = end, end, front, 0
    return used


@njit(cache=True, nogil=True)
def _slide(geometry, tuples, turns, slot, begin, end, steps, used):
    """Move the begin of the front to ``begin`` and the end of the back to ``end``; return the number of steps."""
    groups = geometry.groups
    back = (geometry.last + 1) * groups + slot
    # The back: add the panes that come in.  Its state from before the last turn is overwritten, not emptied.
    for pane in range(turns[DONE, slot], end):
        cell = row_of(geometry, pane) * groups + slot
        if tuples[cell]:
            steps[STEP_TO, used], steps[STEP_A, used], steps[STEP_B, used] = (
                back,
                cell,
                back if turns[BACK, slot] else -1,
            )
            turns[BACK, slot] = 1
            used += 1
    turns[DONE, slot] = max(turns[DONE, slot], end)
    # The front: drop the panes that go out, and those without tuples behind them.
    front = max(turns[FRONT, slot], begin)
    while front < turns[TURN, slot] and not tuples[row_of(geometry, front) * groups + slot]:
        front += 1
    turns[FRONT, slot] = front
    return used


@njit(cache=True, nogil=True)
def plan(geometry, tuples, turns, slots, first, stop, begin, steps, results, freed):
    """Write down how windows ``first[i]`` to ``stop[i]`` (exclusive) of ``slots[i]`` come about.

    tuples integers (cells,), not changed: the steps are taken with them as with the parts.  turns int64
    (4, groups): turn, done, lowest pane of the front, whether there is a back.  steps int64 (3, room);
    results int64 (2, room): slot and window of those with a tuple; freed int64 (room,): cells that no later
    window needs, to be emptied after the steps.  Starts at ``begin``; returns the group at which there was
    no more room, and how many steps, results and freed cells there are.  O(panes passed), amortized.
    """
    step, length, low, high, last, groups, _ = geometry
    used, windows, freed_cells = np.int64(0), 0, 0
    for i in range(begin, len(slots)):
        slot = slots[i]
        # A pane goes into a front once and into the back once; a window is a step more.  A group is planned whole.
        panes = min(high - low + 1, (stop[i] - first[i] - 1) * step + length)
        if max(used, freed_cells) + stop[i] - first[i] + 2 * panes > steps.shape[1]:
            return i, used, windows, freed_cells
        for wid in range(first[i], stop[i]):
            # Move the stacks to the window.
            start, end = max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)
            if start >= turns[TURN, slot]:
                used = _turn(geometry, tuples, turns, slot, start, end, steps, used)
            else:
                used = _slide(geometry, tuples, turns, slot, start, end, steps, used)
            # Combine one cell of the front with the back, or copy the one that there is.
            front = -1
            if turns[FRONT, slot] < turns[TURN, slot]:
                front = row_of(geometry, turns[FRONT, slot]) * groups + slot
            back = (last + 1) * groups + slot if turns[BACK, slot] else -1
            if front < 0 and back < 0:
                continue
            steps[STEP_TO, used], steps[STEP_A, used], steps[STEP_B, used] = (
                ~windows,
                max(front, back),
                min(front, back),
            )
            if front >= 0 and back >= 0:
                steps[STEP_A, used], steps[STEP_B, used] = front, back
            results[RESULT_SLOT, windows], results[RESULT_WINDOW, windows] = slot, wid
            used, windows = used + 1, windows + 1
        # Free the panes before the first window that stays open.
        start, end = (first[i] + 1) * step - length, (stop[i] + 1) * step - length
        for pane in range(max(start, low), min(end, high + 1)):
            cell = row_of(geometry, pane) * groups + slot
            freed[freed_cells] = cell
            freed_cells += tuples[cell] != 0
    return len(slots), used, windows, freed_cells


@njit(cache=True, nogil=True)
def read(geometry, tuples, slots, first, stop, begin, steps, results):
    """Write down how windows come about from panes that no stack is in; arguments as of ``plan``.

    The back of a group is room to work in.  Starts at ``begin``; returns the group at which there was no more room, and
    how many steps and results there are.  O(panes of windows).
    """
    step, length, low, high, last, groups, _ = geometry
    used, windows = 0, 0
    for i in range(begin, len(slots)):
        slot = slots[i]
        if used + (stop[i] - first[i]) * min(high - low + 1, length) > steps.shape[1]:
            return i, used, windows
        back = (last + 1) * groups + slot
        for wid in range(first[i], stop[i]):
            # The last pane is pending, so that its combination goes to the result and not through the back.
            so_far, pending = -1, -1
            for pane in range(max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)):
                cell = row_of(geometry, pane) * groups + slot
                if tuples[cell] and so_far >= 0:
                    if pending >= 0:
                        steps[STEP_TO, used], steps[STEP_A, used], steps[STEP_B, used] = back, so_far, pending
                        used, so_far = used + 1, back
                    pending = cell
                elif tuples[cell]:
                    so_far = cell
            if so_far >= 0:
                steps[STEP_TO, used], steps[STEP_A, used], steps[STEP_B, used] = ~windows, so_far, pending
                results[RESULT_SLOT, windows], results[RESULT_WINDOW, windows] = slot, wid
                used, windows = used + 1, windows + 1
    return len(slots), used, windows


@njit(cache=True, nogil=True)
def forget(geometry, tuples, slots, first, stop):
    """Clear the tuple counts of ``slots`` in panes ``first[i]`` to ``stop[i]`` (exclusive); return how many cells.

    O(panes that there are of these).
    """
    forgotten = 0
    for i in range(len(slots)):
        if slots[i] >= geometry.groups:  # it has none
            continue
        for pane in range(max(first[i], geometry.low), min(stop[i], geometry.high + 1)):
            cell = row_of(geometry, pane) * geometry.groups + slots[i]
            forgotten += tuples[cell] != 0
            tuples[cell] = 0
    return forgotten


@njit(cache=True, nogil=True)
def closing(spans, slots, cuts, closing_slots, low, stop, after):
    """Write which of ``slots`` have windows below their cuts, and from which to which (exclusive); return how many.

    ``after``: their lowest open window then, or NO_WINDOW.  slots, cuts, found, low, stop, after int64 (n,).
    """
    many = 0
    for i in range(len(slots)):
        first, last = spans[slots[i], LOW], spans[slots[i], HIGH]
        if first < cuts[i] and first != NO_WINDOW:
            closing_slots[many], low[many] = slots[i], first
            stop[many] = cuts[i] if cuts[i] <= last else last + 1
            after[many] = cuts[i] if cuts[i] <= last else NO_WINDOW
            many += 1
    return many


@njit(cache=True, nogil=True)
def between(spans, slots, low, stop, ranges):
    """Write which of ``slots`` have open windows from ``low`` to ``stop`` (exclusive), and from which to which (also).

    slots, low, stop int64 (n,), of groups that may be unknown; ranges int64 (3, n), written.  Returns how many.
    """
    many = 0
    for i in range(len(slots)):
        if slots[i] < len(spans):
            first, last = max(spans[slots[i], LOW], low[i]), min(stop[i], spans[slots[i], HIGH] + 1)
            if first < last:  # of a group without a window the lowest one is above all
                ranges[RANGE_SLOT, many], ranges[RANGE_FIRST, many], ranges[RANGE_STOP, many] = (
                    slots[i],
                    first,
                    last,
                )
                many += 1
    return many


@njit(cache=True, nogil=True)
def clipped(slots, low, stop, low_limit, stop_limit, groups, ranges):
    """Write which slots below ``groups`` have windows from ``low_limit`` to ``stop_limit``, and which (exclusive).

    slots, low, stop int64 (n,); ranges int64 (3, n), written.  Returns how many there are, the lowest window, the first
    one behind all, and how many windows they have.
    """
    many, lowest, end, windows = 0, stop_limit, low_limit, 0
    for i in range(len(slots)):
        first, last = max(low[i], low_limit), min(stop[i], stop_limit)
        if first < last and slots[i] < groups:
            ranges[RANGE_SLOT, many], ranges[RANGE_FIRST, many], ranges[RANGE_STOP, many] = (
                slots[i],
                first,
                last,
            )
            many += 1
            lowest, end, windows = min(lowest, first), max(end, last), windows + last - first
    return many, lowest, end, windows


@njit(cache=True, nogil=True)
def reopen(spans, block_lows, slots, low, counts):
    """Note that the lowest open window of ``slots`` is now ``low``, both int64 (n,), or NO_WINDOW.

    counts int64 (3,), as in ``Table``: how many groups have windows, and the lowest one, are corrected, and the blocks.
    O(slots + blocks).
    """
    alive = counts[ALIVE]
    for i in range(len(slots)):
        alive += np.int64(low[i] != NO_WINDOW) - np.int64(spans[slots[i], LOW] != NO_WINDOW)
        spans[slots[i], LOW] = low[i]
        if low[i] == NO_WINDOW:
            spans[slots[i], HIGH] = NEVER
    counts[ALIVE], counts[LOWEST] = alive, settle(spans, block_lows, slots)


@njit(cache=True, nogil=True)
def close_below(spans, block_lows, slots, stop, counts):
    """Note that windows of ``slots`` below ``stop``, both int64 (n,), are closed.  O(slots + blocks)."""
    low = np.empty_like(stop)
    for i in range(len(slots)):
        # True also of a group without a window, whose highest one is the least integer.
        over = spans[slots[i], HIGH] < stop[i]
        low[i] = NO_WINDOW if over else max(spans[slots[i], LOW], stop[i])
    reopen(spans, block_lows, slots, low, counts)


@njit(cache=True, nogil=True)
def reopen_all(spans, block_lows, cut, counts):
    """Note that all groups have closed their windows below ``cut``.  O(groups)."""
    alive, lowest = 0, NO_WINDOW
    block_lows[:] = NO_WINDOW
    for i in range(len(spans)):
        # True also of a group without a window, whose highest one is the least integer.
        over = spans[i, HIGH] < cut
        low = NO_WINDOW if over else max(spans[i, LOW], cut)
        spans[i, LOW] = low
        spans[i, HIGH] = NEVER if over else spans[i, HIGH]
        alive += low != NO_WINDOW
        block_lows[i >> SHIFT], lowest = min(block_lows[i >> SHIFT], low), min(lowest, low)
    counts[ALIVE], counts[LOWEST] = alive, lowest


@njit(cache=True, nogil=True)
def step_levels(to, a, b, rows, level):
    """Write the level of each step of ``plan``: those of a level touch different rows; return how many.

    A step comes behind those that write what it reads, and those that read or write what it writes.  O(steps + rows).
    """
    # Of each row the last level that writes it, and the last one that reads it; levels count from 1 on.
    write_level, read_level = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    for i in range(len(to)):
        after = write_level[a[i]]
        if b[i] >= 0:
            after = max(after, write_level[b[i]])
        if to[i] >= 0:
            after = max(after, write_level[to[i]], read_level[to[i]])
        level[i] = after + 1
        read_level[a[i]] = max(read_level[a[i]], after + 1)
        if b[i] >= 0:
            read_level[b[i]] = max(read_level[b[i]], after + 1)
        if to[i] >= 0:
            write_level[to[i]] = after + 1
    return len(to)
