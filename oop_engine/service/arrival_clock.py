"""Arrival clock: the moments at which pages come, for operators that go by it, also while nothing comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.units import TIME_UNITS
from oop_engine.runners.local import Local
from oop_engine.service.gate import Gate

__all__ = ["ArrivalClock"]

_FOREVER_S = 3600.0


class ArrivalClock:
    """Shows ``clock``, seconds since 1970, in the unit of the sources of ``plan``.

    Raises ``UsageError`` if these have none of time, or several.
    """

    def __init__(self, plan: Plan, clock: Callable[[], float]) -> None:
        units = {plan.schema(Stream(node.name)).unit for node in plan.of_kind("source")}
        if len(units) > 1 or not units <= TIME_UNITS.keys():
            msg = (
                f"graph {plan.name!r}: an operator goes by the arrival clock, which shows seconds since 1970; its "
                f"sources are in {', '.join(sorted(units))}: give them one unit of time, or leave out the Heartbeat"
            )
            raise UsageError(msg)
        self._clock, self._a_second = clock, TIME_UNITS[units.pop()]

    def __call__(self) -> int:
        """Return this moment."""
        return int(self._clock() * self._a_second)

    async def tick_on(self, local: Local, gate: Gate) -> None:
        """Let the operators of ``local`` see the clock as often as they want, for ever."""
        assert local.clock_every is not None
        every_s = local.clock_every / self._a_second
        while True:
            await asyncio.sleep(min(every_s, _FOREVER_S))
            async with gate.inside():
                await local.clock(self())
