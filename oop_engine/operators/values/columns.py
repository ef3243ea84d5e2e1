"""Columns: rows of NumPy arrays side by side; of states, a tuple of arrays for each part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.knobs import knob

__all__ = [
    "Integers",
    "begins_of",
    "by_slot",
    "bytes_of",
    "ends_of",
    "filled_up",
    "joined",
    "looked_up",
    "new_rows",
    "rows_of",
    "spread",
]

Integers = NDArray[np.int64]
States = Sequence[tuple[NDArray[Any], ...]]
_APART = knob(
    __name__, "_APART", 16
)  # rows there may be for each slot that is looked up, before it is searched for


def new_rows(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return in which rows one of some columns is not that of the row before; the first is one.

    >>> new_rows(np.array([1, 1, 2, 2]), np.array([5, 5, 5, 6])).tolist()
    [True, False, True, True]
    """
    new = np.empty(columns[0].size, np.bool_)
    new[:1], new[1:] = True, columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        new[1:] |= column[1:] != column[:-1]
    return new


def begins_of(*columns: NDArray[Any]) -> Integers:
    """Return the rows of ``new_rows``."""
    return new_rows(*columns).nonzero()[0]


def ends_of(starts: Integers, rows: int) -> Integers:
    """Return the end of each of some stretches of rows: where the next one starts, and of the last ``rows``.

    >>> ends_of(np.array([0, 2, 5]), 7).tolist()
    [2, 5, 7]
    """
    ends = np.empty(starts.size, np.int64)
    ends[:-1], ends[-1:] = starts[1:], rows
    return ends


def spread(low: Integers, widths: Integers) -> tuple[Integers, Integers]:
    """Return the numbers of some ranges one behind the other: of which range each is, and the number.

    Range ``i`` has ``widths[i]`` numbers, from ``low[i]`` on.

    >>> [column.tolist() for column in spread(np.array([7, 3]), np.array([1, 2]))]
    [[0, 1, 1], [7, 3, 4]]
    """
    of = np.arange(widths.size).repeat(widths)
    return of, np.arange(of.size) - (widths.cumsum() - widths - low).repeat(widths)


def by_slot(slots: Integers, values: Any, size: int, other: Any) -> NDArray[Any]:
    """Return a column of ``size`` rows with ``values`` in the rows ``slots``, and ``other`` in the rest.

    >>> by_slot(np.array([3, 1]), [7, 8], 4, -1).tolist()
    [-1, 8, -1, 7]
    """
    column = np.full(size, other)
    column[slots] = values
    return column


def looked_up(wanted: Integers, slots: Integers, values: Any, other: Any) -> NDArray[Any]:
    """Return the value of each slot in ``wanted``, by distinct ``slots`` and their ``values``; ``other``: it has none.

    O(n log n) where slots are few and far apart, else O(n + the largest slot).

    >>> looked_up(np.array([5, 1, 5, 2]), np.array([5, 2]), np.array([7, 8]), -1).tolist()
    [7, -1, 7, 8]
    """
    size = 1 + max(int(wanted.max(initial=-1)), int(slots.max(initial=-1)))
    if not slots.size or _APART * (slots.size + wanted.size) >= size:
        by_place: NDArray[Any] = by_slot(slots, values, size, other)[wanted]
        return by_place
    order = np.argsort(slots)
    row = order[slots.searchsorted(wanted, sorter=order).clip(max=slots.size - 1)]
    known: NDArray[Any] = np.where(slots[row] == wanted, np.broadcast_to(values, slots.shape)[row], other)
    return known


def rows_of(states: States, rows: NDArray[Any] | slice) -> list[tuple[NDArray[Any], ...]]:
    """Return some rows of states."""
    take = itemgetter(rows)
    return [tuple(map(take, state)) for state in states]


def joined(states: Iterable[States]) -> list[tuple[NDArray[Any], ...]]:
    """Return the rows of several states, one behind the other."""
    return [tuple(map(np.concatenate, zip(*columns, strict=True))) for columns in zip(*states, strict=True)]


def bytes_of(states: States) -> int:
    """Return the bytes of all columns."""
    return sum(map(attrgetter("nbytes"), chain.from_iterable(states)))


def filled_up(column: NDArray[Any], size: int, value: Any) -> NDArray[Any]:
    """Return a column with ``value`` in new rows at its end, of ``size`` rows at least."""
    more = size - column.shape[0]
    return (
        np.concatenate([column, np.full((more, *column.shape[1:]), value, column.dtype)])
        if more > 0
        else column
    )
