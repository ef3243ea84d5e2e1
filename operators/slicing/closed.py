"""Closed: windows that leave, in columns, before they become results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.aggregates import Arrays

__all__ = ["Closed", "joined", "narrow"]

Integers = NDArray[np.int64]

_FEW = 1 << 16  # windows


class Closed(NamedTuple):
    """States of windows: ``slots`` and ``wids`` int64 (n,), and the columns of each part, (n,).

    ``in_order``: they are known to be by window, then group.
    """

    slots: Integers
    wids: Integers
    states: list[Arrays]
    in_order: bool = False

    def take(self, rows: Integers) -> Closed:
        """Return some of them."""
        columns = [tuple(column[rows] for column in state) for state in self.states]
        return Closed(self.slots[rows], self.wids[rows], columns)

    def by_window(self, groups: int) -> Closed:
        """Return them by window, then group (of ``groups``): the same wherever they came from."""
        if self.in_order or not self.wids.size:
            return self
        lowest = int(self.wids.min())
        windows = int(self.wids.max()) - lowest + 1
        if windows <= _FEW and (self.slots[1:] >= self.slots[:-1]).all():
            return self.take(np.argsort((self.wids - lowest).astype(np.uint16), kind="stable"))  # O(n)
        if windows * groups >= FOREVER:
            return self.take(np.lexsort((self.slots, self.wids)))
        keys = (self.wids - lowest) * groups + self.slots
        return self if (keys[1:] >= keys[:-1]).all() else self.take(np.argsort(keys, kind="stable"))


def joined(parts: Sequence[Closed]) -> Closed:
    """Return all of them, one after the other; ``parts`` is not empty."""
    if len(parts) == 1:
        return parts[0]
    columns = [
        tuple(np.concatenate(same) for same in zip(*states, strict=True))
        for states in zip(*(part.states for part in parts), strict=True)
    ]
    slots = np.concatenate([part.slots for part in parts])
    return Closed(slots, np.concatenate([part.wids for part in parts]), columns)


def narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Return integers in the least type that holds them all; others as they are.

    >>> narrow(np.array([3, -200])).dtype
    dtype('int16')
    """
    if column.dtype.kind != "i" or not column.size:
        return column
    least, most = int(column.min()), int(column.max())
    kinds = (np.dtype(name) for name in ("i1", "i2", "i4"))
    fitting = (k for k in kinds if np.iinfo(k).min <= least and most <= np.iinfo(k).max)
    return column.astype(next(fitting, column.dtype))
