"""Entry table: partial aggregates of (group, pane) in a table of fixed size, which lets go of some to take others in.

Source: thesis 8.3.3, the hash table of Gigascope's low-level aggregation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from oop_engine.core.errors import SnapshotError
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels.entries import BELOW, OLD, USED, EntryLives, EntryRule, walk
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import bounds_of
from oop_engine.operators.slicing.window_states import narrow
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.values.flush import Flush

__all__ = ["EntryTable", "Left"]


class Left(NamedTuple):
    """Partial aggregates that have left, in their order.

    ``of``: the tuple of the page that each left for, int64 (n,); those that left for a bound have none, -1.
    """

    groups: Integers
    panes: Integers
    states: list[Arrays]
    of: Integers


class EntryTable:
    """Partial aggregates of ``parts`` in ``slots`` places, which leave by ``flush``; ``probe``: two places are tried.

    All of its memory, ``nbytes``, is taken at the start.
    """

    def __init__(self, parts: Sequence[Part], slots: int, flush: Flush, *, probe: bool) -> None:
        self._rule = EntryRule(flush.every, probe, flush.ordered)
        self._parts, self._states = parts, States(parts, slots)
        self._cells = np.full((slots, 3), -1)
        self._scan = np.array([0, 0, 0, NEVER, 0])
        self.nbytes = self._cells.nbytes + slots * self._states.row_bytes

    def __len__(self) -> int:
        """Return how many entries are taken."""
        return int(self._scan[USED])

    @property
    def old(self) -> int:
        """How many entries are of windows that are closed."""
        return int(self._scan[OLD])

    @property
    def groups(self) -> Integers:
        """The groups of the entries, one or more times each.  O(slots)."""
        groups: Integers = self._cells[self._taken, 0]
        return groups

    @property
    def least_pane(self) -> int:
        """The start of the earliest pane that has an entry; ``FOREVER``: there is none.  O(slots)."""
        return int(self._cells[self._taken, 1].min(initial=FOREVER)) if len(self) else FOREVER

    @property
    def _taken(self) -> Integers:
        return np.flatnonzero(self._cells[:, 0] >= 0)

    def add(
        self, groups: Integers, panes: Integers, hashes: Integers, inputs: Sequence[Arrays] | None
    ) -> Left:
        """Take tuples in, one by one; return the entries that left for them.

        ``inputs``: of all tuples, as ``States.prepare`` has them; None: nothing is aggregated.  Amortised O(1) a tuple,
        in kernels.  Raises ``SumOverflowError`` at a pane, with the group.
        """
        slots, most = len(self._cells), groups.size + len(self)
        begun, left, rows = (np.empty(shape, np.int64) for shape in ((most, 4), (most, 2), groups.size))
        lives = EntryLives(begun, left, np.zeros(2, np.int64))
        homes = (hashes.view(np.uint64) % np.uint64(slots)).astype(np.int64)
        walk(self._cells, self._scan, self._rule, groups, panes, homes, rows, lives)
        begun, left = lives.begun[: lives.counts[0]], lives.left[: lives.counts[1]]
        states = States(self._parts, len(begun))
        was = np.flatnonzero(begun[:, 3])
        states.put(was, self._states.take(begun[was, 0]))
        if inputs is not None:
            try:
                states.add(rows, inputs)
            except SumOverflowError as error:
                group, pane = begun[error.at, 1:3].tolist()
                raise SumOverflowError(error.column, pane, group) from None
        stay = np.ones(len(begun), np.bool_)
        stay[left[:, 0]] = False
        places = begun[stay, 0]
        self._cells[places, 2] = -1
        self._states.put(places, states.take(np.flatnonzero(stay)))
        return Left(begun[left[:, 0], 1], begun[left[:, 0], 2], states.take(left[:, 0]), left[:, 1])

    def close(self, below: int, due: int) -> Left:
        """Take entries of panes below a bound for old, and let those below ``due`` leave.  O(slots)."""
        taken = self._taken
        places = taken[self._cells[taken, 1] < due] if due < FOREVER else taken
        if self._rule.ordered:
            places = places[np.argsort(self._cells[places, 1], kind="stable")]
            below = NEVER  # tuples in order make entries old
        left = self._let_go(places)
        if below > self._scan[BELOW]:
            self._scan[BELOW] = below
            self._scan[OLD] = int(np.count_nonzero((self._cells[:, 1] < below) & (self._cells[:, 0] >= 0)))
        return left

    def close_groups(self, groups: Integers, below: Integers) -> Left:
        """Let the entries of ``groups[i]`` leave that are of panes below ``below[i]``.  O(slots + groups)."""
        taken = self._taken
        of, panes = self._cells[taken, :2].T
        return self._let_go(taken[panes < bounds_of(of, groups, below)])

    def _let_go(self, places: Integers) -> Left:
        groups, panes = self._cells[places, 0], self._cells[places, 1]
        self._cells[places, 0] = -1
        self._scan[USED] -= places.size
        self._scan[OLD] -= int(np.count_nonzero(panes < self._scan[BELOW]))
        return Left(groups, panes, self._states.take(places), np.full(places.size, -1))

    def rename(self, groups: Integers) -> None:
        taken = self._taken
        self._cells[taken, 0] = groups[self._cells[taken, 0]]

    def save(self) -> dict[str, Any]:
        places = self._taken
        columns = [narrow(column) for column in (places, *self._cells[places, :2].T)]
        states = self._states.saved(self._states.take(places))
        return {"entries": columns, "states": states, "scan": self._scan}

    def load(self, saved: Saved, groups: int) -> None:
        entries, slots = saved.part("entries"), len(self._cells)
        places = entries.integers(0, (None,), least=0, below=slots)
        if np.unique(places).size != places.size:
            msg = f"'entries' must be in different places; got {places.tolist()}"
            raise SnapshotError(msg)
        self._cells[places, 0] = entries.integers(1, places.shape, least=0, below=groups)
        self._cells[places, 1] = entries.integers(2, places.shape)
        self._states.put(places, self._states.loaded(saved.part("states"), places.size))
        self._scan = saved.integers("scan", self._scan.shape).copy()
        self._scan[0:2] = np.maximum(self._scan[0:2], 0)
        self._scan[USED] = places.size
        self._scan[OLD] = int(np.count_nonzero(self._cells[places, 1] < self._scan[BELOW]))
