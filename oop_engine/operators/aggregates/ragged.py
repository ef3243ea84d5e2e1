"""Ragged columns: a state that is a list of values, in columns like any other state.

Where a state has a fixed size, a column of states is an array.  Here it is the values of all rows behind each other,
and where each row begins.  The column stands in for an array (a duck array of NumPy): rows are taken, overwritten and
concatenated as those of arrays are, so all that holds states holds these too.  To overwrite rows takes as long as to
take all of them, so a store of open windows had better put rows behind others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Flat", "Ragged", "listed"]

Integers = NDArray[np.int64]
Flat = Any
"""The values of all rows: a NumPy array, or one of Arrow for those that are no numbers."""


class Ragged:
    """Row ``i`` is the ``lengths[i]`` values from ``begins[i]`` on, of each column of ``flat``.

    ``begins``, ``lengths`` int64 (rows,): rows may share values, so that to take rows copies none; the rest of
    ``flat`` is copied once that is less than half.  ``kind``: the Arrow type of the values.

    >>> column = Ragged.of(np.array([2, 1]), (np.array([5, 7, 9]), np.array([1, 1, 4])), pa.int64())
    >>> np.concatenate([column[[1]], column]).lengths.tolist()
    [1, 2, 1]
    """

    def __init__(
        self, begins: Integers, lengths: Integers, flat: tuple[Flat, ...], kind: pa.DataType
    ) -> None:
        self.begins, self.lengths, self.flat, self.kind = begins, lengths, flat, kind

    @classmethod
    def of(cls, lengths: Integers, flat: tuple[Flat, ...], kind: pa.DataType) -> Ragged:
        """Return rows of such lengths that lie behind each other."""
        return cls(np.cumsum(lengths) - lengths, lengths, flat, kind)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return int(self.lengths.size)

    def __len__(self) -> int:
        return self.size

    @property
    def values(self) -> int:
        """How many values all rows have."""
        return int(self.lengths.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return int(2 * self.lengths.nbytes + sum(column.nbytes for column in self.flat))

    def __getitem__(self, rows: NDArray[Any] | Sequence[int] | slice) -> Ragged:
        chosen = Ragged(self.begins[rows], self.lengths[rows], self.flat, self.kind)
        return chosen.compact() if 2 * chosen.values < len(self.flat[0]) else chosen

    def __setitem__(self, rows: NDArray[Any], new: Ragged) -> None:
        """Overwrite some rows.  O(values)."""
        at = np.arange(self.size)
        at[rows] = self.size + np.arange(at[rows].size)
        self.become(np.concatenate([self, new])[at])  # type: ignore[arg-type]

    def become(self, other: Ragged) -> None:
        """Take over the rows of another column."""
        self.begins, self.lengths, self.flat = other.begins, other.lengths, other.flat

    def copy(self) -> Ragged:
        """Return another column of the same rows."""
        return Ragged(self.begins, self.lengths, self.flat, self.kind)

    def compact(self) -> Ragged:
        """Return the same rows, one behind the other in columns that have nothing else."""
        ends = np.cumsum(self.lengths)
        begins = ends - self.lengths
        if self.size and ends[-1] == len(self.flat[0]) and (begins == self.begins).all():
            return self
        flat = tuple(_gathered(column, self.begins, begins, self.lengths) for column in self.flat)
        return Ragged(begins, self.lengths, flat, self.kind)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if function is not np.concatenate or kwargs or not all(issubclass(kind, Ragged) for kind in types):
            return NotImplemented
        columns = [column.compact() for column in args[0]]
        flat = tuple(_joined([column.flat[i] for column in columns]) for i in range(len(self.flat)))
        return Ragged.of(np.concatenate([column.lengths for column in columns]), flat, self.kind)

    def totals(self, column: int = 1) -> Integers:
        """Return the sum of a column of each row: of counts, how many values there are."""
        from oop_engine.operators.kernels.lists import sums

        totals = np.zeros(self.size, np.int64)
        if len(self.flat[column]):
            sums(self.begins, self.lengths, _read_only(self.flat[column]), totals)
        return totals

    def places(self, ranks: Integers) -> Integers:
        """Return where in the first column the value of a rank, from 0 on, of each row is; anywhere, if it has none."""
        from oop_engine.operators.kernels.lists import places

        at = np.empty(self.size, np.int64)
        places(self.begins, self.lengths, _read_only(self.flat[1]), ranks, at)
        return at


def listed(states: Iterable[Sequence[Any]], rows: int) -> int:
    """Return how many partial aggregates rows of states are: of lists the values of the longest, at least one a row."""
    lengths = [column.lengths for state in states for column in state if isinstance(column, Ragged)]
    return int(np.maximum.reduce([np.ones(rows, np.int64), *lengths]).sum()) if lengths else rows


def _gathered(column: Flat, begins: Integers, to: Integers, lengths: Integers) -> Flat:
    """Return the values of rows that begin at ``begins``, so that they begin at ``to``."""
    many = int(lengths.sum())
    if isinstance(column, np.ndarray):
        from oop_engine.operators.kernels.lists import gather

        out = np.empty(many, column.dtype)
        gather(_read_only(column), begins, to, lengths, out)
        return out
    return column.take(pa.array(np.repeat(begins - to, lengths) + np.arange(many)))


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous view: one signature of a kernel will do."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view


def _joined(columns: list[Flat]) -> Flat:
    return np.concatenate(columns) if isinstance(columns[0], np.ndarray) else pa.concat_arrays(columns)
