"""Finals: results of windows that a bound has passed, which leave where they differ from the versions that are out.

A window whose version on time is out, and not in the table, has that result still: it is forgotten unread.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.operators.slicing.revised.reading import Readable, named
from oop_engine.operators.slicing.revised.reviewing import FINAL, Mask, Reviewing
from oop_engine.operators.slicing.store import bounds_of
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers
from oop_engine.system.knobs import knob

__all__ = ["Finals"]

_FEWER = knob(__name__, "_FEWER", 4)
"""Versions in the table for each group that a bound is of: with more, windows of these groups are read."""


class Finals(Reviewing):
    """Open windows, the versions of their results, and which of them leave when punctuation completes their windows."""

    def _closed(self, slots: Integers | None, bounds: Any) -> Iterator[Page]:
        """Close windows; those whose version on time is out are forgotten unread, but for those in the table."""
        if self._lean:
            of, passed = self._on_time_by(slots, bounds)
            if len(self._table):
                held = self._read(self._lean, partial(self._held, slots=of, bounds=passed))
                yield from self._results(self._output.ordered(held))
            for store in self._lean:
                store.forget(of, passed)
        yield from super()._closed(slots, bounds)

    def _on_time_by(self, slots: Integers | None, bounds: Any) -> tuple[Integers | None, Integers | int]:
        """Return groups (None: all), and by which bound each of them has put out its windows on time, up to another."""
        if slots is None and not self._input.groups:
            return None, min(bounds, self._input.expected)
        some = np.arange(len(self._groups)) if slots is None else slots
        return some, np.minimum(bounds, self._expected(some))

    def _held(self, store: Readable, slots: Integers | None, bounds: Integers | int) -> WindowStates:
        """Return the windows of a store that ``bounds[i]`` completes in ``slots[i]`` and that are in the table."""
        assert isinstance(store, WindowStore)
        if slots is not None and _FEWER * slots.size < len(self._table):
            windows = store.between(slots, NEVER, bounds)
            return windows.take(np.flatnonzero(self._known(windows)))
        held = self._table.all() if slots is not None else self._table.ended(int(bounds), self._is_lean)
        of = np.flatnonzero(
            (held.numbers == store.number) & (held.ends <= bounds_of(held.slots, slots, bounds))
        )
        wids = store.extents.closed_by(held.ends[of]) - 1
        order = np.lexsort((held.slots[of], wids))
        return named(store, held.slots[of][order], wids[order])

    def _results(self, closed: WindowStates) -> Iterator[Page]:
        """Put out final results that differ from the versions that are out, which are forgotten."""
        if not len(self._table):
            yield from self._first(closed, FINAL)
            return
        extents = self._extents(closed)
        held, places = self._table.near(extents)
        of, numbers = self._match(extents, held[:4]), extents[1]
        out = np.flatnonzero(of >= 0)
        counts, many = np.full(closed.slots.size, -1), np.bincount(of[out], minlength=closed.slots.size)
        counts[of[out]] = held.counts[out]
        # A window that is read in place only grows: with the same count its result is the same, and is not made.
        grown = counts != closed.states[self._counts[0]][0]
        settled: Mask = ~grown & ~self._is_copied[numbers] & (many == 1)
        gone = np.zeros(of.size, np.bool_)
        gone[out] = settled[of[out]]
        if gone.any():
            self._table.drop(places[gone])
        yield from self._first(closed.take(np.flatnonzero(many == 0)), FINAL)
        changed = closed.take(np.flatnonzero(~settled & (many > 0)))
        if changed.slots.size:
            timings = np.full(changed.slots.size, FINAL)
            for _, page in self._review(changed, timings, changed.ends, forced=True):
                assert isinstance(page, Page)
                yield page

    def ceiling(self, below: int) -> int:
        """Return how high the bound of all results may be: versions of sessions are taken back at their time."""
        return self._table.least(self._side, self._vanishing) if self._vanishing.any() else FOREVER

    def ceilings(self, slots: Integers, of: Integers, below: Integers) -> Integers:
        """Return the same of groups: each by its own versions, however slow others are.  O(these versions)."""
        found = np.full(below.shape, FOREVER)
        if self._vanishing.any() and len(self._table):
            np.minimum.at(found, of, self._table.least_of(slots, self._side, self._vanishing))
        return found

    @property
    def _side(self) -> str:
        return "ends" if self._output.stamp == "end" else "starts"
