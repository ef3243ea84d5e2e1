"""Dense windows: closing where windows without a tuple of their own give results too.

With ``empty=True`` a group has all windows from its first to its last one with a tuple;
those between may be empty.  A landmark group has all windows from its first tuple's to
the stream's last, and each holds all earlier tuples.  A landmark tuple is added only to
the window it came in; closing forms running combinations over the windows of a group, all
groups at once, and keeps the last one as the group's start for the next closing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.partials import Partials, States
from oop_engine.operators.slicing.window_results import PAGE_ROWS, Results

__all__ = ["Closing", "Dense"]

Integers = NDArray[np.int64]


class Closing(NamedTuple):
    """Windows ``low[g]`` to ``stop[g]`` of each group, and the partial aggregates there are.

    Those are sorted by ``group``, then ``wid``; ``states`` has one row more, of no values.
    """

    low: Integers
    stop: Integers
    group: Integers
    wid: Integers
    states: list[Arrays]


class Dense:
    """How dense windows are closed; ``latest``: the stream's last window with a tuple."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._landmark = results.extents.landmark
        self.latest = NEVER
        self.overflown = np.empty(0, np.int64), np.empty(0, np.int64)

    def note(self, wids: Integers) -> None:
        """Learn of windows with tuples."""
        if wids.size:
            self.latest = max(self.latest, int(wids.max()))

    def stop(self, cuts: Integers, high: Integers) -> Integers:
        """Return the first window that is open or may not exist, by cut and highest window."""
        return np.minimum(cuts, (self.latest if self._landmark else high) + 1)

    def ended(self, cuts: Integers, *, over: bool) -> NDArray[np.bool_]:
        """Tell which groups are over; a landmark group ends with the stream."""
        return np.full(cuts.size, over) if self._landmark else cuts == FOREVER

    def closing(
        self, partials: Partials, slots: Integers, low: Integers, stop: Integers, groups: int
    ) -> Closing:
        """Take what closes out of ``partials``."""
        order = np.argsort(slots)
        slots, low, stop = slots[order], low[order], np.maximum(low, stop)[order]
        since = np.full(slots.size, NEVER) if self._landmark else low
        rows = partials.find(slots, since, np.where(stop > low, stop, since), groups)
        of, wid = partials.owner(rows)
        order = np.lexsort((wid, of))
        rows, of, wid = rows[order], of[order], wid[order]
        states = partials.states.take(rows)
        leaving = rows
        if self._landmark and rows.size:
            self._accumulate(partials.states, states, of, wid)
            last = np.append(of[1:] != of[:-1], True)
            partials.states.put(rows[last], [tuple(a[last] for a in arrays) for arrays in states])
            leaving = rows[~last]
        padded = States(self._results.parts)
        padded.columns = states
        states = padded.resized(np.arange(rows.size), rows.size + 1)
        partials.remove(leaving)
        return Closing(low, stop, np.searchsorted(slots, of), wid, states)

    def _accumulate(self, states: States, held: list[Arrays], of: Integers, wid: Integers) -> None:
        """Make every row of a group the combination of all its rows so far, by doubling."""
        step = 1
        while step < of.size and (same := np.flatnonzero(of[step:] == of[:-step])).size:
            earlier = [tuple(a[same] for a in arrays) for arrays in held]
            later = [tuple(a[same + step] for a in arrays) for arrays in held]
            try:
                together = states.combine(earlier, later)
            except SumOverflowError as error:
                at = same[[error.at]] + step
                self.overflown = of[at], wid[at]
                raise
            for arrays, values in zip(held, together, strict=True):
                for column, new in zip(arrays, values, strict=True):
                    column[same + step] = new
            step *= 2

    def pages(self, closing: Closing, keys: list[pa.Array]) -> Iterator[Page]:
        """Yield the results of all windows that close; ``keys`` (groups,)."""
        upto: Integers = np.cumsum(closing.stop - closing.low)
        total = int(upto[-1]) if upto.size else 0
        for lo in range(0, total, PAGE_ROWS):
            which: Integers = np.arange(lo, min(lo + PAGE_ROWS, total), dtype=np.int64)
            group = np.searchsorted(upto, which, side="right")
            wid = closing.stop[group] - (upto[group] - which)
            rows = self._rows(closing, group, wid)
            states = [tuple(a[rows] for a in arrays) for arrays in closing.states]
            yield from self._results.pages([key.take(pa.array(group)) for key in keys], wid, states)

    def _rows(self, closing: Closing, group: Integers, wid: Integers) -> Integers:
        """Return the row of each window: its own, in landmark windows the latest, or that of no values."""
        if not closing.wid.size:
            return np.zeros_like(wid)
        known = np.unique(closing.wid)
        each = known.size + 1
        held = closing.group * each + np.searchsorted(known, closing.wid) + 1
        wanted = group * each + np.searchsorted(known, wid, side="right")
        rows = np.searchsorted(held, wanted, side="right") - 1
        at = np.maximum(rows, 0)
        found = (rows >= 0) & (closing.group[at] == group)
        if not self._landmark:
            found &= closing.wid[at] == wid
        return np.where(found, rows, closing.wid.size)
