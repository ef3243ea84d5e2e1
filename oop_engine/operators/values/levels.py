"""Levels: rows that come and go, of which some are looked up by a column, without a look at the others.

Log-structured: a level is rows as they came, and at least twice as long as the one behind it.  So a row is copied
O(log rows) times.  A level is never changed, but rows of it are marked as dropped; it is made anew without them once
they are most of it.
"""

# Layout      Levels, oldest first.  The place of a row is its number, counted through the rows of all levels, dropped
#             or not; it holds until the next `put` or `drop`.
# Invariant   An order of a level is made when rows are first looked up by its column; it has all rows of the level.
# Not obvious Levels are joined when rows are looked up, or when they are many: several at a time, and not those that
#             are taken out at once.

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import FOREVER
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.values.columns import Integers, looked_up, spread
from oop_engine.system.knobs import knob

__all__ = ["Levels"]

_MANY = knob(__name__, "_MANY", 32)  # levels that are joined, though no row is looked up
_SHARE = knob(__name__, "_SHARE", 4)  # rows of a level for each value that is looked up: fewer need no order
_FEW = knob(__name__, "_FEW", 64)  # rows of a level that may be marked as dropped, however few there are


class _Rows(Protocol):
    """Columns side by side."""

    @property
    def size(self) -> int:
        """How many rows there are."""

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""

    def take(self, rows: Any, /) -> Any:
        """Return some of the rows, int64 (n,)."""

    def joined(self, *others: Any) -> Any:
        """Return these rows and those of others behind them."""


R = TypeVar("R", bound=_Rows)


class _Order:
    """The rows of a level in the order of ``values``; those before ``_first`` have been dropped."""

    def __init__(self, values: NDArray[Any], alive: NDArray[np.bool_]) -> None:
        self._alive, self._first, self.nbytes = alive, 0, 0
        self._rows: Integers | None = None  # None: as they came
        if not (values[1:] >= values[:-1]).all():
            self._rows = time_order(values.astype(np.int64))
            values = values[self._rows]
            self.nbytes = self._rows.nbytes + values.nbytes
        self._values = values

    @property
    def is_arrival(self) -> bool:
        """Whether the rows came in this order."""
        return self._rows is None

    def _at(self, begin: int, end: int) -> Integers:
        rows: Integers = (
            np.arange(begin, min(end, self._values.size)) if self._rows is None else self._rows[begin:end]
        )
        return rows

    def equal(self, wanted: Integers) -> tuple[Integers, Integers]:
        """Return the rows with the values ``wanted``, behind which of these each has.  O(log rows) each."""
        wanted = wanted.astype(self._values.dtype, copy=False)  # else NumPy's search would copy all values
        low = self._values.searchsorted(wanted)
        which, at = spread(low, self._values.searchsorted(wanted, side="right") - low)
        rows = at if self._rows is None else self._rows[at]
        alive = self._alive[rows]
        return which[alive], rows[alive]

    def until(self, bound: int) -> Integers:
        """Return the rows with values of at most ``bound``.  O(rows found + log rows), and once O(rows dropped)."""
        stop = int(self._values.searchsorted(bound, side="right"))
        rows = self._at(self._first, stop)
        alive: Integers = np.flatnonzero(self._alive[rows])
        self._first = max(self._first, self._first + int(alive[0]) if alive.size else stop)
        return rows[alive]

    def least(self) -> int:
        """Return the least value; ``FOREVER``: no row is there.  Amortised O(1)."""
        step = 1
        while self._first < self._values.size:
            alive = np.flatnonzero(self._alive[self._at(self._first, self._first + step)])
            if alive.size:
                self._first += int(alive[0])
                return int(self._values[self._first])
            self._first, step = min(self._first + step, self._values.size), 2 * step
        return FOREVER


class _Level(Generic[R]):
    """Rows; ``alive``: which of them were not dropped, ``left``: how many."""

    def __init__(self, rows: R) -> None:
        self.rows, self.size = rows, rows.size
        self.left, self.alive = self.size, np.empty(self.size, np.bool_)
        self.alive.fill(True)
        self.orders = dict[str, _Order]()

    @cached_property
    def _row_bytes(self) -> int:
        return self.rows.nbytes

    @property
    def nbytes(self) -> int:
        return int(self._row_bytes + self.alive.nbytes + sum(map(attrgetter("nbytes"), self.orders.values())))

    def rest(self) -> R:
        """Return the rows that were not dropped."""
        rows: R = self.rows if self.left == self.size else self.rows.take(np.flatnonzero(self.alive))
        return rows


class Levels(Generic[R]):
    """Rows like ``none``, which has none, ``count`` of them; ``column`` returns one of their columns by its name."""

    def __init__(self, none: R, column: Callable[[R, str], NDArray[Any]] = getattr) -> None:
        self.none, self._column = none, column
        self.clear()

    def __len__(self) -> int:
        return self.count

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, of those among them that were dropped, and of orders."""
        return sum(map(attrgetter("nbytes"), self._levels))

    def clear(self) -> None:
        """Have no rows."""
        self._levels: list[_Level[R]] = []
        self._settled, self.count = True, 0

    def put(self, rows: R) -> None:
        """Add rows.  O(log rows) each, amortised."""
        level = _Level(rows)
        if not level.size:
            return
        self._levels.append(level)
        self._settled, self.count = False, self.count + level.size
        if len(self._levels) > _MANY:
            self._settle()

    def all(self) -> R:
        """Return all rows, in the order in which they came; places are theirs.  O(rows)."""
        if not self._levels:
            return self.none
        if len(self._levels) > 1 or self._levels[0].left < self._levels[0].size:
            self._levels = [self._joined(self._levels)]
        return self._levels[0].rows

    def parts(self) -> list[R]:
        """Return all rows, level by level."""
        return [level.rest() for level in self._levels]

    def take_all(self) -> R:
        """Remove and return all rows.  O(rows)."""
        rows = self.all()
        self.clear()
        return rows

    def places(self, column: str, wanted: Integers) -> Integers:
        """Return the places of the rows with one of the values ``wanted``, ascending.  O(log rows) each, amortised."""
        wanted = np.sort(wanted)  # else each search begins anew, far from the one before
        return self._placed(lambda level: self._with(level, column, wanted))

    def until(self, column: str, bound: int) -> Integers:
        """Return the places of the rows with a value up to ``bound``, ascending.  O(these + log rows), amortised."""
        return self._placed(lambda level: np.sort(self._order(level, column).until(bound)))

    def take(self, places: Integers) -> R:
        """Return the rows at some places, ascending.  O(these)."""
        first, parts = 0, list[R]()
        for level in self._levels:
            low, high = places.searchsorted([first, first + level.size])
            if high > low:
                all_of_it = high - low == level.size
                parts.append(level.rows if all_of_it else level.rows.take(places[low:high] - first))
            first += level.size
        return parts[0].joined(*parts[1:]) if parts else self.none

    def drop(self, places: Integers) -> None:
        """Drop the rows at some places, ascending, all of which are there.  O(these), amortised."""
        first, levels = 0, self._levels
        self.count -= places.size
        for number, level in enumerate(levels if places.size else ()):
            low, high = places.searchsorted([first, first + level.size])
            first += level.size
            level.alive[places[low:high] - first + level.size] = False
            level.left -= int(high - low)
            if level.size - level.left > level.left + _FEW or not level.left:
                levels[number], self._settled = _Level(level.rest()), False
        self._levels = [level for level in levels if level.left]

    def take_out(self, column: str, wanted: Integers) -> R:
        """Remove and return the rows with one of the values ``wanted``, as they came.  Costs as ``places``."""
        places = self.places(column, wanted)
        rows = self.take(places)
        self.drop(places)
        return rows

    def least(self, column: str) -> int:
        """Return the least value of all rows; ``FOREVER``: there is none.  Amortised O(levels)."""
        self._settle()
        return min((self._order(level, column).least() for level in self._levels), default=FOREVER)

    def least_of(self, column: str, wanted: Integers, side: str) -> Integers:
        """Return the least ``side`` of the rows with each value of another column, int64 (n,); ``FOREVER``: none has.

        Amortised O(log rows) a value, and O(rows with these).
        """
        self._settle()
        lowest = np.full(wanted.size, FOREVER)
        for level in self._levels:
            which, rows = self._order(level, column).equal(wanted)
            np.minimum.at(lowest, which, self._column(level.rows, side)[rows])
        return lowest

    def _placed(self, rows_of: Callable[[_Level[R]], Integers]) -> Integers:
        """Return the places of rows of each level."""
        self._settle()
        rows, first = [np.empty(0, np.int64)], 0
        for level in self._levels:
            rows.append(rows_of(level) + first)
            first += level.size
        return np.concatenate(rows)

    def _with(self, level: _Level[R], column: str, wanted: Integers) -> Integers:
        """Return the rows of a level with one of some values, ascending."""
        if column not in level.orders and level.size < _SHARE * wanted.size:
            is_one: NDArray[np.bool_] = looked_up(self._column(level.rows, column), wanted, True, False)
            return np.flatnonzero(level.alive & is_one)
        order = self._order(level, column)
        rows = order.equal(wanted)[1]
        return rows if order.is_arrival else np.sort(rows)

    def _order(self, level: _Level[R], column: str) -> _Order:
        if column not in level.orders:
            level.orders[column] = _Order(self._column(level.rows, column), level.alive)
        return level.orders[column]

    def _settle(self) -> None:
        """Join levels until each is at least twice as long as the one behind it."""
        if self._settled:
            return
        together = list[list[_Level[R]]]()
        for level in self._levels:
            together.append([level])
            while len(together) > 1 and _left(together[-2]) < 2 * _left(together[-1]):
                together[-2:] = [together[-2] + together[-1]]
        self._levels = [self._joined(levels) if len(levels) > 1 else levels[0] for levels in together]
        self._settled = True

    def _joined(self, levels: list[_Level[R]]) -> _Level[R]:
        """Return levels as one, without the rows that were dropped."""
        first, *more = (level.rest() for level in levels)
        return _Level(first.joined(*more) if more else first)


def _left(levels: list[_Level[Any]]) -> int:
    return sum(level.left for level in levels)
