"""Row slides: partial aggregates that slide over the panes of tuple-based windows.

A slide reduces the tuples of a page to panes, a run of tuples each, and slides over those.  It keeps columns of at most
as many panes as a window has, and the pane that is not complete.  ``RowSlide`` slides by two stacks, in the compiled
loops of ``kernels/monoids.py``, whatever the monoid.  Counts and sums of integers slide by subtraction (2.2, there:
subtract-on-evict), which is sooner and exact: a pane that enters is added, one that leaves is subtracted.

Source: Theodorakis et al., Hammer Slide, ADMS 2018.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels import monoids, runs, sliding
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.compiled import Compiled, fixed, numbers, valid
from oop_engine.operators.slicing.rows.row_panes import Passed, RowPanes
from oop_engine.operators.values.columns import bytes_of

__all__ = ["FloatSum", "IntegerSum", "RowCount", "RowSlide"]

_NATIVE = (pa.int32(), pa.int64(), pa.float32(), pa.float64())  # columns that kernels read as they are


class RowSlide:
    """The states of a part in tuple-based windows, whose panes are ``panes``; ``of`` keeps it.

    ``given``: the type of its column.  The ring has a cell for each pane of a window and one more; it is as long as
    needed so far.  The least and the greatest of narrow integers are kept as narrow as they are.
    """

    def __init__(self, of: Compiled, given: pa.DataType, panes: RowPanes) -> None:
        self.of, self.panes = of, panes
        self._loops = monoids.loops(of.monoid)
        self._identity = _narrowed(of, given)
        self._at = 0
        self._ring, self._back, self._open = self._cells(1), self._cells(1), self._cells(1)

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        """Take a page after the first ``number`` tuples; return the states of the windows it completes.

        O(rows), in kernels.  Raises ``SumOverflowError`` with the window in which a sum would wrap.
        """
        times = page.times if self.of.of_column else np.arange(number, number + len(page))
        *given, known = self.of.prepare(page, times)
        if not self.panes.of_one:
            panes = self._runs(passed, given, known, passed.starts, passed.ends)
            self._open = tuple(column[-1:].copy() for column in panes)
            return self._slide(tuple(column[:-1] for column in panes), passed)
        if type(self.of.monoid).lift is monoids.Monoid.lift and not known.size:
            return self._slide(self._cast(given), passed)
        starts = np.arange(len(page) + 1)
        return self._slide(self._runs(passed, given, known, starts[:-1], starts[1:]), passed)

    def rest(self, passed: Passed, number: int) -> Arrays:
        """Return the states of windows that end behind the last of ``number`` tuples."""
        panes = self._cells(passed.panes)
        if not self.panes.of_one:
            for column, last in zip(panes, self._open, strict=True):
                column[:1] = last
            self._open = self._cells(1)
        return self._slide(panes, passed)

    @property
    def nbytes(self) -> int:
        return bytes_of([self._ring, self._back, self._open])

    def save(self) -> dict[str, Any]:
        return {"at": self._at, "ring": self._ring, "back": self._back, "open": self._open}

    def load(self, saved: Saved) -> None:
        self._back, self._open = self._loaded(saved.part("back"), 1), self._loaded(saved.part("open"), 1)
        self._ring = self._loaded(saved.part("ring"), None)
        room = self._ring[0].size - 1
        self._at = saved.integer("at", least=0, most=min(room, self.panes.length - 1))
        if room > self.panes.length or len({column.size for column in self._ring}) > 1:
            msg = f"'ring' must have room for a window of {self.panes.length}; got {room}"
            raise SnapshotError(msg)

    def _loaded(self, saved: Saved, cells: int | None) -> Arrays:
        return tuple(saved.numbers(i, (cells,), value.dtype) for i, value in enumerate(self._identity))

    def _cast(self, states: Iterable[NDArray[Any]]) -> Arrays:
        kept = zip(states, self._identity, strict=True)
        return tuple(column.astype(value.dtype, copy=False) for column, value in kept)

    def _cells(self, size: int) -> Arrays:
        return tuple(np.full(size, value) for value in self._identity)

    def _runs(self, passed: Passed, given: list[Any], known: Any, starts: Any, ends: Any) -> Arrays:
        """Return the states of tuples side by side, the first of which go on from the open pane."""
        panes = self._cells(starts.size)
        for column, last in zip(panes, self._open, strict=True):
            column[:1] = last
        starts.flags.writeable = ends.flags.writeable = False  # one signature of each loop, whoever made them
        at = self._loops.add_runs(self.of.monoid, panes, starts, ends, tuple(given), known)
        if at >= 0:
            raise SumOverflowError(self.of.part.column, self.panes.window_of(passed.pane + at))
        return panes

    def _make_room(self, panes: int) -> None:
        """Let the ring have room for so many panes more, or for a whole window."""
        needed, room = min(self._at + panes, self.panes.length), self._ring[0].size - 1
        if needed > room:
            old = self._ring
            self._ring = self._cells(min(max(needed, 2 * room), self.panes.length) + 1)
            for column, before in zip(self._ring, old, strict=True):
                column[:room] = before[:room]

    def _slide(self, panes: Arrays, passed: Passed) -> Arrays:
        """Slide over panes; return the states of windows among those at the end of each."""
        if self.panes.length == 1:
            return self._cast(panes)
        self._make_room(panes[0].size)
        out = tuple(np.empty(panes[0].size, value.dtype) for value in self._identity)
        panes = tuple(map(fixed, panes))
        stacks = self._at, self.panes.length, self._back, self._ring
        self._at = int(self._loops.slide(self.of.monoid, panes, *stacks, out))
        return out if self.panes.step == 1 else tuple(c[passed.first :: self.panes.step].copy() for c in out)


class FloatSum(RowSlide):
    """Sums of floats; those of a run are added up in vector instructions, in an order that no page cut changes."""

    def __init__(self, of: Compiled, given: pa.DataType, panes: RowPanes) -> None:
        super().__init__(of, given, panes)
        self._lanes = np.zeros(runs.LANES)
        self._held = 0  # tuples in the open pane

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self._lanes.nbytes)

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        values = numbers(page.column(self.of.part.column or ""), *_NATIVE)
        if self.panes.of_one:
            return self._slide((values,), passed)
        panes = np.empty(passed.panes + 1)
        self._held = runs.add(values, passed.starts, passed.ends, self._lanes, self._held, panes)
        self._open = (panes[-1:].copy(),)
        return self._slide((panes[:-1],), passed)

    def rest(self, passed: Passed, number: int) -> Arrays:
        self._lanes, self._held = np.zeros(runs.LANES), 0
        return super().rest(passed, number)

    def save(self) -> dict[str, Any]:
        return super().save() | {"lanes": self._lanes, "held": self._held}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._lanes = saved.numbers("lanes", (runs.LANES,), np.float64)
        self._held = saved.integer("held", least=0)


class IntegerSum(RowSlide):
    """Sums of integers, checked: a window's sum that does not fit 64 bits is an error, never another sum."""

    def __init__(self, of: Compiled, given: pa.DataType, panes: RowPanes) -> None:
        super().__init__(of, given, panes)
        self._total = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self._total.nbytes)

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        values = numbers(page.column(self.of.part.column or ""), pa.int64())
        if self.panes.of_one:
            return self._slide((values,), passed)
        panes = np.empty(passed.panes + 1, np.int64)
        wrong = runs.add_checked(values, passed.starts, passed.ends, int(self._open[0][0]), panes)
        if wrong >= 0:
            raise SumOverflowError(self.of.part.column, self.panes.window_of(passed.pane + wrong))
        self._open = (panes[-1:].copy(),)
        return self._slide((panes[:-1],), passed)

    def _slide(self, panes: Arrays, passed: Passed) -> Arrays:
        if self.panes.length == 1:
            return panes
        self._make_room(panes[0].size)
        out = np.empty(panes[0].size, np.int64)
        step, [ring] = self.panes.step, self._ring
        self._at, wrong = sliding.subtract_on_evict(
            fixed(panes[0]), self._at, self.panes.length, self._total, ring, out, passed.first, step
        )
        if wrong >= 0:
            raise SumOverflowError(self.of.part.column, passed.window + (wrong - passed.first) // step)
        return (out if step == 1 else out[passed.first :: step].copy(),)

    def save(self) -> dict[str, Any]:
        return super().save() | {"total": self._total}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._total = saved.integers("total", (2,))


class RowCount(IntegerSum):
    """Counts of tuples, or of values: the tuples of a window less the nulls, which slide only if there are some."""

    def __init__(self, of: Compiled, given: pa.DataType, panes: RowPanes) -> None:
        super().__init__(of, given, panes)
        self._since = -1  # the last null is among the tuples before this; -1: no null is in sight

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        tuples = self.panes.numbers(passed, number + len(page))
        if not self._nulls_in_sight(page, number):
            return (tuples,)
        known = valid(page.column(self.of.part.column or ""))
        panes = np.empty(passed.panes + 1, np.int64)
        if self.panes.of_one:
            panes = (~known).astype(np.int64)
        else:
            runs.count_false(known, passed.starts, passed.ends, panes)
            panes[:1] += self._open[0]
            self._open, panes = (panes[-1:].copy(),), panes[:-1]
        return (tuples - self._slide((panes,), passed)[0],)

    def rest(self, passed: Passed, number: int) -> Arrays:
        """Return the counts of windows that the end completes."""
        tuples = self.panes.numbers(passed, number)
        return (tuples,) if self._since < 0 else (tuples - super().rest(passed, number)[0],)

    def _nulls_in_sight(self, page: Page, number: int) -> bool:
        column = self.of.part.column
        if column is not None and page.column(column).null_count:
            self._since = number + len(page)
        elif 0 <= self._since <= number - self.panes.range - self.panes.slide:
            self._since, self._at, self._total = -1, 0, np.zeros(2, np.int64)
            self._ring, self._open = self._cells(1), self._cells(1)
        return self._since >= 0

    def save(self) -> dict[str, Any]:
        return super().save() | {"since": self._since}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._since = saved.integer("since")


def _narrowed(of: Compiled, given: pa.DataType) -> tuple[np.generic, ...]:
    """Return the state of no values, in 32 bits where a column of integers has no more."""
    extreme = of.of_column and isinstance(of.monoid, monoids.Smallest | monoids.Largest)
    if extreme and not of.part.floating and given.bit_width <= 32 and given != pa.uint32():
        ends = np.iinfo(np.int32)
        return (np.int32(ends.min if isinstance(of.monoid, monoids.Largest) else ends.max),)
    return of.identity
