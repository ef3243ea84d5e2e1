"""Window states: states of windows on their way from a store to results, in columns.

Spans are the windows that groups have open in stores of grids: the lowest open and the highest one, int64 (groups, 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.kernels.partials import places_among
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.values.columns import Integers, joined, rows_of
from oop_engine.system.knobs import knob

__all__ = [
    "WindowOverflowError",
    "WindowStates",
    "as_slice",
    "narrow",
]

_NONE = np.empty(0, np.int64)
_FEW = knob(__name__, "_FEW", 1 << 10)  # windows that tell how far apart windows are


class WindowOverflowError(Exception):
    """A checked sum of ``column`` does not fit 64 bits in the window ``[start, end)`` of group ``slot``."""

    def __init__(self, column: str | None, slot: int, start: int, end: int) -> None:
        super().__init__(column, slot, start, end)
        self.column, self.slot, self.start, self.end = column, int(slot), int(start), int(end)


class WindowStates(NamedTuple):
    """Windows: ``slots`` of their groups and where they end, int64 (n,), and columns (n,) of each part.

    ``number``: of which definition each is, int64 (n,), or one for all.  ``starts`` int64 (n,); None: a
    definition's range before the end.  ``in_order``: known to be by end, then definition, then group.
    ``more``: columns (n,) that results have before their extents.
    """

    slots: Integers
    ends: Integers
    states: list[Arrays]
    number: Integers | int = 0
    starts: Integers | None = None
    in_order: bool = False
    more: tuple[pa.Array, ...] = ()

    def take(self, rows: Integers | slice) -> WindowStates:
        """Return some of them."""
        states = rows_of(self.states, rows)
        number = self.number if isinstance(self.number, int) else self.number[rows]
        starts = None if self.starts is None else self.starts[rows]
        at = rows if isinstance(rows, slice) or not self.more else pa.array(rows)
        more = tuple(one[at] if isinstance(at, slice) else one.take(at) for one in self.more)
        return WindowStates(self.slots[rows], self.ends[rows], states, number, starts, more=more)

    @classmethod
    def ordered(cls, found: Sequence[WindowStates], *, ascending: bool = False) -> WindowStates:
        """Return all of them by end, then definition, then group; ``found`` is not empty.

        ``ascending``: all are in order, and their groups are behind those of the one before.
        """
        together = found[0] if len(found) == 1 else cls.joined(found)
        if together.in_order or together.ends.size < 2:
            return together
        before, ends, slots = together.ends[:-1], together.ends[1:], together.slots
        if isinstance(together.number, int):
            later = ends > before
            if later.all() or (later | ((ends == before) & (slots[1:] >= slots[:-1]))).all():
                return together._replace(in_order=True)
        return together.take(together._order(ascending=ascending))._replace(in_order=True)

    @classmethod
    def joined(cls, found: Sequence[WindowStates]) -> WindowStates:
        """Return all of them, those of the first first; all have ``starts``, or none has."""
        states = joined([some.states for some in found])
        slots, ends = (
            np.concatenate([one.slots for one in found]),
            np.concatenate([one.ends for one in found]),
        )
        number = found[0].number
        if not all(isinstance(some.number, int) and some.number == number for some in found):
            number = np.concatenate([np.broadcast_to(some.number, some.slots.size) for some in found])
        starts = None
        if given := [some.starts for some in found if some.starts is not None]:
            assert len(given) == len(found)
            starts = np.concatenate(given)
        more = tuple(map(pa.concat_arrays, zip(*(some.more for some in found), strict=True)))
        return cls(slots, ends, states, number, starts, more=more)

    def places_of(self, some: WindowStates) -> Integers:
        """Return where ``some`` of these are, by definition, group and end; both are in order."""
        at = np.empty(some.slots.size, np.int64)
        mine, its = (
            (one.slots, _NONE if isinstance(one.number, int) else one.number, one.ends)
            for one in (self, some)
        )
        places_among(*mine, its, at)
        return at

    def _order(self, *, ascending: bool) -> Integers:
        """Return the order, by radix.  ``ascending``: those of a window are by slot."""
        slots, ends = self.slots, self.ends
        least, definitions = int(ends.min()), int(np.max(self.number)) + 1
        apart = int(np.gcd.reduce(ends[:: max(ends.size // _FEW, 1)] - least)) or 1
        rank = ends - least
        if apart > 1:
            divided, rest = np.divmod(rank, apart)
            rank = rank if rest.any() else divided
        if definitions * (float(rank.max()) + 1) > FOREVER:
            return np.lexsort((slots, np.broadcast_to(self.number, slots.shape), ends))
        windows = rank * definitions + self.number
        if ascending:
            by_window: Integers = time_order(windows)
            return by_window
        by_slot = time_order(slots)
        order: Integers = by_slot[time_order(windows[by_slot])]
        return order


def narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Return integers in the least type that holds them all; others as they are.

    >>> narrow(np.array([3, -200])).dtype
    dtype('int16')
    """
    if column.dtype.kind != "i" or not column.size:
        return column
    least, most = int(column.min()), int(column.max())
    kinds = (np.dtype(name) for name in ("i1", "i2", "i4"))
    fitting = (k for k in kinds if np.iinfo(k).min <= least and most <= np.iinfo(k).max)
    return column.astype(next(fitting, column.dtype))


def as_slice(places: Integers) -> Integers | slice:
    """Return the same places as a slice where they are one after the other, as of many groups they mostly are."""
    if not places.size or places[-1] - places[0] != places.size - 1 or not (places[1:] > places[:-1]).all():
        return places
    return slice(int(places[0]), int(places[-1]) + 1)
