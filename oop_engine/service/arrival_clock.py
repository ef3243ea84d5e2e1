"""Arrival clock: the moments at which pages come, for operators that go by it, also while nothing comes.

It goes by seconds that nobody can set, and comes near the clock of the machine by at most a tenth of them.  So where
that clock is set forward by an hour, a source that sends each second is not taken for one that is silent, by which
all it sends in the next hour would be late; and where it is set back, silences are still found.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.units import TIME_UNITS
from oop_engine.runners.local import Local
from oop_engine.service.gate import Gate

__all__ = ["ArrivalClock", "are_read", "clock_of", "steady"]

_LOG = logging.getLogger("oop_engine")
_FOREVER_S = 3600.0
_NEARER = 0.1
_STEP_S = 2.0


def steady() -> float:
    """Return seconds that go on while the machine sleeps, where it counts them, and that no one sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def are_read(plan: Plan) -> bool:
    """Return whether an operator may go by arrivals: those behind a generator of punctuation have none.

    Nor has any where the sources have no unit of time, or several.
    """
    with_arrivals = {node.name for node in plan.of_kind("source")}
    for node in plan.nodes:
        if node.operator is None or not any(stream.node in with_arrivals for stream in node.inputs):
            continue
        if node.operator.uses_arrival():
            return _unit_of(plan) is not None
        if not node.operator.makes_progress:
            with_arrivals.add(node.name)
    return False


def _unit_of(plan: Plan) -> str | None:
    """Return the unit of time of all sources; None: there is none."""
    units = _units_of(plan)
    return next(iter(units)) if len(units) == 1 and units <= TIME_UNITS.keys() else None


def _units_of(plan: Plan) -> set[str]:
    return {plan.schema(Stream(node.name)).unit for node in plan.of_kind("source")}


class ArrivalClock:
    """Shows ``clock``, seconds since 1970, in the unit of the sources of ``plan``; it never goes back.

    ``steady``: seconds by which it goes between two looks.  Raises ``UsageError`` if the sources have no unit of time,
    or several.
    """

    def __init__(self, plan: Plan, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        if (unit := _unit_of(plan)) is None:
            msg = (
                f"graph {plan.name!r}: an operator goes by the arrival clock, which shows seconds since 1970; its "
                f"sources are in {', '.join(sorted(_units_of(plan)))}: give them one unit of time, or leave out the "
                "Heartbeat"
            )
            raise UsageError(msg)
        self._clock, self._steady, self._a_second = clock, steady, TIME_UNITS[unit]
        self._shown, self._looked, self._told = clock(), steady(), False

    def __call__(self) -> int:
        """Return this moment."""
        reading = self._steady()
        passed, self._looked = max(reading - self._looked, 0.0), reading
        off = self._clock() - self._shown - passed
        most = _NEARER * passed
        self._shown += passed + min(max(off, -most), most)
        if abs(off) > _STEP_S and not self._told:
            way = "forward" if off > 0 else "back"
            words = "the clock of this machine was set %s by %.0f s: arrivals follow it by 6 s a minute; a new start "
            _LOG.warning(words + "of the service goes by it at once", way, abs(off))
        self._told = abs(off) > _STEP_S
        return int(self._shown * self._a_second)

    async def tick_on(self, local: Local, gate: Gate) -> None:
        """Advance the clock of the operators of ``local`` as often as they need, for ever; or not at all."""
        if local.clock_every is None:
            return
        every_s = local.clock_every / self._a_second
        while True:
            await asyncio.sleep(min(every_s, _FOREVER_S))
            async with gate.inside():
                await local.clock(self())


def clock_of(local: Local, clock: Callable[[], float], steady: Callable[[], float]) -> ArrivalClock | None:
    """Return the clock of ``local``; None: no operator goes by arrivals."""
    if local.clock_every is None and not are_read(local.plan):
        return None
    return ArrivalClock(local.plan, clock, steady)
