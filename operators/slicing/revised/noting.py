"""Noting: versions on time that are put into the table when a tuple comes behind them, and no sooner.

Where no version comes early, a window of a grid that a watermark has passed has one version out, that on time, and as
long as no tuple comes to it, its rows follow from the window.  So it need not be kept a second time.  Right before the
first tuple that comes behind the watermark the version is *noted*: put into the table of versions.  Of most windows
none ever is.  A window in which there was no tuple on time is noted with the version -1: none is out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.slicing.closing import Integers
from oop_engine.operators.slicing.revised.reading import opened
from oop_engine.operators.slicing.revised.reviewing import FINAL, ON_TIME, Mask, Reviewing
from oop_engine.operators.slicing.revised.version_table import Versioned, taken
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.triggers import WindowView

__all__ = ["Noting", "without_notes"]


class Noting(Reviewing):
    """Versions that are noted, first versions, and those that differ from final results."""

    def _results(self, closed: WindowStates) -> Iterable[Page]:
        expected = self._input.expected
        if self._is_lean.all() and not self._input.groups and (self._table.all.ends <= expected).all():
            passed = int(np.searchsorted(closed.ends, expected, side="right"))  # of the rest none is out
            yield from self._final(closed.take(slice(0, passed)))
            yield from self._first(closed.take(slice(passed, None)), FINAL)
        else:
            yield from self._final(closed)

    def _final(self, closed: WindowStates) -> Iterator[Page]:
        """Put out final results that differ from the versions that are out, which are forgotten."""
        held, extents = self._table.all, self._extents(closed)
        of, numbers = self._match(extents, held[:4]), extents[1]
        out = np.flatnonzero(of >= 0)
        counts, many = np.full(closed.slots.size, -1), np.bincount(of[out], minlength=closed.slots.size)
        counts[of[out]] = held.counts[out]
        # A window that is read in place only grows: with the same count its result is the same, and is not made.
        settled: Mask = (
            (counts == closed.states[self._counts[0]][0]) & ~self._is_copied[numbers] & (many == 1)
        )
        gone = np.zeros(of.size, np.bool_)
        gone[out] = settled[of[out]]
        if gone.any():
            self._table.drop(gone)
        new: Mask = many == 0
        if self._lean:
            new &= ~(self._is_lean[numbers] & self._passed(closed, self._expected(closed.slots)))
        yield from self._first(closed.take(np.flatnonzero(new)), FINAL)
        changed = closed.take(np.flatnonzero(~settled & (many > 0)))
        if changed.slots.size:
            timings = np.full(changed.slots.size, FINAL)
            for _, page in self._review(changed, timings, changed.ends, forced=True):
                assert isinstance(page, Page)
                yield page

    def _first(self, found: WindowStates, timing: int) -> Iterator[Page]:
        """Put out versions of windows that have had none."""
        if found.slots.size:
            for page in self._output.pages(self._groups.keys(found.slots), found):
                yield self._pages.first(page.batch, timing)

    def _known(self, windows: WindowStates) -> Mask:
        """Tell which windows have a version in the table."""
        known = np.zeros(windows.slots.size, np.bool_)
        of = self._match(self._extents(windows), self._table.all[:4])
        known[of[of >= 0]] = True
        return known

    def _note(
        self, found: list[WindowStates], expected: Callable[[Integers], Integers], version: int = 0
    ) -> None:
        """Put the versions on time of windows into the table, of those that the bounds ``expected`` have passed.

        ``version`` -1: none is out.
        """
        if not sum(some.slots.size for some in found):
            return
        windows = self._output.ordered(found)
        new = self._passed(windows, expected(windows.slots)) & ~self._known(windows)
        if not new.any():
            return
        windows = windows.take(np.flatnonzero(new))
        extents, counts = self._extents(windows), windows.states[self._counts[0]][0]
        timings, versions = np.full(counts.size, ON_TIME), np.full(counts.size, version)
        state = np.zeros((counts.size, self._asks.width), np.int64)
        if version < 0:
            nothing = taken(self._table.all.rows, 0 * counts - 1)
            self._table.put(Versioned(*extents, 0 * counts, versions, timings, state, nothing))
            return
        rows = self._rows_of(windows)
        if state.size:
            nothing = taken(self._table.all.rows, 0 * counts - 1)
            view = WindowView(
                counts, extents[2], extents[3], expected(windows.slots), rows, nothing, self._asks.schema,
                self._matches(windows), 0 * counts, asked=False,
            )  # fmt: skip
            state = self._asks.after(view, state, timings)
        self._table.put(Versioned(*extents, counts, versions, timings, state, rows))

    def _note_none(self) -> None:
        """Note that no version is out of those windows a watermark has passed that are not in the table."""
        slots = np.arange(len(self._groups))
        self._note([opened(one, slots) for one in self._lean], self._expected, version=-1)

    def save(self) -> dict[str, Any]:
        return super().save() | {"noted": True}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        if not saved.flag("noted"):
            self._note_none()


def without_notes(closing: dict[Any, Any]) -> dict[Any, Any]:
    """Return a state whose versions on time are all in the table (a ``Migration``)."""
    return {**closing, "noted": False} if "table" in closing else closing
