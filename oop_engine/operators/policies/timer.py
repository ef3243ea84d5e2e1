"""Timer: a policy by whose bound punctuation goes out at the pace of the arrival clock (thesis 8.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.policies.own_bound import running_of
from oop_engine.operators.policies.policies import PerGroup
from oop_engine.operators.policies.running_bound import (
    Bounds,
    Policy,
    RunningBound,
    length_of,
    register_policy,
)

__all__ = ["Timer"]


@register_policy
@checked_arguments
@dataclass(frozen=True)
class Timer(Policy):
    """``policy``, whose bound is also emitted at each tick of the arrival clock, ``every`` so long.

    With a ``granularity`` bounds are emitted at its multiples alone, and in between results wait for the next one;
    at a tick the exact bound goes out, whatever the granularity.  So a coarse granularity and a timer give a pace
    of punctuation by the clock of arrivals, however fast times go on: results wait one tick longer than
    with ``policy``, and punctuation costs the same in a burst.  Which tuples are late depends on the ticks then.
    Costs one integer and a tick.  Raises ``GraphError`` unless ``every`` is positive.
    """

    policy: Policy
    every: Length

    def __post_init__(self) -> None:
        if isinstance(self.policy, PerGroup | Timer):
            inner = type(self.policy).__name__
            msg = f"Timer is for a whole stream; got {inner} in it: write PerGroup(..., linear=Timer(...))"
            raise GraphError(msg)

    def running(self, schema: Schema, place: str) -> RunningBound:
        every = length_of(self.every, schema, f"{place}: every", least=1)
        return _Timed(running_of(self.policy, schema, place), every)


class _Timed(RunningBound):
    """The bound of ``inner``, which is emitted as it is at each tick."""

    exact_ticks = True

    def __init__(self, inner: RunningBound, every: int) -> None:
        self._inner = inner
        self.clock_every = min(every, inner.clock_every or every)
        self._bound = NEVER

    def after(self, page: Page) -> Bounds:
        bounds = self._inner.after(page)
        if bounds.size:
            self._bound = max(self._bound, int(bounds[-1]))
        return bounds

    def on_clock(self, now: int) -> int:
        return max(self._bound, self._inner.on_clock(now))

    @property
    def nbytes(self) -> int:
        return 8 + self._inner.nbytes

    def save(self) -> dict[str, Any]:
        return {"bound": self._bound, "inner": self._inner.save()}

    def load(self, saved: Saved) -> None:
        self._bound = saved.integer("bound")
        self._inner.load(saved.part("inner"))
