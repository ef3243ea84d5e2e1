"""Row sums: what slides over tuple-based windows by subtraction, and is exact.

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
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels import runs, sliding
from oop_engine.operators.slicing.accumulator import SumOverflowError, numbers, valid
from oop_engine.operators.slicing.rows.row_panes import Passed, RowPanes
from oop_engine.operators.slicing.rows.row_slides import RowSlide, read_only

__all__ = ["IntegerSum", "RowCount"]

Array = NDArray[Any]
Integers = NDArray[np.int64]


class IntegerSum(RowSlide):
    """Sums of integers, checked: a window's sum that does not fit 64 bits is an error, never another sum."""

    def __init__(self, part: Part, column: pa.DataType, panes: RowPanes) -> None:
        super().__init__(part, column, panes)
        self._clear()

    def _clear(self) -> None:
        self._at, self._open = 0, 0
        self._ring = self._cells(1)
        self._total = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of the panes kept, of the open one and of the total."""
        return super().nbytes + 8 + int(self._total.nbytes)

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        """Take a page; return the states of the windows it completes."""
        values = numbers(page.column(self.part.column or ""), pa.int64())
        if self.panes.of_one:
            return (self._slide(values, passed),)
        panes = self._column(passed.panes + 1)
        wrong = runs.add_checked(values, passed.starts, passed.ends, self._open, panes)
        if wrong >= 0:
            raise SumOverflowError(self.part.column, self.panes.window_of(passed.pane + wrong))
        return (self._slide(self._all_but_open(panes), passed),)

    def rest(self, passed: Passed, number: int) -> Arrays:
        """Return the states of windows that the end completes."""
        panes = self._ended(passed, self._open)
        self._open = 0
        return (self._slide(panes, passed),)

    def _all_but_open(self, panes: Array) -> Array:
        self._open = int(panes[-1])
        return read_only(panes[:-1])

    def _slide(self, panes: Array, passed: Passed) -> Array:
        if self.panes.length == 1:
            return panes
        self._make_room(panes.size)
        out = self._column(panes.size)
        self._at, wrong = sliding.subtract_on_evict(
            panes, self._at, self.panes.length, self._total, self._ring, out, passed.first, self.panes.step
        )
        if wrong >= 0:
            window = passed.window + (wrong - passed.first) // self.panes.step
            raise SumOverflowError(self.part.column, window)
        return self._of_windows(out, passed)

    def save(self) -> dict[str, Any]:
        return super().save() | {"total": self._total, "open": self._open}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._total, self._open = saved.integers("total", (2,)), saved.integer("open")


class RowCount(IntegerSum):
    """Counts of tuples, or of values: the tuples of a window less the nulls, which slide only if there are some."""

    def __init__(self, part: Part, column: pa.DataType, panes: RowPanes) -> None:
        super().__init__(part, column, panes)
        self._since = -1  # the last null is among the tuples before this; -1: no null is in sight

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        tuples = self.panes.numbers(passed, number + len(page))
        if not self._nulls_in_sight(page, number):
            return (tuples,)
        known = valid(page.column(self.part.column or ""))
        if self.panes.of_one:
            return (tuples - self._slide(read_only((~known).astype(np.int64)), passed),)
        panes = self._column(passed.panes + 1)
        runs.count_false(known, passed.starts, passed.ends, panes)
        panes[0] += self._open
        return (tuples - self._slide(self._all_but_open(panes), passed),)

    def rest(self, passed: Passed, number: int) -> Arrays:
        tuples = self.panes.numbers(passed, number)
        return (tuples,) if self._since < 0 else (tuples - super().rest(passed, number)[0],)

    def _nulls_in_sight(self, page: Page, number: int) -> bool:
        column = self.part.column
        if column is not None and page.column(column).null_count:
            self._since = number + len(page)
        elif 0 <= self._since <= number - self.panes.range - self.panes.slide:
            self._since = -1
            self._clear()
        return self._since >= 0

    def save(self) -> dict[str, Any]:
        return super().save() | {"since": self._since}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._since = saved.integer("since")
