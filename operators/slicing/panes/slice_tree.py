"""Slice tree: slices of a ring, combined by twos, by fours, and so on, so that a window is a few nodes (eager).

A slice that tuples come into makes the nodes above it stale; these are combined anew when windows are read.  So a
window costs two nodes a level, and a slice one, where stacks go through all slices of a window (lazy).  The nodes take
twice as much memory as the ring.

A node may be of slices that no window has together.  If its integer sum does not fit 64 bits that tells nothing of
windows, so then slices are read one by one.

Source: Tangwongsan, Hirzel, Schneider, Wu, VLDB 2015 (FlatFAT); Traub et al., Scotty, TODS 2021 (eager slicing).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels.slice_plans import climb, descend
from oop_engine.operators.slicing.accumulator import Accumulator, filled
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.panes.pane_windows import TUPLES
from oop_engine.operators.slicing.panes.window_plans import Block
from oop_engine.operators.values.columns import Integers, bytes_of

__all__ = ["SliceTree", "TreePlan"]


class SliceTree:
    """The nodes above the slices of ``ring``; a window has ``longest`` of them at most."""

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
        ring = self._ring
        kept = [(id(of), state) for of, state in zip(ring.accumulators, ring.columns, strict=True)]
        if self._of is not ring.tuples or {of for of, state in kept if state is not None} != set(
            self._nodes
        ) - {id(TUPLES)}:
            self._make()
        self._note_reach()
        rows = np.flatnonzero(self._stale)
        self._copy(rows)
        self._stale[rows] = False
        top = 1 << (min(self._longest, ring.room).bit_length() - 1)
        return TreePlan(windows, sides, lowest, rows, (ring.room, ring.groups, top), self._nodes, {})

    def _make(self) -> None:
        ring = self._ring
        self.clear()
        self._of, self._stale = ring.tuples, np.ones(ring.room, np.bool_)
        cells = 2 * ring.room * ring.groups
        self._nodes[id(TUPLES)] = (np.zeros(cells, ring.tuples.dtype),)
        for of, state in zip(ring.accumulators, ring.columns, strict=True):
            if state is not None:
                self._nodes[id(of)] = tuple(filled(cells, value) for value in of.identity)

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
        states = [(TUPLES, (ring.tuples,)), *zip(ring.accumulators, ring.columns, strict=True)]
        for of, state in states:
            for column, nodes, nothing in zip(
                state or (), self._nodes.get(id(of), ()), of.identity, strict=state is not None
            ):
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
