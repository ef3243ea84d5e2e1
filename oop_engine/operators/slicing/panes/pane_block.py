"""The pane block: panes of some of the groups, side by side in a ring of their own.

A ring of panes is a rectangle with a column for each group it knows.  Where most groups
are sparse most of it would be empty; here only those that are added to get a column.
Columns of groups that have no open pane are given up once they are most of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.groups.group_index import occurring
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.kernels.partials import LOW, NO_WINDOW
from oop_engine.operators.slicing.panes import pane_windows
from oop_engine.operators.slicing.panes.open_spans import OpenSpans
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates, narrow
from oop_engine.operators.values.columns import Integers, by_slot
from oop_engine.system.knobs import knob

__all__ = ["PaneBlock"]

_SLACK = knob(__name__, "_SLACK", 64)  # columns; fewer dead ones are not worth a move


class PaneBlock:
    """Open panes by the slots of groups, of which only some have columns in the ring ``panes``.

    ``spans``: of groups that are in the ring already; their columns are their slots.
    """

    COLUMN_BYTES = 16 + 8
    """That each column has to take: the windows it spans, and whose it is."""

    def __init__(self, panes: PaneRing, spans: OpenSpans) -> None:
        self.panes = panes
        self._spans = spans  # of columns, or more
        self._of = np.arange(len(spans))  # (columns,) slots
        self._column = self._of.astype(np.int32)  # (slots,) -1: none

    @property
    def nbytes(self) -> int:
        return self.panes.nbytes + self._of.nbytes + self._column.nbytes + self._spans.nbytes

    def add(self, page: Page, times: Integers, slots: Integers) -> Integers:
        """Add tuples to their panes; return the rows of those that do not fit.  O(tuples log tuples)."""
        if not slots.size:
            return slots
        columns = self._columns(slots)
        with self._overflowing():
            return self.panes.add(page, times, columns, self._spans)

    def alive(self, slots: Integers) -> NDArray[np.bool_]:
        """Tell which groups have open panes."""
        column = self._known(slots)
        return (column >= 0) & (self._spans.of[column, LOW] != NO_WINDOW) if self._of.size else column >= 0

    def most_between(self, lowest: int, cut: int) -> int:
        """Return how many windows from ``lowest`` to ``cut`` (exclusive) may have a pane."""
        ring = self.panes
        windows = min((ring.high + ring.length) // ring.step, cut) - max(ring.low // ring.step, lowest)
        return max(windows, 0) * min(ring.groups, ring.used)

    def take(self, slots: Integers, low: Integers, stop: Integers) -> WindowStates:
        """As ``pane_windows.take``.  O(panes passed + columns)."""
        columns = self._known(slots)
        some = np.flatnonzero(columns >= 0)
        columns, low, stop = columns[some], low[some], stop[some]
        with self._overflowing():
            closed = pane_windows.take(self.panes, columns, low, stop)
        closed = closed._replace(slots=self._of[closed.slots], in_order=False)
        self._spans.close_below(columns, stop)
        if self._of.size > 2 * self._spans.alive + _SLACK:
            self._give_up()
        return closed

    def rename(self, slots: Integers) -> None:
        self._give_up()
        self._of = slots[self._of]
        self._column = self._columns_by_slot()

    def save(self) -> dict[str, Any]:
        columns = {"of": narrow(self._of), "spans": self._spans.of[: self._of.size]}
        return {"panes": self.panes.save(), **columns}

    def load(self, saved: Saved, groups: int) -> None:
        self.panes.load(saved.part("panes"))
        self._of = saved.integers("of", (None,), least=0, below=groups)
        room = max(self.panes.groups, self._of.size)
        self._spans = OpenSpans(saved.integers("spans", (self._of.size, 2)))
        self._spans.grow(room)
        self._column = self._columns_by_slot()
        if (self._column[self._of] != np.arange(self._of.size)).any():
            msg = f"'of' must be different groups; got {self._of}"
            raise SnapshotError(msg)

    def _known(self, slots: Integers) -> Integers:
        """Return the columns of groups, -1 where there is none."""
        found = np.full(slots.size, -1)
        some = slots < self._column.size
        found[some] = self._column[slots[some]]
        return found

    def _columns(self, slots: Integers) -> Integers:
        """Return the columns of groups, new ones for those that have none."""
        columns = self._known(slots)
        if (columns >= 0).all():
            return columns
        new = slots[columns < 0]
        self._of = np.concatenate([self._of, occurring(new, int(new.max()) + 1)])
        if self._of.size > len(self._spans):
            self._spans.grow(max(self._of.size, 2 * len(self._spans)))
        self._column = self._columns_by_slot()
        return self._known(slots)

    def _columns_by_slot(self) -> NDArray[np.int32]:
        columns = by_slot(self._of, np.arange(self._of.size), int(self._of.max(initial=-1)) + 1, -1)
        return columns.astype(np.int32)

    def _give_up(self) -> None:
        """Give up the columns without an open pane."""
        kept = np.flatnonzero(self._spans.of[: self._of.size, LOW] != NO_WINDOW)
        columns = by_slot(kept, np.arange(kept.size), max(self._of.size, len(self._spans)), -1)
        self.panes.rename(columns, kept.size)
        self._of = self._of[kept]
        self._spans.keep(kept)
        self._column = self._columns_by_slot()

    @contextmanager
    def _overflowing(self) -> Iterator[None]:
        """Say of which group an overflow is."""
        try:
            yield
        except WindowOverflowError as error:
            raise WindowOverflowError(error.column, self._of[error.slot], error.start, error.end) from None
