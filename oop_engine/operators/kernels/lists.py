"""Lists: states that are lists of values in order, with a number each: made, merged, and read; bins; words.

Source: radix sort and merge sort after Knuth, vol. 3; bins after Masson, Rim, Lee, DDSketch, VLDB 2019.
"""

# Layout       A list is values[begin : begin + length], ascending and different, and how often each is there: numbers.
#              Lists lie one behind the other in flat arrays, as Arrow has them; begins and lengths say where.
# Invariant    Lists that are merged are sorted, and so is the result: no kernel here sorts a list twice.
#              Bins grow with the size of a value: 0, then 1 for the first one; those of negative values are negative.
# Not obvious  Counting has no branch: whether a pair of list and value is there cannot be foreseen.  So a cell is
#              written first, and the place moves on by 0 or 1.
#              More than two lists are merged by pairs, then the results by pairs: log2(lists) passes over the values,
#              each of which reads and writes side by side.
#              A logarithm takes longer than all else of a bin.  A series is near enough but at limits of bins, and
#              a value near a limit is given to the system's logarithm: so bins are those of the logarithm.

from __future__ import annotations

import math

import numpy as np

from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = [
    "ascending",
    "bins",
    "counted",
    "gather",
    "merge",
    "places",
    "sums",
    "tally",
    "words",
]

_BLOCK = kernel_knob(__name__, "_BLOCK", 512)  # numbers: notes about them stay in the nearest cache
_MANTISSA, _ONE = (1 << 52) - 1, 1023 << 52  # bits of a float, and those of 1
_LN2, _ROOT = math.log(2), math.sqrt(2)


@njit(cache=True, nogil=True)
def ascending(numbers, most):
    """Return integers from 0 to ``most``, int64 (n,), in order.  O(n) for each 11 bits of ``most``."""
    bits = 1
    while most >> bits:
        bits += 1
    # As few digits as 11 bits each allow, and of one size: 12 bits are two digits of 6.
    each = -(-bits // -(-bits // 11))
    mask = (1 << each) - 1
    given, out = numbers.copy(), np.empty_like(numbers)
    for shift in range(0, bits, each):
        ends = np.zeros(mask + 2, np.int64)
        for number in given:
            ends[((number >> shift) & mask) + 1] += 1
        ends = np.cumsum(ends)
        for number in given:
            digit = (number >> shift) & mask
            out[ends[digit]] = number
            ends[digit] += 1
        given, out = out, given
    return given


@njit(cache=True, nogil=True)
def tally(pairs, span, lowest, lengths, values, numbers):
    """Count the different values of each list, given as pairs ``list * span + value - lowest``, in order.

    pairs int64 (n,).  Writes ``lengths`` (lists,), zeros before, and where they begin (n,) ``values`` and how many
    there are of each; returns how many values there are.
    """
    at, at_list, begin = 0, 0, 0
    previous = np.int64(-1)
    for pair in pairs:
        if pair == previous:
            numbers[at - 1] += 1
            continue
        # Lists may be empty: those that the pairs leave out are passed.
        while pair - begin >= span:
            at_list, begin = at_list + 1, begin + span
        lengths[at_list] += 1
        values[at], numbers[at] = pair - begin + lowest, 1
        at, previous = at + 1, pair
    return at


@njit(cache=True, nogil=True)
def counted(lists, keys, span, lowest, lengths, values, numbers):
    """Count values as ``tally`` does, of tuples in any order, by a counter for each pair there may be.

    ``values`` and ``numbers`` (n + 1,).  O(tuples + lists x span).
    """
    cells, at = np.zeros(len(lengths) * span, np.int32), 0
    for i in range(len(keys)):
        cells[lists[i] * span + keys[i] - lowest] += 1
    for at_list in range(len(lengths)):
        before = at
        for value in range(span):
            number = cells[at_list * span + value]
            values[at], numbers[at] = (
                value + lowest,
                number,
            )  # no branch: whether there is one cannot be foreseen
            at += number != 0
        lengths[at_list] = at - before
    return at


@njit(cache=True, nogil=True)
def gather(flat, begins, to, lengths, out):
    """Write ``lengths[i]`` numbers of ``flat`` from ``begins[i]`` on into ``out`` from ``to[i]`` on."""
    for i in range(len(begins)):
        begin, at = begins[i], to[i]
        for k in range(lengths[i]):
            out[at + k] = flat[begin + k]


@njit(cache=True, nogil=True)
def _two(values, numbers, left, left_end, right, right_end, out, out_numbers, at, largest):
    """Merge two stretches of ``values`` and ``numbers`` into ``out`` from ``at`` on; return where that ends."""
    while left < left_end and right < right_end:
        left_value, right_value = values[left], values[right]
        out[at] = min(left_value, right_value)
        # Both sides go on where their values are equal: then their numbers are combined.
        has_left, has_right = left_value <= right_value, right_value <= left_value
        left_number, right_number = numbers[left] * has_left, numbers[right] * has_right
        out_numbers[at] = max(left_number, right_number) if largest else left_number + right_number
        left, right, at = left + has_left, right + has_right, at + 1
    while left < left_end:
        out[at], out_numbers[at] = values[left], numbers[left]
        left, at = left + 1, at + 1
    while right < right_end:
        out[at], out_numbers[at] = values[right], numbers[right]
        right, at = right + 1, at + 1
    return at


@njit(cache=True, nogil=True)
def _many(begins, lengths, values, numbers, source, target, largest):
    """Merge more than two lists: by pairs into the columns ``source``, these by pairs into ``target``, and so on.

    Returns the columns in which two are left, and the bounds of these, int64 (3,).
    """
    lists = len(begins)
    bounds, place = np.empty((lists + 1) // 2 + 1, np.int64), np.int64(0)
    for k in range(0, lists, 2):
        other = min(k + 1, lists - 1)
        end = begins[other] + (lengths[other] if other > k else 0)
        bounds[k // 2] = place
        place = _two(values, numbers, begins[k], begins[k] + lengths[k], begins[other], end,
                     source[0], source[1], place, largest)  # fmt: skip
    # Now they lie side by side in ``one``: the next rounds need no lengths, and write over the bounds of the last.
    lists = (lists + 1) // 2
    bounds[lists] = place
    while lists > 2:
        place = np.int64(0)
        for k in range(0, lists, 2):
            middle, end = bounds[k + 1], bounds[min(k + 2, lists)]
            begin, bounds[k // 2] = bounds[k], place
            place = _two(
                source[0], source[1], begin, middle, middle, end, target[0], target[1], place, largest
            )
        lists = (lists + 1) // 2
        bounds[lists] = place
        source, target = target, source
    return source, bounds


@njit(cache=True, nogil=True)
def merge(begins, lengths, values, numbers, starts, largest, merged):
    """Merge the lists from each of ``starts`` to the next, all in order of values, into one.

    A list is ``lengths[i]`` of ``values`` and their ``numbers`` from ``begins[i]`` on, all int64.  Numbers of one value
    are added up, or if ``largest`` the largest stays.  Writes the lengths ``merged`` (starts,); returns values and
    numbers, with room behind them.  O(values log(lists of a start)).
    """
    room = lengths.sum()
    out, out_numbers, at = np.empty(room, np.int64), np.empty(room, np.int64), np.int64(0)
    source, target = np.empty((2, room), np.int64), np.empty((2, room), np.int64)
    for i in range(len(starts)):
        first, stop = starts[i], starts[i + 1] if i + 1 < len(starts) else len(begins)
        begin = at
        if stop - first > 2:
            columns, bounds = _many(
                begins[first:stop], lengths[first:stop], values, numbers, source, target, largest
            )
            at = _two(
                columns[0],
                columns[1],
                bounds[0],
                bounds[1],
                bounds[1],
                bounds[2],
                out,
                out_numbers,
                at,
                largest,
            )
        elif stop > first:
            last = stop - 1
            end = begins[last] + (lengths[last] if last > first else 0)
            at = _two(values, numbers, begins[first], begins[first] + lengths[first], begins[last], end,
                      out, out_numbers, at, largest)  # fmt: skip
        merged[i] = at - begin
    return out, out_numbers


@njit(cache=True, nogil=True)
def places(begins, lengths, numbers, ranks, out):
    """Write where in each list of values with ``numbers`` the one of a rank is, from 0 on; all int64."""
    for i in range(len(ranks)):
        at, rank = begins[i], ranks[i]
        last = at + lengths[i] - 1
        while at < last and rank >= numbers[at]:
            rank -= numbers[at]
            at += 1
        out[i] = at


@njit(cache=True, nogil=True)
def sums(begins, lengths, flat, out):
    """Write the sum of each list of integers."""
    for i in range(len(begins)):
        total = 0
        for k in range(begins[i], begins[i] + lengths[i]):
            total += flat[k]
        out[i] = total


@njit(cache=True, nogil=True)
def bins(values, scale, first, last, out):
    """Write the bins of numbers: 0, or 1 for ``first``, the log of the size times ``scale``, with the sign of each.

    Infinity has the bin ``last``, NaN the one behind it; ``last`` is less than 2**31.  values int32, int64 or
    float64, out int32 (n,).  O(n).
    """
    floats, notes = np.empty(_BLOCK), np.empty((2, _BLOCK), np.int32)
    for start in range(0, len(values), _BLOCK):
        block, block_bins = values[start : start + _BLOCK], out[start : start + _BLOCK]
        for i in range(len(block)):
            floats[i] = block[i]
        sure = _sure(floats, floats.view(np.int64), notes[0], notes[1], scale, first, block_bins)
        if sure < len(block_bins):
            for i in range(len(block)):
                if block_bins[i] == 0:
                    block_bins[i] = _bin(np.float64(block[i]), scale, first, last)


@njit(cache=True, nogil=True, error_model="numpy")
def _sure(floats, bits, exponents, signs, scale, first, out):
    """Write the bins of floats by a series, 0 where it may be wrong; return how many are sure.

    That of the inverse hyperbolic tangent is wrong by 2e-11 at most, of a log: a float too near to a limit is not
    sure.  ``floats``, their ``bits``, and room for ``exponents`` and ``signs`` are written over.  Vector instructions:
    no branch, and a division that does not ask for 0.
    """
    near, sure = 1e-8 + 1e-10 * scale, 0
    octave, twice = _LN2 * scale, 2 * scale
    begin, bin_offset = (0.5 - 1023) * octave, 2 - first
    # Split a float by its bits: its exponent, its sign, and a mantissa from 1 to 2 in its place.
    for i in range(len(out)):
        exponents[i], signs[i] = np.int32(bits[i] >> 52) & 2047, np.int32(bits[i] >> 63)  # 0, or -1
        bits[i] = (bits[i] & _MANTISSA) | _ONE
    # log(mantissa) - log(root of 2) = 2 artanh(share), and |share| < .172: six terms will do.
    for i in range(len(out)):
        share = (floats[i] - _ROOT) / (floats[i] + _ROOT)
        square = share * share
        series = 1 + square * (
            1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square * (1 / 11))))
        )
        size = exponents[i] * octave + begin + share * series * twice
        below = math.floor(size)
        is_sure = (
            (exponents[i] > 0) & (exponents[i] < 2047) & (size - below > near) & (size - below < 1 - near)
        )
        out[i] = ((np.int32(below) + bin_offset) ^ signs[i]) - signs[i] if is_sure else 0
        sure += is_sure
    return sure


@njit(cache=True, nogil=True)
def _bin(value, scale, first, last):
    """Return the bin of a float, by the log of the system."""
    if value != value:
        return last + 1
    if value == 0.0:
        return 0
    if np.isinf(value):
        return last if value > 0 else -last
    place = np.int64(math.ceil(math.log(abs(value)) * scale)) - first + 1
    return place if value > 0 else -place


@njit(cache=True, nogil=True)
def words(known, letters, numbers, ends):
    """Return the letters of the words ``numbers`` int64 (n,), one behind the other, and write where each ends.

    known int32 (words + 1,): where each word begins in ``letters`` uint8, and where the last one ends; ends int32
    (n + 1,): the same of the letters returned, which are less than 2**31.  O(n + letters).
    """
    ends[0] = 0
    for i in range(len(numbers)):
        word = numbers[i]
        ends[i + 1] = ends[i] + known[word + 1] - known[word]
    out = np.empty(ends[len(numbers)], np.uint8)
    for i in range(len(numbers)):
        begin, at = np.uintp(known[numbers[i]]), np.uintp(ends[i])  # unsigned: no index is below 0
        for k in range(np.uintp(ends[i + 1]) - at):
            out[at + k] = letters[begin + k]
    return out
