"""Window plans: how windows come about from slices in a ring, for groups side by side.

``Stacks`` combines slices with two stacks, or from shorter windows, step by step.  ``RunningSums`` has windows of
counts and integer sums as differences of two sums over the slices from the first one on: two reads a window, however
long it is, where windows by far outnumber slices.  Sums are taken modulo 2**64, so a difference is right whenever it
fits 64 bits; whether it does is asked of sums of upper and lower halves.

Source: prefix sums; Traub et al., Scotty, TODS 2021 (invertible aggregates).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels.slices import closing, measure, plan
from oop_engine.operators.slicing.accumulator import Accumulator, SumOverflowError, result_of
from oop_engine.operators.values.columns import Integers

__all__ = ["Block", "RunningSums", "Stacks", "measured", "summable"]

_SAFE = float(1 << 62)
_LOWER = (1 << 32) - 1


class Block(NamedTuple):
    """Groups ``slots`` of a ring of so many ``groups``: in a row, read where they are, or ``cells`` (rows, slots)."""

    groups: int
    cells: Integers | None
    slots: Integers

    @property
    def begin(self) -> int:
        """The column of the first group."""
        return 0 if self.cells is not None else int(self.slots[0])

    @property
    def wide(self) -> int:
        """How many columns there are."""
        return self.slots.size if self.cells is None else self.cells.shape[1]

    def rows(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column of the ring as rows, a row a slice."""
        return column.reshape(-1, self.groups) if self.cells is None else column.take(self.cells)


class Stacks(NamedTuple):
    """``steps`` int64 (3, n) and ``windows`` int64 (3, n) as ``kernels.slices.plan`` has them, and rows of scratch."""

    steps: Integers
    windows: Integers
    scratch: int

    @classmethod
    def planned(
        cls, shape: Integers, grid: Integers, longest: int, spans: Integers, shifts: Integers, mask: int,
        room: Integers,
    ) -> Stacks:  # fmt: skip
        """Return the steps for windows of ``longest`` slices at most; ``room``: of the spans, as ``measured``."""
        windows, steps = (room if len(spans) == 1 else room.sum(axis=1)).ravel().tolist()
        made, closing = np.empty((3, steps), np.int64), np.empty((3, windows), np.int64)
        ends = np.empty((2, shape.shape[1]), np.int64)
        used, found = plan(shape, grid, spans, shifts, mask, made, closing, ends)
        return cls(made[:, :used], closing[:, :found], min(longest, steps) + 1)

    def folded(self, of: Accumulator, state: Arrays, block: Block) -> Arrays:
        """Return columns (windows, groups) of states that are kept by ``of``.  Raises ``SumOverflowError``."""
        rows = self.scratch, self.windows.shape[1]
        return of.fold_rows(tuple(map(block.rows, state)), block.begin, block.wide, rows, self.steps)

    def window_of(self, step: int) -> int:
        """Return the window for which a step is taken, at which a sum did not fit."""
        return result_of(self.steps, step)


def measured(shape: Integers, grid: Integers, spans: Integers, longest: int) -> Integers:
    """Return how many windows and steps each span takes at most, int64 (2, spans)."""
    room = np.empty((2, len(spans)), np.int64)
    measure(shape, grid, spans, longest, room)
    return room


def summable(parts: Sequence[Accumulator]) -> bool:
    """Tell whether all are one integer that can be taken away again."""
    return all(of.invertible and [v.dtype.kind for v in of.identity] == ["i"] for of in parts)


class RunningSums(NamedTuple):
    """``windows`` int64 (3, n) as of ``kernels.slices.plan``, ``sides`` as of ``closing``; ``slices`` of the ring."""

    windows: Integers
    sides: Integers
    slices: Integers

    @classmethod
    def planned(
        cls, shape: Integers, grid: Integers, span: Sequence[int], room: int, mask: int
    ) -> RunningSums:
        """Return the windows of a span, ``room`` at most; ``mask``: where slices are in the ring, -1: one by one."""
        windows, sides = np.empty((3, room), np.int64), np.empty((2, room), np.int64)
        found = closing(shape, grid, np.array(span), windows, sides)
        slices = np.arange(span[0], span[1] + 1)
        slices = slices & mask if mask >= 0 else slices - span[0]
        return cls(windows[:, :found], sides[:, :found], slices)

    @property
    def scratch(self) -> int:
        """Rows of running sums."""
        return self.slices.size + 1

    def folded(self, of: Accumulator, state: Arrays, block: Block) -> Arrays:
        """Return a column (windows, groups), as ``Stacks``."""
        values = block.rows(state[0])
        if block.cells is None:
            values = values[self.slices, block.begin : block.begin + block.wide]
        if float(np.abs(values, dtype=np.float64).sum(axis=0).max(initial=0)) >= _SAFE:
            lower = self._differences(values & _LOWER)
            upper = self._differences(values >> 32) + (lower >> 32)
            if (wrong := np.argwhere((upper < -(1 << 31)) | (upper >= 1 << 31))).size:
                at, group = wrong[0].tolist()
                raise SumOverflowError(of.part.column, at, group)
        return (self._differences(values),)

    def _differences(self, values: Integers) -> Integers:
        running = np.zeros((values.shape[0] + 1, values.shape[1]), np.int64)
        np.cumsum(values, axis=0, out=running[1:])
        low, high = self.sides
        difference: Integers = running[high]
        difference -= running[low]
        return difference

    def window_of(self, at: int) -> int:
        """Return the window of a row of results."""
        return at
