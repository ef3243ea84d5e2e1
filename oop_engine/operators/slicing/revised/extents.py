"""Matching: which windows the extents of versions are, or have become a part of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.slicing.tagger import ranks
from oop_engine.operators.values.columns import Integers

__all__ = ["Extents", "Matching", "within"]

Extents = tuple[Integers, Integers, Integers, Integers]
"""Groups, definitions, starts and ends of windows, int64 (n,) each."""


class Matching:
    """Finds the window that an extent is, or has become a part of, by definitions, bool (definitions,) each.

    Windows ``on_grid`` are found by their ends, those that are ``copied`` if they are the same, others where they
    contain the extent.
    """

    def __init__(self, on_grid: NDArray[np.bool_], copied: NDArray[np.bool_]) -> None:
        self._all_on_grid, self._copied = bool(on_grid.all()), copied

    def __call__(self, windows: Extents, some: Extents) -> Integers:
        """Return for each of some extents its window, -1: none."""
        found = np.full(some[0].size, -1)
        if not windows[0].size or not found.size:
            return found
        slots, numbers, starts, ends = some
        near = np.flatnonzero((ends > windows[2].min()) & (starts < windows[3].max()))
        few = slots[near], numbers[near], starts[near], ends[near]
        found[near] = _alike(windows, few) if self._all_on_grid else within(windows, few)
        if (copied := self._copied[numbers]).any():
            found[copied] = _exactly(windows, some)[copied]
        return found


def within(windows: Extents, some: Extents) -> Integers:
    """Return for each of some extents the window that it lies in, -1: none.

    Both are slots, definitions, starts and ends, int64 (n,).  Windows of a group and definition are apart, or all of
    one length.  O(n log n).
    """
    count = windows[0].size
    slots, numbers, starts, ends = (np.concatenate(pair) for pair in zip(windows, some, strict=True))
    is_window = np.arange(slots.size) < count
    order = np.lexsort((~is_window, starts, numbers, slots))
    ranked = order[is_window[order]]  # the windows, in order
    before = np.empty(slots.size, np.int64)
    before[order] = np.cumsum(is_window[order]) - 1
    at = before[count:]
    if not count:
        return np.full(at.size, -1)
    window = ranked[at]
    same = (slots[window] == slots[count:]) & (numbers[window] == numbers[count:])
    return np.where((at >= 0) & same & (ends[window] >= ends[count:]), window, -1)


def _alike(windows: Extents, some: Extents) -> Integers:
    """Return for each of some extents of a grid the window that it is, -1: none.

    ``windows`` are by end, then definition, then group.  O(log windows) for each of ``some``.
    """
    least, groups = int(windows[3][0]), int(windows[0].max()) + 1
    numbers = int(windows[1].max()) + 1
    if (int(windows[3][-1]) - least + 1) * groups * numbers > FOREVER:
        return within(windows, some)
    each = windows, some
    codes, wanted = (((ends - least) * numbers + of) * groups + slots for slots, of, _, ends in each)
    at = np.minimum(np.searchsorted(codes, wanted), codes.size - 1)
    same = (windows[0][at] == some[0]) & (windows[1][at] == some[1]) & (windows[3][at] == some[3])
    return np.where(same, at, -1)


def _exactly(windows: Extents, some: Extents) -> Integers:
    """Return for each of some extents the window that is the same, -1: none; of several the first for the first.

    Both are slots, definitions, starts and ends, int64 (n,).
    """
    count, columns = windows[0].size, [np.concatenate(pair) for pair in zip(windows, some, strict=True)]
    same = GroupIndex([pa.int64()] * 4, IN_KERNELS).encode(list(map(pa.array, columns)), columns[0].size)
    pairs = GroupIndex([pa.int64()] * 2, IN_KERNELS)
    pairs.encode([pa.array(same[:count]), pa.array(ranks(same[:count]))], count)
    return pairs.find([pa.array(same[count:]), pa.array(ranks(same[count:]))], some[0].size)
