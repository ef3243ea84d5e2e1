"""Pane states: what the cells of a ring of panes hold, in columns.

Each cell has the number of its tuples, which is also what tells whether there is anything in it.  As long
as a column has had no null, a count of its values is that number, and takes no room of its own.  A cell
that nothing is in holds the state of no values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.slicing.accumulators import Accumulator, accumulator
from oop_engine.operators.slicing.partials import filled

__all__ = ["TUPLES", "PaneStates"]

Integers = NDArray[np.int64]

TUPLES = accumulator(Part("count"))
"""Keeps how many tuples there are in a cell."""
_MOST = 2**40  # tuples in a cell: less than can ever come
_NARROW = 2**31 - 1  # tuples in all cells together that 32 bits can count


class PaneStates:
    """``tuples`` int32 or int64 (cells,) and for each of ``parts`` its columns, (cells,), or None: ``tuples``.

    ``nbytes``: those of all cells, in use or not; ``cell_bytes``: of one.  ``accumulators``: how each part is kept.
    """

    def __init__(self, parts: Sequence[Part], cells: int, like: PaneStates | None = None) -> None:
        self.accumulators: list[Accumulator] = (
            list(map(accumulator, parts)) if like is None else like.accumulators
        )
        self.tuples: NDArray[Any] = np.zeros(cells, np.int32 if like is None else like.tuples.dtype)
        self._most: int = 0 if like is None else like._most
        self.columns: list[Arrays | None] = [
            None if of.counts and (like is None or like.columns[i] is None) else _nothing(of, cells)
            for i, of in enumerate(self.accumulators)
        ]
        self._measure()

    def _measure(self) -> None:
        columns = [column for state in self.columns if state is not None for column in state]
        self.cell_bytes = sum(column.itemsize for column in (self.tuples, *columns))
        self.nbytes = self.tuples.size * self.cell_bytes
        self._shared = [
            i for i, state in enumerate(self.columns) if state is None and self.accumulators[i].part.column
        ]

    def expect(self, page: Page) -> None:
        """Make ready for the tuples of ``page``: values are counted apart from the first null on."""
        for i in self._shared:
            name = self.accumulators[i].part.column
            if self.columns[i] is None and name and page.column(name).null_count:
                self.columns[i] = (self.tuples.astype(np.int64),)
                self._measure()
        self._most += page.batch.num_rows
        if self._most > _NARROW and self.tuples.dtype == np.int32:
            self._most = int(self.tuples.sum(dtype=np.int64)) + len(page)
            if self._most > _NARROW:
                self.tuples = self.tuples.astype(np.int64)
                self._measure()

    def folded(self, steps: Integers, results: int) -> list[Arrays]:
        """Take ``steps`` int64 (3, steps), in order, in the columns of each part; return the ``results``.

        Raises ``SumOverflowError`` with the step at which an integer sum would wrap.
        """
        made = [
            () if state is None else of.fold_steps(state, steps, results)
            for of, state in zip(self.accumulators, self.columns, strict=True)
        ]
        tuples = TUPLES.fold_steps((self.tuples,), steps, results)
        return [new or tuples for new in made]

    def reset(self, cells: Integers | slice) -> None:
        """Make some cells empty."""
        self.tuples[cells] = 0
        for of, state in zip(self.accumulators, self.columns, strict=True):
            for column, nothing in zip(state or (), of.identity, strict=state is not None):
                column[cells] = nothing

    def copy(self, cells: Integers, source: PaneStates, of: Integers) -> None:
        """Take over the cells ``of`` another one that was made ``like`` this one."""
        self.tuples[cells] = source.tuples[of]
        for state, other in zip(self.columns, source.columns, strict=True):
            for column, values in zip(state or (), other or (), strict=True):
                column[cells] = values[of]

    def save(self, cells: Integers) -> tuple[NDArray[Any], list[Arrays]]:
        """Return the tuples and the states of some cells, for a snapshot; counts that are shared are empty."""
        states = [tuple(column[cells] for column in state or ()) for state in self.columns]
        return self.tuples[cells], states

    def load(self, cells: Integers, saved: Saved) -> None:
        """Take what ``save`` returned into cells that are empty."""
        tuples = saved.integers("tuples", cells.shape, least=0, below=_MOST)
        self._most = int(tuples.sum(dtype=np.int64))
        if self._most > _NARROW:
            self.tuples = self.tuples.astype(np.int64)
        self.tuples[cells] = tuples
        states = saved.parts("states", len(self.accumulators))
        for i, (of, state) in enumerate(zip(self.accumulators, states, strict=True)):
            self.columns[i] = columns = None if of.counts and not state else _nothing(of, self.tuples.size)
            for number, column in enumerate(columns or ()):
                column[cells] = state.numbers(number, cells.shape, column.dtype)
        self._measure()


def _nothing(of: Accumulator, cells: int) -> Arrays:
    return tuple(filled(cells, value) for value in of.identity)
