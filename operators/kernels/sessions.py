# Long: both forms in which open runs are kept, for a loop is kept on disk with those that it calls.
"""Open runs of sessions: in lists, where each group has its runs from the newest to the oldest, or in cells of time.

Common arguments: ``slots`` int64 (n,) of groups; ``gaps`` int64 (definitions,), the narrowest first; ``table``, the
lists, or ``cells``.  Runs of a list are further apart than the least gap.

Runs that definitions have put out are older than all others of their group, and of those that as many have put out
there is one.  A run is *covered* where a newer one is so near that the next window of both is the same: that one
ends it.

Cells are as long as the least gap, so the tuples of a group in one of them are of one run, and a run that goes on does
so in the next one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "FOUND",
    "FREE",
    "FULL",
    "LOW",
    "OPEN",
    "TOP",
    "USED",
    "Cells",
    "RunLists",
    "arrange",
    "chains",
    "due",
    "earliest",
    "least",
    "least_of_cells",
    "leave",
    "leave_cells",
    "listed",
    "looked",
    "looked_cells",
    "place",
    "place_cells",
    "ranks",
    "release",
    "roll",
]

Integers = NDArray[np.int64]
USED, OPEN, FOUND, FULL, FREE = range(5)
LOW, TOP = 2, 3
_NONE = -1  # ``left`` of a free run
_BLOCK = 256  # tuples
_FOREVER = np.iinfo(np.int64).max
_ONE = np.uintp(1)


class RunLists(NamedTuple):
    """The newest run of each group is ``heads[slot]``, int32, the next older one ``older[run]``, int32; -1: none.

    ``until`` int64: no open window of the group ends before.  ``times`` int64 (runs, 2): the first and the last of a
    run; ``of`` int32: its group; ``left`` int16: how many definitions have put it out, the narrowest first, -1 where it
    is free.  ``counts`` int64 (5,): runs in use; groups with runs; pairs that ``place`` has found; whether it stopped
    for want of free runs; the first free run, whose ``older`` is the next one.
    """

    heads: NDArray[np.int32]
    until: Integers
    older: NDArray[np.int32]
    times: Integers
    of: NDArray[np.int32]
    left: NDArray[np.int16]
    counts: Integers


@njit(cache=True, nogil=True)
def place(table, slots, times, gap, begin, most, of, pairs):
    """Put each tuple into the run it is at most ``gap``, the least, away from, else a new one; write it into ``of``.

    slots, times, of int64 (n,), from ``begin`` on.  Where a tuple joins two runs the older one ends: ``pairs`` int64
    (3, n) takes the run that stays, the older one, and the one that stays; runs that end are not used again here.
    Returns the tuple at which there are no free runs, or more than ``most`` steps a tuple were taken along lists, or
    n.  A tuple of the same group as the one before it that is not later goes on from there.
    """
    heads, until, older, spans, owner, left, counts = table
    used, opened, found, free, steps = counts[USED], counts[OPEN], counts[FOUND], counts[FREE], -1024
    newer, run, slot, time, rest = -1, -1, -1, 0, np.empty(_BLOCK, np.int64)
    counts[FULL] = False
    for block in range(begin, len(slots), _BLOCK):
        for i in rest[: _in_newest(table, slots, times, gap, block, of, rest)]:
            if slots[i] != slot or times[i] > time:
                slot, newer, run = slots[i], -1, heads[slots[i]]
            time = times[i]
            while run >= 0 and spans[run, 0] - gap > time:
                newer, run, steps = run, older[run], steps + 1
            counts[FULL] = free < 0
            if counts[FULL] or steps > most * (i - begin + 1):
                counts[USED], counts[OPEN], counts[FOUND], counts[FREE] = used, opened, found, free
                return i
            if run < 0 or time > spans[run, 1] + gap:
                new, free, used = free, older[free], used + 1
                spans[new, 0], spans[new, 1], owner[new], left[new], older[new] = time, time, slot, 0, run
                until[slot] = min(until[slot], time + gap)
                if newer >= 0:
                    older[newer] = new
                else:
                    opened += heads[slot] < 0
                    heads[slot] = new
                run = new
            else:
                spans[run, 1] = max(spans[run, 1], time)
                if time < spans[run, 0]:
                    spans[run, 0], other = time, older[run]
                    if other >= 0 and time <= spans[other, 1] + gap:
                        spans[run, 0], older[run] = spans[other, 0], older[other]
                        pairs[0, found], pairs[1, found], pairs[2, found] = run, other, run
                        found += 1
            of[i] = run
    counts[USED], counts[OPEN], counts[FOUND], counts[FREE] = used, opened, found, free
    return len(slots)


@njit(cache=True, nogil=True)
def _in_newest(table, slots, times, gap, begin, of, rest):
    """Put the tuples of a block that fit the newest run of their group into it; write the others into ``rest``.

    Most fit, but which ones nobody can foresee.  So there is no branch, which is why signs are made masks here: written
    with comparisons, it becomes one.  Where a difference wraps its tuple is taken for one of the others, which are
    looked at again.  Returns how many these are.
    """
    heads, spans, found = table.heads, table.times, 0
    for i in range(np.uintp(begin), np.uintp(min(begin + _BLOCK, len(slots)))):  # unsigned: none is below 0
        run, time = np.int64(heads[slots[i]]), times[i]
        at = np.uintp(run & ~(run >> 63))
        first, last = spans[at, 0], spans[at, 1]
        outside = (run | (time - first) | (last + gap - time)) >> 63
        later = time - last
        spans[at, 1] = last + (later & ~(later >> 63) & ~outside)
        of[i], rest[found] = run, i
        found -= outside
    return found


@njit(cache=True, nogil=True)
def due(until, bound, slots):
    """Write the groups that may have windows which are complete by ``bound`` into ``slots``; return how many.

    slots int64 (groups + 1,).  O(groups), without a branch.
    """
    found = 0
    for slot in range(len(until)):
        slots[found] = slot
        found += until[slot] < bound
    return found


@njit(cache=True, nogil=True)
def leave(table, slots, bounds, gaps, begin, out):
    """Take out the windows that are complete by ``bounds`` int64 (n,) of groups, from the group in place ``begin`` on.

    Runs of one window are joined, and those that have left for all ``gaps`` are free then.  Fills ``out`` int64 (8, m):
    steps to take with states (``fold_steps``), in which the result of window ``w`` is ``~w``; runs that are free; the
    slot of each window, its end, its first time, and the number of its definition.  Returns the place at which there
    was no more room, and how many steps, free runs and windows there are.  O(runs of the groups).
    """
    heads, until, older, times, _, left, counts = table
    steps, free, windows = 0, 0, 0
    stack, wide = np.empty(counts[USED] + 1, np.int32), len(gaps)
    for i in range(begin, len(slots)):
        if (i - begin) % _BLOCK == 0:
            stack[-1] = _read_ahead(table, slots[i : i + _BLOCK])
        slot, bound, depth, run = slots[i], bounds[i], 0, heads[slots[i]]
        if until[slot] >= bound:
            continue
        while run >= 0:
            stack[depth] = run
            depth, run = depth + 1, older[run]
        counts[OPEN] -= depth > 0
        below, least = -1, _FOREVER
        while depth > 0:
            run, depth = stack[depth - 1], depth - 1
            if steps + 2 * wide > out.shape[1]:
                older[run], counts[OPEN] = below, counts[OPEN] + 1
                return i, steps, free, windows
            first, last, level, end = times[run, 0], times[run, 1], left[run], _FOREVER
            behind = times[stack[depth - 1], 0] if depth > 0 else _FOREVER
            while True:
                if level > 0 and below >= 0 and left[below] == level:
                    out[0, steps], out[1, steps], out[2, steps], out[3, free] = run, below, run, below
                    first, below = times[below, 0], _freed(table, below)
                    steps, free = steps + 1, free + 1
                if level == wide:
                    break
                end = last + gaps[level]
                if end >= bound or (level > 0 and behind <= end):
                    break
                out[0, steps], out[1, steps], out[2, steps] = ~windows, run, -1
                out[4, windows], out[5, windows], out[6, windows], out[7, windows] = slot, end, first, level
                steps, windows, level = steps + 1, windows + 1, level + 1
            if level == wide:
                out[3, free], free = run, free + 1
                _freed(table, run)
                continue
            if behind > end:
                least = min(least, end)
            times[run, 0], left[run], older[run], below = first, level, below, run
        heads[slot], until[slot] = below, least
        counts[OPEN] += below >= 0
    return len(slots), steps, free, windows


@njit(cache=True, nogil=True)
def _read_ahead(table, slots):
    """Read the two newest runs of some groups; the number that is returned is of no use.

    To walk along lists is to wait for memory, one run after the other; here no read waits for another group's.
    """
    heads, older, times, left, seen = table.heads, table.older, table.times, table.left, 0
    for slot in slots:
        run = np.uintp(max(heads[slot], 0))  # unsigned: no index is below 0
        below = np.uintp(max(older[run], 0))
        seen ^= times[run, 0] ^ left[run] ^ times[below, 0] ^ left[below] ^ older[below]
    return seen & 1


@njit(cache=True, nogil=True)
def _freed(table, run):
    """Let a run be free; return the one that was older."""
    older, counts = table.older, table.counts
    below, older[run] = older[run], counts[FREE]
    table.left[run], counts[FREE] = _NONE, run
    counts[USED] -= 1
    return below


@njit(cache=True, nogil=True)
def _look(table, slot, gaps):
    """Return the least end of an open window of a group, and the least first time; the largest integer: none."""
    times, run, end, first = table.times, table.heads[slot], _FOREVER, _FOREVER
    while run >= 0:
        stop = times[run, 1] + gaps[table.left[run]]
        if stop < first:  # else it is covered
            end = min(end, stop)
        first, run = times[run, 0], table.older[run]
    table.until[slot] = end
    return end, first


@njit(cache=True, nogil=True)
def looked(table, slots, gaps, out):
    """Write the least end of an open window of each group, and the least first time, into ``out`` int64 (2, n)."""
    for i in range(len(slots)):
        out[0, i], out[1, i] = _look(table, slots[i], gaps)


@njit(cache=True, nogil=True)
def least(table, gaps):
    """Return the least end of an open window, or the largest integer.  O(groups): few of them are looked at."""
    until, end = table.until, _FOREVER
    for slot in range(len(until)):
        if until[slot] < end:
            end = min(end, _look(table, slot, gaps)[0])
    return end


@njit(cache=True, nogil=True)
def earliest(table):
    """Return the least first time, or the largest integer.  O(runs)."""
    times, left, first = table.times, table.left, _FOREVER
    for run in range(len(left)):
        first = min(first, times[run, 0] if left[run] != _NONE else _FOREVER)
    return first


@njit(cache=True, nogil=True)
def release(table, runs):
    """Let ``runs`` be free, which no list has any more."""
    for run in runs:
        _freed(table, run)


@njit(cache=True, nogil=True)
def listed(table, rows):
    """Write all runs into ``rows``: by group, the newest first.  O(groups + runs)."""
    heads, older, runs = table.heads, table.older, 0
    for slot in range(len(heads)):
        run = heads[slot]
        while run >= 0:
            rows[runs] = run
            run, runs = older[run], runs + 1


@njit(cache=True, nogil=True)
def ranks(windows, numbers, out):
    """Write the rank of ``windows`` int64 (4, n), as ``leave`` has them, by end and number; tell whether they fit.

    ``numbers`` int64 (definitions,): of the definitions, the narrowest first.
    """
    _, ends, _, levels = windows
    least, most, many = _FOREVER, -_FOREVER, 0
    for end in ends:
        least, most = min(least, end), max(most, end)
    for number in numbers:
        many = max(many, number + 1)
    if float(most) - float(least) > 2.0**62 / many:
        return False
    for i in range(len(ends)):
        out[i] = (ends[i] - least) * many + numbers[levels[i]]
    return True


@njit(cache=True, nogil=True)
def arrange(windows, numbers, rank, order, out):
    """Write slots, ends, first times and numbers of windows into ``out`` int64 (4, n), in the order of their ranks.

    ``order`` int64 (n,) sorts by rank; those of one rank, nearly by slot, are put into the order of slots.
    """
    slots, ends, first, levels = windows
    for i in range(len(order)):
        row, at = order[i], i
        while at > 0 and rank[order[at - 1]] == rank[row] and slots[order[at - 1]] > slots[row]:
            order[at], at = order[at - 1], at - 1
        order[at] = row
    for i in range(len(order)):
        row = order[i]
        out[0, i], out[1, i], out[2, i], out[3, i] = slots[row], ends[row], first[row], numbers[levels[row]]


class Cells(NamedTuple):
    """Cells of time, a ring of them: cell ``c`` is the times from ``c`` least gaps on.

    ``spans`` int64 (2 x places x groups,): the first and the last time of the tuples in each, the first the greater
    where there are none.  Place ``c % ring`` is of cell ``c``; behind the ring are those of the runs that 1, 2, ...
    definitions have put out.  The row of a group in a place is ``place * groups + slot``.
    Runs in a cell may begin before it, where no tuple can come before the cell any more.
    ``until`` int64 (groups,): no open window of the group ends before; the largest integer: it has none.
    ``counts`` int64 (4,): rows in use; groups that have some; the lowest cell and the highest one there may be.
    """

    spans: Integers
    until: Integers
    counts: Integers


@njit(cache=True, nogil=True)
def place_cells(cells, slots, times, gap, ring, of):
    """Put each tuple into its cell; write its row into ``of`` int64 (n,).  All cells are in the ring.

    A tuple is put there without a branch; groups are looked at for those alone that come first.
    """
    spans, until, counts = cells
    groups, used, opened, fresh = len(until), counts[USED], counts[OPEN], np.empty(_BLOCK, np.int64)
    begin, shift, part = counts[LOW] * gap, counts[LOW] % ring, 1 / gap
    for block in range(0, len(slots), _BLOCK):
        its, some, rows = (
            slots[block : block + _BLOCK],
            times[block : block + _BLOCK],
            of[block : block + _BLOCK],
        )
        for i in range(len(some)):  # vector instructions
            away = some[i] - begin
            cell = np.int64(away * part)
            rest = away - cell * gap
            cell += np.int64(rest >= gap) - np.int64(rest < 0) + shift
            rows[i] = (cell - ring if cell >= ring else cell) * groups + its[i]
        found = 0
        for i in range(len(some)):
            at, time = np.uintp(rows[i]) << _ONE, some[i]  # unsigned: none is below 0
            first, last = spans[at], spans[at | _ONE]
            spans[at], spans[at | _ONE] = min(first, time), max(last, time)
            fresh[found] = i
            found += first > last
        for i in fresh[:found]:
            slot = its[i]
            opened += until[slot] == _FOREVER
            until[slot] = min(until[slot], some[i] + gap)
        used += found
    counts[USED], counts[OPEN] = used, opened


@njit(cache=True, nogil=True)
def leave_cells(cells, slots, bounds, gaps, begin, out):
    """As ``leave``, cell by cell of so many groups as there is room for; all that a pass looks for is listed first.

    Which groups have something nobody can foresee, so lists are made without a branch.
    """
    spans, until, counts = cells
    wide, low, top, gap = len(gaps), counts[LOW], counts[TOP], gaps[0]
    done, i, lists = np.zeros(3, np.int64), begin, np.empty((wide + 1, _BLOCK + 1), np.int64)
    most = wide * len(spans) // max(len(until), 1) + 2 * wide  # steps of a group
    while i < len(slots):
        some = min(_BLOCK, (out.shape[1] - done[0]) // most)
        if some == 0:
            break
        its, by, bound = slots[i : i + some], bounds[i : i + some], bounds[i]
        for one in by:
            bound = max(bound, one)
        for cell in range(low, max(min(bound // gap, top + 1), low)):  # nothing of a later one is complete
            _leave_cell(cells, its, by, cell, gaps, lists, out, done)
        _leave_behind(cells, its, by, gaps, lists, out, done)
        i += len(its)
    return i, done[0], done[1], done[2]


@njit(cache=True, nogil=True)
def _base(cells, place):
    """Return where in ``spans`` a place begins."""
    return np.uintp(2 * place * len(cells.until))


@njit(cache=True, nogil=True)
def _leave_cell(cells, its, by, cell, gaps, lists, out, done):
    """Put runs that go on from a cell which gets no more tuples into the next one; take out complete ones."""
    spans, until, counts = cells
    wide, gap, goes, ends, is_last = len(gaps), gaps[0], 0, 0, cell == counts[TOP]
    ring = len(spans) // (2 * len(until)) + 1 - wide
    here, there, on, end = _base(cells, cell % ring), _base(cells, (cell + 1) % ring), lists[wide], lists[0]
    behind = (cell + 1) * gap
    for i in range(len(its)):
        slot, bound = np.uintp(its[i]) << _ONE, by[i]
        first, stop, following = spans[here + slot], spans[(here + slot) | _ONE] + gap, spans[there + slot]
        full, joined = first < stop, (following <= stop) & (not is_last)
        on[goes] = end[ends] = i
        goes += full & joined & (behind <= bound)
        ends += full & (not joined) & (stop < bound)
    to, a, b, free, steps, freed = out[0], out[1], out[2], out[3], done[0], done[1]
    for i in on[:goes]:
        slot = np.uintp(its[i]) << _ONE
        row, at = (here + slot) >> _ONE, there + slot
        to[steps], a[steps], b[steps], free[freed] = at >> _ONE, row, at >> _ONE, row
        spans[at], spans[here + slot], spans[(here + slot) | _ONE] = spans[here + slot], _FOREVER, -_FOREVER
        steps, freed = steps + 1, freed + 1
    done[0], done[1], end[-1] = steps, freed, ends
    counts[USED] -= goes
    _put_out(cells, its, cell % ring, 0, gaps, lists, out, done)


@njit(cache=True, nogil=True)
def _put_out(cells, its, place, level, gaps, lists, out, done):
    """Put out the windows of the runs in ``lists[level]``, which are in one place; they go on on the next level.

    What is there, and does not go on in them, is put out before.
    """
    spans, until, _ = cells
    wide = len(gaps)
    ring = len(spans) // (2 * len(until)) + 1 - wide
    for up in range(level + 1, wide):
        here, there, found = (
            _base(cells, place if up == level + 1 else ring + up - 2),
            _base(cells, ring + up - 1),
            0,
        )
        into = lists[up]
        for i in lists[up - 1, : lists[up - 1, -1]]:
            slot = np.uintp(its[i]) << _ONE
            stop = spans[(there + slot) | _ONE] + gaps[up]
            into[found] = i
            found += (spans[there + slot] < stop) & (spans[here + slot] > stop)
        into[-1] = found
    for up in range(wide - 1, level - 1, -1):
        here, last_one = _base(cells, place if up == level else ring + up - 1), up + 1 == wide
        there = here if last_one else _base(cells, ring + up)
        _put_up(cells, its, (here, there, up), gaps, lists[up], out, done)


@njit(cache=True, nogil=True)
def _put_up(cells, its, places, gaps, listed, out, done):
    """Put out the windows of the runs that are listed; they go to another place, or nowhere if it is the same."""
    spans, _, counts = cells
    (here, there, level), (steps, freed, windows) = places, done
    to, a, b, free, of, ends, starts, levels = out
    for i in listed[: listed[-1]]:
        slot = np.uintp(its[i]) << _ONE
        at, into = here + slot, there + slot
        row, first, last = at >> _ONE, spans[at], spans[at | _ONE]
        to[steps], a[steps], b[steps], steps = ~windows, row, -1, steps + 1
        of[windows], ends[windows], starts[windows] = its[i], last + gaps[level], first
        levels[windows], windows = level, windows + 1
        free[freed] = row
        freed += level == 0  # states of others are written over when something comes there, which may be now
        spans[at], spans[at | _ONE] = _FOREVER, -_FOREVER
        if here != there:
            held = spans[into]
            full = held <= spans[into | _ONE]
            to[steps], a[steps], b[steps], steps = (
                into >> _ONE,
                row,
                (into >> _ONE) if full else -1,
                steps + 1,
            )
            spans[into], spans[into | _ONE] = min(first, held), last
            counts[USED] += not full
    counts[USED] -= listed[-1]
    done[0], done[1], done[2] = steps, freed, windows


@njit(cache=True, nogil=True)
def _leave_behind(cells, its, by, gaps, lists, out, done):
    """Take out complete ones of the runs that definitions have put out; learn the next end of each group."""
    spans, until, counts = cells
    wide, gap = len(gaps), gaps[0]
    ring = len(spans) // (2 * len(until)) + 1 - wide
    end, behind, bound = np.full(len(its), _FOREVER), np.full(len(its), _FOREVER), by[0]
    for one in by:
        bound = min(bound, one)
    low, top = counts[LOW], counts[TOP]
    for cell in range(top, max(min(bound // gap, top + 2), low + 1) - 2, -1):  # earlier ones are empty
        here = _base(cells, cell % ring)
        for i in range(len(its)):
            at = here + (np.uintp(its[i]) << _ONE)
            first, stop = spans[at], spans[at | _ONE] + gap
            end[i] = stop if (first < stop) & (behind[i] > stop) else end[i]
            behind[i] = min(first, behind[i])
    for level in range(1, wide):
        here, found, some = _base(cells, ring + level - 1), 0, lists[level]
        for i in range(len(its)):
            at = here + (np.uintp(its[i]) << _ONE)
            stop = spans[at | _ONE] + gaps[level]
            some[found] = i
            found += (spans[at] < stop) & (stop < by[i]) & (behind[i] > stop)
        some[-1] = found
        _put_out(cells, its, ring + level - 1, level, gaps, lists, out, done)
        for i in range(len(its)):
            at = here + (np.uintp(its[i]) << _ONE)
            first, stop = spans[at], spans[at | _ONE] + gaps[level]
            end[i] = stop if (first < stop) & (behind[i] > stop) & (stop < end[i]) else end[i]
            behind[i] = min(first, behind[i])
    for i in range(len(its)):
        counts[OPEN] -= (until[its[i]] < _FOREVER) & (end[i] == _FOREVER)
        until[its[i]] = end[i]


@njit(cache=True, nogil=True)
def roll(cells, gap, ring, groups, steps):
    """Put runs that go on from the lowest cell, to which no tuple can come any more, into the next; return how many.

    Where these are all that are there the next one is the lowest.  ``groups``: how many there are.
    """
    spans, _, counts = cells
    found, ends, (to, a, b) = 0, False, steps
    here, there = _base(cells, counts[LOW] % ring), _base(cells, (counts[LOW] + 1) % ring)
    for slot in range(np.uintp(0), np.uintp(2 * groups), np.uintp(2)):
        row, at = here + slot, there + slot
        first, stop, following = spans[row], spans[row | _ONE] + gap, spans[at]
        on = (first < stop) & (following <= stop)
        ends |= (first < stop) & (following > stop)
        to[found], a[found], b[found] = at >> _ONE, row >> _ONE, at >> _ONE
        found += on
        spans[at], spans[row] = first if on else following, _FOREVER if on else first
        spans[row | _ONE] = -_FOREVER if on else stop - gap
    counts[USED] -= found
    counts[LOW] += not ends
    return found


@njit(cache=True, nogil=True)
def _look_at_cells(cells, slot, gaps):
    """As ``_look``."""
    spans, until, counts = cells
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
def looked_cells(cells, slots, gaps, out):
    """As ``looked``."""
    for i in range(len(slots)):
        out[0, i], out[1, i] = _look_at_cells(cells, slots[i], gaps)


@njit(cache=True, nogil=True)
def least_of_cells(cells, gaps):
    """As ``least``."""
    until, end = cells.until, _FOREVER
    for slot in range(len(until)):
        if until[slot] < end:
            end = min(end, _look_at_cells(cells, slot, gaps)[0])
    return end


@njit(cache=True, nogil=True)
def chains(cells, gaps, rows, begins, left):
    """Write all rows in use into ``rows``, by group, the newest first; return how many runs they are.

    begins, left int64: where each run begins, and how many definitions have put it out.
    """
    spans, until, counts = cells
    groups, wide, low, found, runs = len(until), len(gaps), counts[LOW], 0, 0
    ring = len(spans) // (2 * max(groups, 1)) + 1 - wide
    for slot in range(groups):
        newer = _FOREVER
        for place in range(counts[TOP] - low, -wide, -1):
            row = (ring - 1 - place if place < 0 else (low + place) % ring) * groups + slot
            if until[slot] == _FOREVER or spans[2 * row] > spans[2 * row + 1]:
                continue
            if place < 0 or newer > spans[2 * row + 1] + gaps[0]:
                begins[runs], left[runs], runs = found, max(-place, 0), runs + 1
            rows[found], newer, found = row, spans[2 * row], found + 1
    return runs
