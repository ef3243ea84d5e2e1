"""Group buffer: tuples that wait for a bound of their group, and leave when it has passed them.

It takes the place of a ``ReorderBuffer`` once a bound of single groups has come.  Tuples lie in runs, each by group,
then time, equal times as they came.  A run is at least twice as long as the one behind it, whose tuples came later.  A
bound passes the first tuples of a group in each run, so no tuple moves: the run counts how many of the group have left,
and is made anew once half of it has.  A bound of all groups finds those that it concerns by the time of the first tuple
of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page, concat
from oop_engine.core.punctuation import FOREVER, shift
from oop_engine.core.schema import Schema
from oop_engine.operators.kernels.sliding import bisect
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.ordering.reorder_buffer import ReorderBuffer
from oop_engine.operators.ordering.time_sorted import reordered
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.slot_times import SlotTimes
from oop_engine.operators.values.columns import Integers, begins_of, ends_of, spread

__all__ = ["GroupBuffer", "slots_of"]


def slots_of(page: Page) -> NDArray[np.int32]:
    """Return the slot of each tuple of a page that has a column of them; where it has none, 0."""
    if page.schema.fields.get_field_index("\0slot") < 0:
        return np.zeros(len(page), np.int32)
    slots: NDArray[np.int32] = page.column("\0slot").to_numpy()
    return slots


class _Run:
    """Tuples by group, then time; the first ``left`` of each group have left."""

    def __init__(self, page: Page) -> None:
        self.page, self.slots = page, slots_of(page)
        self.left = np.zeros(len(page), np.int32)  # (rows,) in the first row of each group
        self.gone = 0

    @property
    def nbytes(self) -> int:
        return self.page.held_bytes + self.left.nbytes

    def stretches(self, groups: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Return which of ``groups`` had tuples here, and of each the first row, the first that stays, and the end."""
        wanted = groups.astype(np.int32)  # else NumPy's search would copy all slots
        first, end = (self.slots.searchsorted(wanted, side) for side in ("left", "right"))
        of = np.flatnonzero(first < end)
        first, end = first[of], end[of]
        return of, first, first + self.left[first], end

    def until(self, begin: Integers, end: Integers, below: Integers) -> Integers:
        """Return the first row of each stretch that is not below its bound.  O(log rows) each."""
        rows = np.empty(begin.size, np.int64)
        bisect(
            fixed(self.page.times),
            np.stack([begin, end], axis=1).ravel(),
            2 * np.arange(begin.size),
            below,
            rows,
        )
        return np.where(below == FOREVER, end, rows)

    def rest(self) -> Page:
        """Return the tuples that stay."""
        if not self.gone:
            return self.page
        first = begins_of(self.slots)
        begin, end = first + self.left[first], ends_of(first, self.slots.size)
        return reordered(self.page, spread(begin, end - begin)[1])


class GroupBuffer:
    """Holds pages of ``schema``, whose column ``\\0slot`` has the group of each tuple; ``tuples`` tells how many."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._runs: list[_Run] = []  # the oldest tuples first
        self._first = SlotTimes()
        self.tuples = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the tuples, of those among them that have left, and of timers."""
        return sum(run.nbytes for run in self._runs) + self._first.nbytes

    def _stretches(self, slots: Integers) -> Iterator[tuple[_Run, Integers, Integers, Integers, Integers]]:
        """Yield the runs that had tuples of some groups, the oldest first, and where these are."""
        for run in self._runs if slots.size else ():
            of, first, begin, end = run.stretches(slots)
            if of.size:
                yield run, of, first, begin, end

    def add(self, page: Page) -> None:
        """Take the tuples of a page.  O(log tuples) each, amortised."""
        if not len(page):
            return
        self.tuples += len(page)
        page = _by_group(page.without_arrival())
        self._push(page)
        slots = slots_of(page)
        first = begins_of(slots)
        self._first.reserve(1 + int(slots[-1]))
        self._first.lower(slots[first].astype(np.int64), page.times[first])

    def release(self, below: int) -> Page | None:
        """Return the tuples below ``below``, all at ``FOREVER``, by group, then time, equal ones as they came.

        O(log tuples) for each that leaves, and for each group with a tuple right at the bound.
        """
        slots = self._first.until(below)
        found, later = self._taken(slots, np.full(slots.size, below))
        self._first.put(slots, later)
        return found

    def take(self, slots: Integers, below: Integers) -> Page | None:
        """Return those of some groups, each named once, below their bounds.  O(log tuples) a group and tuple."""
        return self._taken(slots, below)[0]

    def _taken(self, slots: Integers, below: Integers) -> tuple[Page | None, Integers]:
        """Return these tuples, and the time of the first one that stays of each group; ``FOREVER``: none does."""
        parts, later = list[Page](), np.full(slots.size, FOREVER)
        for run, of, first, begin, end in self._stretches(slots):
            until = run.until(begin, end, below[of])
            rows = spread(begin, until - begin)[1]
            if rows.size:
                parts.append(reordered(run.page, rows))
                run.left[first] += (until - begin).astype(np.int32)
                run.gone += rows.size
            stays = until < end
            later[of[stays]] = np.minimum(later[of[stays]], run.page.times[until[stays]])
        if not parts:
            return None, later
        self._settle()
        self.tuples -= sum(map(len, parts))
        return self._together(parts), later

    def at(self, bound: int) -> list[Page]:
        """Return the tuples right at a bound of all groups that has passed those before.  O(log tuples) each."""
        slots = self._first.until(bound)
        return self.right_at(slots, np.full(slots.size, bound))

    def right_at(self, slots: Integers, bounds: Integers) -> list[Page]:
        """Return the tuples of some groups right at their bounds.  O(log tuples) a group and tuple."""
        parts = list[Page]()
        for run, of, _, begin, end in self._stretches(slots):
            low, high = (run.until(begin, end, some[of]) for some in (bounds, shift(bounds, 1)))
            if (low < high).any():
                parts.append(reordered(run.page, spread(low, high - low)[1]))
        return parts

    def of(self, slots: Integers) -> Page | None:
        """Return all tuples of some groups, each named once.  O(log tuples) a group and tuple."""
        parts = [
            reordered(run.page, spread(begin, end - begin)[1])
            for run, _, _, begin, end in self._stretches(slots)
        ]
        return self._together(parts) if parts else None

    def save(self) -> dict[str, Any]:
        """Return the tuples for a snapshot, as a ``ReorderBuffer`` that has them does.  O(tuples)."""
        buffer = ReorderBuffer(self._schema, owned=True)
        for run in self._runs:
            buffer.add(run.rest())
        return buffer.save()

    def _settle(self) -> None:
        """Drop the tuples that have left the runs from the first one on that has lost half of them."""
        for number, run in enumerate(self._runs):
            if 2 * run.gone > len(run.page):
                rest = [one.rest() for one in self._runs[number:]]
                del self._runs[number:]
                for page in rest:
                    self._push(page)
                return

    def _push(self, page: Page) -> None:
        """Let tuples be the last run; runs that are not twice as long are merged with it."""
        if not len(page):
            return
        while self._runs and len(self._runs[-1].page) < 2 * len(page):
            page = self._together([self._runs.pop().rest(), page])
        self._runs.append(_Run(page))

    def _together(self, parts: list[Page]) -> Page:
        """Return the tuples of runs, the oldest first, by group, then time."""
        return parts[0] if len(parts) == 1 else _by_group(concat(self._schema, parts))


def _by_group(page: Page) -> Page:
    """Return tuples by group, then time, equal times as they are."""
    by_time = time_order(page.times)
    return reordered(page, by_time[time_order(fixed(slots_of(page)[by_time].astype(np.int64)))])
