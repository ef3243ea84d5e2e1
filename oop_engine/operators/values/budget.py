"""Budget: how many tuples in one stay, so that no more than so many a second go on, by the arrival clock."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.saved import Saved

__all__ = ["Budget"]

_MOST = 1 << 31

Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


class Budget:
    """One tuple in ``one_in`` stays, a power of two times ``minimum`` that follows the rate of arrivals.

    A second begins with the number that would have let ``rows`` of the tuples of the second before through, and
    doubles it whenever ``rows`` have stayed.  So a second lets ``rows`` through for each doubling: at a steady rate
    about ``rows``, in a burst of twice the rate twice that.  By hashes: those that stay
    at one number stay at all that are less.

    >>> budget = Budget(rows=2, minimum=1, second=10)
    >>> budget.weights(np.arange(8, dtype=np.uint64), np.zeros(8, np.int64)).tolist()
    [1, 1, 2, 0, 2, 0, 0, 0]
    >>> budget.one_in, budget.weights(np.arange(5, dtype=np.uint64), np.full(5, 10)).tolist()
    (4, [4, 0, 0, 0, 4])
    """

    def __init__(self, rows: float, minimum: int, second: int) -> None:
        self._rows, self._least, self._second = rows, minimum, second
        self.one_in = self.most = minimum
        self._now: int | None = None  # the second
        self._came = self._stayed = 0  # in it; at this number

    def weights(self, hashes: Hashes, arrival: Integers) -> Integers:
        """Return the weight of each tuple, 0 if it is shed; O(tuples), and O(1) a second and a doubling."""
        weights = np.zeros(hashes.size, np.int64)
        seconds = arrival // self._second
        starts = np.flatnonzero(np.diff(seconds)) + 1
        for begin, stop in zip([0, *starts.tolist()], [*starts.tolist(), seconds.size], strict=True):
            if stop > begin:
                self._enter(int(seconds[begin]))
                self._came += stop - begin
                self._weigh(hashes[begin:stop], weights[begin:stop])
        return weights

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        rate = [self.one_in, self.most, self._came, self._stayed]
        return {"rate": rate, "now": self._now}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        rate = saved.part("rate")
        self.one_in, self.most, self._came, self._stayed = (
            rate.integer(i, least=int(i < 2)) for i in range(4)
        )
        self._now = None if saved["now"] is None else saved.integer("now")

    def _enter(self, second: int) -> None:
        if second == self._now:
            return
        before = self._came if self._now == second - 1 else 0
        self.one_in = self._least
        while before > self._rows * self.one_in and self._raise():
            pass
        self._now, self._came, self._stayed = second, 0, 0

    def _weigh(self, hashes: Hashes, weights: Integers) -> None:
        begin = 0
        while begin < hashes.size:
            stays = np.flatnonzero(hashes[begin:] % np.uint64(self.one_in) == 0)
            room = max(int(np.ceil(self._rows)) - self._stayed, 1)
            full = stays.size >= room and 2 * self.one_in <= _MOST
            stays = stays[:room] if full else stays
            weights[begin + stays] = self.one_in
            self._stayed += stays.size
            if not full:
                return
            begin += int(stays[-1]) + 1
            self._raise()
            self._stayed = 0

    def _raise(self) -> bool:
        if 2 * self.one_in > _MOST:
            return False
        self.one_in *= 2
        self.most = max(self.most, self.one_in)
        return True
