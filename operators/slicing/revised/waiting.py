"""Waiting: since when windows have tuples that are in no version, on the arrival clock (``AfterDelay``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved

__all__ = ["Waiting"]

Integers = NDArray[np.int64]
Extents = tuple[Integers, Integers, Integers, Integers]
_COLUMNS = 5


class Waiting:
    """Slots, definitions, extents and moments of windows that wait; ``clock``: the time that it showed last."""

    def __init__(self) -> None:
        self.columns = np.empty((_COLUMNS, 0), np.int64)
        self.clock: int | None = None

    @property
    def slots(self) -> Integers:
        """The groups of the windows that wait."""
        slots: Integers = self.columns[0]
        return slots

    @property
    def now(self) -> int:
        """The moment: the latest arrival, or the time that the clock showed."""
        return 0 if self.clock is None else self.clock

    def hear(self, page: Page) -> None:
        """Learn of arrivals."""
        if page.arrival is not None:
            self.tick(int(page.arrival.max()))

    def tick(self, now: int) -> None:
        """Learn that the clock shows ``now``; windows that came when nobody knew wait from now on."""
        if self.clock is None:
            self.columns[-1] = now
        self.clock = now if self.clock is None else max(now, self.clock)

    def since(self, windows: Extents, match: Callable[[Extents, Extents], Integers]) -> Integers:
        """Take windows out; return since when each of ``windows`` waits, now if it did not."""
        slots, numbers, starts, ends, moments = self.columns
        of = match(windows, (slots, numbers, starts, ends))
        known = of >= 0
        since = np.full(windows[0].size, self.now)
        np.minimum.at(since, of[known], moments[known])
        self.columns = self.columns[:, ~known]
        return since

    def put(self, columns: list[Integers]) -> None:
        """Let windows wait: slots, definitions, extents, moments."""
        self.columns = np.hstack([self.columns, np.stack(columns)])

    def forget(self, looked: Callable[[Integers, Integers, Integers], NDArray[np.bool_]]) -> None:
        """Let go of windows, by slots, definitions and ends: they are there no more."""
        slots, numbers, _, ends, _ = self.columns
        self.columns = self.columns[:, ~looked(slots, numbers, ends)]

    def rename(self, slots: Integers) -> None:
        """Give group ``g`` the slot ``slots[g]``."""
        self.columns[0] = slots[self.columns[0]]

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {"columns": self.columns, "clock": self.clock}

    def load(self, saved: Saved, groups: int) -> None:
        """Take the state that ``save`` returned, of so many groups."""
        self.columns = saved.integers("columns", (_COLUMNS, None))
        self.clock = None if saved["clock"] is None else saved.integer("clock")
        Saved({"slots": self.columns[0]}).integers("slots", (None,), least=0, below=groups)
