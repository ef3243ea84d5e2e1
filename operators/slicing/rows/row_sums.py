"""Row sums: counts and sums of integers, which slide over tuple-based windows by subtraction, exactly.

Counts and sums of integers: a pane that enters is added, one that leaves is subtracted.

Source: Theodorakis et al., Hammer Slide, ADMS 2018, 2.2 (subtract-on-evict).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels import runs, sliding
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.compiled import Compiled, fixed, numbers, valid
from oop_engine.operators.slicing.rows.row_panes import Passed, RowPanes
from oop_engine.operators.slicing.rows.row_slides import RowSlide

__all__ = ["IntegerSum", "RowCount"]

Array = NDArray[Any]
Integers = NDArray[np.int64]


class IntegerSum(RowSlide):
    """Sums of integers, checked: a window's sum that does not fit 64 bits is an error, never another sum."""

    def __init__(self, of: Compiled, given: pa.DataType, panes: RowPanes) -> None:
        super().__init__(of, given, panes)
        self._total = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of the panes kept, of the open one and of the total."""
        return super().nbytes + int(self._total.nbytes)

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        """Take a page; return the states of the windows it completes."""
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
