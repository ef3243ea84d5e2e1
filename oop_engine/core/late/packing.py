"""Packing: a row of numbers as a few bytes, of which columns are made when somebody reads them."""

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
    pa.timestamp("s").id: (int, "q"),
    pa.float64().id: (float, "d"),
}
"""By the number of an Arrow type: the class of the values that are packed, and how ``struct`` does so."""


class Packing:
    """How a row of some columns is packed, by their names and types; ``names`` are in that order.

    >>> packing = Packing({"k": pa.int32(), "v": pa.float64()})
    >>> packed = packing.packed((7, 0.5))
    >>> packing.numbers(packed, "v"), packing.column(packed, 0).to_pylist()
    (array([0.5]), [7])
    >>> packing.packed((7, None)) is None
    True
    """

    def __init__(self, columns: dict[str, pa.DataType]) -> None:
        kinds = [CODES[kind.id] for kind in columns.values()]
        self._types = tuple(wanted for wanted, _ in kinds)
        codes = [code for _, code in kinds]
        self._struct = struct.Struct("".join(codes))
        ends = (struct.calcsize("".join(codes[:number])) for number in range(1, len(codes) + 1))
        starts = [end - struct.calcsize(code) for end, code in zip(ends, codes, strict=True)]
        self._columns = list(zip(columns.values(), starts, map(struct.calcsize, codes), strict=True))
        kinds_of = {
            int: "i",
            float: "f",
        }  # not the code: a "q" is another type than int64 for NumPy, by its name
        wanted = [np.dtype(f"{kinds_of[of]}{struct.calcsize(code)}") for of, code in kinds]
        self._places = dict(zip(columns, zip(wanted, starts, strict=True), strict=True))

    @staticmethod
    def fits(kinds: Iterable[pa.DataType]) -> bool:
        """Tell whether rows of columns of these types can be packed."""
        return all(kind.id in CODES for kind in kinds)

    def packed(self, values: Sequence[Any]) -> bytes | None:
        """Return the bytes of a row; None: a value is missing, or Arrow has to judge it."""
        if tuple(map(type, values)) != self._types:
            return None
        try:
            return self._struct.pack(*values)
        except struct.error:  # too large
            return None

    def numbers(self, packed: bytes, name: str) -> NDArray[Any]:
        """Return a column of a row, (1,), read-only; of instants their integers."""
        kind, at = self._places[name]
        return np.frombuffer(packed, kind, 1, at)

    def column(self, packed: bytes, place: int) -> pa.Array:
        """Return the column at a place."""
        kind, at, width = self._columns[place]
        return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(packed).slice(at, width)], 0)
