"""Copies: windows as they are now, of stores that show them only by closing them.

Windows that are folded in time order, landmark windows and lists of values are put together when a bound completes
them; rows that may be taken back are not folded at all until then.  So such stores are copied, by the snapshot that
they can make of themselves, and the copy is closed: by the watermark, and then as if the stream had ended.
O(state) each time, so all that a page touches is looked at together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.snapshot import pack, unpack
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.windows import Definition

__all__ = ["Copies"]

Integers = NDArray[np.int64]
_NAME = "copy"


class Copies:
    """Copies of ``stores``, which ``make`` makes empty: those of ``numbers``; ``definitions`` are all there are."""

    def __init__(self, make: Callable[[], Sequence[Store]], numbers: Sequence[int], stores: Sequence[Store],
                 definitions: Sequence[Definition], groups: int) -> None:  # fmt: skip
        fresh = make()
        self._groups = groups
        self._stores = [fresh[n].load(unpack(_NAME, pack(_NAME, stores[n].save())), groups) for n in numbers]
        self._whole = [definitions[n].whole_stream for n in numbers]

    def add(self, page: Page, slots: Integers) -> None:
        """Add tuples, of known groups, to the copies alone."""
        for store in self._stores:
            store.add(page, page.times, slots, self._groups)

    def close(self, slots: Integers, bounds: Integers, below: int) -> list[WindowStates]:
        """Return the windows of ``slots[i]`` that ``bounds[i]`` completes; where windows are the stream's, ``below``.

        Each window is returned once.
        """
        found: list[WindowStates] = []
        known = bounds > NEVER
        for store, whole in zip(self._stores, self._whole, strict=True):
            if whole:
                found += store.close(below) if below > NEVER else []
            elif known.any():
                found += store.close_some(slots[known], bounds[known])
        return [some for some in found if some.slots.size]
