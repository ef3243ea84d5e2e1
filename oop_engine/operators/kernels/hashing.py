"""Kernels that mix the columns of a key into one integer a row, compare keys, a set of pairs, registers set by hashes.

Source: registers after Flajolet, Fusy, Gandouet, Meunier, HyperLogLog, AofA 2007.
"""

# Layout       codes[row]: the mix of the columns of a key so far, one column a call.
#              registers of a list: `count` bytes, or, where at most an eighth is set, three bytes for each that is
#              set, ascending: its number, the low byte first, and its value.  Which of both follows from the length.
# Invariant    Equal keys have equal codes; unequal ones may have, so who uses codes compares keys (``equal_...``).
#              A register has the largest value of all hashes that set it, so merging takes the larger one of each.
# Not obvious  A string is mixed with its length first, else the keys ("a", "") and ("", "a") would have one code.
#              All arithmetic is of uint64, where overflow wraps; a product's high bits depend on all bits below, so
#              they are folded down before the next product.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.kernel import njit

__all__ = [
    "add_pairs",
    "equal_bytes",
    "equal_values",
    "harmonic",
    "lifted",
    "mix_bytes",
    "mix_integers",
    "registers",
]

Ints = NDArray[np.int64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_AGAIN = np.uint64(0xD6E8FEB86659FD93)
_OTHER = np.uint64(0xC2B2AE3D27D4EB4F)


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _mixed(state, value):  # type: ignore[no-untyped-def]
    bits = (np.uint64(state) ^ np.uint64(value)) * _SPREAD
    bits = (bits ^ (bits >> np.uint64(32))) * _AGAIN
    return bits ^ (bits >> np.uint64(29))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def mix_integers(codes: Ints, values: Ints) -> None:
    """Mix one integer a row into ``codes``, which is written to; both int64 (rows,).  O(rows)."""
    for row in range(codes.size):
        codes[row] = np.int64(_mixed(codes[row], values[row]))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def mix_bytes(codes: Ints, offsets: Ints | NDArray[np.int32], data: NDArray[np.uint8]) -> None:
    """Mix a string of bytes a row into ``codes``, int64 (rows,), which is written to.

    ``offsets``: int32 or int64 (rows + 1,); the bytes of a row are
    ``data[offsets[row]:offsets[row + 1]]``.  Eight of them are mixed at a time.  O(bytes + rows).
    """
    for row in range(codes.size):
        # Eight bytes at a time; of the last ones those that there are.
        at, stop = offsets[row], offsets[row + 1]
        code = _mixed(codes[row], stop - at)
        while at < stop:
            word, ahead = np.uint64(0), min(np.int64(8), np.int64(stop - at))
            for i in range(ahead):
                word |= np.uint64(data[at + i]) << np.uint64(8 * i)
            code = _mixed(code, word)
            at += ahead
        codes[row] = np.int64(code)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def equal_values(values, rows, others, other_rows, same):  # type: ignore[no-untyped-def]
    """Clear ``same`` of pairs whose integers differ: ``values[rows[i]]`` and ``others[other_rows[i]]``; O(pairs).

    ``rows, other_rows``: int32 (pairs,); ``same``: bool (pairs,), written.
    """
    for i in range(same.size):
        same[i] &= values[np.uint32(rows[i])] == others[np.uint32(other_rows[i])]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def equal_bytes(offsets, data, rows, other_offsets, others, other_rows, same):  # type: ignore[no-untyped-def]
    """Clear ``same`` of pairs whose strings of bytes differ, as ``equal_values`` does; O(bytes + pairs).

    ``offsets, data`` and ``other_offsets, others``: the strings of both sides, as of ``mix_bytes``.
    """
    for i in range(same.size):
        row, other = np.uint32(rows[i]), np.uint32(other_rows[i])
        begin, at = np.uint64(offsets[row]), np.uint64(other_offsets[other])
        size = np.uint64(offsets[row + np.uint32(1)]) - begin
        equal = size == np.uint64(other_offsets[other + np.uint32(1)]) - at
        k = np.uint64(0)
        while equal and k < size:
            equal = data[begin + k] == others[at + k]
            k += np.uint64(1)
        same[i] &= equal


@njit(cache=True, nogil=True)
def add_pairs(
    set_slots: NDArray[np.int64],
    set_times: NDArray[np.int64],
    slots: NDArray[np.int64],
    times: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Add pairs to the set; return which of them were not there before, bool (rows,).

    ``set_slots``, ``set_times``: int64 (capacity,), the set, written to; capacity a power
    of two and more than all pairs there will be; a free place has slot -1.  ``slots``,
    ``times``: int64 (rows,), slots >= 0.  O(rows).  Called by ``Distinct``.
    """
    mask = np.uint64(set_slots.size - 1)
    new = np.zeros(slots.size, np.bool_)
    for row in range(slots.size):
        slot, time = slots[row], times[row]
        mixed = (np.uint64(slot) * _SPREAD) ^ (np.uint64(time) * _OTHER)
        place = (mixed ^ (mixed >> np.uint64(29))) * _SPREAD >> np.uint64(20) & mask
        # Linear probing: the set has a free place, so the search ends.
        while set_slots[place] != -1 and (set_slots[place] != slot or set_times[place] != time):
            place = (place + np.uint64(1)) & mask
        if set_slots[place] == -1:
            set_slots[place], set_times[place] = slot, time
            new[row] = True
    return new


@njit(cache=True, nogil=True)
def lifted(hashes, count, out):
    """Write for each hash the register that it sets, two bytes, and its value, a byte; out uint8 (n, 3).

    The register is the lowest bits, as many as ``count``, a power of two, has; its value is
    the place of the lowest bit set in the others.
    """
    digits = np.uint64(0)
    while np.uint64(1) << digits < np.uint64(count):
        digits += np.uint64(1)
    for i in range(len(hashes)):
        register = np.uint64(hashes[i]) & np.uint64(count - 1)
        rest, place = np.uint64(hashes[i]) >> digits, 1
        while not rest & np.uint64(1) and place <= 64 - np.int64(digits):
            rest, place = rest >> np.uint64(1), place + 1
        out[i, 0], out[i, 1], out[i, 2] = register & np.uint64(255), register >> np.uint64(8), place


@njit(cache=True, nogil=True)
def registers(begins, lengths, flat, starts, count, merged):
    """Merge registers of the lists from each of ``starts`` to the next: the largest stays.

    A list is ``lengths[i]`` bytes of ``flat`` from ``begins[i]`` on: ``count`` registers, or, of fewer than those,
    three bytes as in ``lifted`` for each that is set, in order; so it is where at most an eighth is set.  Writes
    the lengths ``merged`` (starts,); returns the bytes, with room behind them.
    """
    room = min(3 * lengths.sum(), count * len(starts))
    out, largest, at = np.empty(room, np.uint8), np.zeros(count, np.uint8), np.int64(0)
    for i in range(len(starts)):
        largest[:] = 0
        for row in range(starts[i], starts[i + 1] if i + 1 < len(starts) else len(begins)):
            listed = flat[begins[row] : begins[row] + lengths[row]]
            if len(listed) == count:
                for k in range(count):
                    largest[k] = max(largest[k], listed[k])
            else:
                for k in range(0, len(listed), 3):
                    register = np.int64(listed[k]) + 256 * np.int64(listed[k + 1])
                    largest[register] = max(largest[register], listed[k + 2])
        # Three bytes for each that is set are less than `count` up to a third; an eighth leaves room to grow.
        begin = at
        if 8 * np.count_nonzero(largest) > count:
            target = out[at : at + count]
            for k in range(count):
                target[k] = largest[k]
            at += count
        else:
            for place in np.flatnonzero(largest):
                out[at], out[at + 1], out[at + 2] = place & 255, place >> 8, largest[place]
                at += 3
        merged[i] = at - begin
    return out


@njit(cache=True, nogil=True)
def harmonic(begins, lengths, flat, count, total, unset):
    """Write the sum of 2^-register and how many registers are not set, of lists as in ``registers``; float64."""
    for i in range(len(begins)):
        listed = flat[begins[i] : begins[i] + lengths[i]]
        whole = len(listed) == count
        total[i], unset[i] = 0.0, (0.0 if whole else count - len(listed) // 3)
        for k in range(0 if whole else 2, len(listed), 1 if whole else 3):
            total[i] += 2.0 ** -np.float64(listed[k])
            unset[i] += listed[k] == 0
        if not whole:
            total[i] += unset[i]
