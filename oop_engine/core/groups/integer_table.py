"""A table of integers, probed for whole arrays at a time in NumPy.

Where keys lie close together, the place of a key is its distance from the lowest one.  Elsewhere places are
hashed, with open addressing and linear probing: all rows look at their first place together, those
that found another key look at the next one, and so on.  At most half of the places are
taken, so few rows look twice.  (``operators/keys/key_table.py`` is the same in kernels.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.knobs import knob

__all__ = ["IntegerTable", "layout"]

Integers = NDArray[np.int64]

_FREE = -1
_LEAST = knob(__name__, "_LEAST", 64, least=2, power=True)  # places
_CLOSE = knob(__name__, "_CLOSE", 4, least=2)  # places there may be for each key, where a place is a distance
_FEW = knob(__name__, "_FEW", 1 << 11)  # so few places may be as empty as they like
_CHUNK = knob(__name__, "_CHUNK", 256)
"""New rows at a time while the table is small; later as many as it has keys."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio


class IntegerTable:
    """Codes of distinct int64 values and of null, 0, 1, 2... in order of first sight.

    >>> table = IntegerTable()
    >>> table.encode(np.array([70, -2, 70])), table.find(np.array([-2, 5]))
    (array([0, 1, 0]), array([ 1, -1]))
    """

    def __init__(self) -> None:
        self.keys = np.zeros(1, np.int64)  # (capacity,)  by code; the entry of null is never compared
        self._size = 0
        self._null = _FREE
        self._places = np.full(_LEAST, _FREE, np.int32)  # (places,)  code; hashed: a power of two
        self._lowest: int | None = None  # the key of the first place; None: places are hashed
        self._range: tuple[int, int] | None = None  # the least and the greatest key

    def __len__(self) -> int:
        return self._size

    @property
    def sizes(self) -> tuple[int, int]:
        """How many codes there are, and the code of null, or -1."""
        return self._size, self._null

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and of the places, with the room that is left."""
        return self.keys.nbytes + self._places.nbytes

    def find(self, values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Integers:
        """Return the code of every row, int64 (rows,), -1 if it is not known; O(rows).

        ``values`` integers (rows,), not beyond int64.  ``valid`` bool (rows,) is false where the value is
        null; None: nowhere.
        """
        codes = self._look_up(values.astype(np.int64, copy=False)).astype(np.int64)
        if valid is not None:
            codes[~valid] = self._null
        return codes

    def encode(self, values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Integers:
        """Return the code of every row; new values get the next free codes.  O(rows)."""
        values = values.astype(np.int64, copy=False)
        codes = self.find(values, valid)
        missing = np.flatnonzero(codes < 0)
        while missing.size:
            new = missing[: max(self._size, _CHUNK)]
            self._learn(values[new], None if valid is None else valid[new])
            codes[missing] = self.find(values[missing], None if valid is None else valid[missing])
            missing = missing[codes[missing] < 0]
        return codes

    def _look_up(self, values: Integers) -> NDArray[np.int32]:
        places = self._home(values)
        if self._lowest is not None:
            known = places.view(np.uint64) < self._places.size
            if known.all():
                return self._places.take(places)
            return np.where(known, self._places.take(places, mode="clip"), np.int32(_FREE))
        codes = self._places.take(places)
        other = np.flatnonzero((self.keys.take(codes) != values) & (codes >= 0))
        while other.size:
            places[other] = (places[other] + 1) & (self._places.size - 1)
            candidates = self._places[places[other]]
            codes[other] = candidates
            other = other[(self.keys[candidates] != values[other]) & (candidates >= 0)]
        return codes

    def _home(self, values: Integers) -> Integers:
        if self._lowest is not None:
            return values - self._lowest  # a value that wraps round is no place either
        bits = self._places.size.bit_length() - 1
        return (values.view(np.uint64) * _SPREAD >> np.uint64(64 - bits)).view(np.int64)

    def _learn(self, values: Integers, valid: NDArray[np.bool_] | None) -> None:
        """Give codes to values none of which is known, some of which may be equal."""
        rows = np.arange(values.size) if valid is None else np.flatnonzero(valid)
        self.reserve(values[rows], values.size)
        first, places = self._claim(values, rows)
        null = np.empty(0, np.int64) if valid is None else np.flatnonzero(~valid)[:1]
        seen = np.sort(np.concatenate([first, null]))
        codes = self._size + np.searchsorted(seen, first)
        self._places[places] = codes
        self.keys[codes] = values[first]
        if null.size:
            self._null = self._size + int(np.searchsorted(seen, null[0]))
        self._size += seen.size

    def _claim(self, values: Integers, rows: Integers) -> tuple[Integers, Integers]:
        """Return the first row of each distinct value, and the place it is to have.

        A row leaves its mark, ``-2 - row``, at a free place; rows of one value go the same
        way, and as marks are written backwards the first of them wins.
        """
        places = self._home(values)
        first = []
        while rows.size:
            at = places[rows]
            free = np.flatnonzero(self._places[at] == _FREE)[::-1]
            self._places[at[free]] = -2 - rows[free]
            mark = -2 - self._places[at].astype(np.int64)
            first.append(rows[mark == rows])
            settled = (mark >= 0) & (values[np.maximum(mark, 0)] == values[rows])
            rows = rows[~settled]
            places[rows] = (places[rows] + 1) & (self._places.size - 1)
        winners = np.concatenate([np.empty(0, np.int64), *first])
        return winners, places[winners]

    def reserve(self, values: NDArray[Any], more: int | None = None) -> None:
        """Make room for ``more`` new keys, ``values`` among them (None: these alone)."""
        wanted = self._size + (values.size if more is None else more)
        if wanted > self.keys.size:
            keys = np.zeros(2 * wanted, np.int64)
            keys[: self._size] = self.keys[: self._size]
            self.keys = keys
        if values.size:
            ends = (int(values.min()), int(values.max()))
            lowest, highest = self._range or ends
            self._range = (min(lowest, ends[0]), max(highest, ends[1]))
        lowest, highest = self._range or (0, 0)
        if (new_layout := layout(lowest, highest, wanted, self._lowest, self._places.size)) is not None:
            self._allot(*new_layout)

    def _allot(self, places: int, lowest: int | None) -> None:
        """Put the keys there are into other places."""
        self._lowest = lowest
        self._places = np.full(max(places, _LEAST), _FREE, np.int32)
        codes = np.arange(self._size)
        codes, taken = self._claim(self.keys, codes[codes != self._null])
        self._places[taken] = codes


def layout(
    first: int, last: int, wanted: int, lowest: int | None, places: int
) -> tuple[int, int | None] | None:
    """Return how many places ``wanted`` keys from ``first`` to ``last`` should have, and the key of the first one.

    ``lowest``: the key of the first of the ``places`` there are.  A first key of None: places are hashed.
    Returns None if the places there are will do.

    >>> layout(100, 5000, 4000, None, 64), layout(0, 2**40, 100, None, 64)
    ((16000, -5449), (256, None))
    """
    room = max(_CLOSE * wanted, _FEW)
    if last - first < (room if lowest is not None else room // 2):
        if lowest is None or first < lowest or last - lowest >= places:
            return room, max(first - (room - 1 - last + first) // 2, -(2**63))
    elif lowest is not None or 2 * wanted > places:
        return 1 << (2 * wanted - 1).bit_length(), None
    return None
