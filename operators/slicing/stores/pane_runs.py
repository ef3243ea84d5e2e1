"""Pane runs: partial aggregates by (group slot, pane), and the windows they make up.

Rows come as they are put: the same pane of a group may be there several times.  Two runs
are kept, one in which every pane is there once and one of what came since; when the second
outgrows the first they are merged, so a row is merged O(log rows) times, and memory is at
most twice what differs.  All is done with whole columns: sort, then combine neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.partials import States

__all__ = ["PaneRuns", "Run"]

Integers = NDArray[np.int64]

_FAR = 1 << 61  # windows; no extent reaches so far
_LEAST = 64  # rows; fewer are not worth a merge
_PAIRS = 1 << 20  # (row, window) pairs combined at a time, as far as one window allows


@dataclass(frozen=True)
class Run:
    """Rows: each a state (a tuple of columns a part) of group ``slots`` for windows ``first`` to ``last``."""

    slots: Integers
    first: Integers
    last: Integers
    states: list[Arrays]

    def __len__(self) -> int:
        return int(self.slots.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        columns = [*self._places, *(column for state in self.states for column in state)]
        return sum(column.nbytes for column in columns)

    def take(self, rows: NDArray[Any] | slice) -> Run:
        """Return some of the rows."""
        states = [tuple(column[rows] for column in state) for state in self.states]
        return Run(self.slots[rows], self.first[rows], self.last[rows], states)

    def joined(self, *others: Run) -> Run:
        """Return the rows of several runs, one behind the other."""
        runs = [run for run in (self, *others) if len(run)]
        if len(runs) < 2:
            return runs[0] if runs else self
        slots, first, last = (
            np.concatenate(columns) for columns in zip(*(r._places for r in runs), strict=True)
        )
        states = [tuple(map(np.concatenate, zip(*of, strict=True)))
                  for of in zip(*(run.states for run in runs), strict=True)]  # fmt: skip
        return Run(slots, first, last, states)

    @property
    def _places(self) -> tuple[Integers, Integers, Integers]:
        return self.slots, self.first, self.last


class PaneRuns:
    """The panes of open windows.

    ``overflow(column, slot, wid)`` makes the error for a sum that passes 64 bits.
    """

    def __init__(self, parts: Sequence[Part], overflow: Callable[[str | None, int, int], Exception]) -> None:
        self._nothing = States(parts)
        self._overflow = overflow
        self._merged = self.rows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
        self._fresh: list[Run] = []
        self._fresh_rows = 0
        self.nbytes = 0
        """Bytes of the rows held."""

    def __len__(self) -> int:
        return len(self._merged) + self._fresh_rows

    def rows(self, slots: Integers, first: Integers, last: Integers) -> Run:
        """Return rows with states of no values."""
        nothing = self._nothing.resized(np.empty(0, np.int64), slots.size)
        return Run(slots, first, last, nothing)

    def add(self, run: Run) -> None:
        """Put rows; those of one group and pane have the same ``first`` and ``last``."""
        self._fresh.append(run)
        self._fresh_rows += len(run)
        self.nbytes += run.nbytes
        if self._fresh_rows > max(len(self._merged), _LEAST):
            self._set(self._once(self._merged.joined(*self._fresh)))

    def take(self, low: Integers, cuts: Integers, kept: Integers) -> Run:
        """Return the rows of what closes, and forget those that nothing open needs.

        Of group ``g`` the windows ``low[g]`` to ``cuts[g]`` (exclusive) close; after that
        windows below ``kept[g]`` are never asked for again.  All int64 (slots,).  O(rows).
        """
        closing, staying = [], []
        for run in self._runs():
            first = np.maximum(run.first, low[run.slots])
            stop = np.minimum(run.last + 1, cuts[run.slots])
            some = np.flatnonzero(first < stop)
            part = run.take(some)
            closing.append(replace(part, first=first[some], last=stop[some] - 1))
            alive = run.last >= kept[run.slots]
            staying.append(run if alive.all() else run.take(alive))
        self._set(*staying)
        return closing[0].joined(*closing[1:])

    def windows(self, run: Run) -> Iterator[tuple[Integers, Integers, list[Arrays]]]:
        """Yield slots, windows and states, a row a (group, window), in the order of windows.

        O(pairs of rows and windows x log(rows of a window)).
        """
        if float((run.last - run.first + 1.0).sum()) <= _PAIRS:
            yield self._combined(run)
            return
        run = run.take(np.argsort(run.first, kind="stable"))
        while len(run):
            stop = _block(run)
            inside = int(np.searchsorted(run.first, stop))
            part, rest = run.take(slice(None, inside)), run.take(slice(inside, None))
            over = part.take(part.last >= stop)
            run = replace(over, first=np.full(len(over), stop)).joined(rest)
            yield self._combined(replace(part, last=np.minimum(part.last, stop - 1)))

    def rename(self, slots: Integers) -> None:
        """Give group ``g`` the slot ``slots[g]``."""
        self._set(*(replace(run, slots=slots[run.slots]) for run in self._runs()))

    def save(self) -> list[list[Any]]:
        """Return the rows for a snapshot."""
        return [[*run._places, [list(state) for state in run.states]] for run in self._runs()]

    def load(self, saved: Sequence[Saved], groups: int, windows: int) -> None:
        """Take what ``save`` returned of so many groups; a pane is in ``windows`` at most."""
        self._set(*(self._loaded(run, groups, windows) for run in saved))

    def _loaded(self, saved: Saved, groups: int, windows: int) -> Run:
        slots = saved.integers(0, (None,), least=0, below=groups)
        first, last = (saved.integers(side, slots.shape, least=-_FAR, below=_FAR) for side in (1, 2))
        if slots.size and not ((widths := last - first + 1).min() >= 0 and widths.max() <= windows):
            msg = f"a pane must be in at most {windows} windows; got {widths.min()} to {widths.max()}"
            raise SnapshotError(msg)
        return Run(slots, first, last, self._nothing.loaded(saved.part(3), slots.size))

    def _runs(self) -> list[Run]:
        """Return the two runs."""
        if len(self._fresh) > 1:
            self._fresh = [self._fresh[0].joined(*self._fresh[1:])]
        return [self._merged, *self._fresh]

    def _set(self, merged: Run, *fresh: Run) -> None:
        self._merged, self._fresh = merged, [run for run in fresh if len(run)]
        self._fresh_rows = sum(map(len, self._fresh))
        self.nbytes = sum(run.nbytes for run in (merged, *self._fresh))

    def _once(self, run: Run) -> Run:
        """Return the run with each pane of a group once, sorted by pane."""
        panes = run.first + run.last  # both grow with time, so no two panes have the same sum
        order, begins = _sorted(panes, run.slots)
        run = run.take(order)
        states = self._folded(run.slots, run.first, begins, run.states)
        return Run(run.slots[begins], run.first[begins], run.last[begins], states)

    def _combined(self, run: Run) -> tuple[Integers, Integers, list[Arrays]]:
        """Return each group's windows with the states of all their panes together."""
        widths = run.last - run.first + 1
        rows = np.repeat(np.arange(len(run)), widths)
        wids = run.first[rows] + np.arange(rows.size) - np.repeat(np.cumsum(widths) - widths, widths)
        slots = run.slots[rows]
        order, begins = _sorted(wids, slots)
        slots, wids, rows = slots[order], wids[order], rows[order]
        states = self._folded(slots, wids, begins, run.take(rows).states)
        return slots[begins], wids[begins], states

    def _folded(
        self, slots: Integers, wids: Integers, begins: NDArray[np.bool_], states: list[Arrays]
    ) -> list[Arrays]:
        """Combine the rows from each that ``begins`` a group's window or pane up to the next."""
        starts = np.flatnonzero(begins)
        if starts.size == begins.size:
            return states
        try:
            return self._nothing.reduced(states, starts)
        except SumOverflowError as error:
            row = starts[error.at]
            raise self._overflow(error.column, int(slots[row]), int(wids[row])) from None


def _sorted(major: Integers, minor: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Return the order by ``major``, then ``minor`` (at least 0), and where in it a new pair begins."""
    begins = np.ones(major.size, np.bool_)
    if not major.size:
        return np.empty(0, np.int64), begins
    span = int(minor.max()) + 1
    if (int(major.max()) - int(major.min()) + 1) * span < FOREVER:
        pairs = (major - major.min()) * span + minor
        order = _order(pairs)
        begins[1:] = np.diff(pairs[order]) != 0
        return order, begins
    order = np.lexsort((minor, major))
    begins[1:] = (np.diff(major[order]) != 0) | (np.diff(minor[order]) != 0)
    return order, begins


def _order(numbers: Integers) -> Integers:
    """Return the stable order of numbers, at least 0: NumPy sorts 16 bits five times as fast as 64."""
    largest = int(numbers.max())
    if largest >= 1 << 32:
        return np.argsort(numbers, kind="stable")
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if largest >= 1 << 16:
        upper = (numbers >> 16).astype(np.uint16)
        order = order[np.argsort(upper[order], kind="stable")]
    return order


def _block(run: Run) -> int:
    """Return a window below which there are about ``_PAIRS`` pairs of rows and windows, or one window."""
    low = int(run.first[0])
    each = low + _PAIRS // len(run)
    fits = int(np.searchsorted(np.cumsum(run.last - run.first + 1), _PAIRS, side="right"))
    upto = int(run.first[fits]) if fits < len(run) else int(run.last.max()) + 1
    return max(low + 1, each, upto)
