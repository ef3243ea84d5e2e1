"""Ticks: when the arrival clock is shown to the operators that want it.

At each multiple of a period that arrivals pass.  A silence of many periods is not counted through one by one: behind
its first 2,000 ticks they come a thousandth of the silence so far apart.  So a result of that time is at
most 0.1 % of the silence late, and a silence of a billion periods costs 15,000 ticks.  Its last tick always comes, so
which tuples are late does not depend on that.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["Ticks"]

_FINE = 1000


class Ticks:
    """The ticks of a clock of period ``every``, in units of the arrivals.

    ``due``: the next one; None before the clock was started.

    >>> ticks = Ticks(10)
    >>> ticks.start(3)
    >>> list(ticks.up_to(35)), ticks.due
    ([10, 20, 30], 40)
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self.due: int | None = None

    def start(self, first: int) -> None:
        """Begin behind ``first``, unless the clock has been started."""
        if self.due is None:
            self.due = (first // self.every + 1) * self.every

    def up_to(self, now: int) -> Iterator[int]:
        """Yield the ticks up to ``now``; the clock must have been started.  O(log silence)."""
        assert self.due is not None
        since, last = self.due, now // self.every * self.every
        while self.due <= last:
            yield self.due
            apart = max((self.due - since) // self.every // _FINE, 1) * self.every
            self.due = last + self.every if self.due == last else min(self.due + apart, last)
