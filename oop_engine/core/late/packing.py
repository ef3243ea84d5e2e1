"""Packing: a few rows of numbers as bytes, of which columns are made when they are read."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["CODES", "Packing"]

CODES = {
    pa.int32().id: (int, "i"),
    pa.int64().id: (int, "q"),
    pa.float64().id: (float, "d"),
}
"""By the number of an Arrow type: the class of the values that are packed, and how ``struct`` does so."""


class Packing:
    """How rows of some columns are packed, by their names and types; ``names`` are in that order.

    >>> packing = Packing({"k": pa.int32(), "v": pa.float64()})
    >>> packed = packing.packed([(7, 0.5), (8, 1.0)])
    >>> packing.numbers(packed, "v"), packing.column(packed, 0).to_pylist()
    (array([0.5, 1. ]), [7, 8])
    >>> packing.packed([(7, None)]) is None
    True
    """

    def __init__(self, columns: dict[str, pa.DataType]) -> None:
        kinds = [CODES[kind.id] for kind in columns.values()]
        self._types = tuple(wanted for wanted, _ in kinds)
        self._codes = [code for _, code in kinds]
        self._kinds = [{wanted} for wanted in self._types]
        self._one = [struct.Struct(code).pack for code in self._codes]
        self._columns = list(columns.values())
        kinds_of = {
            int: "i",
            float: "f",
        }  # not the code: a "q" is another type than int64 for NumPy, by its name
        wanted = [np.dtype(f"{kinds_of[cls]}{struct.calcsize(code)}") for cls, code in kinds]
        self._places = dict(zip(columns, enumerate(wanted), strict=True))

    @staticmethod
    def fits(kinds: Iterable[pa.DataType]) -> bool:
        """Return whether rows of columns of these types can be packed."""
        return all(kind.id in CODES for kind in kinds)

    def packed(self, rows: Sequence[Sequence[Any]]) -> list[bytes] | None:
        """Return the bytes of each column; None: a value is missing, or Arrow has to judge it.  There must be rows."""
        try:
            if len(rows) == 1:
                row = rows[0]
                right = tuple(map(type, row)) == self._types
                return [pack(value) for pack, value in zip(self._one, row, strict=True)] if right else None
            columns, code = list(zip(*rows, strict=True)), f"{len(rows)}%s"
            if [*map(_kinds, columns)] != self._kinds:
                return None
            return [
                struct.pack(code % letter, *column)
                for letter, column in zip(self._codes, columns, strict=True)
            ]
        except (struct.error, ValueError):  # too large, or of several lengths
            return None

    def numbers(self, packed: list[bytes], name: str) -> NDArray[Any]:
        """Return a column, read-only."""
        place, kind = self._places[name]
        return np.frombuffer(packed[place], kind)

    def column(self, packed: list[bytes], place: int) -> pa.Array:
        """Return the column at a place."""
        kind, values = self._columns[place], packed[place]
        return pa.Array.from_buffers(kind, 8 * len(values) // kind.bit_width, [None, pa.py_buffer(values)], 0)


def _kinds(values: Iterable[Any]) -> set[type]:
    return set(map(type, values))
