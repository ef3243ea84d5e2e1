"""Panes of tuple-based windows: which tuples side by side are reduced first.

A pane is the rows between two neighbouring starts or ends of windows, so that every window
is a whole number of panes: a slide; or two parts of one, where range is no multiple of slide; or
the window itself, where windows do not overlap.  With slide 1 each tuple is a pane.

Source: Krishnamurthy, Wu, Franklin, On-the-fly sharing, SIGMOD 2006 (panes of two lengths).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from oop_engine.operators.values.columns import Integers
from oop_engine.operators.windows import Extents

__all__ = ["Passed", "RowPanes"]

_NO_RUNS = np.empty(0, np.int64)


class Passed(NamedTuple):
    """Panes and windows that some tuples, or the end of the stream, complete.

    ``panes`` panes ended, the first of them ``pane``; those from ``first`` on, every ``step``-th, end a
    window.  So windows ``window`` to ``window + windows`` (exclusive) are complete.  ``starts`` and ``ends``
    int64 (panes + 1,): which tuples of the page are in each of these panes and in the open one.
    """

    pane: int
    panes: int
    window: int
    windows: int
    first: int
    starts: Integers
    ends: Integers


class RowPanes:
    """The panes of ``extents``: a window is ``length`` of them, and ``step`` later the next one ends."""

    def __init__(self, extents: Extents) -> None:
        assert extents.range is not None
        self.range, self.slide = extents.range, extents.slide
        self.apart = self.range <= self.slide
        self.length, self.step = (1, 1) if self.apart else extents.panes
        self._full: Integers = _NO_RUNS
        # where a slide is divided
        self._middle = self.slide - self.range % self.slide if self.step == 2 else self.slide

    @property
    def of_one(self) -> bool:
        """Tell whether each tuple is a pane."""
        return self.slide == 1

    def passed(self, number: int, rows: int) -> Passed:
        """Return the panes and windows that ``rows`` tuples complete after the first ``number``."""
        low, high = self._complete(number), self._complete(number + rows)
        if self.of_one:
            return self._passed(low, high, _NO_RUNS, _NO_RUNS)
        edges = np.empty(high - low + 2, np.int64)
        edges[0], edges[-1] = 0, rows
        for part in range(min(self.step, high - low)):
            some, first = edges[1 + part : -1 : self.step], self._end(low + part) - number
            some[:] = np.arange(first, first + some.size * self.slide, self.slide)
        starts, ends = edges[:-1], edges[1:]
        if self.range < self.slide:  # tuples between windows are in no pane
            starts = np.maximum(starts, ends - self.range)
            starts[-1] = max(edges[-2], min(self._end(high) - self.range - number, rows))
        return self._passed(low, high, starts, ends)

    def rest(self, number: int, most: int) -> list[Passed]:
        """Return the panes and windows that the end completes after ``number`` tuples, ``most`` windows at a time."""
        window = self._complete(number) // self.step
        stop = (number - 1 + self.range) // self.slide if number else 0
        cuts = [self._complete(number), *(w * self.step for w in range(window + most, stop, most))]
        cuts = [*cuts, stop * self.step] if stop > window else []
        return [self._passed(*part, _NO_RUNS, _NO_RUNS) for part in pairwise(cuts)]

    def numbers(self, passed: Passed, number: int) -> Integers:
        """Return how many of the first ``number`` tuples are in each window, int64 (windows,)."""
        first, last = (passed.window + 1) * self.slide, (passed.window + passed.windows) * self.slide
        if first >= self.range and last <= number:
            if passed.windows != self._full.size:  # pages are of one length, mostly
                self._full = np.broadcast_to(np.int64(self.range), passed.windows)
            return self._full
        ends = np.arange(first, last + 1, self.slide)
        inside: Integers = np.minimum(ends, number) - np.maximum(ends - self.range, 0)
        return inside

    def held(self, number: int) -> int:
        """Return how many panes of the first ``number`` tuples are of windows still open."""
        whole = self._complete(number)
        some = number > self._end(whole - 1) if not self.apart else number > self._end(whole) - self.range
        return (0 if self.length == 1 else min(whole, self.length)) + some

    def window_of(self, pane: int) -> int:
        """Return the first window that a pane is in."""
        return pane // self.step

    def _complete(self, number: int) -> int:
        """Return how many panes have ended when there are ``number`` tuples."""
        slides, more = divmod(number, self.slide)
        return self.step * slides + (more >= self._middle)

    def _end(self, pane: int) -> int:
        slides, second = divmod(pane, self.step)
        return slides * self.slide + (self._middle if self.step == 2 and not second else self.slide)

    def _passed(self, low: int, high: int, starts: Integers, ends: Integers) -> Passed:
        window = low // self.step
        windows = high // self.step - window
        return Passed(low, high - low, window, windows, (-1 - low) % self.step, starts, ends)
