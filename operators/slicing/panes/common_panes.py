"""Common panes: those that some grids have together, which end where a window of any of them begins or ends."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.operators.windows import Extents

__all__ = ["CommonPanes"]

Integers = NDArray[np.int64]


class CommonPanes:
    """The panes of ``grids``, by their numbers: the stretches between neighbouring starts or ends of their windows."""

    def __init__(self, grids: Mapping[int, Extents]) -> None:
        self.grids = grids

    def inside(self, times: Integers) -> NDArray[np.bool_]:
        """Tell which times are in a window.  O(times x grids), as the others."""
        inside = np.zeros(times.size, np.bool_)
        for grid in self.grids.values():
            first, last = grid.wids(times)
            inside |= last >= first
        return inside

    def starts(self, times: Integers) -> Integers:
        """Return the start of the pane that each time is in: the last edge of all grids."""
        starts: Integers = np.maximum.reduce([grid.pane_starts(times) for grid in self.grids.values()])
        return starts

    def window(self, time: int) -> tuple[int, int]:
        """Return the first window that has a time, which is in one."""
        at = np.array([time])
        grid = next(grid for grid in self.grids.values() if np.less_equal(*grid.wids(at))[0])
        (start,), (end,) = grid.extent(grid.wids(at)[0])
        return int(start), int(end)

    def bound(self, bounds: Integers | int) -> Integers:
        """Round bounds down to the start of a pane; sentinels stay."""
        given = np.asarray(bounds, np.int64)
        margin = max((one.range or 0) + 2 * one.slide + abs(one.origin) for one in self.grids.values())
        inside = np.clip(given, NEVER + 1 + margin, FOREVER - 1 - margin)
        return np.where((given == NEVER) | (given == FOREVER), given, self.starts(inside))
