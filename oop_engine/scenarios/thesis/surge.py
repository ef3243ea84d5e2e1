"""The largest rate of tuples that a table of fixed size bears, when a ring holds those that wait for it (thesis 8.4.1).

Virtual time: to take a tuple in costs one unit, to put a partial aggregate out costs ``ROW_OUT``.  Tuples come evenly.
A ring holds so many of them while work piles up; one that comes when it is full is lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.slicing.stores.entry_table import EntryTable
from oop_engine.operators.values.flush import Flush

__all__ = ["Borne", "FixedTable", "largest_rate"]

ROW_OUT = 2
WINDOWS = 4
STEPS = 8  # of bisection: the rate is found to 1/256 of a tuple a unit of work
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
Integers = NDArray[np.int64]


class FixedTable(NamedTuple):
    """A table of ``slots`` for ``groups``; ``window`` is its length in units of work, ``ring`` how many tuples wait."""

    groups: int
    slots: int
    window: int
    ring: int
    seed: int


class Borne(NamedTuple):
    """The largest rate without loss, tuples a unit of work; the share of the time that is work; the largest burst.

    ``burst``: the most partial aggregates that left for one tuple or one punctuation.
    """

    rate: float
    busy: float
    burst: int


def largest_rate(table: FixedTable, flush: Flush) -> Borne:
    """Return the largest rate of a table, by bisection.  O(steps x tuples), in kernels."""
    low, high, found = 0.0, 1.0, Borne(0.0, 0.0, 0)
    for _ in range(STEPS):
        rate = (low + high) / 2
        out = rows_out(table, flush, rate)
        work = 1 + ROW_OUT * out
        if is_lossless(work, rate, table.ring):
            low, found = rate, Borne(rate, float(work.sum() * rate / work.size), int(out.max()))
        else:
            high = rate
    return found


def rows_out(table: FixedTable, flush: Flush, rate: float) -> Integers:
    """Return how many partial aggregates leave for each tuple, int64 (tuples,), or for the punctuation before it."""
    entries = EntryTable([], table.slots, flush, probe=False)
    draw, tuples = np.random.default_rng(table.seed), max(int(rate * table.window), 1)
    out = np.zeros(WINDOWS * tuples + 1, np.int64)
    for window in range(WINDOWS):
        groups = draw.integers(0, table.groups, tuples)
        left = entries.add(groups, np.full(tuples, window), _hashes(groups), None)
        np.add.at(out, window * tuples + left.of, 1)
        out[(window + 1) * tuples] += entries.close(window + 1, window + 1 - flush.within).of.size
    return out[:-1]


def _hashes(groups: Integers) -> Integers:
    bits = (groups.view(np.uint64) + np.uint64(1)) * _SPREAD
    return (bits ^ (bits >> np.uint64(32))).view(np.int64)


def is_lossless(work: Integers, rate: float, ring: int) -> bool:
    """Return whether no tuple comes when ``ring`` others have not been begun."""
    comes = np.arange(work.size) / rate
    before = np.cumsum(work) - work
    begins = before + np.maximum.accumulate(comes - before)
    return bool((begins[:-ring] <= comes[ring:]).all()) if ring < work.size else True
