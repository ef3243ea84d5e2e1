"""Turn: how long a graph of ``Local`` may keep the event loop from other tasks."""

from __future__ import annotations

import asyncio

from oop_engine.system.stopwatch import wall

__all__ = ["TURN_S", "Turn"]

TURN_S = 0.005
"""Seconds of work after which other tasks of the event loop have their turn."""


class Turn:
    """The turn of the event loop in which messages are pushed one behind the other."""

    def __init__(self) -> None:
        self._began, self._going = 0.0, False

    def is_long(self) -> bool:
        """Tell whether this turn has taken ``TURN_S`` since it was first asked."""
        if self._going:
            return wall() - self._began > TURN_S
        self._began, self._going = wall(), True
        asyncio.get_running_loop().call_soon(self._over)
        return False

    def _over(self) -> None:
        self._going = False

    @staticmethod
    async def end() -> None:
        """Let other tasks have their turn."""
        await asyncio.sleep(0)
