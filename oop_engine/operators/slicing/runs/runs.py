"""Runs: partial aggregates of neighbouring tuples of a group, in columns, and how they are merged.

Rows come as they are put, so parts of one may be there several times.  An ``Identity`` tells which are one: panes
that are the same (``EQUAL``), or sessions that overlap (``overlapping``).  ``held_runs.py`` keeps them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.aggregates.ragged import listed
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.values.columns import Integers, bytes_of, joined, new_rows, rows_of

__all__ = ["BY_GROUP", "EQUAL", "Identity", "Runs", "Sides", "order_of", "overlapping"]

Begins = Callable[[Integers, Integers, Integers], NDArray[np.bool_]]
Sides = Callable[[int, int], tuple[int, int]]
"""Returns where a window starts and ends, by its first and last place."""


class Identity(NamedTuple):
    """Which rows belong together, by their slots, first and last.

    ``order``: of rows; ``begins``: which rows, so ordered, do not belong to the one before.
    """

    order: Callable[[Integers, Integers, Integers], Integers]
    begins: Begins


class Runs(NamedTuple):
    """Rows: group ``slots``, ``first`` and ``last`` place (times or windows), int64 (n,), columns (n,) of each part.

    ``marks``: columns (n,) of the store's own; of rows that are merged, the marks of the first one stay.
    """

    slots: Integers
    first: Integers
    last: Integers
    states: list[Arrays]
    marks: Arrays = ()

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.slots.size)

    @property
    def partials(self) -> int:
        """How many partial aggregates there are: rows, or the values in them, where states are lists."""
        return listed(self.states, self.size)

    @property
    def nbytes(self) -> int:
        return bytes_of([self[:3], self.marks, *self.states])

    def take(self, rows: NDArray[Any] | slice) -> Runs:
        """Return some of the rows."""
        (slots, first, last), marks, *states = rows_of([self[:3], self.marks, *self.states], rows)
        return Runs(slots, first, last, states, marks)

    def joined(self, *others: Runs) -> Runs:
        """Return the rows of several, one behind the other."""
        some = [runs for runs in (self, *others) if runs.slots.size]
        if len(some) < 2:
            return some[0] if some else self
        (slots, first, last), marks, *states = joined([[runs[:3], runs.marks, *runs.states] for runs in some])
        return Runs(slots, first, last, states, marks)


EQUAL = Identity(
    lambda slots, first, last: order_of(first + last, slots),
    lambda slots, first, last: new_rows(first + last, slots),
)
"""Panes of a group are one if they are the same, in the order of panes.

Both ends of panes grow with time, so no two have the same sum.
"""

BY_GROUP = Identity(
    lambda slots, first, last: order_of(slots, first),
    lambda slots, first, last: new_rows(slots, first),
)
"""Rows of a group are one if they are of the same window, in the order of groups, then windows."""


def overlapping(begins: Begins) -> Identity:
    """Return the identity of runs that join by ``begins``, of rows by slot, then first."""
    return Identity(lambda slots, first, _: order_of(slots, first), begins)


def order_of(major: Integers, minor: Integers) -> Integers:
    """Return the stable order by one, then the other; by radix where both fit one number."""
    if not major.size:
        return np.empty(0, np.int64)
    least, low = int(np.minimum.reduce(major)), int(np.minimum.reduce(minor))
    span = int(np.maximum.reduce(minor)) - low + 1
    if span * (int(np.maximum.reduce(major)) - least + 1) > FOREVER:
        return np.lexsort((minor, major))
    order: Integers = time_order((major - least) * span + (minor - low))
    return order
