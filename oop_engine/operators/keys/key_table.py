"""The key table: codes of integers, as ``oop_engine.core.groups.integer_table`` has them, in kernels.

Where keys lie close together, the place of a key is its distance from the lowest one: no hashing, no
comparing.  Elsewhere places are hashed.  Keys are found and learnt in one pass, ten times as fast as in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.groups.integer_table import layout
from oop_engine.core.sizes import room_for
from oop_engine.operators.kernels import places as kernels
from oop_engine.operators.values.columns import filled_up
from oop_engine.system.knobs import knob

__all__ = ["KeyTable"]

Integers = NDArray[np.int64]

_LEAST = knob(__name__, "_LEAST", 64, least=2, power=True)  # keys and places
_CHUNK = knob(
    __name__, "_CHUNK", 256
)  # rows at a time for which room is made, at least; else half as many as there are keys
_ALL = np.empty(0, np.bool_)
_ALL.flags.writeable = False


class KeyTable:
    """Codes of distinct integers and of null, 0, 1, 2... in order of first sight.

    ``nbytes``: bytes of keys and places, with the room that is left.  ``keys``: integers by code, that of null any;
    ``sizes``: how many codes there are, and the code of null, or -1.

    >>> table = KeyTable()
    >>> table.encode(np.array([70, -2, 70])), table.find(np.array([-2, 5]))
    (array([0, 1, 0]), array([ 1, -1]))
    """

    def __init__(self) -> None:
        self.keys = np.zeros(_LEAST, np.int64)  # (room,)  by code; the entry of null is never compared
        self.sizes = np.array([0, -1])  # how many codes there are, the code of null
        self._allot(_LEAST, None)

    def __len__(self) -> int:
        return int(self.sizes[kernels.CODES])

    def find(self, values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Integers:
        """Return the code of every row, int64 (rows,), -1 if it is not known; O(rows).

        ``values`` integers (rows,), not beyond int64.  ``valid`` bool (rows,) is false where the value is
        null; None: nowhere.
        """
        codes = np.empty(values.size, np.int64)
        kernels.find(_fixed(values), *self._way, self.keys, self._places, codes)
        if valid is not None:
            codes[~valid] = self.sizes[kernels.NULL]
        return codes

    def encode(self, values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Integers:
        """Return the code of every row; new values get the next free codes.  O(rows), amortized."""
        codes = np.empty(values.size, np.int64)
        known, done = _ALL if valid is None else _fixed(valid), 0
        values = _fixed(values) if values.flags.writeable else values
        while True:
            done = kernels.encode(values, known, *self._way, self.keys, self._places, self.sizes, codes, done)
            if done == values.size:
                return codes
            rest = slice(done, done + max(len(self) // 2, _CHUNK))
            self.reserve(values[rest] if valid is None else values[rest][valid[rest]])

    def reserve(self, values: NDArray[Any]) -> None:
        """Make room for ``values``, and a null."""
        wanted = len(self) + values.size + 1
        if wanted > self.keys.size:
            self.keys = filled_up(self.keys[: len(self)], room_for(wanted, self.keys.size), 0)
            self.nbytes = self.keys.nbytes + self._places.nbytes
        lowest, highest = self._range(values)
        if (new_layout := layout(lowest, highest, wanted, self._lowest, self._places.size)) is not None:
            self._allot(*new_layout)

    def _range(self, values: NDArray[Any]) -> tuple[int, int]:
        """Return the least and the greatest of the keys and ``values``; the entry of null may be among them."""
        ends = [
            int(end)
            for integers in (self.keys[: len(self)], values)
            if integers.size
            for end in (integers.min(), integers.max())
        ]
        return min(ends, default=0), max(ends, default=0)

    def _allot(self, places: int, lowest: int | None) -> None:
        """Put the keys there are into other places."""
        self._lowest = lowest
        self._way = (lowest is not None, lowest or 0)  # whether places are distances, and from which key
        self._places = np.full(places, -1, np.int32)
        self.nbytes = self.keys.nbytes + self._places.nbytes
        if len(self):  # of a table that was just made no kernel is loaded
            kernels.fill(self.sizes, *self._way, self.keys, self._places)


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return what is read-only, or a view that is: one signature of each kernel will do."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view
