"""Kernel of everything that sorts: the order of a page by an integer."""

# Layout       words[row] = (value - least) << row_bits | row     so a word is its own tie-breaker, and brings its row
#              starts[digit, d]: where words with that digit go in the next pass
# Invariant    After pass k words are in the order of their k lowest digits, rows of equal digits as they came.
# Not obvious  The counts of all digits are taken in one pass, since a digit's count does not depend on the order.
#              Differences of int64 may pass 63 bits: they are taken as uint64.  Unsigned indices: Numba looks at
#              signed ones for numbers below 0.
# Tried        NumPy's argsort within Numba: ten seconds to compile.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = ["time_order"]

Ints = NDArray[np.int64]

_DIGIT = np.uint64(11)  # bits: the counts of one digit stay in the first cache
_DIGITS = 1 << 11
_ONE = np.uint64(1)
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_FEW = kernel_knob(__name__, "_FEW", 256)  # rows: to count digits would take longer
_RUN = kernel_knob(__name__, "_RUN", 16)  # rows: sorted by insertion


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _bits(value):  # type: ignore[no-untyped-def]
    bits = np.uint64(0)
    while bits < np.uint64(64) and value >> bits:
        bits += _ONE
    return bits


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _by_comparison(values, order):  # type: ignore[no-untyped-def]
    """Sort ``order``, all rows as they come, in place: runs by insertion, then merged, both stable.

    Written out: NumPy's own takes Numba ten seconds to compile.
    """
    rows = values.size
    for begin in range(0, rows, _RUN):
        for i in range(begin + 1, min(begin + _RUN, rows)):
            row, at = order[i], i
            while at > begin and values[order[at - 1]] > values[row]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = row
    found, spare, run = order, np.empty(rows, np.int64), _RUN
    while run < rows:
        for begin in range(0, rows, 2 * run):
            left, middle = begin, min(begin + run, rows)
            right, stop = middle, min(begin + 2 * run, rows)
            for at in range(begin, stop):
                if left < middle and (right == stop or values[found[left]] <= values[found[right]]):
                    spare[at] = found[left]
                    left += 1
                else:
                    spare[at] = found[right]
                    right += 1
        found, spare, run = spare, found, 2 * run
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def time_order(values: Ints) -> Ints:
    """Return the order, int64 (rows,), that sorts ``values``, int64 (rows,); equal ones as they come.

    Radix sort of words that have the distance from the least value on top and the row
    below: O(rows x digits), where values that span ``d`` have ``log2(d) / 11`` digits.
    A few values, and such that leave no room for the row, are sorted by comparison, in
    O(rows x log rows).
    """
    rows = values.size
    order = np.empty(rows, np.int64)
    # A page that is in order, as many are, is seen in the pass that finds its reach.
    earliest, latest, is_sorted = _MOST, _LEAST, True
    for row in range(rows):
        value, order[row] = values[row], row
        is_sorted &= value >= latest
        earliest, latest = min(earliest, value), max(latest, value)
    if is_sorted:
        return order
    row_bits, span_bits = _bits(np.uint64(rows)), _bits(np.uint64(latest) - np.uint64(earliest))
    if rows < _FEW or span_bits + row_bits > np.uint64(64):
        return _by_comparison(values, order)  # type: ignore[no-any-return]
    digits = (np.int64(span_bits) + 10) // 11
    words, moved = np.empty(rows, np.uint64), np.empty(rows, np.uint64)
    starts = np.zeros((digits, _DIGITS), np.int64)
    for row in range(rows):
        word = np.uint64(values[row]) - np.uint64(earliest)
        words[row] = word << row_bits | np.uint64(row)
        for digit in range(digits):
            starts[digit, (word >> np.uint64(digit) * _DIGIT) & np.uint64(_DIGITS - 1)] += 1
    # From the lowest digit on; counts become places, and words move there and back between two arrays.
    for digit in range(digits):
        start, shift, total = starts[digit], row_bits + np.uint64(digit) * _DIGIT, 0
        for i in range(_DIGITS):
            start[i], total = total, total + start[i]
        for i in range(rows):
            at = (words[i] >> shift) & np.uint64(_DIGITS - 1)
            moved[start[at]] = words[i]
            start[at] += 1
        words, moved = moved, words
    for i in range(rows):
        order[i] = np.int64(words[i] & ((_ONE << row_bits) - _ONE))
    return order
