"""Final tuples: those that a bound has passed, put in order and numbered."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.ordering.time_sorted import reordered
from oop_engine.operators.slicing.ordered.held import Taken
from oop_engine.operators.slicing.ordered.slice_table import SliceRows
from oop_engine.operators.values.columns import begins_of
from oop_engine.operators.windows.folding import FinalTuples

__all__ = ["in_order_of", "numbered"]

Integers = NDArray[np.int64]


def in_order_of(taken: Taken, tie: tuple[str, ...], *, by_group: bool) -> Taken:
    """Return tuples by (group), time, tie and arrival.  O(n), with a tie O(n log n)."""
    page, slots = taken.page, taken.slots
    grouped = by_group and bool((slots[1:] != slots[:-1]).any())
    if tie:
        codes = [pc.rank(page.column(name), tiebreaker="dense").to_numpy().astype(np.int64) for name in tie]
        order = np.lexsort((*codes[::-1], page.times, *([slots] if grouped else [])))
    elif grouped:
        order = time_order(slots)
    else:
        return taken
    return Taken(reordered(page, order), slots[order], taken.tags[order] if taken.tags.size else taken.tags)


def numbered(taken: Taken, slots: Integers, done: Integers, table: SliceRows) -> tuple[FinalTuples, Integers]:
    """Return tuples that are in order with their ranks, and the slot of each group.

    ``slots``: of the groups that number them; ``done``: how many each had before; ``table``: the slices there are.
    """
    starts = begins_of(slots)
    of = slots[starts]
    lengths = np.diff(starts, append=slots.size)
    if of.size == 1:
        ranks, groups = np.arange(int(done[of[0]]), int(done[of[0]]) + slots.size), np.zeros_like(slots)
    else:
        ranks = np.arange(slots.size) + np.repeat(done[of] - starts, lengths)
        groups = np.repeat(np.arange(of.size), lengths)
    last = np.searchsorted(table.slots, of, side="right") - 1
    there = (last >= 0) & (table.slots[last] == of) if table.slots.size else np.zeros(of.size, np.bool_)
    opened, since, until = np.full((3, of.size), -1)
    at = last[there]
    opened[there], since[there], until[there] = table.places[at], table.first[at], table.last[at]
    page: Page = taken.page
    return FinalTuples(groups, starts, page.times, ranks, taken.tags, page, opened, since, until), of
