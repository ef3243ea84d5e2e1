"""Blocks: where a stream falls into parts of which each lies wholly before the next.

A *part* is a run of tuples, as short as possible, such that no later tuple is smaller than
any of it.  In an ordered stream every tuple is one; in a band of disorder parts merge to
ones much longer than the disorder; in a block-sorted stream they are the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.knobs import knob
from oop_engine.traces.lateness import behind

__all__ = ["Blocks"]

Ints = NDArray[np.int64]

_LEAST_TUPLES = knob(__name__, "_LEAST_TUPLES", 8)
_OPEN = knob(__name__, "_OPEN", 4096)
_SIZE, _LOW, _HIGH, _LATE = range(4)


@dataclass
class Blocks:
    """Parts of a stream, found in one pass; the newest 4,096 can still grow together, older ones count as done.

    ``tuples``: in all; ``parts``: with at least 8 tuples; ``in_parts``: tuples in these;
    ``filled``: tuples in those of them whose most late tuple spans at least half of
    the part, as it does when a part is in random order.
    """

    tuples: int = 0
    parts: int = 0
    in_parts: int = 0
    filled: int = 0
    span: int = 0

    def __post_init__(self) -> None:
        self._open = np.empty((4, 0), np.int64)  # (size, low, high, late; parts)  ascending

    def add(self, times: Ints) -> None:
        """Take the next tuples, int64 (n,).  O(n)."""
        if not len(times):
            return
        self.tuples += len(times)
        fresh = _parts(times)
        merged = self._open[_HIGH] > fresh[_LOW, 0]  # a suffix, for parts ascend
        if merged.any():
            joined = fresh[_LOW] < self._open[_HIGH, -1]  # a prefix
            merged_blocks = _joined(self._open[:, merged], fresh[:, joined])
            self._open, fresh = self._open[:, ~merged], np.hstack([merged_blocks, fresh[:, ~joined]])
        self._open = np.hstack([self._open, fresh])
        self._close(max(self._open.shape[1] - _OPEN, 0))

    def end(self) -> None:
        """Count the parts that were still open."""
        self._close(self._open.shape[1])

    @property
    def are_blocks(self) -> bool:
        """Return whether most tuples are in at least 3 parts which are in random order within."""
        return self.parts >= 3 and 2 * self.filled > self.tuples

    def _close(self, count: int) -> None:
        done, self._open = self._open[:, :count], self._open[:, count:]
        done = done[:, done[_SIZE] >= _LEAST_TUPLES]
        span = behind(done[_HIGH], done[_LOW])
        self.parts += done.shape[1]
        self.in_parts += int(done[_SIZE].sum())
        self.span += sum(span.tolist())
        self.filled += int(done[_SIZE, (done[_LATE] >= span - span // 2) & (span > 0)].sum())


def _parts(times: Ints) -> Ints:
    """Return size, least and largest value, and most lateness of each part of some tuples."""
    largest = np.maximum.accumulate(times)
    least_after = np.minimum.accumulate(times[::-1])[::-1]
    start = np.concatenate([[0], np.flatnonzero(largest[:-1] <= least_after[1:]) + 1])
    return np.stack(
        [
            np.diff(np.append(start, len(times))),
            least_after[start],
            np.maximum.reduceat(times, start),
            np.maximum.reduceat(behind(largest, times), start),
        ]
    )


def _joined(before: Ints, after: Ints) -> Ints:
    """Return the one part, int64 (4, 1), that some parts make with later ones that reach below them."""
    high, low = before[_HIGH, -1], after[_LOW, 0]
    late = max(before[_LATE].max(), after[_LATE].max(), behind(before[_HIGH, -1:], after[_LOW, :1])[0])
    size = before[_SIZE].sum() + after[_SIZE].sum()
    bounds = [min(before[_LOW, 0], low), max(high, after[_HIGH, -1])]
    return np.array([[size], [bounds[0]], [bounds[1]], [late]], np.int64)
