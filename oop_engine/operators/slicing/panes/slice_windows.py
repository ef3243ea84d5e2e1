"""Slice windows: how windows that close are put together from the slices in a ring.

Where all groups close the same windows, the steps are planned once and taken for all groups side by side, straight from
the ring's rows: by two stacks, or, for few windows of very many slices, by a tree (``window_plans.py``).  Else each
group has steps of its own.  Without groups, counts and integer sums are differences of running sums, made in the order
of results (``kernels/sums.py``).  Groups with bounds of their own are read by stacks in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.partials import HIGH, LOW
from oop_engine.operators.kernels.slices import (
    LENGTH,
    NUMBER,
    WINDOW_END,
    WINDOW_SHAPE,
    WINDOW_SPAN,
    closing,
    measure,
    pick,
)
from oop_engine.operators.kernels.sums import leaving, sums
from oop_engine.operators.slicing.accumulator import result_of
from oop_engine.operators.slicing.accumulators import Accumulator, SumOverflowError, accumulator
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.panes.shared_slices import Slicing
from oop_engine.operators.slicing.panes.window_plans import TUPLES, SliceTree, by_stacks
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers
from oop_engine.system.knobs import knob

__all__ = ["Assembly", "SliceWindows", "assembled", "assembly_words", "check_assembly"]

_CELLS = knob(__name__, "_CELLS", 1 << 21)  # put together at a time
_DEEP = knob(__name__, "_DEEP", 1024)  # slices of a window, from which on a tree is worth its memory ...
_FEW = knob(__name__, "_FEW", 64)  # ... if there are so many slices for each window that is read


Assembly = Literal["auto", "stacks", "prefix", "tree"]


def assembled(slicing: Slicing, parts: Sequence[Accumulator], asked: Assembly, *, grouped: bool) -> Assembly:
    """Return how windows are put together: as asked, or by stacks, running sums or a tree as it suits them."""
    if asked != "auto":
        return asked
    if not grouped and _summable(parts):
        return "prefix"
    return "tree" if slicing.longest > _DEEP else "stacks"


def check_assembly(
    asked: Assembly, slicings: Sequence[Slicing], parts: Sequence[Part], place: str, *, grouped: bool
) -> None:
    """Raise ``GraphError`` in the name of ``place`` if windows cannot be put together as asked."""
    reason = ""
    if asked != "auto" and not slicings:
        reason = (
            "slices in a ring: windows on a grid (Tumbling, Sliding...), without empty ones, strategy='auto', and no "
            "aggregate of lists"
        )
    elif asked == "prefix" and (grouped or not _summable([accumulator(part) for part in parts])):
        reason = "counts and integer sums alone, which can be taken away again, and no groups"
    if reason:
        msg = f"{place}: assembly={asked!r} needs {reason}: leave the choice to assembly='auto'"
        raise GraphError(msg)


def assembly_words(slicing: Slicing, parts: Sequence[Accumulator], asked: Assembly, *, grouped: bool) -> str:
    """Return how windows are put together, and why."""
    few = "" if asked == "tree" else f" where less than one closes in {_FEW} slices, else by two stacks"
    words = {
        "stacks": "two stacks", "prefix": "differences of running sums", "tree": f"a tree{few}",
    }[assembled(slicing, parts, asked, grouped=grouped)]  # fmt: skip
    return f"windows by {words}{'' if asked == 'auto' else ', as asked'}"


def _summable(parts: Sequence[Accumulator]) -> bool:
    """Tell whether all are an integer, or a carried sum, that can be taken away again."""
    return all(
        of.invertible and (of.by_times or [v.dtype.kind for v in of.identity] == ["i"]) for of in parts
    )


class SliceWindows:
    """Puts windows of ``slicing`` together, from ``panes`` that are its slices.

    ``spans`` int64 (n, 4): the lowest and the highest slice there is, the cut up to which windows have left, and the
    one up to which they leave.  ``grouped``: whether there is a key, and not one group alone.
    """

    def __init__(
        self, slicing: Slicing, panes: PaneRing, assembly: Assembly = "auto", *, grouped: bool = True
    ) -> None:
        self._slicing, self._panes = slicing, panes
        way = assembled(slicing, panes.accumulators, assembly, grouped=grouped)
        self._by_sums, self._always = way == "prefix", assembly == "tree"
        self._by_number = np.ascontiguousarray(slicing.shape[:, np.argsort(slicing.shape[NUMBER])])
        # Definitions of like lengths, which share their turns: those of half and of double the length do not.
        self._like = np.log2(slicing.shape[LENGTH] / slicing.shape[LENGTH, 0]).astype(np.int64)
        self._tree = SliceTree(panes, slicing.longest) if way == "tree" else None

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
        if self._by_sums and (found := self._of_one(span)) is not None:
            return found
        windows, sides = self._listed(np.array([span]))
        if not windows.size:
            return []  # and nodes stay stale: none would be combined anew
        ring, groups = self._panes, self._panes.groups
        if self._tree is not None and (self._always or windows.shape[1] * _FEW < span[HIGH] - span[LOW]):
            try:
                return [self._found(self._tree.planned(sides, span[LOW]), windows, np.arange(groups))]
            except WindowOverflowError:  # maybe of slices that no window has together
                self._tree.clear()
        made = by_stacks(sides, span[LOW], ring.room)
        size = max(_CELLS // (self._slicing.longest + windows.shape[1]), 256)
        blocks = [np.arange(begin, min(begin + size, groups)) for begin in range(0, groups, size)]
        return [WindowStates.ordered([self._found(made, windows, block) for block in blocks], ascending=True)]

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

    def of_some(self, slots: Integers, span: Sequence[int]) -> Iterator[WindowStates]:
        """Yield the windows of groups that have one span.  O((slices + windows) x groups)."""
        windows, sides = self._listed(np.array([span]))
        if windows.size:
            made, panes = by_stacks(sides), np.arange(span[LOW], span[HIGH] + 1)[:, np.newaxis]
            size = max(_CELLS // (self._slicing.longest + windows.shape[1] + panes.size), 1)
            for begin in range(0, slots.size, size):
                block = slots[begin : begin + size]
                yield self._found(made, windows, block, self._panes.cells(panes, block))

    def of_each(self, slots: Integers, spans: Integers) -> Iterator[WindowStates]:
        """Yield the windows of groups that have a span each.  O(slices + windows log windows)."""
        slices = spans[:, HIGH] - spans[:, LOW] + 1
        upto = np.cumsum(slices + self._measured(spans))
        at = 0
        while at < slots.size:
            stop = int(np.searchsorted(upto, (upto[at - 1] if at else 0) + _CELLS // 4, side="right"))
            some = slice(at, max(stop, at + 1))
            at = some.stop
            windows, sides = self._listed(spans[some])
            if windows.size:
                # The slices of each group, behind those of the one before.
                of = np.repeat(np.arange(slices[some].size), slices[some])
                first = np.cumsum(slices[some]) - slices[some] - spans[some, LOW]
                cells = self._panes.cells(np.arange(of.size) - first[of], slots[some][of])
                yield self._found(by_stacks(sides), windows, slots[some], cells[:, np.newaxis])

    def _measured(self, spans: Integers) -> Integers:
        """Return how many windows of each span close."""
        windows = np.empty(len(spans), np.int64)
        measure(self._slicing.shape, self._slicing.grid, spans, windows)
        return windows

    def _listed(self, spans: Integers) -> tuple[Integers, Integers]:
        """Return the windows of spans that close, and their sides: by span, then like lengths, then ends."""
        room = int(self._measured(spans).sum())
        windows, sides = np.empty((3, room), np.int64), np.empty((2, room), np.int64)
        closing(self._slicing.shape, self._slicing.grid, spans, windows, sides)
        if self._like.size > 1:
            like = self._like[windows[WINDOW_SHAPE]]
            order = np.lexsort((windows[WINDOW_END], like, windows[WINDOW_SPAN]))
            windows, sides = windows.take(order, 1), sides.take(order, 1)
        return windows, sides

    def _found(
        self,
        made: tuple[Integers, int | list[Arrays]],
        windows: Integers,
        slots: Integers,
        cells: Integers | None = None,
    ) -> WindowStates:
        """Return the windows in which there is something; ``made``: steps, and how many rows of scratch, or these.

        Rows of the ring are those of the panes, for ``slots`` in a row, or else ``cells`` (rows, groups).
        """
        ring, (steps, scratch), count = self._panes, made, windows.shape[1]
        begin, wide = (int(slots[0]), slots.size) if cells is None else (0, cells.shape[1])

        def folded(of: Accumulator, state: Arrays, number: int) -> Arrays:
            rows = [ring.rows(column) if cells is None else column.take(cells) for column in state]
            room = scratch if isinstance(scratch, int) else scratch[number]
            return of.fold_rows(tuple(rows), begin, wide, (room, count), steps)

        [tuples] = folded(TUPLES, (ring.tuples,), 0)
        found = np.empty((4, np.count_nonzero(tuples)), np.int64)
        pick(self._slicing.shape, windows, tuples, slots, found)
        number, ends, of, at = found
        taken = []
        for i, (part, state) in enumerate(zip(ring.accumulators, ring.columns, strict=True)):
            try:
                results = (tuples,) if state is None else folded(part, state, i + 1)
            except SumOverflowError as error:
                d, end, span = windows[:, result_of(steps, error.at)].tolist()
                slot = int(slots[span + error.group])
                raise WindowOverflowError(error.column, slot, *self._slicing.extent(d, end)) from None
            results = tuple([column.ravel().take(at) for column in results])
            taken.append(tuple(map(_wide, results)) if state is None else results)
        return WindowStates(of, self._slicing.moment(ends), taken, number, in_order=cells is None)


def _wide(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of results: tuples may be counted in fewer bits."""
    return column.astype(np.int64) if column.dtype == np.int32 else column
