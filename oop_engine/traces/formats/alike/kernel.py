"""The kernel that reads rows written alike: the same literals around cells of the same kinds, row after row.

A row is literal, cell, literal, cell, ..., literal.  ``forms`` has a line for each literal with the cell behind it; the
last one has no cell, and its literal ends the row.  The kernel accepts only rows that each reader of the format reads
with the same values, and gives up at anything else: the caller reads the block in another way then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.kernel import njit

__all__ = [
    "COLUMN",
    "FLOAT",
    "INTEGER",
    "KIND",
    "LEAST",
    "LITERAL",
    "LITERAL_END",
    "MOST",
    "NOTHING",
    "NULLABLE",
    "PLACE",
    "STOPS",
    "TEXT",
    "WIDTH",
    "read_alike",
]  # fmt: skip

NOTHING, TEXT, INTEGER, FLOAT = range(4)
"""Kinds of cells; ``NOTHING``: the end of the row."""
LITERAL, LITERAL_END, KIND, PLACE, COLUMN, LEAST, MOST, STOPS, NULLABLE, WIDTH = range(10)
"""Of a form: its literal in ``literals`` from, to; kind; row of ``valid``, or -1: the cell is dropped; row in the array
of the kind; least and largest integer; row of ``stops``; 1: an empty cell is null, else the kernel gives up."""

_MINUS, _POINT, _ZERO = (ord(sign) for sign in "-.0")
_INTEGER_DIGITS, _FLOAT_DIGITS = 18, 15  # so many fit into 64 bits, and into the 53 of a float
_TENS = np.array(
    [10.0**power for power in range(_FLOAT_DIGITS + 1)]
)  # exact, so a quotient is the nearest float


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def read_alike(
    data: NDArray[np.uint8],
    literals: NDArray[np.uint8],
    forms: NDArray[np.int64],
    stops: NDArray[np.bool_],
    integers: NDArray[np.int64],
    floats: NDArray[np.float64],
    texts: NDArray[np.uint8],
    ends: NDArray[np.int32],
    valid: NDArray[np.bool_],
) -> Any:
    """Read all rows of ``data``; return whether all are written alike.  O(bytes).

    ``forms`` int64 (cells + 1, WIDTH).  ``stops`` bool (n, 256): bytes at which a text ends.  Written: ``integers``,
    ``floats`` (columns of the kind, rows); ``texts`` (columns of text, bytes) with ``ends`` (the same, rows + 1), where
    each text ends, the first of them 0; ``valid`` (columns, rows), all true when given.
    """
    # Numba asks an index with a sign whether it is negative, and adds the size then: 40 % of the time, byte by byte.
    at, size, cells = 0, data.size, forms.shape[0]
    for row in range(valid.shape[1]):
        for cell in range(cells):  # no views in here: each of them would count its references
            begin, end = forms[cell, LITERAL], forms[cell, LITERAL_END]
            if at + end - begin > size:
                return False
            for i in range(begin, end):
                if data[np.uint64(at)] != literals[np.uint64(i)]:
                    return False
                at += 1
            kind = forms[cell, KIND]
            if kind == NOTHING:
                break
            place, column, start = forms[cell, PLACE], forms[cell, COLUMN], at
            if kind == TEXT:
                stop = forms[cell, STOPS]
                if place < 0:
                    while at < size and not stops[np.uint64(stop), data[np.uint64(at)]]:
                        at += 1
                    continue
                to = ends[column, row]
                while at < size:  # copied as it is looked through
                    byte = data[np.uint64(at)]
                    if stops[np.uint64(stop), byte]:
                        break
                    texts[np.uint64(column), np.uint64(to + at - start)] = byte
                    at += 1
                ends[column, row + 1] = to + at - start
                if at == start and forms[cell, NULLABLE]:
                    valid[place, row] = False
                continue
            negative = at < size and data[np.uint64(at)] == _MINUS
            if negative:
                at += 1
            first, number = at, np.int64(0)
            while at < size:
                digit = np.int64(data[np.uint64(at)]) - _ZERO
                if digit < 0 or digit > 9:
                    break
                number = number * 10 + digit
                at += 1
            digits, fraction = at - first, 0
            if digits == 0:
                if negative or not forms[cell, NULLABLE]:
                    return False
                if place >= 0:
                    valid[place, row] = False
                    if kind == INTEGER:
                        integers[column, row] = 0
                    else:
                        floats[column, row] = 0.0
                continue
            if digits > 1 and data[first] == _ZERO:
                return False
            if kind == INTEGER:
                if digits > _INTEGER_DIGITS or (negative and number == 0):
                    return False
                if negative:
                    number = -number
                if number < forms[cell, LEAST] or number > forms[cell, MOST]:
                    return False
                if place >= 0:
                    integers[column, row] = number
                continue
            if at < size and data[np.uint64(at)] == _POINT:
                at += 1
                first = at
                while at < size:
                    digit = np.int64(data[np.uint64(at)]) - _ZERO
                    if digit < 0 or digit > 9:
                        break
                    number = number * 10 + digit
                    at += 1
                fraction = at - first
                if fraction == 0:
                    return False
            if digits + fraction > _FLOAT_DIGITS:
                return False
            if place >= 0:
                value = number / _TENS[fraction]
                floats[column, row] = -value if negative else value
    return at == size
