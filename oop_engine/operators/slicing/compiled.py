"""Compiled: a part that is kept by compiled loops, and columns of pages as these take them."""

from __future__ import annotations

from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels import monoids
from oop_engine.operators.kernels.panes import Geometry
from oop_engine.operators.slicing.accumulator import Accumulator, Running, SumOverflowError, side_by_side
from oop_engine.operators.values.columns import Integers

__all__ = ["Compiled", "fixed", "known", "loops", "numbers", "valid", "values"]

_FLOATS, _INTEGERS = (pa.float64(),), (pa.int32(), pa.int64())
_ALL = np.empty(0, np.bool_)
_ALL.flags.writeable = False


class Compiled(Accumulator):
    """Keeps a part by the compiled loops of its ``monoid``, whose state has the types of ``identity``.

    ``prepare`` returns the columns that the monoid's ``lift`` takes, and as the last one which rows count: bool
    (rows,), or (0,) where all do.
    """

    monoid: monoids.Monoid
    compiled = True

    @cached_property
    def _loops(self) -> monoids.Loops:
        return loops(self.monoid)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        found = page.numbers(self.part.column or "")
        if found is not None and (found.dtype.kind == "f") == self.part.floating:
            return found, _ALL
        column = page.column(self.part.column or "")
        numeric = numbers(column, *(_FLOATS if self.part.floating else _INTEGERS))
        return numeric, valid(column) if column.null_count else _ALL

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        at = self._loops.add_rows(self.monoid, state, rows, inputs[:-1], inputs[-1])
        if at >= 0:
            self._check(int(rows[at]))

    def add_runs(self, state: Arrays, starts: Integers, ends: Integers, inputs: Arrays) -> None:
        self._check(self._loops.add_runs(self.monoid, state, starts, ends, inputs[:-1], inputs[-1]))

    def update(
        self, state: Arrays, rows: Integers, starts: Integers, lo: int, hi: int, inputs: Arrays
    ) -> None:
        loop = self._loops.update
        self._check(loop(self.monoid, state, rows, starts, lo, hi, inputs[:-1], inputs[-1]))

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        out = self._empty(a[0].size)
        self._check(self._loops.merge(self.monoid, tuple(map(fixed, a)), tuple(map(fixed, b)), out))
        return out

    def reduce(self, state: Arrays, starts: Integers) -> Arrays:
        out = self._empty(starts.size)
        self._check(self._loops.reduce(self.monoid, tuple(map(fixed, state)), starts, out))
        return out

    def fold_steps(self, state: Arrays, steps: Integers, results: int) -> Arrays:
        new = tuple(map(np.empty, repeat(results), self._types))
        at = self._loops.fold_steps(self.monoid, state, new, *steps)
        if at >= 0:
            self._check(at)
        return new

    def fold_rows(
        self, ring: Arrays, begin: int, wide: int, rows: tuple[int | Arrays, int], steps: Integers
    ) -> Arrays:
        cells, results = side_by_side(ring, wide, rows)
        self._check(*self._loops.fold_rows(self.monoid, ring, begin, cells, results, steps))
        return results

    def totals(
        self, geometry: Geometry, ring: Arrays, lowest: int, ends: Integers, slots: Integers,
        running: Running, out: Arrays,
    ) -> None:  # fmt: skip
        total, reach = running
        self._check(*self._loops.totals(self.monoid, geometry, ring, lowest, ends, slots, total, reach, out))

    def _check(self, at: int, group: int = 0) -> None:
        if at >= 0:
            raise SumOverflowError(self.part.column, at, group)


def loops(monoid: monoids.Monoid) -> monoids.Loops:
    """Return the loops for a monoid; with the first ones Numba is loaded."""
    from oop_engine.operators.kernels.loops import loops_of

    of: Any = type(monoid)
    return loops_of(of)


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous read-only view: one signature of each kernel will do."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def known(page: Page, *names: str) -> NDArray[np.bool_]:
    """Tell in which rows none of some columns is null; (0,) where none is anywhere, or for no column."""
    found = _ALL
    for name in names:
        if (column := page.column(name)).null_count:
            found = fixed(found & valid(column)) if found.size else valid(column)
    return found


def valid(column: pa.Array) -> NDArray[np.bool_]:
    """Tell which rows of a column are not null."""
    if not column.null_count:
        return fixed(np.ones(len(column), np.bool_))
    return fixed(column.is_valid().to_numpy(zero_copy_only=False))


def values(page: Page, part: Part) -> NDArray[Any]:
    """Return the column of a part as int32, int64 or float64; nulls are 0, and ``known`` tells."""
    return numbers(page.column(part.column or ""), *(_FLOATS if part.floating else _INTEGERS))


def numbers(column: pa.Array, *kinds: pa.DataType) -> NDArray[Any]:
    """Return a column as it is, if it is of one of ``kinds``, or else as the last one; nulls are 0."""
    kind = column.type
    if kind not in kinds:
        if pa.types.is_temporal(kind):
            column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        if column.type not in kinds:
            column = column.cast(kinds[-1], safe=False)
    if column.null_count:
        column = pc.fill_null(column, 0)
    array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return fixed(array) if array.flags.writeable or not array.flags.c_contiguous else array
