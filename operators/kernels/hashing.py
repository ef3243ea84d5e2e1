"""Kernels that mix the columns of a key into one integer a row, and a set of pairs."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["add_pairs", "mix_bytes", "mix_integers"]

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
        at, stop = offsets[row], offsets[row + 1]
        code = _mixed(codes[row], stop - at)
        while at < stop:
            word, ahead = np.uint64(0), min(np.int64(8), np.int64(stop - at))
            for i in range(ahead):
                word |= np.uint64(data[at + i]) << np.uint64(8 * i)
            code = _mixed(code, word)
            at += ahead
        codes[row] = np.int64(code)


@njit(cache=True, nogil=True)
def add_pairs(
    held_slots: NDArray[np.int64],
    held_times: NDArray[np.int64],
    slots: NDArray[np.int64],
    times: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Add pairs to the set; return which of them were not there before, bool (rows,).

    ``held_slots``, ``held_times``: int64 (capacity,), the set, written to; capacity a power
    of two and more than all pairs there will be; a free place has slot -1.  ``slots``,
    ``times``: int64 (rows,), slots >= 0.  O(rows).  Called by ``Distinct``.
    """
    mask = np.uint64(held_slots.size - 1)
    new = np.zeros(slots.size, np.bool_)
    for row in range(slots.size):
        slot, time = slots[row], times[row]
        mixed = (np.uint64(slot) * _SPREAD) ^ (np.uint64(time) * _OTHER)
        place = (mixed ^ (mixed >> np.uint64(29))) * _SPREAD >> np.uint64(20) & mask
        while held_slots[place] != -1 and (held_slots[place] != slot or held_times[place] != time):
            place = (place + np.uint64(1)) & mask
        if held_slots[place] == -1:
            held_slots[place], held_times[place] = slot, time
            new[row] = True
    return new
