"""Components: how each kind of partial aggregate is kept, updated and combined.

A component's state is a tuple of columns, one row a partial aggregate.  ``prepare`` turns
a page into arrays for the kernels, once a page; ``add`` adds each tuple to one row, ``update`` to
several, in Numba kernels; ``combine`` merges states element by element, in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Arrays, Part, UserDefined
from oop_engine.operators.kernels import cells_update as cells
from oop_engine.operators.kernels import partials_update as kernels

__all__ = ["Component", "SumOverflowError", "component", "numbers", "valid"]

Integers = NDArray[np.int64]


_ALL = np.empty(0, np.bool_)
_ALL.flags.writeable = False


class SumOverflowError(Exception):
    """A checked sum of ``column`` would wrap in row ``at``; ``Partials`` says in whose window."""

    def __init__(self, column: str | None, at: int) -> None:
        super().__init__(column, at)
        self.column = column
        self.at = at


class Component:
    """A count, and the base of the others.

    ``identity``: the state of no values, one NumPy scalar a column.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self.identity: tuple[np.generic, ...] = self._identity()

    def _identity(self) -> tuple[np.generic, ...]:
        return (np.int64(0),)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        """Return what ``update`` needs of the tuples of ``page``, arrays (rows,)."""
        return (_valid(page, self.part.column),)

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        """Add each tuple to the row ``rows[i]``."""
        cells.count(*state, rows, *inputs)

    def update(
        self, state: Arrays, rows: Integers, starts: Integers, lo: int, hi: int, inputs: Arrays
    ) -> None:
        """Add tuples ``lo`` to ``hi`` to the rows ``rows[starts[i]:starts[i + 1]]`` of each."""
        kernels.count(*state, rows, starts, lo, hi, *inputs)

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        """Return the states of ``a`` and ``b`` together."""
        return (a[0] + b[0],)


class _Sum(Component):
    def _identity(self) -> tuple[np.generic, ...]:
        return (np.float64(0) if self.part.floating else np.int64(0),)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        return _values(page, self.part), _valid(page, self.part.column)

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        if self.part.floating:
            cells.sum_floats(*state, rows, *inputs)
        elif (row := cells.sum_integers(*state, rows, *inputs)) >= 0:
            raise SumOverflowError(self.part.column, row)

    def update(
        self, state: Arrays, rows: Integers, starts: Integers, lo: int, hi: int, inputs: Arrays
    ) -> None:
        if self.part.floating:
            kernels.sum_floats(*state, rows, starts, lo, hi, *inputs)
        elif (row := kernels.sum_integers(*state, rows, starts, lo, hi, *inputs)) >= 0:
            raise SumOverflowError(self.part.column, row)

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        total = a[0] + b[0]
        if not self.part.floating:
            wrapped = ((total ^ a[0]) & (total ^ b[0])) < 0
            if wrapped.any():
                raise SumOverflowError(self.part.column, int(wrapped.argmax()))
        return (total,)


class _Extreme(Component):
    @property
    def _largest(self) -> bool:
        return self.part.kind in ("max", "last")

    def _identity(self) -> tuple[np.generic, ...]:
        if self.part.floating:
            return (np.float64("nan"),)
        limits = np.iinfo(np.int64)
        return (np.int64(limits.min if self._largest else limits.max),)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        return _values(page, self.part), _valid(page, self.part.column)

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        cells.extreme(*state, rows, *inputs, self._largest)

    def update(
        self, state: Arrays, rows: Integers, starts: Integers, lo: int, hi: int, inputs: Arrays
    ) -> None:
        kernels.extreme(*state, rows, starts, lo, hi, *inputs, self._largest)

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        return (self._better(a[0], b[0]),)

    def _better(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        chosen: NDArray[Any] = (np.fmax if self._largest else np.fmin)(a, b)
        return chosen


class _Edge(_Extreme):
    def _identity(self) -> tuple[np.generic, ...]:
        limits = np.iinfo(np.int64)
        return *super()._identity(), np.int64(limits.min if self._largest else limits.max)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        return _values(page, self.part), _fixed(times), _valid(page, self.part.column)

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        cells.edge(*state, rows, *inputs, self._largest)

    def update(
        self, state: Arrays, rows: Integers, starts: Integers, lo: int, hi: int, inputs: Arrays
    ) -> None:
        kernels.edge(*state, rows, starts, lo, hi, *inputs, self._largest)

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        (value, when), (other, since) = a, b
        from_a = when > since if self._largest else when < since
        chosen = np.where(from_a, value, other)
        tie = when == since
        chosen = np.where(tie, self._better(value, other), chosen)
        return chosen, np.where(from_a, when, since)


class _Moments(Component):
    def _identity(self) -> tuple[np.generic, ...]:
        return np.int64(0), np.float64(0), np.float64(0)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        return _values(page, self.part), _valid(page, self.part.column)

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        cells.moments(*state, rows, *inputs)

    def update(
        self, state: Arrays, rows: Integers, starts: Integers, lo: int, hi: int, inputs: Arrays
    ) -> None:
        kernels.moments(*state, rows, starts, lo, hi, *inputs)

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        (n, mean, squares), (m, other, more) = a, b
        away, total = other - mean, np.maximum(n + m, 1)
        together = (mean + away * m / total, squares + more + away * away * n * m / total)
        # one side alone is taken as it is: 0 * infinity would be NaN
        kept = zip((mean, squares), (other, more), together, strict=True)
        return n + m, *(np.where(m == 0, old, np.where(n == 0, new, both)) for old, new, both in kept)


class _User(Component):
    """A user-defined state, behind a column that tells whether there is one."""

    @property
    def _user(self) -> UserDefined:
        assert self.part.user is not None
        return self.part.user

    def _identity(self) -> tuple[np.generic, ...]:
        return np.bool_(False), *(np.dtype(name).type(0) for name in self._user.state_types)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        lifted = self._user.lift(*(page.column(name) for name in self._user.reads))
        names = self._user.state_types
        return tuple(np.asarray(array, name) for array, name in zip(lifted, names, strict=True))

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        self.update(state, rows, np.arange(rows.size + 1), 0, rows.size, inputs)

    def update(
        self, state: Arrays, rows: Integers, starts: Integers, lo: int, hi: int, inputs: Arrays
    ) -> None:
        tuples = np.repeat(np.arange(lo, hi), np.diff(starts[lo : hi + 1]))
        touched = rows[starts[lo] : starts[hi]]
        order = np.argsort(touched, kind="stable")
        touched, lifted = touched[order], tuple(array[tuples[order]] for array in inputs)
        present = np.ones(touched.size, np.bool_)
        singles: Arrays = (present, *lifted)
        while (touched[1:] == touched[:-1]).any():
            touched, singles = _halved(touched, singles, self)
        together = self.combine(tuple(column[touched] for column in state), singles)
        for column, values in zip(state, together, strict=True):
            column[touched] = values

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        both = np.flatnonzero(a[0] & b[0])
        together = self._user.combine(tuple(s[both] for s in a[1:]), tuple(s[both] for s in b[1:]))
        merged = [np.where(a[0], old, new) for old, new in zip(a[1:], b[1:], strict=True)]
        for column, values in zip(merged, together, strict=True):
            column[both] = values
        return a[0] | b[0], *merged


def _halved(rows: Integers, state: Arrays, of: Component) -> tuple[Integers, Arrays]:
    """Combine neighbours of the same row (rows sorted), the 1st with the 2nd, the 3rd with the 4th."""
    begins = np.concatenate([[True], rows[1:] != rows[:-1]])
    run = np.maximum.accumulate(np.where(begins, np.arange(rows.size), 0))
    odd = (np.arange(rows.size) - run) % 2 == 1
    right = np.flatnonzero(odd)
    together = of.combine(tuple(s[right - 1] for s in state), tuple(s[right] for s in state))
    merged = []
    for column, values in zip(state, together, strict=True):
        changed = column.copy()
        changed[right - 1] = values
        merged.append(changed[~odd])
    return rows[~odd], tuple(merged)


_KINDS: dict[str, Callable[[Part], Component]] = {
    "count": Component,
    "sum": _Sum,
    "min": _Extreme,
    "max": _Extreme,
    "first": _Edge,
    "last": _Edge,
    "moments": _Moments,
    "user": _User,
}


def component(part: Part) -> Component:
    """Return the component that keeps ``part``."""
    return _KINDS[part.kind](part)


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous read-only view: one signature of each kernel will do."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _valid(page: Page, name: str | None) -> NDArray[np.bool_]:
    """Tell which rows of a column are not null; (0,) where none is."""
    if name is None or not (column := page.column(name)).null_count:
        return _ALL
    return valid(column)


def valid(column: pa.Array) -> NDArray[np.bool_]:
    """Tell which rows of a column are not null."""
    if not column.null_count:
        return _fixed(np.ones(len(column), np.bool_))
    return _fixed(column.is_valid().to_numpy(zero_copy_only=False))


def _values(page: Page, part: Part) -> NDArray[Any]:
    """Return a column as int32, int64 or float64; nulls are 0, and ``_valid`` tells."""
    kinds = (pa.float64(),) if part.floating else (pa.int32(), pa.int64())
    return numbers(page.column(part.column or ""), *kinds)


def numbers(column: pa.Array, *kinds: pa.DataType) -> NDArray[Any]:
    """Return a column as it is, if it is of one of ``kinds``, or else as the last one; nulls are 0."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if column.type not in kinds:
        column = column.cast(kinds[-1], safe=False)
    if column.null_count:
        column = pc.fill_null(column, 0)
    return _fixed(column.to_numpy(zero_copy_only=False))
