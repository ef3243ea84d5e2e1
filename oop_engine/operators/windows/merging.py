"""Merging: the protocol of definitions whose windows merge, such as sessions."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.windows.grid import Definition

__all__ = ["Merging"]

Integers = NDArray[np.int64]


@runtime_checkable
class Merging(Definition, Protocol):
    """A definition whose windows merge.  Runs are given by first and last time, int64 (n,) each."""

    def check(self, times: Integers) -> None:
        """Raise ``ContractError`` if the windows of these times would not fit 64 bits."""
        ...

    def begins(self, slots: Integers, first: Integers, last: Integers) -> NDArray[np.bool_]:
        """Tell which runs, sorted by slot, then first, begin a window; the others join the one before."""
        ...

    def ends(self, last: Integers) -> Integers:
        """Return the ends of windows, by their last times."""
        ...

    def complete(self, last: Integers, bounds: Integers | int) -> NDArray[np.bool_]:
        """Tell which runs no later tuple can join, by the bounds of their groups."""
        ...

    def least_end(self, bounds: Integers) -> Integers:
        """Return the least end of a window of later tuples alone; sentinels stay."""
        ...
