"""Row stacks: what slides over tuple-based windows by two stacks.

Smallest and largest values, sums of floats, and moments: what cannot be subtracted, or not
without loss.  ``operators/kernels/sliding.py`` has the algorithm.

Source: Theodorakis et al., Hammer Slide, ADMS 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels import monoids, ordered, runs, sliding
from oop_engine.operators.slicing.accumulator import numbers, valid
from oop_engine.operators.slicing.accumulators import column_monoid
from oop_engine.operators.slicing.rows.row_panes import Passed, RowPanes
from oop_engine.operators.slicing.rows.row_slides import RowSlide, read_only

__all__ = ["FloatSum", "Moments", "Smallest"]

Array = NDArray[Any]
NATIVE = (pa.int32(), pa.int64(), pa.float32(), pa.float64())  # columns that kernels read as they are


class Smallest(RowSlide):
    """Smallest and largest values; these are found as the smallest of integers in reverse order."""

    def __init__(self, part: Part, column: pa.DataType, panes: RowPanes) -> None:
        narrow = not part.floating and column.bit_width <= 32 and column != pa.uint32()
        self.kind = np.dtype(np.int32 if narrow else np.int64)
        self.nothing = self._back = self._open = self.kind.type(np.iinfo(self.kind).max)
        self._largest = isinstance(column_monoid(part), monoids.Largest)
        super().__init__(part, column, panes)

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        """Take a page; return the states of the windows it completes."""
        integers = self._integers(page)
        if self.panes.of_one:
            return self._slide(integers, passed)
        panes = self._column(passed.panes + 1)
        runs.smallest(integers, passed.starts, passed.ends, self.nothing, panes)
        panes[0] = min(panes[0], self._open)
        self._open = panes[-1]
        return self._slide(read_only(panes[:-1]), passed)

    def rest(self, passed: Passed, number: int) -> Arrays:
        """Return the states of windows that the end completes."""
        panes = self._ended(passed, self._open)
        self._open = self.nothing
        return self._slide(panes, passed)

    def _slide(self, panes: Array, passed: Passed) -> Arrays:
        if self.panes.length == 1:
            return (self._values(panes),)
        self._make_room(panes.size)
        out = self._column(panes.size)
        self._at, back = sliding.smallest(
            panes, self._at, self.panes.length, self._back, self.nothing, self._ring, out
        )
        self._back = self.kind.type(back)
        return (self._values(self._of_windows(out, passed)),)

    def _integers(self, page: Page) -> Array:
        column = page.column(self.part.column or "")
        if self.part.floating:
            bits = numbers(column, pa.float64()).view(np.int64)
            integers = np.empty(bits.size, np.int64)
            ordered.as_integers(bits, self._largest, integers)
        else:
            given = numbers(column, pa.from_numpy_dtype(self.kind))
            integers = ~given if self._largest else given
        if column.null_count:
            integers = np.where(valid(column), integers, self.nothing)
        return read_only(integers)

    def _values(self, integers: Array) -> Array:
        if self.part.floating:
            bits = self._column(integers.size)
            ordered.as_floats(integers, self._largest, bits)
            return bits.view(np.float64)
        return ~integers if self._largest else integers

    def save(self) -> dict[str, Any]:
        return super().save() | {"back": int(self._back), "open": int(self._open)}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        back, now = (
            saved.integer(n, least=~int(self.nothing), most=int(self.nothing)) for n in ("back", "open")
        )
        self._back, self._open = self.kind.type(back), self.kind.type(now)


class FloatSum(RowSlide):
    """Sums of floats: by two stacks, for what is subtracted from a float leaves its rounding behind."""

    kind = np.dtype(np.float64)

    def __init__(self, part: Part, column: pa.DataType, panes: RowPanes) -> None:
        super().__init__(part, column, panes)
        self._back = 0.0
        self._lanes = np.zeros(runs.LANES)
        self._held = 0  # tuples in the open pane

    @property
    def nbytes(self) -> int:
        """Bytes of the panes kept, and of the open one."""
        return super().nbytes + int(self._lanes.nbytes)

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        values = numbers(page.column(self.part.column or ""), *NATIVE)
        if self.panes.of_one:
            return self._slide(values, passed)
        panes = self._column(passed.panes + 1)
        self._held = runs.add(values, passed.starts, passed.ends, self._lanes, self._held, panes)
        return self._slide(read_only(panes[:-1]), passed)

    def rest(self, passed: Passed, number: int) -> Arrays:
        panes = self._ended(passed, self._lanes.sum())
        self._lanes, self._held = np.zeros(runs.LANES), 0
        return self._slide(panes, passed)

    def _slide(self, panes: Array, passed: Passed) -> Arrays:
        if self.panes.length == 1:
            return (panes.astype(self.kind, copy=False),)
        self._make_room(panes.size)
        out = self._column(panes.size)
        self._at, self._back = sliding.add(panes, self._at, self.panes.length, self._back, self._ring, out)
        return (self._of_windows(out, passed),)

    def save(self) -> dict[str, Any]:
        return super().save() | {"back": self._back, "lanes": self._lanes, "held": self._held}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._back, self._held = saved.floating("back"), saved.integer("held", least=0)
        self._lanes = saved.numbers("lanes", (runs.LANES,), np.float64)


class Moments(RowSlide):
    """Counts, means and sums of squared deviations, by two stacks of three columns."""

    columns = 3
    kind = np.dtype(np.float64)

    def __init__(self, part: Part, column: pa.DataType, panes: RowPanes) -> None:
        super().__init__(part, column, panes)
        self._back = np.zeros(3)
        self._open = np.zeros(3)

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self._back.nbytes + self._open.nbytes)

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        column = page.column(self.part.column or "")
        values, known = numbers(column, pa.float64()), valid(column)
        if self.panes.of_one:
            panes = np.stack([known.astype(np.float64), values, np.zeros(values.size)])
            return self._slide(read_only(panes), passed)
        panes = self._column(passed.panes + 1)
        runs.moments(values, known, passed.starts, passed.ends, self._open, panes)
        self._open = panes[:, -1].copy()
        return self._slide(read_only(np.ascontiguousarray(panes[:, :-1])), passed)

    def rest(self, passed: Passed, number: int) -> Arrays:
        panes = self._ended(passed, self._open)
        self._open = np.zeros(3)
        return self._slide(panes, passed)

    def _slide(self, panes: Array, passed: Passed) -> Arrays:
        if self.panes.length == 1:
            return tuple(panes)
        self._make_room(panes.shape[1])
        out = self._column(panes.shape[1])
        self._at = sliding.moments(panes, self._at, self.panes.length, self._back, self._ring, out)
        return tuple(self._of_windows(out, passed))

    def save(self) -> dict[str, Any]:
        return super().save() | {"back": self._back, "open": self._open}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        self._back, self._open = (saved.numbers(name, (3,), np.float64) for name in ("back", "open"))
