"""Runs: tuples side by side, reduced to one partial aggregate a run before anything else is done.

Common arguments: ``starts``, ``ends`` int64 (runs,): run ``i`` is the tuples ``starts[i]`` to
``ends[i]`` (exclusive) of the page; ``out`` (runs,) takes the results.  And lists of rows, a list a group.

Source: Theodorakis et al., Hammer Slide, ADMS 2018, 3.2 (bulk insertion).
"""

# Layout       lanes[LANES]      sums of the open run side by side: tuple i of a run goes to lane i % LANES
#              heads[slots, 2]   `within`: LATER, the run of a slot that is the latest in time; EARLIER, the other one
#                                that is looked at; -1: none
#              windows[5, n]     OPEN_START, OPEN_RUNS: the first run of a window, and how many; OPEN_SLOT, OPEN_LAST,
#                                OPEN_FIRST (which the caller writes)
#              head[groups]      the last row of the list of a group, or -1
#              after[rows]       the next row of the list, or -1
#              before[rows]      the row before in the list; ~group of the first one; APART: the row is in no list
# Invariant    The sum of a run does not depend on where a page was cut: the number of a tuple in the run decides its
#              lane, and lanes are added up in one order.
#              In order of slot and first time, a run goes on with those before it if it is at most a gap behind the
#              greatest of their last times, which need not be that of its neighbour.
#              row == head[group] or after[before[row]] == row, for each row of a list.
# Not obvious  A loop over a run touches one column and nothing else, so LLVM makes vector instructions of it; of floats
#              only because there are lanes, for it does not change the order in which they are added up.
#              Two runs a slot are looked at: late tuples are mostly of the one before.  A tuple in neither begins a
#              new run, and runs that overlap are joined by `begins` later.
#              `numbered` writes each tuple without a branch, and the next one over it: stretches may be short.
# Tried        A row number and a write for each tuple, not for each stretch, and two tables of slices where there are
#              no groups: W8 took 1.1 to 1.2 times as long.

from __future__ import annotations

import numpy as np

from oop_engine.system.kernel import njit

__all__ = [
    "APART", "LANES", "OPEN_FIRST", "OPEN_START", "add", "add_integers", "begins", "capped", "count_false", "frames",
    "length", "link", "numbered", "open_windows", "reaches", "unlink", "walk", "within",
]  # fmt: skip

LATER, EARLIER = range(2)
OPEN_START, OPEN_RUNS, OPEN_SLOT, OPEN_LAST, OPEN_FIRST = range(5)
OPENED_FRAME, OPENED_SINCE = range(2)

LANES = 16
"""Floats are added up in so many sums side by side: a processor waits four cycles for the sum before."""


@njit(cache=True, nogil=True)
def add(values, starts, ends, lanes, run_tuples, out):
    """Add up ``values`` as floats; return how many tuples the last run has.

    lanes float64 (LANES,): the sums of a run, by the number of the tuple in it, so that the
    last digits do not depend on where a page was cut.  ``run_tuples``: tuples that the first run
    has already; the last run's sums stay in ``lanes``.
    """
    for i in range(len(starts)):
        at, end = starts[i], ends[i]
        # The lanes that the run has begun a round of, whole rounds, and the rest.
        while at < end and run_tuples % LANES:
            lanes[run_tuples % LANES] += values[at]
            at, run_tuples = at + 1, run_tuples + 1
        while at + LANES <= end:
            for lane in range(LANES):
                lanes[lane] += values[at + lane]
            at, run_tuples = at + LANES, run_tuples + LANES
        while at < end:
            lanes[run_tuples % LANES] += values[at]
            at, run_tuples = at + 1, run_tuples + 1
        # The run together; the last one stays open.
        total = 0.0
        for lane in range(min(run_tuples, LANES)):
            total += lanes[lane]
        out[i] = total
        if i + 1 < len(starts):
            lanes[: min(run_tuples, LANES)] = 0.0
            run_tuples = 0
    return run_tuples


@njit(cache=True, nogil=True)
def add_integers(values, starts, ends, carry, out):
    """Add up ``values`` of at most 32 bits in int64, the first run from ``carry`` on."""
    for i in range(len(starts)):
        total = carry if i == 0 else 0
        for value in values[starts[i] : ends[i]]:
            total += value
        out[i] = total


@njit(cache=True, nogil=True)
def count_false(valid, starts, ends, out):
    """Count the false ones of bool ``valid``."""
    for i in range(len(starts)):
        number = 0
        for known in valid[starts[i] : ends[i]]:
            number += not known
        out[i] = number


@njit(cache=True, nogil=True)
def begins(slots, first, last, gap):
    """Return which runs begin a new one, bool (n,): of another slot, or more than ``gap`` after all before in theirs.

    slots, first, last int64 (n,), sorted by slot, then first.  O(n).
    """
    new = np.ones(len(slots), np.bool_)
    reach = 0
    for i in range(len(slots)):
        if i > 0 and slots[i] == slots[i - 1] and first[i] - reach <= gap:
            new[i] = False
            reach = max(reach, last[i])
        else:
            reach = last[i]
    return new


@njit(cache=True, nogil=True)
def numbered(slots, places, starts):
    """Write the first tuple of each stretch of one slot and place; return how many there are."""
    many, slot, place = 0, 0, 0
    for i in range(len(slots)):
        starts[many] = i
        many += i == 0 or slots[i] != slot or places[i] != place
        slot, place = slots[i], places[i]
    return many


@njit(cache=True, nogil=True)
def reaches(last, starts, out):
    """Write the largest of ``last`` from each of ``starts`` (ascending) to the next into ``out``.  O(n)."""
    for i in range(len(starts)):
        reach = last[starts[i]]
        for k in range(starts[i] + 1, starts[i + 1] if i + 1 < len(starts) else len(last)):
            reach = max(reach, last[k])
        out[i] = reach


@njit(cache=True, nogil=True)
def within(slots, times, gap, heads, runs_of, first, last, slots_of):
    """Put each tuple into one of the two youngest runs of its slot, if at most ``gap`` away from it, else a new one.

    slots, times int64 (n,).  ``heads`` int64 (slots, 2): all -1.  Fills the run of each tuple ``runs_of`` (n,), and
    ``first`` and ``last`` times and slots of runs (n,); returns how many there are.  Runs may still overlap.  O(n).
    """
    runs = 0
    for i in range(len(slots)):
        # The latest run, else the other one, else a new one.
        slot, time = slots[i], times[i]
        run = heads[slot, LATER]
        if run < 0 or time < first[run] - gap or time > last[run] + gap:
            other = heads[slot, EARLIER]
            if other >= 0 and first[other] - gap <= time <= last[other] + gap:
                run = other
            else:
                # A tuple behind the latest run begins a later one, which pushes it down; a run that is not later takes
                # the place of the other one.
                older = run if run >= 0 and time > last[run] else heads[slot, EARLIER]
                younger = runs if run < 0 or time > last[run] else run
                heads[slot, LATER], heads[slot, EARLIER] = younger, older if younger == runs else runs
                run, runs = runs, runs + 1
                first[run] = last[run] = time
                slots_of[run] = slot
        first[run], last[run], runs_of[i] = min(first[run], time), max(last[run], time), run
    return runs


@njit(cache=True, nogil=True)
def open_windows(begins, slots, last, left, place, out):
    """Find the windows that runs make up and that ``place`` definitions at most have emitted.

    begins bool, slots, last int64, left int16 (n,), in the order of runs.  Fills ``out`` int64 (4, n): the first run,
    how many runs, the slot and the last time of each window; returns how many there are.  O(n).
    """
    windows, i = 0, 0
    while i < len(slots):
        start, reach = i, last[i]
        i += 1
        while i < len(slots) and not begins[i]:
            reach = max(reach, last[i])
            i += 1
        # The first run tells of the window: definitions that have put it out have marked all of its runs.
        if left[start] <= place:
            (
                out[OPEN_START, windows],
                out[OPEN_RUNS, windows],
                out[OPEN_SLOT, windows],
                out[OPEN_LAST, windows],
            ) = (
                start,
                i - start,
                slots[start],
                reach,
            )
            windows += 1
    return windows


@njit(cache=True, nogil=True)
def frames(starts, times, ranks, tags, opened, most, places, still):
    """Write the frame of each tuple into ``places``, and that of each group which stays open into ``still``; -1: none.

    Tuples are by group, then time; group ``g`` begins at ``starts[g]``.  tags: 1 enters, 2 leaves, 3 both.  opened: of
    each group the frame that is open, and when it began.  A frame is the rank of its first tuple; ``most`` > 0: it
    closes so long after that.  O(n).
    """
    for g in range(len(starts)):
        frame, begun = opened[OPENED_FRAME][g], opened[OPENED_SINCE][g]
        for i in range(starts[g], starts[g + 1] if g + 1 < len(starts) else len(times)):
            # A frame that is too long closes before the tuple, which may then enter the next one.
            if frame >= 0 and most > 0 and times[i] - begun >= most:
                frame = -1
            places[i] = frame
            # The tuple that leaves is the last one of its frame; one that enters while a frame is open changes nothing.
            if frame >= 0:
                frame = -1 if tags[i] & 2 else frame
            elif tags[i] & 1:
                frame, begun, places[i] = ranks[i], times[i], ranks[i]
        still[g] = frame


@njit(cache=True, nogil=True)
def capped(starts, times, ranks, opened, since, until, gap, most, places):
    """Cut sorted tuples where a distance is above ``gap``, and ``most`` behind the first, whose ranks are places.

    starts, opened, since, until int64 (groups,), as of ``FinalTuples``; times, ranks, places (n,).  O(n).
    """
    for group in range(len(starts)):
        stop = starts[group + 1] if group + 1 < len(starts) else len(times)
        place, first, last = opened[group], since[group], until[group]
        for i in range(starts[group], stop):
            if place < 0 or times[i] > last + gap or times[i] >= first + most:
                place, first = ranks[i], times[i]
            last, places[i] = times[i], place


APART = int(np.iinfo(np.int32).min)
"""Of a row that is in no list."""


@njit(cache=True, nogil=True)
def link(head, after, before, rows, groups):
    """Put rows int64 (n,) in front of those of their ``groups`` int64 (n,), unless they are in a list."""
    for i in range(len(rows)):
        row, group = rows[i], groups[i]
        if before[row] != APART:  # a row may be given twice
            continue
        first = head[group]
        after[row], before[row], head[group] = first, ~group, row
        if first >= 0:
            before[first] = row


@njit(cache=True, nogil=True)
def unlink(head, after, before, rows):
    """Take rows int64 (n,) out of their lists, if they are in one."""
    for i in range(len(rows)):
        last, following = before[rows[i]], after[rows[i]]
        if last == APART:
            continue
        # The neighbour before, or the head of the group, goes on with the row behind.
        if last >= 0:
            after[last] = following
        else:
            head[~last] = following
        if following >= 0:
            before[following] = last
        before[rows[i]] = APART


@njit(cache=True, nogil=True)
def length(head, after, groups):
    """Return how many rows some groups int64 (n,) have; of groups that are unknown (-1) none."""
    many = 0
    for i in range(len(groups)):
        row = head[groups[i]] if groups[i] >= 0 else -1
        while row >= 0:
            many += 1
            row = after[row]
    return many


@njit(cache=True, nogil=True)
def walk(head, after, groups, rows, at):
    """Write the rows of some groups, and for each the number ``at`` of its group among these, int64 (length,)."""
    many = 0
    for i in range(len(groups)):
        row = head[groups[i]] if groups[i] >= 0 else -1
        while row >= 0:
            rows[many], at[many] = row, i
            many += 1
            row = after[row]
