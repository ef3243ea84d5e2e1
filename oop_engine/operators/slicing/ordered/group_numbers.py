"""Group numbers: columns of the ordered store by group, beside its tuples and slices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.slicing.ordered.slice_table import SliceRows
from oop_engine.operators.slicing.ordered.bounds import Bounds
from oop_engine.operators.slicing.tagger import ranks
from oop_engine.operators.values.columns import Integers, begins_of, filled_up, looked_up
from oop_engine.operators.windows.folding import FinalTuples, SliceView

__all__ = ["GroupNumbers"]

_BEGUN = np.array([[0], [NEVER], [0]])
_NO_SLOTS = np.empty(0, np.int64)


class GroupNumbers:
    """Three integers of each group (slots,), or one set ``of_stream`` (1,), and which groups are living.

    The integers are how many tuples were final (``done``), the number of the definition (``cut``), and how many came.
    A group is living if it has tuples or slices, and where the definition ``counts``, if it has counted one.
    """

    def __init__(self, *, of_stream: bool, counts: bool) -> None:
        self._of_stream, self._counts = of_stream, counts and not of_stream
        self._take(np.empty((3, 0), np.int64))
        self._living = np.zeros(0, np.bool_)  # (slots,)
        self.groups = self.alive = 0
        self.reserve(1)

    @property
    def nbytes(self) -> int:
        """Bytes, with the room there is for more."""
        return self._numbers.nbytes + self._living.nbytes

    def _take(self, numbers: Integers) -> None:
        """Let these be the integers."""
        self._numbers = numbers
        self.done, self.cut, self._came = numbers

    def reserve(self, groups: int) -> None:
        """Make room for so many groups; O(1) amortised each."""
        self.groups = max(self.groups, groups)
        more = 0 if self._of_stream and self._numbers.size else groups - self._numbers.shape[1]
        if more > 0:
            more = max(more, self._numbers.shape[1] // 2)
            self._take(np.concatenate([self._numbers, _BEGUN.repeat(more, axis=1)], axis=1))
        if groups > (size := self._living.size):
            self._living = filled_up(self._living, max(groups, 3 * size // 2), False)

    def view(
        self, table: SliceRows, bounds: Bounds, final: FinalTuples | None = None, of: Integers = _NO_SLOTS,
        tagged: Integers | None = None,
    ) -> tuple[SliceView, Integers]:  # fmt: skip
        """Return slices as definitions see them, and the slot of each group.

        ``of``: the group of each of those of ``final``; ``tagged``: groups with a tuple at their bound that has a tag.
        """
        starts = begins_of(table.slots)
        slots = table.slots[starts]
        at_bound = np.zeros(slots.size, np.bool_) if tagged is None else looked_up(slots, tagged, True, False)
        if self._of_stream and tagged is not None:
            at_bound[:] = tagged.size > 0
        found = slots.searchsorted(of)
        found[np.concatenate([slots, [-1]])[found] != of] = -1
        own = bounds.of(slots), self.done[slots], self.cut[slots], at_bound
        begins = np.concatenate([starts, [table.slots.size]])
        columns = begins, table.places, table.first, table.last, *own
        return SliceView(*columns, final, found, table.kept), slots

    def number(self, slots: Integers) -> Integers:
        """Count tuples as they come; return how many of its group came before each."""
        numbers: Integers = self._came[slots] + ranks(slots)
        np.maximum.at(self._came, slots, numbers + 1)
        return numbers

    def clear(self, slots: Integers) -> None:
        """Let some groups begin anew."""
        self._numbers[:, slots[:1] if self._of_stream else slots] = _BEGUN

    def begin(self, slots: Integers) -> None:
        """Let the groups of tuples that came be living."""
        if (new := slots[~self._living[slots]]).size:
            new = occurring(new, self.groups)
            self._living[new] = True
            self.alive += new.size

    def revive(self, slots: Integers, living: NDArray[np.bool_]) -> None:
        """Learn which of some different groups have tuples or slices."""
        if self._counts:
            living = living | (self.done[slots] > 0) | (self._came[slots] > 0)
        self.alive += int(np.count_nonzero(living)) - int(np.count_nonzero(self._living[slots]))
        self._living[slots] = living

    def living(self, groups: int) -> NDArray[np.bool_]:
        return filled_up(self._living, groups, False)[:groups].copy()

    def rename(self, kept: Integers, groups: int) -> None:
        """Let only the groups ``kept`` of so many stay."""
        self.reserve(groups)
        if not self._of_stream:
            self._take(self._numbers[:, kept])
        self._living, self.groups = self._living[kept], kept.size
        self.alive = int(np.count_nonzero(self._living))
        self.reserve(1)

    def copied(self, slots: Integers) -> GroupNumbers:
        """Return the numbers of some groups as those of the groups 0, 1, ..., of which none is living."""
        other = GroupNumbers(of_stream=self._of_stream, counts=self._counts)
        other._take(self._numbers.copy() if self._of_stream else self._numbers[:, slots])
        other.reserve(max(slots.size, 1))
        return other

    def save(self) -> Integers:
        return self._numbers[:, : 1 if self._of_stream else max(self.groups, 1)]

    def load(self, saved: Saved, name: str, groups: int) -> None:
        """Take the numbers of so many groups, of which none is living."""
        self._take(saved.integers(name, (3, 1 if self._of_stream else max(groups, 1))))
        self._living, self.groups, self.alive = np.zeros(0, np.bool_), 0, 0
        self.reserve(max(groups, 1))
