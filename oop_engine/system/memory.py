"""Memory: blocks that pages have freed are kept for the next pages.

New memory is slow the first time it is written to: the system hands it out in pieces of 4 KiB, cleared, a
microsecond or two each.  The allocator of glibc gives columns of a page back to the system as soon as they
are free, unless it has seen larger ones be freed.
"""

from __future__ import annotations

import numpy as np

__all__ = ["keep_freed"]

_LARGEST = 31 * 2**20  # bytes; glibc does not learn from more than 32 MiB


def keep_freed() -> None:
    """Let the process keep arrays that are freed, at most 64 MiB; without glibc, change nothing.

    The array is never written to, so it takes no memory.  O(1), some microseconds.
    """
    np.empty(_LARGEST, np.uint8)
