"""Kernels that mix the columns of a key into one integer a row."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["mix_bytes", "mix_integers"]

Ints = NDArray[np.int64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_AGAIN = np.uint64(0xD6E8FEB86659FD93)


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
