"""Kept values: how states are kept that are some of a window's values, as lists.

``Chosen`` keeps one, where values have no order codes.  ``Earliest`` keeps a number of them, by time or by hash.
Flat columns are keys (``aggregates/sort_keys.py``), or values in Arrow where there are none.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.aggregates.ragged import Flat, Ragged
from oop_engine.operators.aggregates.sort_keys import NAN, decoded, has_keys, keys_of, ranks_of, taken
from oop_engine.operators.slicing.accumulator import register_accumulator
from oop_engine.operators.slicing.accumulators.lists import Lists, column_of, hashes, state_of
from oop_engine.operators.slicing.compiled import valid
from oop_engine.operators.values.columns import Integers, begins_of

__all__ = ["Chosen", "Earliest"]

_LEAST, _TIME = np.iinfo(np.int64).min, pa.int64()


@register_accumulator(
    "min_listed", "max_listed", "first_listed", "last_listed", "arg_min_listed", "arg_max_listed", "min_count_listed",
    "max_count_listed",
)  # fmt: skip
class Chosen(Lists):
    """Keeps a list of at most one row of columns, which decide from the last to the first one.

    For ``first`` and ``last`` these are value and time, for arguments ``of`` and ``at``.  Where it is counted how
    often a value occurs, that is one more column, which decides nothing.
    """

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        name = part.kind.removesuffix("_listed")
        self._greatest = name in ("max", "last", "arg_max", "max_count")
        self._timed, self._counted = name in ("first", "last"), name.endswith("count")
        values = tuple(_nothing(kind) for kind in part.types)
        self.flat = (*values, np.empty(0, np.int64)) if self._timed or self._counted else values

    def prepare(self, page: Page, times: Integers) -> Arrays:
        columns = [decoded(page.column(name)) for name in self.part.columns]
        known = np.logical_and.reduce(list(map(valid, columns)))
        flat = [_flat(column.filter(pa.array(known))) for column in columns]
        if self._timed:
            flat.append(times[known])
        if self._counted:
            flat.append(np.ones(int(known.sum()), np.int64))
        return state_of(Ragged.of(known.astype(np.int64), tuple(flat), self.kind))

    def reduce(self, state: Arrays, starts: Integers) -> Arrays:
        column = column_of(state).compact()
        run = np.repeat(np.arange(starts.size), np.diff(starts, append=column.size))[column.lengths > 0]
        at, deciding = np.arange(run.size), column.flat[:-1] if self._counted else column.flat
        for place in reversed(range(len(deciding) if at.size else 0)):
            at = at[self._best(place, ranks_of(taken(deciding[place], at)), run[at])]
        first = at[begins_of(run[at])]
        flat = [taken(one, first) for one in deciding]
        if self._counted:
            flat.append(np.add.reduceat(column.flat[-1][at], begins_of(run[at])) if at.size else at)
        lengths = np.bincount(run[first], minlength=starts.size)
        return state_of(Ragged.of(lengths, tuple(flat), self.kind))

    def _best(self, place: int, keys: Integers, run: Integers) -> NDArray[np.bool_]:
        """Tell which keys of a column are the extreme one of their run; NaN is so only where there is nothing else."""
        if self._greatest and pa.types.is_floating((*self.part.types, _TIME)[place]):
            keys = np.where(keys == NAN, _LEAST, keys)
        begins = begins_of(run)
        extreme = (np.maximum if self._greatest else np.minimum).reduceat(keys, begins)
        best: NDArray[np.bool_] = keys == np.repeat(extreme, np.diff(begins, append=keys.size))
        return best

    def _checked(self, column: Ragged) -> Ragged:
        if (column.lengths > 1).any() or (self._counted and (column.flat[-1] < 1).any()):
            msg = "there must be one value at most, at least once"
            raise SnapshotError(msg)
        return column


@register_accumulator("collected", "sampled")
class Earliest(Lists):
    """Keeps the first values of tuples in an order: by time, then value, or by the hash of both."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.flat = _nothing(part.types[0]), np.empty(0, np.int64)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        column = decoded(page.column(self.part.column or ""))
        known = valid(column)
        column, order = column.drop_null(), times[known]
        if self.part.kind == "sampled":
            order = hashes(column, order)
        return state_of(Ragged.of(known.astype(np.int64), (_flat(column), order), self.kind))

    def reduce(self, state: Arrays, starts: Integers) -> Arrays:
        column = column_of(state).compact()
        run = np.repeat(np.arange(starts.size), np.diff(starts, append=column.size))
        run = np.repeat(run, column.lengths)
        order = np.lexsort((ranks_of(column.flat[0]), column.flat[1], run))
        run = run[order]
        begins = np.searchsorted(run, np.arange(starts.size))
        some = np.flatnonzero(np.arange(run.size) - begins[run] < int(self.part.parameter))
        flat = tuple(taken(one, order[some]) for one in column.flat)
        return state_of(Ragged.of(np.bincount(run[some], minlength=starts.size), flat, self.kind))

    def _checked(self, column: Ragged) -> Ragged:
        if (column.lengths > int(self.part.parameter)).any():
            msg = f"there must be at most {int(self.part.parameter)} values in a list; got {column.lengths.max()}"
            raise SnapshotError(msg)
        return column


def _nothing(kind: pa.DataType) -> Flat:
    return np.empty(0, np.int64) if has_keys(kind) else pa.nulls(0, kind)


def _flat(column: pa.Array) -> Flat:
    return keys_of(column) if has_keys(column.type) else column
