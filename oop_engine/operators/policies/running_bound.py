"""The protocol of policies: a value that makes the running bound of one stream; see ``policies``.

A policy of your own is a ``Policy``, or a ``Lag``, with ``@register_policy`` on top: a declaration may then name it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, shift
from oop_engine.core.registry import Registry
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.kernels.ordering import nth_largest, trail

__all__ = [
    "MOST_ROWS",
    "POLICIES",
    "Bounds",
    "Lag",
    "Policy",
    "RunningBound",
    "check_policy",
    "checked_lag",
    "cut_rows",
    "floored",
    "length_of",
    "register_policy",
]

MOST_ROWS = 2**30
"""Tuples that a policy may remember."""

Bounds = NDArray[np.int64]
Late = NDArray[np.bool_]


class RunningBound:
    """The bound that holds after each tuple of one stream; this one knows of none.

    ``clock_every``: how often ``on_clock`` is wanted, in units of the attribute.  ``exact_ticks``: the bound of a
    tick is emitted as it is, not as a multiple of the granularity.
    """

    clock_every: int | None = None
    exact_ticks: bool = False

    def after(self, page: Page) -> Bounds:
        """Return the bound after each row, int64 (rows,), never decreasing within the page."""
        return np.full(len(page), NEVER)

    def over(
        self, page: Page, bounds: tuple[int, int], granularity: int | None, soft: RunningBound | None = None
    ) -> tuple[tuple[int, int], Late | None, int]:
        """Return the bounds after a page that came as a whole, which rows are late, bool (rows,), and how many are not.

        ``bounds``: those before it, of this one and of ``soft``.  A row is late if it is behind the bound that held by
        then, as if each row before it had come by itself.  None: no row is late.  Those that are not, but behind
        ``soft``, are counted.
        """
        if soft is not None:  # each by itself
            (below, _), late, _ = self.over(page, bounds, granularity)
            (expected, _), soft_late, _ = soft.over(page, bounds[::-1], granularity)
            if soft_late is not None and late is not None:
                soft_late &= ~late
            return (below, expected), late, (0 if soft_late is None else int(np.count_nonzero(soft_late)))
        after = np.maximum(floored(self.after(page), granularity), bounds[0])
        late = np.concatenate([page.times[:1] < bounds[0], page.times[1:] < after[:-1]])
        return (int(after[-1]) if len(page) else bounds[0], bounds[1]), (late if late.any() else None), 0

    def on_clock(self, now: int) -> int:
        """Return the bound that holds because the arrival clock shows ``now``."""
        return NEVER

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return 0

    def save(self) -> dict[str, Any]:
        """Return the state for a snapshot."""
        return {}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""


class Policy(ABC):
    """An assumption about a source.  Values of the same parameters are equal and can be pickled."""

    @abstractmethod
    def running(self, schema: Schema, place: str) -> RunningBound:
        """Return a fresh running bound for the whole stream.

        Raises ``GraphError`` in the name of ``place`` if the parameters do not fit the schema.
        """

    def uses_arrival(self) -> bool:
        """Return whether bounds depend on when tuples arrive (the default), and not on their order alone."""
        return True


POLICIES = Registry[type[Policy]]("policy")
"""The policies that may be named in a declaration, by the names of their classes."""

P = TypeVar("P", bound=type[Policy])


def register_policy(policy: P) -> P:
    """Register a policy, so that declarations can name its class; a decorator.

    Raises ``UsageError`` if there is one of this name in another module.
    """
    POLICIES.register(policy.__name__, policy, policy.__module__)
    return policy


class Lag(Policy):
    """A policy that trails the largest values: the ``count + 1``-th largest, minus ``slack``."""

    @abstractmethod
    def lag(self, schema: Schema, place: str) -> tuple[int, int]:
        """Return ``count`` and ``slack``, in units of the progressing attribute."""

    def running(self, schema: Schema, place: str) -> RunningBound:
        return _Trailing(*checked_lag(self, schema, place))

    def uses_arrival(self) -> bool:
        return type(self).running is not Lag.running


def checked_lag(policy: Lag, schema: Schema, place: str) -> tuple[int, int]:
    """Return the ``lag`` of a policy; raises ``GraphError`` unless it is a number of tuples, and a length in units."""
    lag: Any = policy.lag(schema, place)
    numbers = lag if isinstance(lag, tuple) and len(lag) == 2 else (None, None)
    if all(
        isinstance(each, int | np.integer) and not isinstance(each, bool) and each >= 0 for each in numbers
    ):
        count, slack = map(int, numbers)
        if count <= MOST_ROWS:
            return count, slack
    wanted = f"a number of tuples, from 0 to 2**30, and of {schema.unit}, from 0 on, as ints"
    got = f'{lag!r:.60} ({type(lag).__name__}): schema.length("5 s", place) returns a length in units'
    msg = f"{place}: {type(policy).__name__}.lag must return (count, slack), {wanted}; got {got}"
    raise GraphError(msg)


class _Trailing(RunningBound):
    """The ``count + 1``-th largest value so far, minus ``slack``."""

    def __init__(self, count: int, slack: int) -> None:
        self._slack = slack
        self._largest = np.full((1, count + 1), NEVER)  # a min-heap

    def after(self, page: Page) -> Bounds:
        if self._largest.size > 1:
            largest: Bounds = nth_largest(page.times, np.zeros(len(page), np.int64), self._largest)
        else:
            largest = np.maximum.accumulate(page.times)
            np.maximum(largest, self._largest[0, 0], out=largest)
            self._largest[0, 0] = largest[-1] if largest.size else self._largest[0, 0]
        # A tuple may have the largest integer as its time; that does not end the stream.
        return shift(np.minimum(largest, FOREVER - 1, out=largest), -self._slack)

    def over(
        self, page: Page, bounds: tuple[int, int], granularity: int | None, soft: RunningBound | None = None
    ) -> tuple[tuple[int, int], Late | None, int]:
        other = self if soft is None else soft
        if not isinstance(other, _Trailing) or self._largest.size + other._largest.size > 2:
            return super().over(page, bounds, granularity, soft)
        times, memory = (
            page.times,
            np.array([self._largest[0, 0], *bounds, 0, 0]),
        )  # one for both: they see all pages
        late = np.empty(times.size, np.bool_)
        late_rows, soft_late = trail(times, self._slack, other._slack, granularity or 1, memory, late)
        largest, below, expected, *reach = memory.tolist()
        self._largest[0, 0] = other._largest[0, 0] = largest
        if times.size:
            page.reach = times, reach[0], reach[1]
        return (below, expected), (late if late_rows else None), soft_late

    @property
    def nbytes(self) -> int:
        return self._largest.nbytes

    def save(self) -> dict[str, Any]:
        return {"largest": self._largest}

    def load(self, saved: Saved) -> None:
        self._largest = saved.integers("largest", self._largest.shape)


def check_policy(policy: object, place: str) -> None:
    """Raise ``GraphError`` in the name of ``place`` unless ``policy`` is one."""
    if not isinstance(policy, Policy):
        msg = f"{place}: policy must be a value such as Ordered() or BoundedDisorder('5 s'); got {policy!r}"
        raise GraphError(msg)


def length_of(length: Length, schema: Schema, place: str, least: int = 0) -> int:
    """Return a length in the schema's unit.  Raises ``GraphError`` if it is below ``least``."""
    units = schema.length(length, place)
    if units < least:
        msg = f"{place} must be at least {least} {schema.unit}; got {length!r}"
        raise GraphError(msg)
    return units


def floored(bounds: Bounds, granularity: int | None) -> Bounds:
    """Return the multiples of ``granularity`` at or below ``bounds``; the sentinels stay."""
    if granularity is None:
        return bounds
    whole = np.maximum(bounds, NEVER + granularity) // granularity * granularity
    return np.where((bounds < NEVER + granularity) | (bounds == FOREVER), bounds, whole)


def cut_rows(after: Bounds, before: int) -> NDArray[np.int64]:
    """Return where a page is cut, so that each bound that grew follows its tuple at once."""
    if not after.size or after[-1] == before:
        return np.empty(0, np.int64)
    return np.flatnonzero(after > np.concatenate([[before], after[:-1]])) + 1
