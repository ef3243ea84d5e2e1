"""Slicing: which definitions of windows share slices, and how long those are.

A slice is the time between neighbouring starts or ends of windows of any of some definitions: its length
divides all their ranges, slides, and distances of origins.  So each window is a whole number of slices.
Definitions share slices as long as these do not become far finer than their own windows ask for.

Source: Krishnamurthy, Wu, Franklin, On-the-fly sharing, SIGMOD 2006; Traub et al., Efficient window aggregation
with general stream slicing, EDBT 2019 (Scotty).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.operators.kernels.slices import needed
from oop_engine.operators.windows import Extents

__all__ = ["Slicing", "shared"]

Integers = NDArray[np.int64]

_LONG = 4096  # slices of a window
_FINE = 16  # slices there may be for each window edge


@dataclass(frozen=True)
class _Slices(Extents):
    """Slices as windows side by side, of times with room for the windows made of them."""

    margin: int = 0

    @cached_property
    def safe(self) -> tuple[int, int]:
        """The least and the largest time for which extents of the windows made of slices fit 64 bits."""
        return NEVER + 1 + self.margin, FOREVER - 1 - self.margin


class Slicing:
    """Definitions ``which`` (numbers) of ``extents``, in slices that they share.

    ``shape`` int64 (4, definitions), the shortest windows first: step and length of each in slices, the slice
    before which window -1 ends, and its number.  Window ``w`` ends before slice ``offset + (w + 1) * step``.
    ``base``: the slices themselves, as windows side by side.  ``gaps``: whether slices may be in no window.
    ``rate``: how many windows end in a slice, on the average.
    """

    def __init__(self, extents: Sequence[Any], which: Sequence[int]) -> None:
        some = sorted(which, key=lambda number: _range(extents[number]))
        self.length = _length([extents[number] for number in some])
        self.origin = extents[some[0]].origin % self.length
        lengths = [(extents[n].slide, _range(extents[n]), extents[n].origin - self.origin) for n in some]
        self.shape = np.vstack([np.array(lengths).T // self.length, some])
        margins = (
            _range(one) + 2 * one.slide + abs(one.origin) for one in (extents[number] for number in some)
        )
        self.base = _Slices(self.length, self.length, self.origin, margin=max(margins))
        self.rate = float((1 / self.shape[0]).sum())
        self.gaps = bool((self.shape[1] < self.shape[0]).all())

    @property
    def longest(self) -> int:
        """How many slices the longest window has."""
        return int(self.shape[1, -1])

    def time(self, slices: Integers) -> Integers:
        """Return where slices begin."""
        begin: Integers = self.origin + slices * self.length
        return begin

    def cut(self, bound: int) -> int:
        """Return the first slice that is not over when no later tuple is below ``bound``; sentinels stay."""
        return (bound - self.origin) // self.length if NEVER < bound < FOREVER else bound

    def needed(self, cuts: Integers) -> Integers:
        """Return the first slice of any window that ends behind each of ``cuts``; sentinels stay."""
        first = np.empty_like(cuts)
        needed(self.shape, cuts, first)
        return first

    def inside(self, times: Integers) -> NDArray[np.bool_]:
        """Tell which times are in a window of any definition."""
        at, inside = (times - self.origin) // self.length, np.zeros(times.size, np.bool_)
        for step, length, offset, _ in self.shape.T.tolist():
            inside |= (at - offset) % step >= step - length
        return inside

    def extent(self, d: int, wid: int) -> tuple[int, int]:
        """Return the start and the end of a window of the definition in place ``d`` of ``shape``."""
        step, length, offset, _ = self.shape[:, d].tolist()
        end = self.origin + (offset + (wid + 1) * step) * self.length
        return end - length * self.length, end

    def window(self, at: int) -> tuple[int, int]:
        """Return the start and the end of a window that has the slice ``at``, which is in some."""
        wids = (at - self.shape[2]) // self.shape[0]
        step, length, offset, _ = self.shape
        found = int(np.argmax(offset + (wids + 1) * step - length <= at))
        return self.extent(found, int(wids[found]))


def shared(extents: Sequence[Any], which: Sequence[int]) -> list[Slicing]:
    """Return the slicings of ``which`` of some definitions, grids with a range: each goes into the first that suits it.

    >>> [s.shape[3].tolist() for s in shared([Extents(60, 60, 0), Extents(61, 61, 0), Extents(90, 30, 0)], range(3))]
    [[0, 2], [1]]
    """
    together: list[_Together] = []
    for number in which:
        if not any(some.take(number, extents[number]) for some in together):
            together.append(_Together(number, extents[number]))
    return [Slicing(extents, some.which) for some in together]


class _Together:
    """Definitions ``which`` share slices: their common divisor, the longest window, and edges a unit of time."""

    def __init__(self, number: int, one: Extents) -> None:
        self.which, self._origin = [number], one.origin
        self._length, self._longest, self._edges = gcd(one.slide, _range(one)), _range(one), _edges(one)

    def take(self, number: int, one: Extents) -> bool:
        """Take another one, unless slices became much finer than windows ask for.  O(1)."""
        length = gcd(self._length, one.origin - self._origin, one.slide, _range(one))
        longest, edges = max(self._longest, _range(one)), self._edges + _edges(one)
        if longest > _LONG * length or 1 / length > _FINE * edges:
            return False
        self.which.append(number)
        self._length, self._longest, self._edges = length, longest, edges
        return True


def _edges(one: Extents) -> float:
    return (1 if _range(one) % one.slide == 0 else 2) / one.slide


def _length(some: Sequence[Extents]) -> int:
    apart = (one.origin - some[0].origin for one in some)
    return gcd(*apart, *(one.slide for one in some), *map(_range, some))


def _range(extents: Extents) -> int:
    assert extents.range is not None
    return extents.range
