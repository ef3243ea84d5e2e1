"""Window plans: how windows come about from slices in a ring, for groups side by side.

``Stacks`` combines slices with two stacks, or from shorter windows, step by step (lazy).

``RunningSums`` has windows of counts and integer sums as differences of two sums over the slices from the first one on:
two reads a window, however long it is, where windows by far outnumber slices.  Sums are taken modulo 2**64, so a
difference is right whenever it fits 64 bits; whether it does is asked of sums of upper and lower halves.

``TreePlan`` reads few windows of very many slices from a ``SliceTree``: slices combined by twos, by fours, and so on
(eager).  So a window costs two nodes a level, and a slice that changed one, where stacks go through all slices of a
window.  A node may be of slices that no window has together.  If its integer sum does not fit 64 bits that tells
nothing of windows, so then slices are read one by one.

Source: prefix sums, eager slicing: Traub et al., Scotty, TODS 2021; trees: Tangwongsan, Hirzel, Schneider, Wu, VLDB
2015 (FlatFAT).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.partials import HIGH, LOW
from oop_engine.operators.kernels.slice_plans import climb, descend
from oop_engine.operators.kernels.slices import closing, measure, plan
from oop_engine.operators.slicing.accumulator import Accumulator, filled, result_of
from oop_engine.operators.slicing.accumulators import accumulator
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.values.columns import Integers, bytes_of

__all__ = ["TUPLES", "Block", "RunningSums", "SliceTree", "Stacks", "TreePlan", "WindowShape", "summable"]

TUPLES = accumulator(Part("count"))
"""Keeps how many tuples there are in a cell."""

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


class WindowShape(NamedTuple):
    """Windows in slices: ``shape`` and ``grid`` as of ``kernels.slices``; the ``longest`` window has so many slices."""

    shape: Integers
    grid: Integers
    longest: int

    def measured(self, spans: Integers) -> Integers:
        """Return how many windows and steps each span takes at most, int64 (2, spans)."""
        room = np.empty((2, len(spans)), np.int64)
        measure(self.shape, self.grid, spans, self.longest, room)
        return room


class Stacks(NamedTuple):
    """``steps`` int64 (3, n) and ``windows`` int64 (3, n) as ``kernels.slices.plan`` has them, and rows of scratch."""

    steps: Integers
    windows: Integers
    scratch: int

    @classmethod
    def planned(cls, of: WindowShape, spans: Integers, shifts: Integers, mask: int, room: Integers) -> Stacks:
        """Return the steps for windows of some spans; ``room``: of these, as ``measured``."""
        windows, steps = (room if len(spans) == 1 else room.sum(axis=1)).ravel().tolist()
        made, closing = np.empty((3, steps), np.int64), np.empty((3, windows), np.int64)
        ends = np.empty((2, of.shape.shape[1]), np.int64)
        used, found = plan(of.shape, of.grid, spans, shifts, mask, made, closing, ends)
        # Contiguous, whether there is room left or not: loops are compiled once, not twice.
        return cls(np.ascontiguousarray(made[:, :used]), closing[:, :found], min(of.longest, steps) + 1)

    def folded(self, of: Accumulator, state: Arrays, block: Block) -> Arrays:
        """Return columns (windows, groups) of states that are kept by ``of``.  Raises ``SumOverflowError``."""
        rows = self.scratch, self.windows.shape[1]
        return of.fold_rows(tuple(map(block.rows, state)), block.begin, block.wide, rows, self.steps)

    def window_of(self, step: int) -> int:
        """Return the window for which a step is taken, at which a sum did not fit."""
        return result_of(self.steps, step)


def summable(parts: Sequence[Accumulator]) -> bool:
    """Tell whether all are an integer, or a carried sum, that can be taken away again."""
    return all(
        of.invertible and (of.by_times or [v.dtype.kind for v in of.identity] == ["i"]) for of in parts
    )


class RunningSums(NamedTuple):
    """``windows`` int64 (3, n) as of ``kernels.slices.plan``, ``sides`` as of ``closing``; ``slices`` of the ring."""

    windows: Integers
    sides: Integers
    slices: Integers

    @classmethod
    def planned(cls, of: WindowShape, span: Sequence[int], room: int, mask: int) -> RunningSums:
        """Return the windows of a span, ``room`` at most; ``mask``: where slices are in the ring, -1: one by one."""
        windows, sides = np.empty((3, room), np.int64), np.empty((2, room), np.int64)
        found = closing(of.shape, of.grid, np.array(span), windows, sides)
        slices = np.arange(span[LOW], span[HIGH] + 1)
        slices = slices & mask if mask >= 0 else slices - span[LOW]
        return cls(windows[:, :found], sides[:, :found], slices)

    @property
    def scratch(self) -> int:
        """Rows of running sums."""
        return self.slices.size + 1

    def folded(self, of: Accumulator, state: Arrays, block: Block) -> Arrays:
        """Return columns (windows, groups), as ``Stacks``: sums, and where it is kept how often each wrapped."""
        values, *carries = map(block.rows, state)
        if block.cells is None:
            some = self.slices, slice(block.begin, block.begin + block.wide)
            values, *carries = values[some], *(column[some] for column in carries)
        sums = self._differences(values)
        if not carries:
            return (sums,)
        [wraps] = carries
        if not wraps.any() and float(np.abs(values, dtype=np.float64).sum(axis=0).max(initial=0)) < _SAFE:
            return sums, np.zeros(sums.shape, wraps.dtype)
        upper = self._differences((values >> 32) + (wraps.astype(np.int64) << 32))  # in units of 2**32
        upper += self._differences(values & _LOWER) >> 32
        return sums, ((upper - (sums >> 32)) >> 32).astype(wraps.dtype)

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


class SliceTree:
    """The nodes above the slices of ``ring``; a window has ``longest`` of them at most.

    A slice that tuples come into makes the nodes above it stale; these are combined anew when windows are read.  The
    nodes take twice as much memory as the ring.
    """

    def __init__(self, ring: PaneRing, longest: int) -> None:
        self._ring, self._longest = ring, longest
        self.clear()

    def clear(self) -> None:
        """Forget the nodes: they are made anew when they are read."""
        self._nodes: dict[int, Arrays] = {}
        self._of: NDArray[np.generic] | None = None
        self._stale = np.empty(0, np.bool_)
        self._low, self._high = 0, -1

    @property
    def nbytes(self) -> int:
        return self._stale.nbytes + bytes_of(list(self._nodes.values()))

    def touch(self, slices: Integers) -> None:
        """Learn that tuples came into slices.  O(tuples)."""
        if self._stale.size:
            self._stale[slices & (self._stale.size - 1)] = True

    def planned(self, windows: Integers, sides: Integers, lowest: int) -> TreePlan:
        """Return how windows are read, as of ``kernels.slices.closing``; slices are as they are now."""
        ring, held = self._ring, self._held()
        if self._of is not ring.tuples or {id(of) for of, _ in held} != set(self._nodes):
            self._make(held)
        self._note_reach()
        rows = np.flatnonzero(self._stale)
        self._copy(rows)
        self._stale[rows] = False
        top = 1 << (min(self._longest, ring.room).bit_length() - 1)
        return TreePlan(windows, sides, lowest, rows, (ring.room, ring.groups, top), self._nodes, {})

    def _held(self) -> list[tuple[Accumulator, Arrays]]:
        """Return the columns of slices, and how each is kept."""
        ring = self._ring
        parts = zip(ring.accumulators, ring.columns, strict=True)
        return [(TUPLES, (ring.tuples,)), *((of, state) for of, state in parts if state is not None)]

    def _make(self, held: list[tuple[Accumulator, Arrays]]) -> None:
        self.clear()
        self._of, self._stale = self._ring.tuples, np.ones(self._ring.room, np.bool_)
        cells = 2 * self._ring.room * self._ring.groups
        for of, state in held:
            pairs = zip(state, of.identity, strict=True)
            self._nodes[id(of)] = tuple(
                filled(cells, column.dtype.type(nothing)) for column, nothing in pairs
            )

    def _note_reach(self) -> None:
        """Learn which slices have come into the ring, or left it."""
        ring = self._ring
        low, high = self._low, self._high
        for begin, stop in (
            (low, min(high + 1, ring.low)), (max(low, ring.high + 1), high + 1),
            (ring.low, min(ring.high + 1, low)), (max(ring.low, high + 1), ring.high + 1),
        ):  # fmt: skip
            if begin < stop:
                self._stale[np.arange(begin, min(stop, begin + ring.room)) & (ring.room - 1)] = True
        self._low, self._high = ring.low, ring.high

    def _copy(self, rows: Integers) -> None:
        """Copy slices to the leaves of ``rows``; a row without a slice is empty."""
        ring = self._ring
        inside = ring.low + ((rows - ring.low) & (ring.room - 1)) <= ring.high
        for of, state in self._held():
            for column, nodes, nothing in zip(state, self._nodes[id(of)], of.identity, strict=True):
                leaves = nodes.reshape(2 * ring.room, -1)[ring.room :]
                leaves[rows[inside]] = ring.rows(column)[rows[inside]]
                leaves[rows[~inside]] = nothing


class TreePlan(NamedTuple):
    """``windows`` int64 (3, n) and ``sides`` as of ``kernels.slices.closing``; the leaves that are stale; the nodes.

    ``made``: the steps of a block of groups, by its first one.
    """

    windows: Integers
    sides: Integers
    lowest: int
    stale: Integers
    shape: tuple[int, int, int]
    nodes: dict[int, Arrays]
    made: dict[int, Integers]

    @property
    def scratch(self) -> int:
        """How many steps there are for a group at most."""
        at_once: int = self.stale.size + 2 * self.windows.shape[1]
        return at_once * (self.shape[2].bit_length() + 2)

    def folded(self, of: Accumulator, state: Arrays, block: Block) -> Arrays:
        """Return columns (windows, groups) of states that are kept by ``of``.  Raises ``SumOverflowError``."""
        if block.begin not in self.made:
            self.made.clear()
            self.made[block.begin] = self._steps(block.begin, block.begin + block.wide)
        windows = self.windows.shape[1]
        found = of.fold_steps(self.nodes[id(of)], self.made[block.begin], windows * block.wide)
        return tuple(column.reshape(windows, -1) for column in found)

    def _steps(self, begin: int, stop: int) -> Integers:
        """Return the steps that combine and read the nodes of some groups."""
        steps = np.empty((3, self.scratch * (stop - begin)), np.int64)
        used = climb(self.stale, self.shape, begin, stop, steps)
        return steps[:, : descend(self.sides, self.lowest, self.shape, begin, stop, steps, used)]

    def window_of(self, step: int) -> int:
        """Return some window: the slices are read again without nodes."""
        return 0
