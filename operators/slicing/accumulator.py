"""Accumulator: how a part is kept, and all that is done with its states.

A part's states are columns, a tuple of arrays, one row a partial aggregate.  An ``Accumulator`` does everything with
whole columns in NumPy, from ``identity``, ``prepare`` and ``combine`` alone; ``Compiled`` does it in the loops of
``oop_engine.operators.kernels.monoids``.  Which one keeps a part is told in ``slicing/accumulators/``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels import monoids
from oop_engine.operators.kernels.panes import Geometry, step_levels
from oop_engine.operators.kernels.slices import ALONE
from oop_engine.operators.slicing.state_columns import arrow_type, filled, of_arrow, to_arrow
from oop_engine.operators.slicing.window_states import narrow

__all__ = ["Accumulator", "Compiled", "SumOverflowError", "fixed", "known", "numbers", "valid", "values"]

Integers = NDArray[np.int64]
_FLOATS, _INTEGERS = (pa.float64(),), (pa.int32(), pa.int64())
_ALL = np.empty(0, np.bool_)
_ALL.flags.writeable = False
_AS_IEEE = np.errstate(invalid="ignore", over="ignore")  # infinities are combined without a word


class SumOverflowError(Exception):
    """A checked sum of ``column`` would wrap ``at`` a row, a step or a run, as asked; of ``fold_rows`` in ``group``."""

    def __init__(self, column: str | None, at: int, group: int = 0) -> None:
        super().__init__(column, at, group)
        self.column, self.at, self.group = column, at, group


class Accumulator(ABC):
    """Keeps ``part``, in NumPy.

    ``identity``: the state of no values, one NumPy scalar a column.  ``counts``: the state is how many values of the
    column there are.  ``invertible``: what was added can be taken away again, exactly.
    ``of_column``: it takes the values of the part's column as they are, and no times, so a loop over them may stand
    in for it.
    ``ragged``: states are lists, in a ``Ragged`` column; stores of cells of one size leave them to others.
    """

    identity: tuple[np.generic, ...]
    counts: ClassVar[bool] = False
    invertible: bool = False
    of_column: bool = False
    ragged: ClassVar[bool] = False

    def __init__(self, part: Part) -> None:
        self.part = part

    def empty(self, rows: int) -> Arrays:
        """Return states of no values."""
        return tuple(filled(rows, value) for value in self.identity)

    def saved(self, state: Arrays) -> list[Any]:
        """Return states for a snapshot."""
        return list(map(narrow, state))

    def loaded(self, saved: Saved, rows: int) -> Arrays:
        """Return so many rows that ``saved`` returned."""
        return tuple(saved.numbers(i, (rows,), value.dtype) for i, value in enumerate(self.identity))

    def arrow_types(self) -> list[pa.DataType]:
        """Return the types of the columns in which states travel."""
        return [arrow_type(value.dtype) for value in self.identity]

    def to_arrow(self, state: Arrays) -> list[pa.Array]:
        """Return the columns in which states travel."""
        return list(map(to_arrow, state))

    def of_arrow(self, columns: Sequence[pa.Array]) -> Arrays:
        """Return the states in columns of these types."""
        return tuple(of_arrow(column, of.dtype) for column, of in zip(columns, self.identity, strict=True))

    @abstractmethod
    def prepare(self, page: Page, times: Integers) -> Arrays:
        """Return what ``add`` and ``update`` need of the tuples of ``page``: here their states, arrays (rows,)."""

    @abstractmethod
    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        """Return the states of ``a`` and ``b`` together, row by row: associative and commutative."""

    @_AS_IEEE
    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        """Add each tuple to the row ``rows[i]``."""
        order = np.argsort(rows, kind="stable")
        rows, lifted = rows[order], tuple(array[order] for array in inputs)
        starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])[: rows.size])
        rows, lifted = rows[starts], self.reduce(lifted, starts)
        together = self.combine(tuple(column[rows] for column in state), lifted)
        _write(state, rows, together)

    def update(
        self, state: Arrays, rows: Integers, starts: Integers, lo: int, hi: int, inputs: Arrays
    ) -> None:
        """Add tuples ``lo`` to ``hi`` to the rows ``rows[starts[i]:starts[i + 1]]`` of each."""
        tuples = np.repeat(np.arange(lo, hi), np.diff(starts[lo : hi + 1]))
        self.add(state, rows[starts[lo] : starts[hi]], tuple(array[tuples] for array in inputs))

    @_AS_IEEE
    def reduce(self, state: Arrays, starts: Integers) -> Arrays:
        """Return the states of the rows from each of ``starts`` (ascending, the first 0) to the next, together.

        O(rows log(rows of a run)): neighbours are combined, the 1st with the 2nd, the 3rd with the 4th.
        """
        lengths = np.diff(starts, append=state[0].size if state else 0)
        while (lengths > 1).any():
            begins = np.cumsum(lengths) - lengths
            odd = (np.arange(lengths.sum()) - np.repeat(begins, lengths)) % 2 == 1
            right = np.flatnonzero(odd)
            both = self.combine(tuple(c[right - 1] for c in state), tuple(c[right] for c in state))
            state = tuple(_replaced(c, right - 1, new)[~odd] for c, new in zip(state, both, strict=True))
            lengths = (lengths + 1) // 2
        return state

    @_AS_IEEE
    def fold_steps(self, state: Arrays, steps: Integers, results: int) -> Arrays:
        """Take steps of ``kernels.panes.plan``, int64 (3, steps), in ``state``; return the ``results``."""
        new, (to, a, b) = self._empty(results), steps
        level = np.empty(to.size, np.int64)
        order = np.argsort(level, kind="stable") if step_levels(to, a, b, state[0].size, level) else level[:0]
        for some in np.split(order, np.flatnonzero(np.diff(level[order])) + 1) if order.size else ():
            both = self._of_rows(state, a[some], b[some])
            inside = to[some] >= 0
            _write(state, to[some][inside], tuple(column[inside] for column in both))
            _write(new, ~to[some][~inside], tuple(column[~inside] for column in both))
        return new

    def _of_rows(self, state: Arrays, a: Integers, b: Integers) -> Arrays:
        alone = b < 0
        both = self.combine(tuple(c[a] for c in state), tuple(c[np.where(alone, a, b)] for c in state))
        return tuple(np.where(alone, c[a], new) for c, new in zip(state, both, strict=True))

    @_AS_IEEE
    def fold_rows(
        self, ring: Arrays, begin: int, wide: int, rows: tuple[int, int], steps: Integers
    ) -> Arrays:
        """Take steps of ``kernels.slices.plan``, int64 (3, steps), for ``wide`` groups side by side.

        ``ring``: columns (rows, slots), read from slot ``begin`` on.  ``rows``: how many of scratch, and of results.
        Returns results, columns (results, wide).
        """
        cells, results = (tuple(np.empty((size, wide), c.dtype) for c in ring) for size in rows)

        def row(at: int, outside: Arrays, first: int) -> Arrays:
            return tuple(
                c[at] if at >= 0 else o[~at, first : first + wide]
                for c, o in zip(cells, outside, strict=True)
            )

        for to, a, b in steps.T.tolist():
            one = row(a, ring, begin)
            both = one if b == ALONE else self.combine(one, row(b, ring, begin))
            for column, new in zip(row(to, results, 0), both, strict=True):
                column[:] = new
        return results

    def without(self, a: Arrays, b: Arrays) -> Arrays:
        """Return the states that ``b`` was combined with to ``a``, row by row; asked where it is ``invertible``."""
        msg = f"{type(self).__name__} is not invertible: it has no without"
        raise NotImplementedError(msg)

    @_AS_IEEE
    def totals(
        self, geometry: Geometry, ring: Arrays, lowest: int, ends: Integers, slots: Integers, out: Arrays
    ) -> None:
        """Write the states of windows by those that come in and go out, as ``kernels.pane_rows`` lays them out.

        ``ring``: columns (panes, groups).  ``out``: columns (results,).  Raises ``SumOverflowError`` with the window.
        """
        step, length, low, high, mask, _ = geometry
        total = tuple(np.full(ring[0].shape[1], value) for value in self.identity)
        begin = end = low
        for w, (at, stop) in enumerate(pairwise([0, *ends.tolist()])):
            start, till = max((lowest + w + 1) * step - length, low), min((lowest + w + 1) * step, high + 1)
            if start >= till:
                continue
            for pane in range(begin, min(start, end)):
                total = self.without(total, tuple(column[pane & mask] for column in ring))
            for pane in range(max(start, end), till):
                total = self.combine(total, tuple(column[pane & mask] for column in ring))
            begin, end = start, till
            for column, new in zip(out, total, strict=True):
                column[at:stop] = new[slots[at:stop]]

    def _empty(self, rows: int) -> Arrays:
        return tuple(map(np.empty, repeat(rows), self._types))

    @cached_property
    def _types(self) -> list[np.dtype[Any]]:
        return [value.dtype for value in self.identity]


class Compiled(Accumulator):
    """Keeps a part by the compiled loops of its ``monoid``, whose state has the types of ``identity``.

    ``prepare`` returns the columns that the monoid's ``lift`` takes, and as the last one which rows count: bool
    (rows,), or (0,) where all do.
    """

    monoid: monoids.Monoid

    @cached_property
    def _loops(self) -> monoids.Loops:
        return monoids.loops(self.monoid)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        column = page.batch.column(self.part.column or "")
        numeric = numbers(column, *(_FLOATS if self.part.floating else _INTEGERS))
        return numeric, valid(column) if column.null_count else _ALL

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        at = self._loops.add_rows(self.monoid, state, rows, inputs[:-1], inputs[-1])
        if at >= 0:
            self._check(at)

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
        self, ring: Arrays, begin: int, wide: int, rows: tuple[int, int], steps: Integers
    ) -> Arrays:
        cells, results = (tuple(np.empty((size, wide), c.dtype) for c in ring) for size in rows)
        self._check(*self._loops.fold_rows(self.monoid, ring, begin, cells, results, steps))
        return results

    def totals(
        self, geometry: Geometry, ring: Arrays, lowest: int, ends: Integers, slots: Integers, out: Arrays
    ) -> None:
        groups = int(slots.max(initial=-1)) + 1
        total = tuple(np.zeros((1, groups), kind) for kind in self._types)
        self._check(*self._loops.totals(self.monoid, geometry, ring, lowest, ends, slots, total, out))

    def _check(self, at: int, group: int = 0) -> None:
        if at >= 0:
            raise SumOverflowError(self.part.column, at, group)


def _replaced(column: NDArray[Any], rows: Integers, new: NDArray[Any]) -> NDArray[Any]:
    changed = column.copy()
    changed[rows] = new
    return changed


def _write(state: Arrays, rows: Integers, new: Arrays) -> None:
    for column, some in zip(state, new, strict=True):
        column[rows] = some


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous read-only view: one signature of each kernel will do."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def known(page: Page, *names: str) -> NDArray[np.bool_]:
    """Tell in which rows none of some columns is null; (0,) where none is anywhere, or for no column."""
    found = _ALL
    for name in names:
        if (column := page.batch.column(name)).null_count:
            found = fixed(found & valid(column)) if found.size else valid(column)
    return found


def valid(column: pa.Array) -> NDArray[np.bool_]:
    """Tell which rows of a column are not null."""
    if not column.null_count:
        return fixed(np.ones(len(column), np.bool_))
    return fixed(column.is_valid().to_numpy(zero_copy_only=False))


def values(page: Page, part: Part) -> NDArray[Any]:
    """Return the column of a part as int32, int64 or float64; nulls are 0, and ``known`` tells."""
    return numbers(page.batch.column(part.column or ""), *(_FLOATS if part.floating else _INTEGERS))


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
