"""Slicing: which definitions of windows share slices, and where these begin.

A slice is the time between neighbouring starts or ends of windows of some definitions, which the unit divides: the
common divisor of all their ranges, slides, and distances of origins.  So each window is a whole number of slices.
Mostly slices are units.  Where windows begin and end at few of them, slices are as the edges lie, which come again
after the common multiple of all slides: those of 3 and 5 make 7 slices in 15, not 15.  Definitions share slices as
long as these do not become far finer than their own windows ask for.

Source: Krishnamurthy, Wu, Franklin, On-the-fly sharing, SIGMOD 2006; Traub et al., Efficient window aggregation
with general stream slicing, EDBT 2019 (Scotty).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.kernels.slices import (
    LENGTH,
    OFFSET,
    SLICE_UNIT,
    STEP,
    UNIT_SLICE,
    UNITS,
    needed,
    slice_at,
    slices_at,
)
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob

__all__ = ["Slicing", "shared"]

_LONG = knob(__name__, "_LONG", 4096)  # slices of a window
_FINE = knob(__name__, "_FINE", 16)  # slices there may be for each window edge
_PERIOD = knob(__name__, "_PERIOD", 1 << 16)  # units after which the edges come again, at most
_OFFSET = np.array([[0], [0], [1], [0]])  # of ``Slicing.shape``


@dataclass(frozen=True)
class _Slices(Extents):
    """Slices as windows side by side, of times with room for the windows made of them."""

    margin: int = 0

    @cached_property
    def safe(self) -> tuple[int, int]:
        """The least and the largest time for which extents of the windows made of slices fit 64 bits."""
        return NEVER + 1 + self.margin, FOREVER - 1 - self.margin


@dataclass(frozen=True, eq=False)
class _Uneven(_Slices):
    """Slices between edges; ``slide`` is the unit.  ``grid`` as of ``kernels/slices.py``."""

    grid: Integers = field(default_factory=UNITS.copy)

    def places(self, offsets: Any) -> Any:
        units = offsets // self.slide
        if not isinstance(units, np.ndarray):
            return slice_at(self.grid, int(units))
        at, rounds = np.empty_like(units), units // self.grid.shape[1]  # sooner than in a loop
        slices_at(self.grid, units, rounds, at)
        return at

    def units(self, slices: Any) -> Any:
        """Return the units with which slices begin."""
        each = self.grid[UNIT_SLICE, -1] + 1
        return slices // each * self.grid.shape[1] + self.grid[SLICE_UNIT, slices % each]

    def wids(self, times: Integers) -> tuple[Integers, Integers]:
        if times.size:
            self.check(int(times.min()), int(times.max()))
        at = self.places(times - self.origin)
        return at, at

    def extent(self, wids: Integers) -> tuple[Integers, Integers]:
        start, end = (self.origin + self.units(some) * self.slide for some in (wids, wids + 1))
        return start, end

    def closed_by(self, bounds: Integers | int) -> Integers:
        given = np.asarray(bounds, np.int64)
        cuts = self.places(np.clip(given, *self.safe) - self.origin)
        return np.where((given == NEVER) | (given == FOREVER), given, cuts)


class Slicing:
    """Definitions ``which`` (numbers) of ``extents``, in slices that they share.

    ``shape`` int64 (4, definitions), the shortest windows first: step and length of each in units, the unit
    before which window -1 ends, and its number.  Window ``w`` ends before unit ``offset + (w + 1) * step``.
    ``unit``: their length; ``period``: how many until the edges come again (1: slices are units), with so many
    ``slices``; ``grid``: which unit is in which slice, as of ``kernels/slices.py``.
    ``base``: the slices themselves, as windows side by side.  ``gaps``: whether slices may be in no window.
    ``density``: how many windows end in a unit of time, on the average, ``rate``: in a slice.
    ``fewest``, ``longest``: slices of a window.
    """

    def __init__(self, extents: Sequence[Any], which: Sequence[int]) -> None:
        numbers = sorted(which, key=lambda number: _range(extents[number]))
        some = [extents[number] for number in numbers]
        self.unit = _unit(some)
        self.origin = some[0].origin % self.unit
        lengths = [(one.slide, _range(one), one.origin - self.origin) for one in some]
        self.shape = np.ascontiguousarray(np.vstack([np.array(lengths).T // self.unit, numbers]))
        margin = max(_range(one) + 2 * one.slide + abs(one.origin) for one in some)
        self.grid = _grid(self.shape)
        if self.grid.shape[1] > 1:  # the edges come again from an end of a window on
            self.origin, self.shape[OFFSET] = some[0].origin, self.shape[OFFSET] - self.shape[OFFSET, 0]
        self.period, self.slices = self.grid.shape[1], int(self.grid[UNIT_SLICE, -1]) + 1
        self.base = _Slices(self.unit, self.unit, self.origin, margin=margin)
        if self.period > 1:
            self.base = _Uneven(self.unit, self.unit, self.origin, margin=margin, grid=self.grid)
        self.density = float((1 / self.shape[STEP]).sum()) / self.unit
        self.rate = self.density * self.unit * self.period / self.slices
        self.gaps = bool((self.shape[LENGTH] < self.shape[STEP]).all())
        self.fewest, self.longest = self._sizes()

    def words(self, unit: str) -> str:
        """Return which slices they are; ``unit``: that of times."""
        whole = f"{self.period * self.unit} {unit}"
        return (
            f"{self.slices} slices in {whole}, from edge to edge,"
            if self.period > 1
            else f"slices of {whole}"
        )

    def check(self, saved: Saved) -> None:
        """Raise ``SnapshotError`` unless a snapshot is of these slices; one that does not say so is of units."""
        got = [saved.part("slices").integer(i) for i in range(2)] if "slices" in saved else [1, 1]
        if got != [self.period, self.slices]:
            msg = f"slices must be {self.slices} in {self.period} units; got {got[1]} in {got[0]}"
            raise SnapshotError(msg)

    def _sizes(self) -> tuple[int, int]:
        """Return how many slices the windows have, at least and at most."""
        if self.period == 1:
            return int(self.shape[LENGTH].min()), int(self.shape[LENGTH].max())
        sizes = list[int]()
        for step, length, offset, _ in self.shape.T.tolist():
            ends = offset + step * np.arange(self.period // step)
            size = self._places(ends) - self._places(ends - length)
            sizes += int(size.min()), int(size.max())
        return min(sizes), max(sizes)

    def _places(self, units: Integers) -> Integers:
        found: Integers = self.base.places(units * self.unit)
        return found

    def units(self, slices: Any) -> Any:
        """Return the units with which slices begin."""
        return self.base.units(slices) if isinstance(self.base, _Uneven) else slices

    def moment(self, units: Any) -> Any:
        """Return where units begin."""
        return self.origin + units * self.unit

    def time(self, slices: Any) -> Any:
        """Return where slices begin."""
        return self.moment(self.units(slices))

    def cut(self, bound: int) -> int:
        """Return the first slice that is not over when no later tuple is below ``bound``; sentinels stay."""
        return int(self.base.places(bound - self.origin)) if NEVER < bound < FOREVER else bound

    def needed(self, cuts: Integers) -> Integers:
        """Return the first slice of any window that ends behind each of ``cuts``; sentinels stay."""
        first = np.empty_like(cuts)
        needed(self.shape, self.grid, cuts, first)
        return first

    def inside(self, times: Integers) -> NDArray[np.bool_]:
        """Tell which times are in a window of any definition."""
        at, inside = (times - self.origin) // self.unit, np.zeros(times.size, np.bool_)
        for step, length, offset, _ in self.shape.T.tolist():
            inside |= (at - offset) % step >= step - length
        return inside

    def extent(self, d: int, unit: int) -> tuple[int, int]:
        """Return the start and the end of a window, before ``unit``, of the definition in place ``d`` of ``shape``."""
        end = self.moment(unit)
        return end - int(self.shape[LENGTH, d]) * self.unit, end

    def window(self, at: int) -> tuple[int, int]:
        """Return the start and the end of a window that has the slice ``at``, which is in some."""
        at = int(self.units(at))
        wids = (at - self.shape[OFFSET]) // self.shape[STEP]
        step, length, offset, _ = self.shape
        ends = offset + (wids + 1) * step
        found = int(np.argmax(ends - length <= at))
        return self.extent(found, int(ends[found]))


def shared(extents: Sequence[Any], which: Sequence[int]) -> list[Slicing]:
    """Return the slicings of ``which`` of some definitions, grids with a range: each goes into the first that suits it.

    >>> [s.shape[3].tolist() for s in shared([Extents(60, 60, 0), Extents(61, 61, 0), Extents(90, 30, 0)], range(3))]
    [[0, 1, 2]]
    >>> [s.shape[3].tolist() for s in shared([Extents(6000, 6000, 0), Extents(6001, 6001, 0)], range(2))]
    [[0], [1]]
    """
    together: list[_Together] = []
    for number in which:
        if not any(some.take(number, extents[number]) for some in together):
            together.append(_Together(number, extents[number]))
    return [Slicing(extents, some.which) for some in together]


class _Together:
    """Definitions ``which`` share slices: common divisor and multiple, the longest window, edges a unit of time."""

    def __init__(self, number: int, one: Extents) -> None:
        self.which, self._origin = [number], one.origin
        self._unit, self._longest, self._edges = gcd(one.slide, _range(one)), _range(one), _edges(one)
        self._period = one.slide

    def take(self, number: int, one: Extents) -> bool:
        """Take another one, unless slices became much finer than windows ask for.  O(1)."""
        unit = gcd(self._unit, one.origin - self._origin, one.slide, _range(one))
        longest, edges = max(self._longest, _range(one)), self._edges + _edges(one)
        period = min(lcm(self._period, one.slide), FOREVER)
        even = longest <= _LONG * unit and 1 / unit <= _FINE * edges
        if not even and not (_few(period // unit, edges * unit) and longest * edges <= _LONG):
            return False
        self.which.append(number)
        self._unit, self._longest, self._edges, self._period = unit, longest, edges, period
        return True


def _few(period: int, share: float) -> bool:
    """Tell whether slices are between edges: these come again soon, and are a ``share`` of the units below a half."""
    return 1 < period <= _PERIOD and share < 1 / 2


def _grid(shape: Integers) -> Integers:
    """Return which unit is in which slice, and with which unit a slice begins, int64 (2, period).

    Units are counted from the end of a window of the first definition on.  O(period + definitions).
    """
    period = 1
    for step in shape[STEP].tolist():
        period = lcm(period, step)
        if period > _PERIOD:
            return UNITS
    begins = np.zeros(period, np.bool_)
    for step, length, offset, _ in (shape - shape[OFFSET, 0] * _OFFSET).T.tolist():
        begins[offset % step :: step] = True
        begins[(offset - length) % step :: step] = True
    at = np.flatnonzero(begins)
    if not _few(period, at.size / period):
        return UNITS
    grid = np.zeros((2, period), np.int64)
    grid[UNIT_SLICE], grid[SLICE_UNIT, : at.size] = np.cumsum(begins) - 1, at
    return grid


def _edges(one: Extents) -> float:
    return (1 if _range(one) % one.slide == 0 else 2) / one.slide


def _unit(some: Sequence[Extents]) -> int:
    apart = (one.origin - some[0].origin for one in some)
    return gcd(*apart, *(one.slide for one in some), *map(_range, some))


def _range(extents: Extents) -> int:
    assert extents.range is not None
    return extents.range
