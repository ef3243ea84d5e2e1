"""Slice windows: how windows that close are put together from the slices in a ring.

Where all groups close the same windows, the steps are planned once and taken for all groups side by side, straight from
the ring's rows, in blocks.  Else each group has steps of its own.  Counts and integer sums of very many windows are
differences of running sums, and few windows of very many slices are read from a tree (``window_plans.py``).  Where
there are no groups counts and integer sums are always such differences, made in the order of results; shorter windows
may serve longer ones that close with them (both ``kernels/slice_plans.py``).  Groups with bounds of their own are read
by stacks in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.partials import HIGH, LOW
from oop_engine.operators.kernels.slice_plans import leaving, nested, sums
from oop_engine.operators.kernels.slices import NUMBER, SIDE_FIRST, SIDE_STOP, pick
from oop_engine.operators.slicing.accumulators import Accumulator, SumOverflowError, accumulator
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.panes.shared_slices import Slicing
from oop_engine.operators.slicing.panes.window_plans import (
    TUPLES,
    Block,
    RunningSums,
    SliceTree,
    Stacks,
    TreePlan,
    WindowShape,
    summable,
)
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers
from oop_engine.system.knobs import knob

__all__ = ["Assembly", "SliceWindows", "assembled", "assembly_words", "check_assembly"]

_CELLS = knob(__name__, "_CELLS", 1 << 21)  # put together at a time
_MANY = knob(
    __name__, "_MANY", 8
)  # windows that end in a slice, from which on two reads each are less than the steps of two stacks
_DEEP = knob(__name__, "_DEEP", 1024)  # slices of a window, from which on a tree is worth its memory ...
_FEW = knob(__name__, "_FEW", 64)  # ... if there are so many slices for each window that is read
_WHERE = np.zeros(1, np.int64)  # slices are where they are in the ring


Assembly = Literal["auto", "stacks", "prefix", "tree", "nested"]


def assembled(slicing: Slicing, parts: Sequence[Accumulator], asked: Assembly, *, grouped: bool) -> Assembly:
    """Return how windows are put together: as asked, or by stacks, running sums or a tree as it suits them."""
    if asked != "auto":
        return asked
    if summable(parts) and (slicing.rate > _MANY or (not grouped and slicing.longest <= _DEEP)):
        return "prefix"
    return "tree" if slicing.longest > _DEEP else "stacks"


def check_assembly(asked: Assembly, slicings: Sequence[Slicing], parts: Sequence[Part], place: str) -> None:
    """Raise ``GraphError`` in the name of ``place`` if windows cannot be put together as asked."""
    reason = ""
    if asked != "auto" and not slicings:
        reason = (
            "slices in a ring: windows on a grid (Tumbling, Sliding...), without empty ones, strategy='auto', and no "
            "aggregate of lists"
        )
    elif asked == "prefix" and not summable([accumulator(part) for part in parts]):
        reason = "counts and integer sums alone, which can be taken away again"
    if reason:
        msg = f"{place}: assembly={asked!r} needs {reason}: leave the choice to assembly='auto'"
        raise GraphError(msg)


def assembly_words(slicing: Slicing, parts: Sequence[Accumulator], asked: Assembly, *, grouped: bool) -> str:
    """Return how windows are put together, and why."""
    if asked != "auto":
        words = {
            "stacks": "two stacks", "prefix": "differences of running sums", "tree": "a tree",
            "nested": "slices and shorter windows, of the fewest parts",
        }[asked]  # fmt: skip
        return f"windows by {words}, as asked"
    return {
        "stacks": "windows by two stacks",
        "prefix": "windows by differences of running sums",
        "tree": f"windows by a tree where less than one closes in {_FEW} slices, else by two stacks",
    }[assembled(slicing, parts, asked, grouped=grouped)]


class SliceWindows:
    """Puts windows of ``slicing`` together, from ``panes`` that are its slices.

    ``spans`` int64 (n, 4): the lowest and the highest slice there is, the cut up to which windows have left, and the
    one up to which they leave.  ``grouped``: whether there is a key, and not one group alone.
    """

    def __init__(
        self, slicing: Slicing, panes: PaneRing, assembly: Assembly = "auto", *, grouped: bool = True
    ) -> None:
        self._slicing, self._panes = slicing, panes
        self._shape = WindowShape(slicing.shape, slicing.grid, slicing.longest)
        way = assembled(slicing, panes.accumulators, assembly, grouped=grouped)
        self._by_sums, self._nested, self._always = way == "prefix", way == "nested", assembly == "tree"
        self._by_number = np.ascontiguousarray(slicing.shape[:, np.argsort(slicing.shape[NUMBER])])
        self._tree = SliceTree(panes, slicing.longest) if way == "tree" else None
        self.parts: int | None = 0 if self._nested else None
        """Of how many parts windows were that have left, each as often as it was planned; None: nobody counts."""

    @property
    def nbytes(self) -> int:
        return 0 if self._tree is None else self._tree.nbytes

    def touch(self, times: Integers) -> None:
        """Learn the times of tuples that came."""
        if self._tree is not None and self._tree.nbytes:
            self._tree.touch(self._slicing.base.places(times - self._slicing.origin))

    def forget(self) -> None:
        """Forget what was put together before: some groups lose slices that others keep."""
        if self._tree is not None:
            self._tree.clear()

    def of_all(self, span: Sequence[int]) -> list[WindowStates]:
        """Return the windows of all groups, which have one span.  O((slices + windows) x groups).

        By a tree O((slices that changed + windows) x log slices x groups).
        """
        if self._by_sums and self._panes.groups == 1 and (found := self._of_one(span)) is not None:
            return found
        spans = np.array([span])
        if self._tree is not None:
            windows = int(self._shape.measured(spans)[0, 0])
            if self._always or windows * _FEW < span[HIGH] - span[LOW]:
                try:
                    read = RunningSums.planned(self._shape, span, windows, -1)
                    if not read.windows.size:
                        return []  # and nodes stay stale: none would be combined anew
                    return self._in_blocks(self._tree.planned(read.windows, read.sides, span[LOW]))
                except WindowOverflowError:  # maybe of slices that no window has together
                    self._tree.clear()
        return self._in_blocks(self._alike(spans, _WHERE, self._panes.room - 1))

    def _of_one(self, span: Sequence[int]) -> list[WindowStates] | None:
        """Return the windows of the one group, or None where a sum may not fit.  O(slices + windows + definitions)."""
        of, ring, taken, slices = self._slicing, self._panes, list[Arrays](), (*span,)
        mask, clock = ring.room - 1, (of.origin, of.unit)
        numbers, starts, ends, tuples, sides = leaving(
            self._by_number, of.grid, clock, slices, ring.tuples, mask
        )
        if not ends.size:
            return []
        for state in ring.columns:
            taken.append((tuples,))
            if state is not None:
                added, *carries = state
                taken[-1] = (np.empty(ends.size, np.int64), *(np.zeros(ends.size, c.dtype) for c in carries))
                if any(column.any() for column in carries) or not sums(
                    added, mask, slices, sides, taken[-1][0]
                ):
                    return None
        return [WindowStates(np.zeros(ends.size, np.int64), ends, taken, numbers, starts, in_order=True)]

    def _in_blocks(self, made: Stacks | RunningSums | TreePlan) -> list[WindowStates]:
        groups = self._panes.groups
        size = max(_CELLS // (made.scratch + made.windows.shape[1]), 256)
        begins = range(0, groups if made.windows.size else 0, size)
        found = [self._found(made, None, np.arange(begin, min(begin + size, groups))) for begin in begins]
        return [WindowStates.ordered(found, ascending=True)] if found else []

    def of_some(self, slots: Integers, span: Sequence[int]) -> Iterator[WindowStates]:
        """Yield the windows of groups that have one span.  O((slices + windows) x groups)."""
        spans, (low, high) = np.array([span]), span[:2]
        made = self._alike(spans, -spans[:, LOW], -1)
        panes = np.arange(low, high + 1)[:, np.newaxis]
        size = max(_CELLS // (made.scratch + made.windows.shape[1] + panes.size), 1)
        for begin in range(0, slots.size if made.windows.size else 0, size):
            block = slots[begin : begin + size]
            yield self._found(made, self._panes.cells(panes, block), block)

    def of_each(self, slots: Integers, spans: Integers) -> Iterator[WindowStates]:
        """Yield the windows of groups that have a span each.  O(slices + windows)."""
        room, slices = self._shape.measured(spans), spans[:, HIGH] - spans[:, LOW] + 1
        upto = np.cumsum(slices + room.sum(axis=0))
        at = 0
        while at < slots.size:
            stop = int(np.searchsorted(upto, (upto[at - 1] if at else 0) + _CELLS, side="right"))
            some = slice(at, max(stop, at + 1))
            shifts = np.cumsum(slices[some]) - slices[some] - spans[some, LOW]
            of = np.repeat(np.arange(shifts.size), slices[some])
            made = Stacks.planned(self._shape, spans[some], shifts, -1, room[:, some])
            if made.windows.size:
                cells = self._panes.cells(np.arange(of.size) - shifts[of], slots[some][of])
                yield self._found(made, cells[:, np.newaxis], slots[some])
            at = some.stop

    def _alike(self, spans: Integers, shifts: Integers, mask: int) -> Stacks | RunningSums:
        """Return how the windows of groups with one span come about."""
        room = self._shape.measured(spans)
        if not (self._by_sums or self._nested):
            return Stacks.planned(self._shape, spans, shifts, mask, room)
        sums = RunningSums.planned(self._shape, spans[0].tolist(), int(room[0, 0]), mask)
        if self._by_sums:
            return sums
        windows, sides, _ = sums
        steps = np.empty((3, int((sides[SIDE_STOP] - sides[SIDE_FIRST] + 2).sum())), np.int64)
        if windows.size:
            ring, parts = (int(shifts[0] + spans[0, LOW]), mask), np.empty(windows.shape[1], np.int64)
            steps = steps[:, : nested(windows, sides, ring, steps, parts)]
            self.parts = (self.parts or 0) + int(parts.sum())
        return Stacks(steps, windows, windows.shape[1] + 1)

    def _found(
        self, made: Stacks | RunningSums | TreePlan, cells: Integers | None, slots: Integers
    ) -> WindowStates:
        """Return the windows in which there is something.

        Rows of the ring are those of the panes, for ``slots`` in a row, or else ``cells`` (rows, groups).
        """
        ring, windows, shape = self._panes, made.windows, self._slicing.shape
        block = Block(ring.groups, cells, slots)
        [tuples] = made.folded(TUPLES, (ring.tuples,), block)
        found = np.empty((4, np.count_nonzero(tuples)), np.int64)
        pick(shape, windows, tuples, slots, found)
        number, ends, of, at = found
        taken = []
        for part, state in zip(ring.accumulators, ring.columns, strict=True):
            try:
                results = (tuples,) if state is None else made.folded(part, state, block)
            except SumOverflowError as error:
                d, wid, span = windows[:, made.window_of(error.at)].tolist()
                slot = int(slots[span + error.group])
                raise WindowOverflowError(error.column, slot, *self._slicing.extent(d, wid)) from None
            results = tuple(column.ravel().take(at) for column in results)
            taken.append(tuple(map(_wide, results)) if state is None else results)
        return WindowStates(of, self._slicing.moment(ends), taken, number, in_order=cells is None)


def _wide(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of results: tuples may be counted in fewer bits."""
    return column.astype(np.int64) if column.dtype == np.int32 else column
