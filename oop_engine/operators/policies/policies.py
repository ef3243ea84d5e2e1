"""Policies: assumptions about the disorder of a source, and the bounds that follow (thesis 8.1).

A policy is a value: parameters only.  ``Punctuate`` and its in-order twin ``Sort`` ask it
for a ``RunningBound``, the state with the bound that holds after each tuple.  All
bounds are exclusive: equal values may still come.

    policy            assumes of the source                       tuples wait for     keeps
    Ordered           it is sorted                                nothing             1 value
    BoundedDisorder   none is more than ``slack`` behind the      ``slack``           1 value
                      largest value before it
    BoundedCount      at most ``n`` larger ones precede any       n tuples            n + 1 values
    PerGroup          one of these, in each group by itself       its group only      the same a group
    Heartbeat         in a lull, tuples come at most ``slack``    threshold + slack   its policy's
                      after their time                            in a lull
                      (of="drift": whenever times lag behind)     or a lag
    Upstream          its punctuation is right                    the punctuation     nothing

Too strict a policy makes tuples late, too lax a one makes everybody wait.

A policy of your own: see ``running_bound``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, shift
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.policies.own_bound import running_of
from oop_engine.operators.policies.running_bound import (
    MOST_ROWS,
    Bounds,
    Lag,
    Policy,
    RunningBound,
    checked_lag,
    length_of,
    register_policy,
)

__all__ = ["BoundedCount", "BoundedDisorder", "Heartbeat", "Ordered", "PerGroup", "Upstream"]


@register_policy
@checked_arguments
@dataclass(frozen=True)
class Ordered(Lag):
    """The stream is sorted; the bound is the largest value so far.

    Costs no delay and one integer.  A tuple smaller than one before it is late.
    """

    def lag(self, schema: Schema, place: str) -> tuple[int, int]:
        return 0, 0


@register_policy
@checked_arguments
@dataclass(frozen=True)
class BoundedDisorder(Lag):
    """No tuple is more than ``slack`` behind the largest value before it.

    The bound is the largest value minus ``slack``: the delay is ``slack``, on time or not.
    Raises ``GraphError`` if ``slack`` is negative.
    """

    slack: Length

    def lag(self, schema: Schema, place: str) -> tuple[int, int]:
        return 0, length_of(self.slack, schema, f"{place}: slack")


@register_policy
@checked_arguments
@dataclass(frozen=True)
class BoundedCount(Lag):
    """At most ``n`` tuples with larger values precede any tuple (the order of Aurora's BSort).

    The bound is the (n+1)-th largest value so far.  Sound: were a later tuple smaller than
    that, n + 1 larger ones would precede it; and no larger bound is sound, for a tuple equal
    to this one keeps to the assumption.  The thesis excludes "the last n tuples" instead,
    which also asks that all larger ones are among the n tuples just before; we do not.
    Delay: n tuples, however long they take to come; state: n + 1 integers.
    Raises ``GraphError`` if ``n`` is negative.
    """

    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.n <= MOST_ROWS:
            msg = f"BoundedCount: n must be a number of tuples from 0 to 2**30; got n={self.n}"
            raise GraphError(msg)

    def lag(self, schema: Schema, place: str) -> tuple[int, int]:
        return self.n, 0


@register_policy
@checked_arguments
@dataclass(frozen=True)
class Upstream(Policy):
    """The stream brings its own punctuation, and nothing else is known of it.

    Costs nothing; delay is the source's.  A tuple behind that punctuation is late.
    """

    def running(self, schema: Schema, place: str) -> RunningBound:
        return RunningBound()

    def uses_arrival(self) -> bool:
        return False


@register_policy
@checked_arguments
@dataclass(frozen=True)
class Heartbeat(Policy):
    """``policy``, and while the source is silent, or its times lag behind, progress follows the arrival clock.

    Silent: nothing has arrived for longer than ``threshold``; the bound is then the arrival
    clock minus ``slack``, the larger of it and ``policy``'s (Gigascope, thesis 8.1).  Also
    when all sources are silent, for the clock is asked every ``every`` (default: the
    threshold).  A tuple that ends such a silence moves the bound the same way, after itself.
    ``of="drift"``: at a tick of the clock the same where the largest time so far is more than ``threshold``
    behind the clock, whether tuples come or not: Gigascope compares both clocks so, with a ``slack`` of the
    threshold.  A source whose times stand still, or which works off a backlog, then holds nobody up; its
    tuples are late.
    Assumes that tuples after a lull come at most ``slack`` after their time: an outage
    whose tuples are sent on later makes these late.  A page without arrivals counts as
    arrived at the next tick.  Ticks grow sparse in a silence of more than 2,000 of them
    (``oop_engine.core.ticks``).  Costs two integers and a tick.
    Raises ``GraphError`` for negative lengths, if ``every`` is not positive, and for another ``of``.
    """

    policy: Policy
    threshold: Length
    slack: Length
    every: Length | None = None
    of: Literal["silence", "drift"] = "silence"

    def __post_init__(self) -> None:
        if self.of not in ("silence", "drift"):
            msg = f"Heartbeat: of must be 'silence' or 'drift'; got {self.of!r}"
            raise GraphError(msg)
        if isinstance(self.policy, PerGroup | Heartbeat):
            inner = type(self.policy).__name__
            msg = f"Heartbeat is for a whole stream; got {inner} in it: write PerGroup(..., linear=Heartbeat(...))"
            raise GraphError(msg)

    def running(self, schema: Schema, place: str) -> RunningBound:
        threshold = length_of(self.threshold, schema, f"{place}: threshold")
        slack = length_of(self.slack, schema, f"{place}: slack")
        every = max(threshold, 1)
        if self.every is not None:
            every = length_of(self.every, schema, f"{place}: every", least=1)
        running = _Drift if self.of == "drift" else _Lull
        return running(running_of(self.policy, schema, place), threshold, slack, every)


@register_policy
@checked_arguments
@dataclass(frozen=True)
class PerGroup(Policy):
    """``policy`` holds in each group of ``by`` by itself; nobody waits for another's disorder.

    ``policy``: ``Ordered``, ``BoundedDisorder``, ``BoundedCount``, or another ``Lag``.  Makes group-wise
    punctuation.  Groups not seen yet have no bound, so the stream as a whole makes
    no progress without a policy ``linear`` for it; its bound also lets go of the
    groups that no longer come (state: count + 5 integers a group, and its key).
    Raises ``GraphError`` for other policies, and if ``by`` names no columns.
    """

    policy: Policy
    by: Sequence[str]
    linear: Policy | None = None

    def __post_init__(self) -> None:
        if isinstance(self.by, str):
            msg = f"PerGroup: by must be a tuple of column names; got {self.by!r}: write by=({self.by!r},)"
            raise GraphError(msg)
        object.__setattr__(self, "by", tuple(self.by))
        if not isinstance(self.policy, Lag):
            msg = f"PerGroup: policy must be a Lag such as Ordered, BoundedDisorder, BoundedCount; got {self.policy!r}"
            raise GraphError(msg)
        if isinstance(self.linear, PerGroup):
            msg = "PerGroup: linear must be a policy for the whole stream; got PerGroup"
            raise GraphError(msg)
        if not self.by or len(set(self.by)) != len(self.by):
            msg = f"PerGroup: by must name different columns, at least one; got by={self.by}"
            raise GraphError(msg)

    def running(self, schema: Schema, place: str) -> RunningBound:
        schema.require(self.by, f"{place}: by")
        self.lag(schema, place)
        return running_of(self.linear or Upstream(), schema, place)

    def lag(self, schema: Schema, place: str) -> tuple[int, int]:
        """Return the ``lag`` of each group."""
        assert isinstance(self.policy, Lag)
        return checked_lag(self.policy, schema, place)

    def uses_arrival(self) -> bool:
        return self.policy.uses_arrival() or (self.linear is not None and self.linear.uses_arrival())


class _Lull(RunningBound):
    """The bound of ``inner``; in a silence longer than ``threshold``, the clock minus ``slack``."""

    def __init__(self, inner: RunningBound, threshold: int, slack: int, every: int) -> None:
        self._inner, self._threshold, self._slack = inner, threshold, slack
        self.clock_every = every
        self._last: int | None = None  # the last arrival (of drift: the largest time); None: at the next tick

    def after(self, page: Page) -> Bounds:
        bounds = self._inner.after(page)
        if page.arrival is None or not len(page):
            self._last = None if len(page) else self._last
            return bounds
        first = page.arrival[0] if self._last is None else self._last
        before = np.concatenate([[first], page.arrival[:-1]])
        silent = shift(page.arrival, -self._threshold) > before  # a difference could wrap round
        self._last = int(page.arrival[-1])
        if silent.any():
            clock = np.where(silent, shift(np.minimum(page.arrival, FOREVER - 1), -self._slack), NEVER)
            np.maximum(bounds, np.maximum.accumulate(clock), out=bounds)
        return bounds

    def on_clock(self, now: int) -> int:
        if self._last is None:
            self._last = now
        return shift(now, -self._slack) if now - self._last > self._threshold else NEVER

    @property
    def nbytes(self) -> int:
        return 8 + self._inner.nbytes

    def save(self) -> dict[str, Any]:
        return {"last": self._last, "inner": self._inner.save()}

    def load(self, saved: Saved) -> None:
        self._last = None if saved["last"] is None else saved.integer("last")
        self._inner.load(saved.part("inner"))


class _Drift(_Lull):
    """The bound of ``inner``; at a tick over ``threshold`` ahead of the largest time, the clock minus ``slack``."""

    def after(self, page: Page) -> Bounds:
        if len(page):
            largest = int(page.times.max())
            self._last = largest if self._last is None else max(self._last, largest)
        return self._inner.after(page)
