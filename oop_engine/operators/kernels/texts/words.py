"""Words of text keys: a text of up to 15 bytes as two numbers, a longer one by its hash.

The first of the two words, uint64, has the first eight bytes, the second one the others below its size in the highest
byte, so that two comparisons show whether texts are equal.  A longer text has its hash, and where it lies in a heap, at
least 1, with ``LONG``; the heap, uint64, has its size in bytes right before its bytes, eight a word, the last one
filled up with zeros.

A text is ``size`` bytes of ``data`` from ``at`` on.  Data and tables are pointers (``memory``): to hand an array to
another kernel takes as long as to look a short text up, for its users are counted.  Called by ``texts.table``.

Source: the layout of short and long strings after Neumann, Freitag, Umbra, CIDR 2020.
"""

# Layout       short (up to 15 bytes): first  = bytes 0 to 7            second = bytes 8 to 14, the size on top
#              long:                   first  = hash of all bytes       second = LONG | word of the heap it begins at
#              heap[start - 1] = size in bytes, heap[start ...] = the bytes, filled up with zeros
# Invariant    The top byte of ``second`` is the size, at most 15, or 255: no short text is taken for a long one.
#              Bytes behind the size are 0 in both forms, so whole words are compared.
# Not obvious  A text's words are read in two loads, which may reach behind it; where there may be nothing behind it
#              (the end of the data), bytes are read one by one.
#              The last 16 bytes of a longer text are hashed and compared from its end on: some twice, and no loop over
#              a rest.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.texts.memory import byte, hashed, integer, word
from oop_engine.system.kernel import njit

__all__ = [
    "EIGHT",
    "LONG",
    "ONE",
    "SEVEN",
    "SHORT",
    "START",
    "WORD",
    "code_of",
    "hash_of",
    "in_heap",
    "last_bytes",
    "place_of",
    "words_of",
]

ONE, SEVEN, EIGHT = np.uint64(1), np.uint64(7), np.uint64(8)
_PAIR = np.uint64(16)  # bytes
WORD = np.uint64(64)  # bits
SHORT = np.uint64(15)  # bytes that lie in the two words
LONG = np.uint64(255) << np.uint64(56)
START = (np.uint64(1) << np.uint64(56)) - np.uint64(1)


@njit(cache=True, nogil=True)
def _up_to_seven(data, at, size):
    """Return fewer than eight bytes as a word, where there may be none behind them."""
    bits = np.uint64(0)
    for i in range(size):
        bits |= np.uint64(byte(data, at + i)) << (i * EIGHT)
    return bits


@njit(cache=True, nogil=True)
def last_bytes(data, stop, size):
    """Return the last bytes of a text of at least eight, fewer of them, as a word."""
    return word(data, stop - EIGHT) >> (WORD - size * EIGHT) if size else np.uint64(0)


@njit(cache=True, nogil=True)
def _short(data, at, size):
    """Return the two words of a short text, where there may be nothing behind it."""
    tag = size << np.uint64(56)
    if size < EIGHT:
        return _up_to_seven(data, at, size), tag
    return word(data, at), last_bytes(data, at + size, size - EIGHT) | tag


@njit(cache=True, nogil=True)
def hash_of(data, at, size):
    """Return the hash of a longer text, 16 bytes at a time; the last ones may be read twice."""
    bits, i, last = size, np.uint64(0), size - _PAIR
    while i < last:
        bits, i = hashed(bits ^ word(data, at + i), word(data, at + i + EIGHT)), i + _PAIR
    return hashed(bits ^ word(data, at + last), word(data, at + last + EIGHT))


@njit(cache=True, nogil=True)
def in_heap(heap, begin, data, at, size):
    """Return whether a longer text equals the one at ``begin`` bytes of the heap; arguments as of ``hash_of``."""
    if word(heap, begin - EIGHT) != size:
        return False
    i, last = np.uint64(0), size - _PAIR
    differ = _differ(heap, begin + last, data, at + last)
    while i < last and differ == 0:
        differ = _differ(heap, begin + i, data, at + i)
        i += _PAIR
    return differ == 0


@njit(cache=True, nogil=True)
def _differ(data, at, other, place):
    """Return in which bits two words and two others differ, or both differences one over the other."""
    return (word(data, at) ^ word(other, place)) | (word(data, at + EIGHT) ^ word(other, place + EIGHT))


@njit(cache=True, nogil=True)
def place_of(first, second, data, at, size, words, heap, places, bits):
    """Return the code of a text, or -1, and its place, or the free one where it would be.

    ``bits``: of the number of a place.
    """
    place, last = hashed(first, second) >> (WORD - bits), (ONE << bits) - ONE
    while True:
        code = integer(places, place * np.uint64(4))
        if code < 0:
            return np.int64(-1), place
        row = np.uint64(code) * _PAIR
        if word(words, row) == first:
            row_size = word(words, row + EIGHT)
            if row_size == second:
                return np.int64(code), place
            if (
                second == LONG
                and row_size > LONG
                and in_heap(heap, (row_size & START) * EIGHT, data, at, size)
            ):
                return np.int64(code), place
        place = (place + ONE) & last


@njit(cache=True, nogil=True)
def words_of(data, at, size):
    """Return the two words of a text, of a longer one without where it lies."""
    return (hash_of(data, at, size), LONG) if size > SHORT else _short(data, at, size)


@njit(cache=True, nogil=True)
def code_of(data, at, size, words, heap, places, bits):
    """Return the code of a text; -1: it has none."""
    first, second = words_of(data, at, size)
    return place_of(first, second, data, at, size, words, heap, places, bits)[0]
