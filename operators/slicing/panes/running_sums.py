"""Running sums: windows of counts and integer sums as differences of two sums over the slices from the first one on.

Two reads a window, however long it is, where windows by far outnumber slices.  Sums are taken modulo 2**64, so a
difference is right whenever it fits 64 bits; whether it does is asked of sums of upper and lower halves.

Source: prefix sums; Traub et al., Scotty, TODS 2021 (invertible aggregates).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels.slices import closing
from oop_engine.operators.slicing.accumulator import Accumulator, SumOverflowError

__all__ = ["RunningSums", "summable"]

Integers = NDArray[np.int64]

_SAFE = float(1 << 62)
_LOWER = (1 << 32) - 1


def summable(parts: Sequence[Accumulator]) -> bool:
    """Tell whether all are one integer that can be taken away again."""
    return all(of.invertible and [v.dtype.kind for v in of.identity] == ["i"] for of in parts)


class RunningSums(NamedTuple):
    """``windows`` int64 (3, n) as of ``kernels.slices.plan``, ``sides`` as of ``closing``; ``rows`` of the ring."""

    windows: Integers
    sides: Integers
    rows: Integers

    @classmethod
    def planned(
        cls, shape: Integers, grid: Integers, span: Sequence[int], room: int, mask: int
    ) -> RunningSums:
        """Return the windows of a span, ``room`` at most; ``mask``: where slices are in the ring, -1: one by one."""
        windows, sides = np.empty((3, room), np.int64), np.empty((2, room), np.int64)
        found = closing(shape, grid, np.array(span), windows, sides)
        slices = np.arange(span[0], span[1] + 1)
        rows = slices & mask if mask >= 0 else slices - span[0]
        return cls(windows[:, :found], sides[:, :found], rows)

    @property
    def scratch(self) -> int:
        """Rows of running sums."""
        return self.rows.size + 1

    def work(self, groups: int, cells: Integers | None, slots: Integers) -> _Sums:
        """Return the worker that sums columns of the ring, which has so many ``groups``; see ``slice_windows``."""
        return _Sums(self, groups, cells, slots)


class _Sums(NamedTuple):
    """Takes differences in columns of states."""

    made: RunningSums
    groups: int
    cells: Integers | None
    slots: Integers

    def folded(self, of: Accumulator, state: Arrays) -> Arrays:
        """Return a column (windows, groups).  Raises ``SumOverflowError``."""
        [column] = state
        values = self._values(column)
        if float(np.abs(values, dtype=np.float64).sum(axis=0).max(initial=0)) >= _SAFE:
            self._check(of, values)
        return (self._differences(values),)

    def _values(self, column: NDArray[Any]) -> Integers:
        if self.cells is not None:
            values: Integers = column.take(self.cells)
            return values
        begin = int(self.slots[0])
        return column.reshape(-1, self.groups)[self.made.rows, begin : begin + self.slots.size]

    def _differences(self, values: Integers) -> Integers:
        running = np.zeros((values.shape[0] + 1, values.shape[1]), np.int64)
        np.cumsum(values, axis=0, out=running[1:])
        low, high = self.made.sides
        difference: Integers = running[high]
        difference -= running[low]
        return difference

    def _check(self, of: Accumulator, values: Integers) -> None:
        lower = self._differences(values & _LOWER)
        upper = self._differences(values >> 32) + (lower >> 32)
        if (wrong := np.argwhere((upper < -(1 << 31)) | (upper >= 1 << 31))).size:
            at, group = wrong[0].tolist()
            raise SumOverflowError(of.part.column, at, group)

    def window_of(self, at: int) -> int:
        """Return the window of a row of results."""
        return at
