"""Lateness: how far tuples come behind the largest value before them, as a histogram of fixed size.

A quantile read from it is never below the true one and at most 1/64 above it; how many
tuples lie above such a value is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.punctuation import NEVER

__all__ = ["Histogram", "OwnLateness", "behind"]

Ints = NDArray[np.int64]

_BITS = 6
_BINS = (65 - _BITS) << _BITS  # 2^63 - 1 is 2^63 as a float


def behind(largest: Ints, times: Ints) -> Ints:
    """Return ``largest - times``, none of which is below 0, int64 (n,): 2^63 - 1 where it is more.

    >>> int(behind(np.array([2**63 - 1]), np.array([-(2**63)]))[0]) == 2**63 - 1
    True
    """
    apart = largest.view(np.uint64) - times.view(np.uint64)
    return np.minimum(apart, np.uint64(2**63 - 1)).view(np.int64)


class Histogram:
    """Counts of integers from 0, in 3,776 bins: exact below 128, then 64 bins for each power of two."""

    def __init__(self) -> None:
        self.counts = np.zeros(_BINS, np.int64)  # (bins,)
        self.total = 0
        self.most = 0

    def add(self, values: Ints) -> None:
        """Count some values, int64 (n,), none below 0.  O(n)."""
        if len(values):
            self.counts += np.bincount(_bins(values), minlength=_BINS)
            self.total += len(values)
            self.most = max(self.most, int(values.max()))

    def quantile(self, share: float) -> int:
        """Return a value that at least ``share`` of the values do not exceed."""
        if not self.total:
            return 0
        enough = int(np.searchsorted(np.cumsum(self.counts), share * self.total))
        return min(_upper(min(enough, _BINS - 1)), self.most)

    def above(self, value: int) -> int:
        """Return how many values exceed a quantile (exact), or any value (at the precision of the bins)."""
        if value >= self.most:
            return 0
        return int(self.counts[int(_bins(np.array([value]))[0]) + 1 :].sum())


class OwnLateness:
    """How far each tuple comes behind the largest value of its own group."""

    def __init__(self, index: GroupIndex) -> None:
        self._index = index
        self._largest = np.full(0, NEVER)  # (groups,)

    def add(self, times: Ints, slots: Ints) -> Ints:
        """Return the lateness of the next tuples, int64 (n,), 0 for one that is not late.  O(n log n)."""
        more = len(self._index) - len(self._largest)
        self._largest = np.concatenate([self._largest, np.full(more, NEVER)])
        lateness = behind(np.maximum(self._largest[slots], running_maximum(times, slots)), times)
        np.maximum.at(self._largest, slots, times)
        return lateness


def running_maximum(times: Ints, slots: Ints) -> Ints:
    """Return the largest value so far within each row's group, int64 (n,).

    The groups are laid one behind the other, as ranks, so that one running maximum serves them all.
    """
    values, ranks = np.unique(times, return_inverse=True)
    by_group = np.argsort(slots, kind="stable")
    first = slots[by_group] * len(values)  # grows from group to group by more than any rank
    running = np.maximum.accumulate(first + ranks[by_group]) - first
    largest = np.empty_like(times)
    largest[by_group] = values[running]
    return largest


def _bins(values: Ints) -> Ints:
    """Return the bin of each value; one too many from rounding to float falls into the same bin."""
    exponents = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    shifts = np.maximum(exponents - _BITS, 0)
    bins: Ints = (shifts << _BITS) + (values >> shifts)
    return bins


def _upper(at: int) -> int:
    """Return the largest value of a bin."""
    if at < 2 << _BITS:
        return at
    shift = (at >> _BITS) - 1
    return ((at - (shift << _BITS) + 1) << shift) - 1
