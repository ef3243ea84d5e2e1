"""Landmark windows hold all tuples since the origin: how those of rows that came close.

A tuple is added only to the window it came in.  Closing forms running combinations over the windows of a group, all
groups at once, and keeps the last one as the group's start for the next closing.  A group is in all windows from its
first tuple's to that of the stream's last tuple, which is known only when a later tuple has come: the bound of results
stays behind it (unless ``lulls``), and groups are kept for as long as the stream lasts.
"""

from __future__ import annotations

import numpy as np

from oop_engine.core.errors import SnapshotError
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.operators.kernels.partials import LOW, NO_WINDOW
from oop_engine.operators.kernels.sliding import bisect
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.panes.open_spans import OpenGrid
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.runs.held_runs import HeldRuns
from oop_engine.operators.slicing.runs.runs import Runs
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers, begins_of, ends_of, looked_up, spread
from oop_engine.operators.windows import Extents

__all__ = ["checked", "closed"]

_BEFORE = -1
"""The window at which a group's state up to its lowest open window is kept: the first window is 0."""


def closed(grid: OpenGrid, rows: HeldRuns, slots: Integers | None, cuts: Integers) -> list[WindowStates]:
    """Close the windows of ``slots[i]`` below ``cuts[i]``, each named once, or of all groups below one cut."""
    of, each = grid.each(slots, cuts)
    found = _closed(grid, rows, of, each)
    if slots is None and cuts == FOREVER:
        none = of[:0]
        rows.put(rows.without_values(none, none, none))
        grid.spans.reopen(of, np.full(of.size, NO_WINDOW))
    return found


def _closed(grid: OpenGrid, rows: HeldRuns, slots: Integers, cuts: Integers) -> list[WindowStates]:
    low = grid.spans.of[slots, LOW]
    stop = grid.stop(cuts, slots)
    (some,) = ((low < stop) & (low != NO_WINDOW)).nonzero()
    if not some.size:
        return []
    some = some[slots[some].argsort()]
    slots, low, stop = slots[some], low[some], stop[some]
    of, wid, states = _accumulated(grid, rows, slots, stop)
    grid.spans.reopen(slots, stop)
    groups, wids = spread(low, stop - low)
    begins, behind = of.searchsorted(np.concatenate([slots, [FOREVER]])), np.empty(wids.size, np.int64)
    bisect(wid, begins, groups, wids + 1, behind)  # behind the latest window with a tuple
    (there,) = (behind > begins[groups]).nonzero()
    found = States(rows.parts, wids.size)
    found.put(there, states.take(behind[there] - 1))
    starts, ends = grid.extents.extent(wids)
    return [WindowStates(slots[groups], ends, found.columns, grid.number, starts)]


def _accumulated(
    grid: OpenGrid, rows: HeldRuns, slots: Integers, stop: Integers
) -> tuple[Integers, Integers, States]:
    """Return the states of groups up to each of their windows with a tuple; only the last of each stays.

    It is kept at the window ``_BEFORE``.  O(rows of these groups log rows), or of all where they are many.
    """
    few = grid.spans.few(slots)
    runs = rows.take_out(slots) if few else rows.merged()
    closing = runs.first < looked_up(runs.slots, slots, stop, NEVER)
    done = runs.take(closing)
    states = States(rows.parts, columns=done.states)
    _accumulate(states, done, grid.extents)
    last = ends_of(begins_of(done.slots), done.slots.size) - 1
    stay = ~closing
    stay[closing.nonzero()[0][last]] = True
    rest, before = runs.take(stay), closing[stay]
    States(rows.parts, columns=rest.states).put(before.nonzero()[0], states.take(last))
    at = np.where(before, _BEFORE, rest.first)
    (rows.add if few else rows.put)(rest._replace(first=at, last=at))
    return done.slots, done.first, states


def _accumulate(held: States, runs: Runs, extents: Extents) -> None:
    """Make every row of a group the combination of all its rows so far, by doubling."""
    step, of = 1, runs.slots
    while (same := (of[step:] == of[:-step]).nonzero()[0]).size:
        try:
            together = held.combine(held.take(same), held.take(same + step))
        except SumOverflowError as error:
            at = int(same[error.at]) + step
            (start,), (end,) = extents.extent(runs.first[[at]])
            raise WindowOverflowError(error.column, of[at], start, end) from None
        held.put(same + step, together)
        step *= 2


def checked(rows: Runs) -> None:
    """Raise ``SnapshotError`` unless each row is of one window."""
    if (rows.first != rows.last).any() or (rows.first < _BEFORE).any():
        msg = f"rows must be of one window each, {_BEFORE} or later; got others"
        raise SnapshotError(msg)
