"""Versions of results by definition: all windows are computed anew after each message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.naive.revisions import Row

Window = tuple[int, int]
Fires = int | Callable[[list[tuple[int, int]]], bool] | None
"""When so many tuples came since the last version, or as a function of these; None: never."""
FOREVER = 2**63 - 1


def grid(range_: int, slide: int) -> Callable[[list[int]], list[Window]]:
    """Return which windows there are of some times: those of a grid that have one."""

    def windows(times: list[int]) -> list[Window]:
        starts = {
            s
            for t in times
            for s in range((t - range_) // slide * slide, t + 1, slide)
            if s <= t < s + range_
        }
        return [(start, start + range_) for start in sorted(starts)]

    return windows


def sessions(gap: int) -> Callable[[list[int]], list[Window]]:
    """Return the sessions of some times."""

    def windows(times: list[int]) -> list[Window]:
        found: list[Window] = []
        for time in sorted(times):
            if found and time <= found[-1][1]:
                found[-1] = found[-1][0], max(found[-1][1], time + gap)
            else:
                found.append((time, time + gap))
        return found

    return windows


class NaiveVersions:
    """Counts and sums of ``v`` in windows, with versions after ``early`` and ``late`` tuples (None: never)."""

    def __init__(
        self, windows: Callable[[list[int]], list[Window]], early: Fires, on_time: bool, late: Fires,
        *, strict: bool,
    ) -> None:  # fmt: skip
        self.windows, self.early, self.on_time, self.late, self.strict = windows, early, on_time, late, strict
        self.tuples: list[tuple[int, int]] = []
        self.out: dict[Window, tuple[int, Row]] = {}  # tuples, row
        self.put: dict[Window, int] = {}  # how many tuples there were at its last version
        self.promised = self.expected = -(2**63)

    def _passed(self, window: Window, bound: int) -> bool:
        return bound == FOREVER or (window[1] < bound if self.strict else window[1] <= bound)

    def page(self, tuples: list[tuple[int, int]]) -> list[Row]:
        self.tuples += tuples
        changes: list[Row] = []
        for window in self._open():
            if any(window[0] <= time < window[1] for time, _ in tuples):
                wanted = self.late if self._passed(window, self.expected) else self.early
                came = self._row(window)["n"] - sum(n for n, _ in self._inside(window).values())
                if callable(wanted):
                    new = self.tuples[self.put.get(window, 0) :]
                    fires = wanted([(time, v) for time, v in new if window[0] <= time < window[1]])
                else:
                    fires = wanted is not None and came >= wanted
                if fires:
                    changes += self._put(window)
        return changes

    def watermark(self, bound: int) -> list[Row]:
        before, self.expected = self.expected, max(self.expected, bound)
        passed = [w for w in self._open() if self._passed(w, self.expected) and not self._passed(w, before)]
        return [row for window in passed for row in self._put(window)] if self.on_time else []

    def promise(self, bound: int) -> list[Row]:
        windows = self._open()
        self.promised = max(self.promised, bound)
        self.expected = max(self.expected, bound)
        changes = []
        for window in windows:
            if self._passed(window, self.promised):
                changes += self._put(window)
                self.out = {w: held for w, held in self.out.items() if w != window}
        return changes

    def _open(self) -> list[Window]:
        windows = self.windows([time for time, _ in self.tuples])
        return [window for window in windows if not self._passed(window, self.promised)]

    def _inside(self, window: Window) -> dict[Window, tuple[int, Row]]:
        same = (
            (lambda w: w == window)
            if not self.strict
            else (lambda w: window[0] <= w[0] and w[1] <= window[1])
        )
        return {w: held for w, held in self.out.items() if same(w)}

    def _row(self, window: Window) -> dict[str, Any]:
        values = [v for time, v in self.tuples if window[0] <= time < window[1]]
        return {"window_start": window[0], "window_end": window[1], "n": len(values), "s": sum(values)}

    def _put(self, window: Window) -> list[Row]:
        row, inside = self._row(window), self._inside(window)
        self.put[window] = len(self.tuples)
        self.out = {w: held for w, held in self.out.items() if w not in inside} | {window: (row["n"], row)}
        if [held for _, held in inside.values()] == [row]:
            return []
        return [held | {"change": -1} for _, held in inside.values()] + [row | {"change": 1}]
