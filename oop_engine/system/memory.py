"""Memory: blocks that pages have freed are kept for the next pages.

New memory is slow the first time it is written to: the system hands it out in pieces of 4 KiB, cleared, a
microsecond or two each.  The allocator of glibc gives columns of a page back to the system as soon as they
are free, unless it has seen larger ones be freed.

State that grows, and is moved for it, leaves holes in that memory, which blocks of other sizes do not fill.  So large
arrays of state have memory of their own, which the system takes back as soon as they are free.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["given_back", "keep_freed", "peak_rss"]

_LARGE = 2**17  # bytes; where glibc does so by itself, before it has learnt
_LARGEST = 31 * 2**20  # bytes; glibc does not learn from more than 32 MiB


def keep_freed() -> None:
    """Make the process keep freed arrays, at most 64 MiB; without glibc, change nothing.

    The array is never written to, so it takes no memory.  O(1), some microseconds.
    """
    np.empty(_LARGEST, np.uint8)


def given_back(rows: int, nothing: np.generic) -> NDArray[Any]:
    """Return ``rows`` times a value, in memory that the system has back once it is free.

    Zeros that are not written to take no memory.

    >>> given_back(3, np.int32(7))
    array([7, 7, 7], dtype=int32)
    """
    if rows * nothing.itemsize < _LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return np.full(rows, nothing) if nothing != 0 else np.zeros(rows, nothing.dtype)
    memory = mmap.mmap(-1, rows * nothing.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    array = np.frombuffer(memory, nothing.dtype)
    if nothing != 0:
        array[:] = nothing
    return array


def peak_rss() -> int:
    """Return the most memory that the process had since it started, in bytes; 0 where the platform counts none.

    >>> peak_rss() >= 0
    True
    """
    try:
        import resource
    except ImportError:
        return 0
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024
