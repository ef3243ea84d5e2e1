"""Pane rows: partial aggregates of windows on a grid.

A *pane* is the longest stretch of the progressing attribute whose tuples are all in the
same windows: ``gcd(range, slide)`` long where the slide divides the range, and never more
than two a slide.  What falls between windows is in no pane.

Source: panes after Li, Maier, Tufte, Papadimos, Tucker, SIGMOD Record 2005; two a slide
after Krishnamurthy, Wu, Franklin, SIGMOD 2006 (paired windows).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.partial_rows import PartialRows
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.stores.pane_store import PaneStore
from oop_engine.operators.slicing.window_states import WindowOverflowError
from oop_engine.operators.windows import Extents

__all__ = ["PaneRows"]

Integers = NDArray[np.int64]


class PaneRows(PartialRows):
    """Rows of panes of ``extents``; of a page one a group and pane."""

    places = ("pane_start",)

    def __init__(self, extents: Extents, *given: Any) -> None:
        super().__init__({"": extents}, *given)
        self.extents = extents

    def of_page(self, page: Page) -> Page | None:
        """O(1) a tuple, in Arrow and kernels."""
        inside = self.inside(page)
        return None if inside is None else self._partial(inside)

    def inside(self, page: Page) -> Page | None:
        """Return the tuples that are in a window, or None if none is."""
        first, last = self.extents.wids(page.times)
        inside = last >= first
        if not inside.all():
            page = page.filter(inside)
        return page if len(page) else None

    def _partial(self, page: Page) -> Page:
        panes = self.extents.pane_starts(page.times)
        keys = [page.column(name) for name in self.by]
        numbers, first = row_codes([*keys, pa.array(panes)])
        at = pa.array(first)
        keys, panes = [key.take(at) for key in keys], panes[first]
        states = States(self.parts, panes.size)
        inputs = states.prepare(page, page.times)
        try:
            states.add(numbers, inputs)
        except SumOverflowError as error:
            (start,), (end,) = self.extents.extent(self.extents.wids(panes[[error.at]])[0])
            raise self.overflow(WindowOverflowError(error.column, error.at, start, end), keys) from None
        return self.page(keys, [panes], states.columns)

    def bound(self, bounds: Integers | int) -> Integers:
        """Round bounds on tuples down to the start of a pane.

        That closes the same windows.  ``NEVER`` and ``FOREVER`` stay what they are.
        """
        given = np.asarray(bounds, np.int64)
        margin = (self.extents.range or 0) + 2 * self.extents.slide + abs(self.extents.origin)
        inside = np.clip(given, NEVER + 1 + margin, FOREVER - 1 - margin)
        return np.where((given == NEVER) | (given == FOREVER), given, self.extents.pane_starts(inside))

    def store(self, *, every: bool) -> PaneStore:
        """Return a store that takes pages of rows, empty."""
        return PaneStore(0, self.extents, self.parts, self.output.stamp, every=every, given=self.states)
