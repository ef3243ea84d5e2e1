"""Kernels of the window joins: ranges of matches in tuples sorted by (slot, time)."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["expand", "merge_order", "ranges"]

Ints = NDArray[np.int64]


@njit(cache=True)  # type: ignore[untyped-decorator]
def ranges(slots: Ints, low: Ints, high: Ints, run_slots: Ints, run_times: Ints) -> tuple[Ints, Ints]:
    """Find, for each probe, the stored tuples of its slot with ``low <= time <= high``.

    ``slots, low, high``: int64 (probes,), sorted by (slot, low).  ``run_slots, run_times``:
    int64 (stored,), sorted by (slot, time).  Returns ``first`` and ``ends``, int64 (probes,):
    where each range starts, and the running total of the ranges' lengths.  The probes walk
    through the run by galloping: O(probes x log(stored / probes) + matches).
    """
    probes, stored = slots.size, run_slots.size
    first = np.empty(probes, np.int64)
    ends = np.empty(probes, np.int64)
    at, total = 0, 0
    for i in range(probes):
        slot, lowest, highest = slots[i], low[i], high[i]
        step, stop = 1, at
        while stop < stored and (
            run_slots[stop] < slot or (run_slots[stop] == slot and run_times[stop] < lowest)
        ):
            at = stop + 1
            stop += step
            step *= 2
        stop = min(stop, stored)
        while at < stop:
            middle = (at + stop) // 2
            if run_slots[middle] < slot or (run_slots[middle] == slot and run_times[middle] < lowest):
                at = middle + 1
            else:
                stop = middle
        first[i] = at
        k = at
        while k < stored and run_slots[k] == slot and run_times[k] <= highest:
            k += 1
        total += k - at
        ends[i] = total
    return first, ends


@njit(cache=True)  # type: ignore[untyped-decorator]
def expand(first: Ints, ends: Ints, start: int, stop: int) -> tuple[Ints, Ints]:
    """Write out matches number ``start`` to ``stop`` of what ``ranges`` found.

    Returns the probe and the stored tuple of each, int64 (stop - start,).
    """
    probe = np.empty(stop - start, np.int64)
    stored = np.empty(stop - start, np.int64)
    i = np.searchsorted(ends, start, side="right")
    for n in range(start, stop):
        while ends[i] <= n:
            i += 1
        probe[n - start] = i
        begun = ends[i - 1] if i else 0
        stored[n - start] = first[i] + n - begun
    return probe, stored


@njit(cache=True)  # type: ignore[untyped-decorator]
def merge_order(slots_a: Ints, times_a: Ints, slots_b: Ints, times_b: Ints) -> Ints:
    """Return the order, int64 (a + b,), that sorts two runs laid end to end by (slot, time)."""
    size_a, size_b = slots_a.size, slots_b.size
    order = np.empty(size_a + size_b, np.int64)
    a, b = 0, 0
    for n in range(size_a + size_b):
        if b == size_b:
            from_a = True
        elif a == size_a:
            from_a = False
        else:
            sa, sb = slots_a[a], slots_b[b]
            from_a = sa < sb or (sa == sb and times_a[a] <= times_b[b])
        if from_a:
            order[n] = a
            a += 1
        else:
            order[n] = size_a + b
            b += 1
    return order
