"""Prompt: versions on time, and one behind each page that has late tuples of a window; no other one is asked for.

Between two pages a window on time has one version out, which is its result.  So nothing is noted: windows are read
before the tuples of a page and behind them, and those that differ have changed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from oop_engine.core.operator import Emission
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.kernels.partials import USED
from oop_engine.operators.slicing.panes.kept_rows import KeptRows
from oop_engine.operators.slicing.revised.finals import Finals
from oop_engine.operators.slicing.revised.reading import Touched
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers
from oop_engine.system.knobs import knob

__all__ = ["Prompt"]

_CELLS = knob(
    __name__, "_CELLS", 4
)  # of windows on time, for each tuple of a page: with more, windows are looked for by the tuples


class Prompt(Finals):
    """Open windows, and the versions of their results that late tuples bring, one a page."""

    def _answer(self, page: Page, slots: Integers) -> Iterator[Emission]:
        """Fold tuples of the groups ``slots`` in; put out the changes of windows on time."""
        kept, store = self._kept_rows(page.rows), self._lean[0]
        if kept is None:
            windows = Touched(*self._behind(page, slots))
            before = self._output.ordered(self._read(self._lean, windows))
            self._fold(page, page.times, slots)
            yield from self._corrected(before, self._output.ordered(self._read(self._lean, windows)))
        else:
            self._fold(page, page.times, slots)
            if store.partials.counts[USED]:  # some tuples have gone to a table
                [after] = self._read(self._lean, Touched(*self._behind(page, slots)))
                yield from self._corrected(kept.before(after), after)
            else:
                cut = int(store.extents.closed_by(self._input.expected))
                yield from self._put_out(*kept.changes(store.partials.lowest, cut), grown=True)
        self._forget_dead()

    def _kept_rows(self, tuples: int) -> KeptRows | None:
        """Return the panes of windows on time, where that pays for so many tuples."""
        [store, *more], bound = self._lean, self._input.expected
        if more or self._input.groups or store.panes is None or store.partials.counts[USED]:
            return None
        cut = int(store.extents.closed_by(bound))
        return KeptRows.of(store.panes, store.partials.lowest, cut, _CELLS * tuples, store.number)

    def _corrected(self, before: WindowStates, after: WindowStates) -> Iterator[Emission]:
        """Put out the changes by the tuples of a page of windows that were out as they were ``before``."""
        if after.slots.size:
            yield from self._put_out(
                WindowStates.joined([before, after]), after.places_of(before), grown=False
            )

    def _put_out(self, both: WindowStates, at: Integers, *, grown: bool) -> Iterator[Emission]:
        """Do so: the first windows of ``both`` are out, and have become the ``at[i]``-th behind them.

        ``grown``: all have more tuples now.
        """
        if both.slots.size:
            parts = list(self._columns_of(both))
            columns = parts[0] if len(parts) == 1 else list(map(pa.concat_arrays, zip(*parts, strict=True)))
            if (changed := self._pages.corrected(columns, at, grown=grown)) is not None:
                yield 0, changed

    def _behind(self, page: Page, slots: Integers) -> tuple[Integers, Integers, Integers | int]:
        """Return times, groups and bounds (of each or all) of tuples that come behind a watermark, or punctuation."""
        bound = self._input.expected
        some = np.flatnonzero(page.times < (FOREVER if self._input.groups else bound))
        times, slots = page.times[some], slots[some]
        if not self._input.groups:
            return times, slots, bound
        bounds = self._expected(slots)
        behind = times < bounds
        return times[behind], slots[behind], bounds[behind]
