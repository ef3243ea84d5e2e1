"""Row codes: which rows of a page have the same values, with no memory of other pages.

``GroupIndex`` gives a group the same number for ever; here a number is good for one page, and all
work is done in Arrow and kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.operators.kernels.places import pairs
from oop_engine.operators.keys.key_table import KeyTable
from oop_engine.system.knobs import knob

__all__ = ["row_codes"]

Integers = NDArray[np.int64]

_PLACES = knob(__name__, "_PLACES", 4)  # for each row: where pairs may have so many, they are not hashed
_FITS = 1 << 62  # numbers of pairs


def row_codes(columns: Sequence[pa.Array]) -> tuple[Integers, Integers]:
    """Number the different rows of ``columns`` by first sight.

    Returns the number of each row, int64 (rows,), and the first row of each number, int64
    (numbers,).  Equal rows may get two numbers (0.0 and -0.0), different ones never one.
    O(rows) for each column.

    >>> row_codes([pa.array(["b", "a", "b", "b"]), pa.array([1, 1, 1, 2])])
    (array([0, 1, 0, 2]), array([0, 1, 3]))
    """
    if len(columns) == 1:
        codes = _coded(columns[0])
        return codes, _first_of(codes)
    codes = _integers(columns[0])
    for column in columns[1:]:
        codes, first = _paired(codes, _integers(column))
    return codes, first


def _paired(a: Integers, b: Integers) -> tuple[Integers, Integers]:
    """Number the pairs of two columns of integers; as ``row_codes`` returns."""
    if not a.size:
        return a, a
    low_a, wide_a = _span(a)
    low_b, wide_b = _span(b)
    if wide_a * wide_b > _FITS:
        a, b = KeyTable().encode(a), KeyTable().encode(b)
        (low_a, wide_a), (low_b, wide_b) = _span(a), _span(b)
    if wide_a * wide_b > _PLACES * a.size:
        codes = KeyTable().encode((a - low_a) * wide_b + (b - low_b))
        return codes, _first_of(codes)
    numbers, first = np.empty((2, a.size), np.int64)
    free = np.full(wide_a * wide_b, -1, np.int32)
    many = pairs(_fixed(a), _fixed(b), (low_a, low_b), wide_b, free, numbers, first)
    return numbers, first[:many].copy()


def _span(values: Integers) -> tuple[int, int]:
    """Return the least value, and how many there may be from there to the greatest."""
    lowest = int(values.min())
    return lowest, int(values.max()) - lowest + 1


def _fixed(values: Integers) -> Integers:
    """Return a read-only view: one signature of the kernel will do."""
    view = values.view()
    view.flags.writeable = False
    return view


def _first_of(codes: Integers) -> Integers:
    """Return the first row of each number."""
    first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(codes.size)[::-1]  # written backwards, so the first sight stays
    return first


def _integers(column: pa.Array) -> Integers:
    """Return a column of integers as it is, or numbers of its values."""
    if pa.types.is_signed_integer(column.type) and not column.null_count:
        values: Integers = column.to_numpy().astype(np.int64, copy=False)
        return values
    return _coded(column)


def _coded(column: pa.Array) -> Integers:
    """Number the values of a column by first sight."""
    if pa.types.is_signed_integer(column.type) and not column.null_count:
        return KeyTable().encode(column.to_numpy())
    if pa.types.is_dictionary(column.type):  # its numbers differ where values do
        column = column.indices
    try:
        coded = column.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:  # types that Arrow does not hash
        return GroupIndex([column.type]).encode([column])
    numbers: Integers = coded.indices.to_numpy().astype(np.int64)
    return numbers
