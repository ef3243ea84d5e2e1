"""The pane rectangle: memory for some panes in a row, from the lowest open one on, and for some groups.

A pane is a row of cells, a cell a group.  The rectangle grows as long as enough of it is in use, and rows are
used again, as in a ring: pane ``p`` is row ``p & (room - 1)``.  A cell without tuples may have any state
below ``low`` and above ``high``, or where no later window asks for it; elsewhere it has that of no values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.panes import Geometry, used
from oop_engine.operators.slicing.panes.pane_states import PaneStates
from oop_engine.operators.slicing.window_states import narrow

__all__ = ["PaneRectangle"]

Integers = NDArray[np.int64]

_FLOOR = 1 << 23  # bytes: a rectangle so small may be as empty as it likes
_SMALL = 1 << 16  # cells: a rectangle so small is not worth making smaller
_SPARSE = 4  # cells there may be for each one in use and window a tuple is in
_WINDOWS = 16  # windows a tuple at most that count for that
_TURNS = 4
_FAR = 1 << 62  # panes; no extent reaches so far


class PaneRectangle:
    """Room for the panes ``low`` to ``high`` of ``groups`` groups; a window has ``length``, a slide ``step`` of them.

    ``used``: how many cells have tuples.  ``turns`` int64 (4, groups): where the stacks of each group are
    (``operators/kernels/panes.py``).  ``swept``: cells without tuples may have any state.
    """

    def __init__(self, parts: Sequence[Part], step: int, length: int) -> None:
        self._parts = parts
        self.step, self.length = step, length
        self.low, self.high = 0, -1
        self.used = 0
        self.states = PaneStates(parts, 0)
        self._allot(0, 0)

    def _allot(self, room: int, groups: int) -> None:
        """Make an empty rectangle; zeros that are not written to take no memory."""
        self.room, self.groups = room, groups
        self.turns = np.full((_TURNS, groups), NEVER)
        self.turns[3] = 0
        self.states = PaneStates(self._parts, (room + 1) * groups, self.states)
        self.swept = False

    @property
    def area(self) -> int:
        """How many cells there are, used or not."""
        return self.room * self.groups

    @property
    def cell_bytes(self) -> int:
        """Bytes of a group's pane."""
        return self.states.cell_bytes

    @property
    def nbytes(self) -> int:
        """Bytes of all cells and backs, in use or not."""
        return self.states.nbytes + int(self.turns.nbytes)

    @property
    def back_bytes(self) -> int:
        """Bytes of a group beside its panes: its back, and where its stacks are."""
        return self.states.cell_bytes + 8 * _TURNS

    @property
    def geometry(self) -> Geometry:
        """The measures, for kernels."""
        return Geometry(self.step, self.length, self.low, self.high, self.room - 1, self.groups)

    def cells(self, panes: Integers, slots: Integers) -> Integers:
        """Return the cells of slots below ``groups`` in panes from ``low`` to ``high``."""
        found: Integers = (panes & (self.room - 1)) * self.groups + slots
        return found

    def place_of(self, cell: int) -> tuple[int, int]:
        """Return the pane and the slot of a cell."""
        at, slot = divmod(cell, self.groups)
        return self.low + ((at - self.low) & (self.room - 1)), slot

    def admit(self, panes: Integers, reach: tuple[int, int], groups: int, needed: int) -> None:
        """Make room for tuples of ``panes``, all within ``reach``, or else for most, as far as it is worth it.

        There are ``groups`` groups; panes below ``needed`` no window needs any more.  O(cells that are new).
        """
        if self.used:
            self.low = max(self.low, needed)
        kept = (self.low, self.high) if self.used else None
        low, high = reach
        highest = max(high, self.high if self.used else low)
        if not self._grow(low, high, groups, panes.size):
            low, high = map(int, np.sort(panes)[[panes.size // 50, -1 - panes.size // 50]])
            if not self._grow(low, high, groups, panes.size):
                self.low = max(min(low, self.low), self.high - self.room + 1) if self.used else low
        self.high = min(highest, self.low + self.room - 1)
        self._clean(kept)

    def rename(self, slots: Integers, groups: int) -> None:
        """Give group ``g`` the slot ``slots[g]``, -1 for none; there are ``groups`` then."""
        if self.used:
            self._move(self.room, groups, slots[: self.groups])
        else:
            self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.used = 0
        self._allot(0, 0)

    def save(self) -> dict[str, Any]:
        """Return everything for a snapshot: which cells have tuples, a bit each, and their columns."""
        _, panes, slots = self._in_use()
        held = np.zeros((self.high - self.low + 1 if self.used else 0, self.groups), np.bool_)
        held[panes - self.low, slots] = True
        panes, slots = held.nonzero()
        backs = self.area + np.flatnonzero(self.turns[3])
        tuples, states = self.states.save(np.concatenate([self.cells(panes + self.low, slots), backs]))
        return {
            "low": self.low,
            "shape": np.array(held.shape),
            "held": np.packbits(held),
            "turns": narrow(np.maximum(self.turns[:3], self.low) - self.low),
            "backs": np.packbits(self.turns[3].astype(np.bool_)),
            "tuples": narrow(tuples),
            "states": [[narrow(column) for column in state] for state in states],
        }

    def load(self, saved: Saved) -> None:
        """Restore a snapshot."""
        panes, groups = saved.integers("shape", (2,), least=0, below=_FAR).tolist()
        held = saved.bits("held", panes * groups).reshape(panes, groups)
        turns = np.minimum(saved.integers("turns", (3, groups), least=0), panes)  # of who is asleep: anything
        backs = saved.bits("backs", groups)
        self.low = saved.integer("low", least=-_FAR, most=_FAR)
        self.high = self.low + panes - 1
        self.states = PaneStates(self._parts, 0)
        self._allot(_power(panes), groups)
        self.turns[:3] = np.where(turns[0] > 0, turns + self.low, NEVER)  # 0: there is no front
        self.turns[3] = backs
        at, slots = held.nonzero()
        self.used = slots.size
        self.states.load(
            np.concatenate([self.cells(at + self.low, slots), self.area + np.flatnonzero(backs)]), saved
        )

    def _grow(self, low: int, high: int, groups: int, rows: int) -> bool:
        if self.used:
            low, high = min(low, self.low), max(high, self.high)
        room, groups = high - low + 1, max(groups, self.groups)
        if room > self.room or groups > self.groups:
            windows = min(-(-self.length // self.step), _WINDOWS)
            if room * groups > max(_FLOOR // self.cell_bytes, _SPARSE * windows * (self.used + rows)):
                return False
            self._move(max(_power(room), self.room), groups, np.arange(self.groups))
        elif self.room > 8 * _power(room) and self.area > _SMALL:
            self._move(_power(room), groups, np.arange(self.groups))
        self.low = low
        return True

    def _move(self, room: int, groups: int, slots: Integers) -> None:
        """Move everything to a rectangle of other measures; group ``g`` gets slot ``slots[g]``, -1: none."""
        cells, panes, of = self._in_use()
        states, turns, backs = self.states, self.turns, self.area
        old = np.flatnonzero(slots >= 0)
        self._allot(room, groups)
        self.turns[:, slots[old]] = turns[:, old]
        self.states.copy(self.cells(panes, slots[of]), states, cells)
        self.states.copy(self.area + slots[old], states, backs + old)

    def _in_use(self) -> tuple[Integers, Integers, Integers]:
        """Return the cells that have tuples, with their panes and slots."""
        cells, panes, slots = np.empty((3, self.used), np.int64)
        found = used(self.geometry, self.states.tuples, cells, panes, slots) if self.used else 0
        return cells[:found], panes[:found], slots[:found]

    def _clean(self, kept: tuple[int, int] | None) -> None:
        """Empty the panes that are new, which all are but those from ``kept[0]`` to ``kept[1]``.

        Writing row by row, right before tuples come to places in it, also brings the row into the cache: each
        place by itself would be waited for.
        """
        if self.swept:
            low, high = kept or (self.high + 1, self.high)
            self._empty(self.low, low)
            self._empty(high + 1, self.high + 1)

    def _empty(self, first: int, stop: int) -> None:
        """Empty the panes from ``first`` to ``stop`` (exclusive), at most all there is room for."""
        if first >= stop:
            return
        start = first & (self.room - 1)
        behind = min(start + stop - first, self.room)
        self.states.reset(slice(start * self.groups, behind * self.groups))
        if (rest := start + stop - first - behind) > 0:
            self.states.reset(slice(0, rest * self.groups))


def _power(size: int) -> int:
    """Return the least power of two that is not less, 0 for 0."""
    return 1 << (size - 1).bit_length() if size else 0
