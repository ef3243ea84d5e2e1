"""Turn: how long a graph of ``Local`` may keep the event loop from other tasks."""

from __future__ import annotations

import asyncio
from collections import deque

from oop_engine.system.stopwatch import wall

__all__ = ["TURN_S", "Turn"]

TURN_S = 0.005
"""Seconds of work after which other tasks of the event loop have their turn."""


class Turn:
    """The turn of the event loop in which messages are pushed one behind the other.

    A thousand tasks that push at once all run in one turn.  So those that come when it is long wait in line, and a
    turn takes as many of them as the turn before took in ``TURN_S``, or one: each of them woken in each turn, to see
    that it has to wait again, would cost the square of their number.
    """

    def __init__(self) -> None:
        self._began, self._took, self._going = 0.0, 0.0, False
        self._begun, self._scheduled = 0, False
        self._line = deque[asyncio.Future[None]]()

    def is_long(self) -> bool:
        """Return whether this turn has taken ``TURN_S`` since it was first asked."""
        if self._going:
            self._took = wall() - self._began
            return self._took > TURN_S
        self._began, self._took, self._going = wall(), 0.0, True
        self._schedule()
        return False

    def is_full(self) -> bool:
        """Return whether work has to wait in line (``wait``); else it is counted as begun in this turn."""
        if self._line or self.is_long():
            return True
        self._begun += 1
        return False

    async def wait(self) -> None:
        """Wait in line for a turn that has time for more."""
        place = asyncio.get_running_loop().create_future()
        self._line.append(place)
        self._schedule()
        await place
        self.is_long()
        self._begun += 1

    @staticmethod
    async def end() -> None:
        """Yield to other tasks."""
        await asyncio.sleep(0)

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._over)

    def _over(self) -> None:
        """Begin the next turn, and let as many go on as have time in it."""
        most = int(min(2.0, TURN_S / max(self._took, 1e-9)) * self._begun)
        self._going = self._scheduled = False
        self._begun = 0
        if not self._line:
            return
        for _ in range(min(max(most, 1), len(self._line))):
            place = self._line.popleft()
            if not place.done():
                place.set_result(None)
        self._schedule()
