"""Row windows: tuple-based windows of the whole stream, by slides over panes.

A page completes windows by itself, for arrival is the order: as many tuples as it has.  Each
partial aggregate takes the page, and gives the states of the windows that are complete as
whole columns; no window is looked at by itself.

Counts and sums of integers slide by subtraction (subtract-on-evict), which is sooner than two stacks, and exact: a pane
that enters is added, one that leaves is subtracted.

Source: Theodorakis et al., Hammer Slide, ADMS 2018, 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import ContractError
from oop_engine.core.operator import Emission, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.aggregates.base import column_of
from oop_engine.operators.kernels import monoids, runs, sums
from oop_engine.operators.slicing.accumulators import SumOverflowError, accumulator
from oop_engine.operators.slicing.compiled import Compiled, fixed, numbers, valid
from oop_engine.operators.slicing.output import PAGE_ROWS, Output
from oop_engine.operators.slicing.row_slides import Passed, RowPanes, RowSlide
from oop_engine.operators.values.columns import rows_of
from oop_engine.operators.windows import Extents

__all__ = ["RowWindows"]

_INT64 = pa.int64()
_NO_WRAPS = np.empty(0, np.int32)
_MOST = 1 << 61  # tuples: more than can ever come
_NATIVE = (pa.int32(), pa.int64(), pa.float32(), pa.float64())  # columns that kernels read as they are


class RowWindows:
    """Open windows of all tuples, in their order of arrival; ``schema`` is that of the input."""

    def __init__(self, output: Output, extents: Extents, schema: Schema) -> None:
        self._output, self._extents = output, extents
        self._schema = schema
        self._panes = RowPanes(extents)
        self._passed_on = -1  # the lowest open window of the last punctuation
        self._begin()

    def _begin(self) -> None:
        self._number = 0
        self._slides = [self._slide(part) for part in self._output.parts]

    def state(self) -> State:
        """Return the state: the panes of a window at most, for each part."""
        panes = self._panes.held(self._number)
        return State(0, panes, int(panes > 0), sum(slide.nbytes for slide in self._slides))

    def add(self, page: Page) -> Iterator[Emission]:
        """Take the next tuples, and put out the windows that they complete."""
        if not page.rows:
            return iter(())
        passed = self._panes.passed(self._number, page.rows)
        try:
            states = [slide.add(page, passed, self._number) for slide in self._slides]
        except SumOverflowError as error:
            raise self._overflow(error) from None
        self._number += page.rows
        return chain(self._results(passed, states), self._grown(passed.window + passed.windows))

    def take(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Take a punctuation about the numbers of tuples: one that there are no more puts out the open windows."""
        if punctuation != Linear(FOREVER):
            return
        for passed in self._panes.rest(self._number, PAGE_ROWS):
            try:
                states = [slide.rest(passed, self._number) for slide in self._slides]
            except SumOverflowError as error:
                raise self._overflow(error) from None
            yield from self._results(passed, states)
        self._begin()
        yield from self._grown(FOREVER)

    def save(self) -> dict[str, Any]:
        slides = [slide.save() for slide in self._slides]
        return {"number": self._number, "passed_on": self._passed_on, "slides": slides}

    def load(self, saved: Saved) -> None:
        self._number = saved.integer("number", least=0, most=_MOST)
        self._passed_on = saved.integer("passed_on")
        for slide, state in zip(self._slides, saved.parts("slides", len(self._slides)), strict=True):
            slide.load(state)

    def _slide(self, part: Part) -> RowSlide:
        chosen = accumulator(part)
        assert isinstance(chosen, Compiled)
        column = pa.null() if part.column is None else self._schema.type_of(part.column)
        kind = _SLIDES.get(type(chosen.monoid), RowSlide) if chosen.of_column else RowSlide
        return kind(chosen, column, self._panes)

    def _results(self, passed: Passed, states: list[Arrays]) -> Iterable[Emission]:
        """Return the windows that are complete, in pages."""
        if 0 < passed.windows <= PAGE_ROWS:
            return ((0, self._output.made(self._sides(passed.window, passed.windows), states)),)
        starts = range(0, passed.windows, PAGE_ROWS)
        parts = (slice(lo, min(lo + PAGE_ROWS, passed.windows)) for lo in starts)
        return ((0, self._part(passed.window, part, states)) for part in parts)

    def _part(self, window: int, part: slice, states: list[Arrays]) -> Page:
        sides = self._sides(window + part.start, part.stop - part.start)
        return self._output.made(sides, rows_of(states, part))

    def _sides(self, window: int, windows: int) -> list[pa.Array]:
        """Return starts and ends of windows in a row; where starts are ends as well, they are shared."""
        length, slide = self._extents.range or 0, self._extents.slide
        first = (window + 1) * slide - length
        apart, rest = divmod(length, slide)
        if rest or apart > windows:
            starts = np.arange(first, first + slide * windows, slide)
            return [column_of(starts, _INT64), column_of(starts + length, _INT64)]
        both = column_of(np.arange(first, first + slide * (windows + apart), slide), _INT64)
        return [both.slice(0, windows), both.slice(apart)]

    def _grown(self, window: int) -> Sequence[Emission]:
        """Return the punctuation that no window below this one is still to come, if that is new."""
        if window <= self._passed_on:
            return ()
        self._passed_on = window
        back = 0 if self._output.stamp == "end" else self._panes.range
        return ((0, Linear(FOREVER if window == FOREVER else (window + 1) * self._extents.slide - back)),)

    def _overflow(self, error: SumOverflowError) -> ContractError:
        """Return the error that a sum does not fit."""
        end = (error.at + 1) * self._extents.slide
        return self._output.overflow(error.column, end - self._panes.range, end, {})


class FloatSum(RowSlide):
    """Sums of floats; those of a run are added up in vector instructions, in an order that no page cut changes."""

    def __init__(self, accumulator: Compiled, given: pa.DataType, panes: RowPanes) -> None:
        super().__init__(accumulator, given, panes)
        self._begin()

    def _begin(self) -> None:
        self.own = {"lanes": np.zeros(runs.LANES), "held": 0}  # of the open pane: sums side by side, tuples

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        values = numbers(page.column(self.accumulator.part.column or ""), *_NATIVE)
        if self.panes.of_one:
            return self._slide((values,), passed)
        panes = np.empty(passed.panes + 1)
        of_open = self.own["lanes"], self.own["held"]
        self.own["held"] = runs.add(values, passed.starts, passed.ends, *of_open, panes)
        self._open = (panes[-1:].copy(),)
        return self._slide((panes[:-1],), passed)

    def rest(self, passed: Passed, number: int) -> Arrays:
        self._begin()
        return super().rest(passed, number)


class IntegerSum(RowSlide):
    """Sums of integers of at most 32 bits."""

    def __init__(self, accumulator: Compiled, given: pa.DataType, panes: RowPanes) -> None:
        super().__init__(accumulator, given, panes)
        self.own = {"total": np.zeros(2, np.int64)}

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        values = numbers(page.column(self.accumulator.part.column or ""), pa.int64())
        if self.panes.of_one:
            return self._slide((values,), passed)
        panes = np.empty(passed.panes + 1, np.int64)
        runs.add_integers(values, passed.starts, passed.ends, int(self._open[0][0]), panes)
        self._open = (panes[-1:].copy(),)
        return self._slide((panes[:-1],), passed)

    def _slide(self, panes: Arrays, passed: Passed) -> Arrays:
        if self.panes.length == 1:
            return panes
        self._make_room(panes[0].size)
        out = np.empty(panes[0].size, np.int64)
        pane_wraps, ring_wraps = [*panes[1:], _NO_WRAPS][0], [*self._ring[1:], _NO_WRAPS][0]
        wraps = np.empty(out.size if ring_wraps.size else 0, np.int32)
        where = self._at, self.panes.length, self.own["total"], self._ring[0], ring_wraps, out, wraps
        self._at = sums.subtract_on_evict(fixed(panes[0]), fixed(pane_wraps), *where)
        states = (out, wraps)[: len(self._ring)]
        step = self.panes.step
        return states if step == 1 else tuple(column[passed.first :: step].copy() for column in states)


class CarriedSum(IntegerSum):
    """Sums of integers of 64 bits."""

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        return (
            super().add(page, passed, number)
            if self.panes.of_one
            else RowSlide.add(self, page, passed, number)
        )

    def _slide(self, panes: Arrays, passed: Passed) -> Arrays:
        if self.panes.length == 1 and len(panes) == 1:
            return panes[0], np.zeros(panes[0].size, np.int32)
        return super()._slide(panes, passed)


class RowCount(IntegerSum):
    """Counts of tuples, or of values: the tuples of a window less the nulls, which slide only if there are some."""

    def __init__(self, accumulator: Compiled, given: pa.DataType, panes: RowPanes) -> None:
        super().__init__(accumulator, given, panes)
        self.own["since"] = -1  # the last null is among the tuples before this; -1: no null is in sight

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        tuples = self.panes.numbers(passed, number + len(page))
        if not self._nulls_in_sight(page, number):
            return (tuples,)
        known = valid(page.column(self.accumulator.part.column or ""))
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
        return (tuples,) if self.own["since"] < 0 else (tuples - super().rest(passed, number)[0],)

    def _nulls_in_sight(self, page: Page, number: int) -> bool:
        column = self.accumulator.part.column
        if column is not None and page.column(column).null_count:
            self.own["since"] = number + len(page)
        elif 0 <= self.own["since"] <= number - self.panes.range - self.panes.slide:
            self._at, self.own = 0, {"total": np.zeros(2, np.int64), "since": -1}
            self._ring, self._open = self._cells(1), self._cells(1)
        return bool(self.own["since"] >= 0)


_SLIDES: dict[type[Any], type[RowSlide]] = {
    monoids.Carried: CarriedSum,
    monoids.Counted: RowCount,
    monoids.Checked: IntegerSum,
    monoids.Summed: FloatSum,
}
