"""Row slides: partial aggregates that slide over the panes of tuple-based windows.

A slide reduces the tuples of a page to panes, a run of tuples each, and slides over those.  It keeps columns of at most
as many panes as a window has, and the pane that is not complete.  ``RowSlide`` slides by two stacks, in the compiled
loops of ``kernels/loops.py``, whatever the monoid.

Source: Theodorakis et al., Hammer Slide, ADMS 2018; panes of two lengths: Krishnamurthy, Wu, Franklin, On-the-fly
sharing, SIGMOD 2006.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels import monoids
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.compiled import Compiled, fixed, loops
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.windows import Extents

__all__ = ["Passed", "RowPanes", "RowSlide"]

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
    """The panes of ``extents``: a window is ``length`` of them, and ``step`` later the next one ends.

    A pane is the rows between two neighbouring starts or ends of windows, so that every window is a whole number of
    panes: a slide; or two parts of one, where range is no multiple of slide; or the window itself, where windows do not
    overlap.  With slide 1 each tuple is a pane.
    """

    def __init__(self, extents: Extents) -> None:
        assert extents.range is not None
        self.range, self.slide = extents.range, extents.slide
        self.apart = self.range <= self.slide
        self.length, self.step = (1, 1) if self.apart else extents.panes
        self._full: Integers = _NO_RUNS
        self._edges = dict[tuple[int, int], tuple[Integers, Integers]]()  # of the last page
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
        place = number % self.slide, rows
        if place not in self._edges:  # pages are of one length, mostly
            self._edges = {place: self._edges_of(low, high, number, rows)}
        return self._passed(low, high, *self._edges[place])

    def _edges_of(self, low: int, high: int, number: int, rows: int) -> tuple[Integers, Integers]:
        """Return the tuples at which the panes from ``low`` to the open one, ``high``, start and end."""
        edges = np.empty(high - low + 2, np.int64)
        edges[0], edges[-1] = 0, rows
        for part in range(min(self.step, high - low)):
            some, first = edges[1 + part : -1 : self.step], self._end(low + part) - number
            some[:] = np.arange(first, first + some.size * self.slide, self.slide)
        starts, ends = edges[:-1], edges[1:]
        if self.range < self.slide:  # tuples between windows are in no pane
            starts = np.maximum(starts, ends - self.range)
            starts[-1] = max(edges[-2], min(self._end(high) - self.range - number, rows))
        return fixed(starts), fixed(ends)

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


class RowSlide:
    """The states of a part in tuple-based windows, whose panes are ``panes``; ``of`` keeps it.

    ``given``: the type of its column.  The ring has a cell for each pane of a window and one more; it is as long as
    needed so far.  The least and the greatest of narrow integers are kept as narrow as they are.  ``own``: arrays and
    integers that a kind of slide has beside, by their names in snapshots.
    """

    def __init__(self, accumulator: Compiled, given: pa.DataType, panes: RowPanes) -> None:
        self.accumulator, self.panes = accumulator, panes
        self._loops = loops(accumulator.monoid)
        self._identity = _narrowed(accumulator, given)
        self._width = sum(value.nbytes for value in self._identity)
        self._at, self.own = 0, dict[str, Any]()
        self._ring, self._back, self._open = self._cells(1), self._cells(1), self._cells(1)

    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        """Take a page after the first ``number`` tuples; return the states of the windows it completes.

        O(rows), in kernels.  Raises ``SumOverflowError`` with the window in which a sum would wrap.
        """
        times = _NO_RUNS if self.accumulator.of_column else np.arange(number, number + page.rows)
        *given, known = self.accumulator.prepare(page, times)
        if not self.panes.of_one:
            panes = self._runs(passed, given, known, passed.starts, passed.ends)
            self._open = tuple(column[-1:].copy() for column in panes)
            return self._slide(tuple(column[:-1] for column in panes), passed)
        if type(self.accumulator.monoid).lift is monoids.Monoid.lift and not known.size:
            return self._slide(self._cast(given), passed)
        starts = fixed(np.arange(page.rows + 1))
        return self._slide(self._runs(passed, given, known, starts[:-1], starts[1:]), passed)

    def rest(self, passed: Passed, number: int) -> Arrays:
        """Return the states of windows that end behind the last of ``number`` tuples."""
        panes = self._cells(passed.panes)
        if not self.panes.of_one:
            for column, last in zip(panes, self._open, strict=True):
                column[:1] = last
            self._open = self._cells(1)
        return self._slide(panes, passed)

    @property
    def nbytes(self) -> int:
        cells = self._ring[0].size + 2  # the back, and the open pane
        return cells * self._width + self._aside

    @cached_property
    def _aside(self) -> int:
        """Bytes of the arrays beside, whose sizes stay."""
        return sum(one.nbytes for one in self.own.values() if isinstance(one, np.ndarray))

    def save(self) -> dict[str, Any]:
        return {"at": self._at, "ring": self._ring, "back": self._back, "open": self._open, **self.own}

    def load(self, saved: Saved) -> None:
        self._back, self._open = self._loaded(saved.part("back"), 1), self._loaded(saved.part("open"), 1)
        self._ring = self._loaded(saved.part("ring"), None)
        room = self._ring[0].size - 1
        self._at = saved.integer("at", least=0, most=min(room, self.panes.length - 1))
        if room > self.panes.length or len({column.size for column in self._ring}) > 1:
            msg = f"'ring' must have room for a window of {self.panes.length}; got {room}"
            raise SnapshotError(msg)
        for name, one in self.own.items():
            is_array = isinstance(one, np.ndarray)
            self.own[name] = (
                saved.numbers(name, one.shape, one.dtype) if is_array else saved.integer(name, least=-1)
            )

    def _loaded(self, saved: Saved, cells: int | None) -> Arrays:
        return self._cast(self.accumulator.read(saved, (cells,)))

    def _cast(self, states: Iterable[NDArray[Any]]) -> Arrays:
        kept = zip(states, self._identity, strict=True)
        return tuple(column.astype(value.dtype, copy=False) for column, value in kept)

    def _cells(self, size: int) -> Arrays:
        cells = tuple(np.empty(size, value.dtype) for value in self._identity)
        for column, value in zip(cells, self._identity, strict=True):
            column.fill(value)
        return cells

    def _runs(self, passed: Passed, given: list[Any], known: Any, starts: Any, ends: Any) -> Arrays:
        """Return the states of tuples side by side, the first of which go on from the open pane."""
        panes = self._cells(starts.size)
        for column, last in zip(panes, self._open, strict=True):
            column[0] = last[0]
        at = self._loops.add_runs(self.accumulator.monoid, panes, starts, ends, tuple(given), known)
        if at >= 0:
            raise SumOverflowError(self.accumulator.part.column, self.panes.window_of(passed.pane + at))
        return panes

    def _make_room(self, panes: int) -> None:
        """Let the ring have room for so many panes more, or for a whole window."""
        needed, room = min(self._at + panes, self.panes.length), self._ring[0].size - 1
        if needed > room:
            old = self._ring
            self._ring = self._cells(min(max(needed, 2 * room), self.panes.length) + 1)
            for column, before in zip(self._ring, old, strict=True):
                column[:room] = before[:room]

    def _slide(self, panes: Arrays, passed: Passed) -> Arrays:
        """Slide over panes; return the states of windows among those at the end of each."""
        if self.panes.length == 1:
            return self._cast(panes)
        self._make_room(panes[0].size)
        out = tuple(np.empty(panes[0].size, value.dtype) for value in self._identity)
        panes = tuple(map(fixed, panes))
        stacks = self._at, self.panes.length, self._back, self._ring
        self._at = int(self._loops.slide(self.accumulator.monoid, panes, *stacks, out))
        return out if self.panes.step == 1 else tuple(c[passed.first :: self.panes.step].copy() for c in out)


def _narrowed(accumulator: Compiled, given: pa.DataType) -> tuple[np.generic, ...]:
    """Return the state of no values, in 32 bits where a column of integers has no more."""
    extreme = accumulator.of_column and isinstance(accumulator.monoid, monoids.Smallest | monoids.Largest)
    if extreme and not accumulator.part.floating and given.bit_width <= 32 and given != pa.uint32():
        ends = np.iinfo(np.int32)
        return (np.int32(ends.min if isinstance(accumulator.monoid, monoids.Largest) else ends.max),)
    return accumulator.identity
