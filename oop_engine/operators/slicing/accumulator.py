"""Accumulator: how a part is kept, and all that is done with its states; and which one keeps which kind of part.

A part's states are columns, a tuple of arrays, one row a partial aggregate.  An ``Accumulator`` does everything with
whole columns in NumPy, from ``identity``, ``prepare`` and ``combine`` alone; ``Compiled`` (``compiled.py``) does it in
loops.  The accumulator of each kind of part is in ``slicing/accumulators/``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise, repeat
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError, UsageError
from oop_engine.core.page import Page
from oop_engine.core.registry import Registry, is_ours
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.aggregates.wide import SumOverflowError
from oop_engine.operators.kernels.monoids import STEP_TO
from oop_engine.operators.kernels.panes import Geometry, row_of, step_levels
from oop_engine.operators.kernels.sliding import ALONE
from oop_engine.operators.slicing.ordered.own_states import check_identity, watch
from oop_engine.operators.slicing.window_states import narrow
from oop_engine.operators.values.columns import Integers, begins_of

__all__ = [
    "ACCUMULATORS",
    "Accumulator",
    "Running",
    "SumOverflowError",
    "accumulator",
    "filled",
    "is_compiled",
    "is_ragged",
    "register_accumulator",
    "result_of",
    "side_by_side",
]

_AS_IEEE = np.errstate(invalid="ignore", over="ignore")  # infinities are combined without a word


class Running(NamedTuple):
    """States that slide from window to window: ``total``, columns (1, groups), of panes ``reach[0]`` to the other."""

    total: Arrays
    reach: Integers


class Accumulator(ABC):
    """Keeps ``part``, in NumPy.

    ``identity``: the state of no values, one NumPy scalar a column.  ``counts``: the state is how many values of the
    column there are.  ``invertible``: a state can be taken away again, exactly; three ways to put windows together ask
    for it: differences of running sums (``_summable`` in ``slice_windows.py``, which also wants one integer or
    ``by_times``), sliding totals of many groups (``PaneSweep``), and slides by rows (``row_windows.py``).
    ``exact``: states combined are the same to the last digit in any order; of those that are ``invertible`` they are.
    ``of_column``: it takes the values of the part's column as they are, and no times, so a loop over them may stand
    in for it.
    ``by_times``: the state is the sum, in 64 bits and checked, of the integers that ``prepare`` returns first; where
    there are no groups, ``PaneRing`` adds them up by their times, without the row of each, else in 32 bits as long as
    they fit.
    ``compiled``: all is done in loops; others take a Python step to put windows together.
    ``ragged``: states are lists, in a ``Ragged`` column; stores of cells of one size leave them to others.
    """

    identity: tuple[np.generic, ...]
    counts: ClassVar[bool] = False
    invertible: bool = False
    exact: ClassVar[bool] = False
    of_column: bool = False
    by_times: bool = False
    compiled: ClassVar[bool] = False
    ragged: ClassVar[bool] = False

    def __init__(self, part: Part) -> None:
        self.part = part

    def empty(self, rows: int) -> Arrays:
        """Return states of no values."""
        return tuple(map(filled, repeat(rows), self.identity))

    def saved(self, state: Arrays) -> list[Any]:
        """Return states for a snapshot."""
        return list(map(narrow, state))

    def loaded(self, saved: Saved, rows: int) -> Arrays:
        """Return so many rows that ``saved`` returned."""
        return self.read(saved, (rows,))

    def read(self, saved: Saved, shape: tuple[int | None, ...]) -> Arrays:
        """Return the columns of a snapshot."""
        return tuple(saved.numbers(i, shape, value.dtype) for i, value in enumerate(self.identity))

    def arrow_types(self) -> list[pa.DataType]:
        """Return the types of the columns in which states travel."""
        return [_arrow_type(value.dtype) for value in self.identity]

    def to_arrow(self, state: Arrays) -> list[pa.Array]:
        """Return the columns in which states travel."""
        return list(map(_to_arrow, state))

    def of_arrow(self, columns: Sequence[pa.Array]) -> Arrays:
        """Return the states in columns of these types."""
        return tuple(_of_arrow(column, of.dtype) for column, of in zip(columns, self.identity, strict=True))

    @abstractmethod
    def prepare(self, page: Page, times: Integers) -> Arrays:
        """Return the inputs of ``add`` and ``update``, of the tuples of ``page``: here their states, arrays (rows,)."""

    @abstractmethod
    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        """Return the states of ``a`` and ``b`` together, row by row: associative and commutative."""

    @_AS_IEEE
    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        """Add each tuple to the row ``rows[i]``."""
        order = np.argsort(rows, kind="stable")
        rows, lifted = rows[order], tuple(array[order] for array in inputs)
        starts = begins_of(rows)
        rows, lifted = rows[starts], self.reduce(lifted, starts)
        together = self.combine(tuple(column[rows] for column in state), lifted)
        _write(state, rows, together)

    def add_narrow(self, state: Arrays, rows: Integers, inputs: Arrays) -> int:
        """Do so with states of 32 bits, until one does not fit; return how many tuples have been added.

        Asked where sums are ``by_times``.
        """
        return 0

    def add_runs(self, state: Arrays, starts: Integers, ends: Integers, inputs: Arrays) -> None:
        """Add the tuples from ``starts[i]`` (ascending, the first 0) to ``ends[i]``, the next one, to row ``i``."""
        self.add(state, np.arange(starts.size).repeat(ends - starts), inputs)

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
            state = tuple(column[~odd] for column in state)
            _write(state, np.cumsum(~odd)[right - 1] - 1, both)
            lengths = (lengths + 1) // 2
        return state

    @_AS_IEEE
    def fold_steps(self, state: Arrays, steps: Integers, results: int) -> Arrays:
        """Take steps int64 (3, steps), as of ``kernels.panes.plan``, in ``state``; return the ``results``."""
        new, (to, a, b) = self._empty(results), steps
        level = np.empty(to.size, np.int64)
        order = np.argsort(level, kind="stable") if step_levels(to, a, b, state[0].size, level) else level[:0]
        for some in np.split(order, np.flatnonzero(np.diff(level[order])) + 1) if order.size else ():
            one, alone = tuple(c[a[some]] for c in state), b[some] < 0
            both = self.combine(one, tuple(c[np.where(alone, a[some], b[some])] for c in state))
            both = tuple(np.where(alone, old, new) for old, new in zip(one, both, strict=True))
            inside = to[some] >= 0
            _write(state, to[some][inside], tuple(column[inside] for column in both))
            _write(new, ~to[some][~inside], tuple(column[~inside] for column in both))
        return new

    @_AS_IEEE
    def fold_rows(
        self, ring: Arrays, begin: int, wide: int, rows: tuple[int | Arrays, int], steps: Integers
    ) -> Arrays:
        """Take steps of ``kernels.sliding`` and ``kernels.tree``, int64 (3, steps), for ``wide`` groups side by side.

        ``ring``: columns (rows, slots), read from slot ``begin`` on.  ``rows``: how many of scratch, or the scratch
        itself, columns (rows, wide), and how many of results.  Returns results, columns (results, wide).
        """
        cells, results = side_by_side(ring, wide, rows)

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
        self, geometry: Geometry, ring: Arrays, lowest: int, ends: Integers, slots: Integers,
        running: Running, out: Arrays,
    ) -> None:  # fmt: skip
        """Write the states of windows by those that come in and go out, as ``kernels.pane_rows`` lays them out.

        ``ring``: columns (panes, groups).  ``running``: the total behind the windows before, kept up to date.  ``out``:
        columns (results,).  Raises ``SumOverflowError`` with the window.
        """
        step, length, low, high, _, _, _ = geometry
        total = tuple(column[0] for column in running.total)
        begin, end = running.reach.tolist()
        for w, (at, stop) in enumerate(pairwise([0, *ends.tolist()])):
            start, till = max((lowest + w + 1) * step - length, low), min((lowest + w + 1) * step, high + 1)
            if start >= till:
                continue
            for pane in range(begin, min(start, end)):
                total = self.without(total, tuple(column[row_of(geometry, pane)] for column in ring))
            for pane in range(max(start, end), till):
                total = self.combine(total, tuple(column[row_of(geometry, pane)] for column in ring))
            begin, end = start, till
            for column, new in zip(out, total, strict=True):
                column[at:stop] = new[slots[at:stop]]
        running.reach[:] = begin, end
        for column, new in zip(running.total, total, strict=True):
            column[0] = new

    def running(self, groups: int, low: int) -> Running:
        """Return the total that ``totals`` begins with, of a ring whose first pane is ``low``."""
        total = tuple(filled(groups, value).reshape(1, -1) for value in self.identity)
        return Running(total, np.array([low, low]))

    def _empty(self, rows: int) -> Arrays:
        return tuple(map(np.empty, repeat(rows), self._types))

    @cached_property
    def _types(self) -> list[np.dtype[Any]]:
        return [value.dtype for value in self.identity]


def side_by_side(ring: Arrays, wide: int, rows: tuple[int | Arrays, int]) -> tuple[Arrays, Arrays]:
    """Return the scratch and the results of ``fold_rows``, of columns like those of ``ring``."""
    made = [
        of if isinstance(of, tuple) else tuple([np.empty((of, wide), c.dtype) for c in ring]) for of in rows
    ]
    return made[0], made[1]


def result_of(steps: Integers, at: int) -> int:
    """Return the result for which the step ``at`` of ``steps`` int64 (3, n) is taken, at which a sum did not fit."""
    following = steps[STEP_TO, at:]
    return int(~following[following < 0][0])


ACCUMULATORS = Registry[type[Accumulator]]("accumulator of parts", travels=True)
"""Accumulators, by the kinds of parts that they keep.  Nothing else asks for the kind."""

A = TypeVar("A", bound=type[Accumulator])


def register_accumulator(*kinds: str) -> Callable[[A], A]:
    """Let parts of some ``kinds`` be kept by a class; a decorator.

    Raises ``UsageError`` for a kind that an accumulator of another module keeps, and for anything but a class.
    """
    if not kinds or not all(isinstance(kind, str) for kind in kinds):
        way = "write @register_accumulator('name')"
        msg = f"register_accumulator takes names of kinds of parts; got {kinds!r:.80}: {way}"
        raise UsageError(msg)

    def register(kept: A) -> A:
        given: object = kept
        if not (isinstance(given, type) and issubclass(given, Accumulator)):
            msg = f"register_accumulator: must be above a class derived from Accumulator; got {kept!r:.80}"
            raise UsageError(msg)
        for kind in kinds:
            ACCUMULATORS.register(kind, kept, kept.__module__)
        accumulator.cache_clear()  # a cell of a notebook that runs again brings another class
        return kept

    return register


@lru_cache(1 << 14)  # an operator has thousands of parts; one is .2 kB
def accumulator(part: Part) -> Accumulator:
    """Return the accumulator of ``part``; raises ``GraphError`` for a kind that is not registered."""
    if part.kind not in ACCUMULATORS:
        known = ", ".join(ACCUMULATORS)
        msg = f"a part must be of a kind that has an accumulator ({known}); got {part.kind!r}: register_accumulator"
        raise GraphError(msg)
    made = ACCUMULATORS[part.kind](part)
    if not (is_ours(type(made)) or made.ragged):
        check_identity(made)
        if type(made).add is Accumulator.add and type(made).update is Accumulator.update:
            watch(made)
    return made


def is_compiled(parts: Sequence[Part]) -> bool:
    """Tell whether each of ``parts`` is kept by compiled loops."""
    return all(accumulator(part).compiled for part in parts)


def is_ragged(parts: Sequence[Part]) -> bool:
    """Tell whether a state of some of ``parts`` is a list."""
    return any(accumulator(part).ragged for part in parts)


def filled(rows: int, value: np.generic) -> NDArray[Any]:
    """Return ``rows`` times a value; zeros that are not written to take no memory."""
    return np.full(rows, value) if value != 0 else np.zeros(rows, value.dtype)


def _arrow_type(kind: np.dtype[Any]) -> pa.DataType:
    """Return the Arrow type of a state's column; numbers that Arrow lacks travel as their bytes."""
    try:
        return pa.from_numpy_dtype(kind)
    except pa.ArrowNotImplementedError:
        return pa.binary(kind.itemsize)


def _to_arrow(column: NDArray[Any]) -> pa.Array:
    """Return a state's column in Arrow."""
    kind = _arrow_type(column.dtype)
    if not pa.types.is_fixed_size_binary(kind):
        return pa.array(column, kind, from_pandas=False)
    buffer = pa.py_buffer(np.ascontiguousarray(column).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(kind, column.size, [None, buffer])


def _of_arrow(column: pa.Array, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the state's column that ``_to_arrow`` made."""
    if not pa.types.is_fixed_size_binary(column.type):
        array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return array
    whole: NDArray[Any] = np.frombuffer(column.buffers()[1], kind)
    return whole[column.offset : column.offset + len(column)]


def _write(state: Arrays, rows: Integers, new: Arrays) -> None:
    for column, some in zip(state, new, strict=True):
        column[rows] = some
