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
from oop_engine.operators.keys.key_table import KeyTable

__all__ = ["row_codes"]

Integers = NDArray[np.int64]

_NEAR = 1 << 24  # so a pair of one and the number of a row fits 64 bits


def row_codes(columns: Sequence[pa.Array]) -> tuple[Integers, Integers]:
    """Number the different rows of ``columns`` by first sight.

    Returns the number of each row, int64 (rows,), and the first row of each number, int64
    (numbers,).  Equal rows may get two numbers (0.0 and -0.0), different ones never one.
    O(rows) for each column.

    >>> row_codes([pa.array(["b", "a", "b", "b"]), pa.array([1, 1, 1, 2])])
    (array([0, 1, 0, 2]), array([0, 1, 3]))
    """
    codes = _coded(columns[0]) if len(columns) == 1 else _near(columns[0])
    for column in columns[1:]:
        more = _near(column)
        codes = KeyTable().encode(codes * (int(more.max(initial=0)) + 1) + more)
    first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(codes.size)[::-1]  # written backwards, so the first sight stays
    return codes, first


def _near(column: pa.Array) -> Integers:
    """Number the values of a column in any way: integers that lie close together are numbers already."""
    if pa.types.is_signed_integer(column.type) and not column.null_count and len(column):
        values = column.to_numpy()
        least = int(values.min())
        if int(values.max()) - least < _NEAR:
            near: Integers = values - np.int64(least)
            return near
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
