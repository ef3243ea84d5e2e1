"""Run rows: partial aggregates of windows that merge, such as sessions.

A row is a run of tuples of a page that belong together, with their first and last time.  Merging is associative and
commutative, so the second half gets the windows from rows of any number of first halves, in any order.

Source: compute and consolidate: Madsen, Zhou, Su, Enorm, DEBS 2016, section 4; sessions: Traub et al., Scotty,
TODS 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.partial_rows import PartialRows
from oop_engine.operators.slicing.stores.run_store import RunStore
from oop_engine.operators.slicing.stores.runs import Runs
from oop_engine.operators.slicing.window_states import WindowOverflowError
from oop_engine.operators.windows import Merging, nested

__all__ = ["RunRows"]

Integers = NDArray[np.int64]


class RunRows(PartialRows):
    """Rows of runs of nested ``definitions``, by name; of a page one a run."""

    places = ("run_first", "run_last")

    def __init__(self, definitions: Mapping[str, Merging], *given: Any, **named: Any) -> None:
        super().__init__(definitions, *given, **named)
        numbered = dict(enumerate(definitions.values()))
        self.nested: dict[int, Merging] = {**nested(numbered)} or numbered

    def of_page(self, page: Page) -> Page:
        """O(tuples log tuples)."""
        keys = [page.column(name) for name in self.by]
        slots, first = row_codes(keys) if keys else (np.zeros(len(page), np.int64), np.zeros(1, np.int64))
        try:
            runs = RunStore(self.nested, self.parts, self.output.stamp).runs_of(page, page.times, slots)
        except WindowOverflowError as error:
            raise self.overflow(error, [key.take(pa.array(first)) for key in keys]) from None
        keys = [key.take(pa.array(first[runs.slots])) for key in keys]
        return self.page(keys, [runs.first, runs.last], runs.states)

    def bound(self, bounds: Integers | int) -> Integers:
        """Return bounds as they are: a run begins with a tuple."""
        return np.asarray(bounds, np.int64)

    def store(self, *, every: bool) -> RunStore:
        """Return a store that takes pages of rows, empty."""
        return _Merged(self)


class _Merged(RunStore):
    """Takes rows of runs in place of tuples."""

    def __init__(self, rows: RunRows) -> None:
        super().__init__(rows.nested, rows.parts, rows.output.stamp)
        self._rows = rows

    def runs_of(self, page: Page, times: Integers, slots: Integers) -> Runs:
        last = page.column("run_last").cast(pa.int64()).to_numpy()
        return self._runs.new(slots, times, last, self._rows.states(page))
