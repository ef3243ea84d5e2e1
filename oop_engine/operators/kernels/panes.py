# Long: where a cell is, and all that goes from cell to cell.
"""The ring of panes: how windows are put together from it (where tuples go: ``places.py``).

A pane is a row of cells, a cell a group: cell ``row_of(geometry, pane) * groups + slot``.  Rows are used again, as in a
ring.  Behind the cells, at ``(last + 1) * groups + slot``, is each group's *back*.  A cell that nothing is in holds the
state of no values.

A group's windows are put together in order, by two stacks.  The *front* are the panes
below ``turn``: their cells hold what they and all later panes of the front have together.
The back holds the panes from ``turn`` to ``done`` together.  So a window is one cell of
the front and the back, however many panes it has.  When its start passes the turn, the
panes of the window become the new front.

Spans int64 (groups or more, 2) are the lowest open and the highest window of each group; one without a window has
NO_WINDOW and the least integer.

Combining is left to ``oop_engine.operators.kernels.monoids``; ``plan`` only writes down the steps:
(to, a, b), cells all three; b -1: copy a; to negative: into result ``~to``.

Source: van Herk 1992; Tangwongsan, Hirzel, Schneider, DEBS 2017 (two stacks).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oop_engine.operators.kernels.partials import NO_WINDOW
from oop_engine.system.kernel import njit

__all__ = [
    "Geometry",
    "clipped",
    "closing",
    "forget",
    "plan",
    "read",
    "reopen",
    "reopen_all",
    "reopen_some",
    "row_of",
    "step_levels",
    "used",
]

NEVER = np.iinfo(np.int64).min


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
    groups, found = geometry.groups, 0
    for pane in range(geometry.low, geometry.high + 1):
        first = row_of(geometry, pane) * groups
        for slot in range(groups):
            if tuples[first + slot]:
                cells[found], panes[found], slots[found] = first + slot, pane, slot
                found += 1
    return found


@njit(cache=True, nogil=True)
def _turn(geometry, tuples, turns, slot, begin, end, steps, used):
    """Make panes ``begin`` to ``end`` the front; return how many steps there are then."""
    above, front = -1, end
    for pane in range(end - 1, begin - 1, -1):
        cell = row_of(geometry, pane) * geometry.groups + slot
        if tuples[cell]:
            if above >= 0:
                steps[0, used], steps[1, used], steps[2, used] = cell, cell, above
                used += 1
            above, front = cell, pane
    turns[0, slot], turns[1, slot], turns[2, slot], turns[3, slot] = end, end, front, 0
    return used


@njit(cache=True, nogil=True)
def _slide(geometry, tuples, turns, slot, begin, end, steps, used):
    """Let the front begin at ``begin`` and the back end at ``end``; return how many steps there are then."""
    groups = geometry.groups
    back = (geometry.last + 1) * groups + slot
    for pane in range(turns[1, slot], end):
        cell = row_of(geometry, pane) * groups + slot
        if tuples[cell]:
            steps[0, used], steps[1, used], steps[2, used] = back, cell, back if turns[3, slot] else -1
            turns[3, slot] = 1
            used += 1
    turns[1, slot] = max(turns[1, slot], end)
    front = max(turns[2, slot], begin)
    while front < turns[0, slot] and not tuples[row_of(geometry, front) * groups + slot]:
        front += 1
    turns[2, slot] = front
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
    used, found, gone = np.int64(0), 0, 0
    for i in range(begin, len(slots)):
        slot = slots[i]
        panes = min(high - low + 1, (stop[i] - first[i] - 1) * step + length)
        if max(used, gone) + stop[i] - first[i] + 2 * panes > steps.shape[1]:
            return i, used, found, gone
        for wid in range(first[i], stop[i]):
            start, end = max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)
            if start >= turns[0, slot]:
                used = _turn(geometry, tuples, turns, slot, start, end, steps, used)
            else:
                used = _slide(geometry, tuples, turns, slot, start, end, steps, used)
            front = -1
            if turns[2, slot] < turns[0, slot]:
                front = row_of(geometry, turns[2, slot]) * groups + slot
            back = (last + 1) * groups + slot if turns[3, slot] else -1
            if front < 0 and back < 0:
                continue
            steps[0, used], steps[1, used], steps[2, used] = ~found, max(front, back), min(front, back)
            if front >= 0 and back >= 0:
                steps[1, used], steps[2, used] = front, back
            results[0, found], results[1, found] = slot, wid
            used, found = used + 1, found + 1
        start, end = (first[i] + 1) * step - length, (stop[i] + 1) * step - length
        for pane in range(max(start, low), min(end, high + 1)):
            cell = row_of(geometry, pane) * groups + slot
            freed[gone] = cell
            gone += tuples[cell] != 0
    return len(slots), used, found, gone


@njit(cache=True, nogil=True)
def read(geometry, tuples, slots, first, stop, begin, steps, results):
    """Write down how windows come about from panes that no stack is in; arguments as of ``plan``.

    The back of a group is room to work in.  Starts at ``begin``; returns the group at which there was no more room, and
    how many steps and results there are.  O(panes of windows).
    """
    step, length, low, high, last, groups, _ = geometry
    used, found = 0, 0
    for i in range(begin, len(slots)):
        slot = slots[i]
        if used + (stop[i] - first[i]) * min(high - low + 1, length) > steps.shape[1]:
            return i, used, found
        back = (last + 1) * groups + slot
        for wid in range(first[i], stop[i]):
            one, two = -1, -1
            for pane in range(max((wid + 1) * step - length, low), min((wid + 1) * step, high + 1)):
                cell = row_of(geometry, pane) * groups + slot
                if tuples[cell] and one >= 0:
                    if two >= 0:
                        steps[0, used], steps[1, used], steps[2, used] = back, one, two
                        used, one = used + 1, back
                    two = cell
                elif tuples[cell]:
                    one = cell
            if one >= 0:
                steps[0, used], steps[1, used], steps[2, used] = ~found, one, two
                results[0, found], results[1, found] = slot, wid
                used, found = used + 1, found + 1
    return len(slots), used, found


@njit(cache=True, nogil=True)
def forget(geometry, tuples, slots, first, stop):
    """Forget the tuples of ``slots`` in panes ``first[i]`` to ``stop[i]`` (exclusive); return how many cells.

    O(panes that there are of these).
    """
    gone = 0
    for i in range(len(slots)):
        if slots[i] >= geometry.groups:  # it has none
            continue
        for pane in range(max(first[i], geometry.low), min(stop[i], geometry.high + 1)):
            cell = row_of(geometry, pane) * geometry.groups + slots[i]
            gone += tuples[cell] != 0
            tuples[cell] = 0
    return gone


@njit(cache=True, nogil=True)
def closing(spans, slots, cuts, found, low, stop, after):
    """Write which of ``slots`` have windows below their cuts, and from which to which (exclusive); return how many.

    ``after``: their lowest open window then, or NO_WINDOW.  slots, cuts, found, low, stop, after int64 (n,).
    """
    many = 0
    for i in range(len(slots)):
        first, last = spans[slots[i], 0], spans[slots[i], 1]
        if first < cuts[i] and first != NO_WINDOW:
            found[many], low[many] = slots[i], first
            stop[many] = cuts[i] if cuts[i] <= last else last + 1
            after[many] = cuts[i] if cuts[i] <= last else NO_WINDOW
            many += 1
    return many


@njit(cache=True, nogil=True)
def between(spans, slots, low, stop, some):
    """Write which of ``slots`` have open windows from ``low`` to ``stop`` (exclusive), and from which to which (also).

    slots, low, stop int64 (n,), of groups that may be unknown; some int64 (3, n), written.  Returns how many there are.
    """
    many = 0
    for i in range(len(slots)):
        if slots[i] < len(spans):
            first, last = max(spans[slots[i], 0], low[i]), min(stop[i], spans[slots[i], 1] + 1)
            if first < last:  # of a group without a window the lowest one is above all
                some[0, many], some[1, many], some[2, many] = slots[i], first, last
                many += 1
    return many


@njit(cache=True, nogil=True)
def clipped(slots, low, stop, least, most, groups, some):
    """Write which slots below ``groups`` have windows from ``least`` to ``most``, and from which to which (exclusive).

    slots, low, stop int64 (n,); some int64 (3, n), written.  Returns how many there are, the lowest window, the first
    one behind all, and how many windows they have.
    """
    many, lowest, behind, windows = 0, most, least, 0
    for i in range(len(slots)):
        first, last = max(low[i], least), min(stop[i], most)
        if first < last and slots[i] < groups:
            some[0, many], some[1, many], some[2, many] = slots[i], first, last
            many += 1
            lowest, behind, windows = min(lowest, first), max(behind, last), windows + last - first
    return many, lowest, behind, windows


@njit(cache=True, nogil=True)
def reopen(spans, slots, low, counts):
    """Note that the lowest open window of ``slots`` is now ``low``, both int64 (n,), or NO_WINDOW.

    counts int64 (3,), as in ``Table``: how many groups have windows, and the lowest one, are corrected.
    O(groups), of which there are as many as spans.
    """
    for i in range(len(slots)):
        spans[slots[i], 0] = low[i]
        if low[i] == NO_WINDOW:
            spans[slots[i], 1] = NEVER
    alive, lowest = 0, NO_WINDOW
    for i in range(len(spans)):
        alive += spans[i, 0] != NO_WINDOW
        lowest = min(lowest, spans[i, 0])
    counts[1], counts[2] = alive, lowest


@njit(cache=True, nogil=True)
def reopen_some(spans, slots, low, counts):
    """Do so without a look at other groups: the lowest open window stays a lower bound.  O(slots)."""
    alive = counts[1]
    for i in range(len(slots)):
        alive += np.int64(low[i] != NO_WINDOW) - np.int64(spans[slots[i], 0] != NO_WINDOW)
        spans[slots[i], 0] = low[i]
        if low[i] == NO_WINDOW:
            spans[slots[i], 1] = NEVER
        counts[2] = min(counts[2], low[i])
    counts[1] = alive
    if alive == 0:
        counts[2] = NO_WINDOW


@njit(cache=True, nogil=True)
def reopen_all(spans, cut, counts):
    """Do so where all groups close their windows below ``cut``."""
    alive, lowest = 0, NO_WINDOW
    for i in range(len(spans)):
        over = spans[i, 1] < cut
        spans[i, 0] = NO_WINDOW if over else max(spans[i, 0], cut)
        spans[i, 1] = NEVER if over else spans[i, 1]
        alive += spans[i, 0] != NO_WINDOW
        lowest = min(lowest, spans[i, 0])
    counts[1], counts[2] = alive, lowest


@njit(cache=True, nogil=True)
def step_levels(to, a, b, rows, level):
    """Write the level of each step of ``plan``: those of a level touch different rows; return how many.

    A step comes behind those that write what it reads, and those that read or write what it writes.  O(steps + rows).
    """
    written, read = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    for i in range(len(to)):
        least = written[a[i]]
        if b[i] >= 0:
            least = max(least, written[b[i]])
        if to[i] >= 0:
            least = max(least, written[to[i]], read[to[i]])
        level[i] = least + 1
        read[a[i]] = max(read[a[i]], least + 1)
        if b[i] >= 0:
            read[b[i]] = max(read[b[i]], least + 1)
        if to[i] >= 0:
            written[to[i]] = least + 1
    return len(to)
