"""Accumulators: which one keeps which kind of part.  Nothing else asks for the kind.

An aggregate with a state of its own is an ``Aggregation`` whose parts are of a new kind, and an ``Accumulator`` that is
registered for that kind.  It then runs wherever the others do: by windows, panes, slices, in order, in two halves.

>>> @register_accumulator("product")
... class Product(Accumulator):
...     identity = (np.float64(1),)
...     def prepare(self, page, times):
...         return (page.column(self.part.column).fill_null(1).to_numpy(zero_copy_only=False),)
...     def combine(self, a, b):
...         return (a[0] * b[0],)
>>> accumulator(Part("product", "x")).reduce((np.array([2.0, 3.0, 4.0]),), np.array([0, 2]))
(array([6., 4.]),)

On Spark the registration must be in a file that is imported with the aggregate, so not in the script itself.  For a
state that is to be combined in compiled loops see ``Compiled`` and ``oop_engine.operators.kernels.monoids.Monoid``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.registry import Registry
from oop_engine.operators.aggregates import Arrays, Part, UserDefined
from oop_engine.operators.kernels import monoids
from oop_engine.operators.slicing.accumulator import (
    Accumulator,
    Compiled,
    SumOverflowError,
    fixed,
    known,
    values,
)

__all__ = [
    "ACCUMULATORS",
    "Accumulator",
    "Compiled",
    "SumOverflowError",
    "accumulator",
    "column_monoid",
    "is_compiled",
    "register_accumulator",
]

Integers = NDArray[np.int64]

_LIMITS = np.iinfo(np.int64)


ACCUMULATORS = Registry[type[Accumulator]]("accumulator of parts")
"""What keeps parts, by their kinds."""

A = TypeVar("A", bound=type[Accumulator])


def register_accumulator(*kinds: str) -> Callable[[A], A]:
    """Let parts of some ``kinds`` be kept by a class; a decorator.

    Raises ``UsageError`` for a kind that an accumulator of another module keeps.
    """

    def register(of: A) -> A:
        for kind in kinds:
            ACCUMULATORS.register(kind, of, of.__module__)
        return of

    return register


@register_accumulator("count")
class _Count(Compiled):
    of_column = True
    monoid = monoids.Counted()
    identity = (np.int64(0),)
    counts = True
    invertible = True

    def prepare(self, page: Page, times: Integers) -> Arrays:
        return (known(page, self.part.column),)


@register_accumulator("sum")
class _Sum(Compiled):
    of_column = True

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.monoid = monoids.Summed() if part.floating else monoids.Checked()
        self.identity = (np.float64(0) if part.floating else np.int64(0),)
        self.invertible = not part.floating


@register_accumulator("min", "max")
class _Extreme(Compiled):
    of_column = True

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.monoid = monoids.Largest() if part.kind == "max" else monoids.Smallest()
        self.identity = (_nothing(part),)


@register_accumulator("first", "last")
class _Edge(Compiled):
    of_column = True

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.monoid = monoids.Latest() if part.kind == "last" else monoids.Earliest()
        self.identity = _nothing(part), np.int64(_LIMITS.min if part.kind == "last" else _LIMITS.max)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        return values(page, self.part), fixed(times), known(page, self.part.column)


@register_accumulator("moments")
class _Moments(Compiled):
    of_column = True
    monoid = monoids.Moments()
    identity = np.int64(0), np.float64(0), np.float64(0)


@register_accumulator("user")
class _User(Accumulator):
    """A user-defined state, behind a column that tells whether there is one."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        assert isinstance(part.user, UserDefined)
        self._user = part.user
        self.identity = np.bool_(False), *(np.dtype(name).type(0) for name in part.user.state_types)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        lifted = self._user.lift(*(page.column(name) for name in self._user.reads))
        types = self._user.state_types
        states = (np.asarray(array, name) for array, name in zip(lifted, types, strict=True))
        return np.ones(len(page), np.bool_), *states

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        both = np.flatnonzero(a[0] & b[0])
        together = self._user.combine(tuple(s[both] for s in a[1:]), tuple(s[both] for s in b[1:]))
        merged = [np.where(a[0], old, new) for old, new in zip(a[1:], b[1:], strict=True)]
        for column, new in zip(merged, together, strict=True):
            column[both] = new
        return a[0] | b[0], *merged


def _nothing(part: Part) -> np.generic:
    """Return the value that gives way to all others."""
    if part.floating:
        return np.float64("nan")
    return np.int64(_LIMITS.min if part.kind in ("max", "last") else _LIMITS.max)


def accumulator(part: Part) -> Accumulator:
    """Return what keeps ``part``; raises ``GraphError`` for a kind that is not registered."""
    if part.kind not in ACCUMULATORS:
        known = ", ".join(ACCUMULATORS)
        msg = f"a part must be of a kind that has an accumulator ({known}); got {part.kind!r}: register_accumulator"
        raise GraphError(msg)
    return ACCUMULATORS[part.kind](part)


def column_monoid(part: Part) -> monoids.Monoid | None:
    """Return the monoid that combines the values of a part's column as they are, or None: another state is kept."""
    of = accumulator(part)
    return of.monoid if isinstance(of, Compiled) and of.of_column else None


def is_compiled(parts: Sequence[Part]) -> bool:
    """Tell whether each of ``parts`` is kept by compiled loops: others take a Python step to put windows together."""
    return all(isinstance(accumulator(part), Compiled) for part in parts)
