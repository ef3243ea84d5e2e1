"""Accumulators: which one keeps which kind of part.  Nothing else asks for the kind.

An aggregate with a state of its own is an ``Aggregation`` whose parts are of a new kind, and an ``Accumulator`` that is
registered for that kind.  It then runs wherever the others do: by windows, panes, slices, in order, in two halves.

>>> class Product(Accumulator):
...     identity = (np.float64(1),)
...     def prepare(self, page, times):
...         return (page.column(self.part.column).fill_null(1).to_numpy(zero_copy_only=False),)
...     def combine(self, a, b):
...         return (a[0] * b[0],)
>>> register_accumulator("product", Product)
>>> accumulator(Part("product", "x")).reduce((np.array([2.0, 3.0, 4.0]),), np.array([0, 2]))
(array([6., 4.]),)

On Spark the registration must be in a file that is imported with the aggregate, so not in the script itself.  For a
state that is to be combined in compiled loops see ``Compiled`` and ``oop_engine.operators.kernels.monoids.Monoid``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Arrays, Part, UserDefined
from oop_engine.operators.kernels import monoids
from oop_engine.operators.slicing.accumulator import Accumulator, Compiled, SumOverflowError
from oop_engine.operators.slicing.part_columns import fixed, known, values

__all__ = ["Accumulator", "Compiled", "SumOverflowError", "accumulator", "foldable", "register_accumulator"]

Integers = NDArray[np.int64]

_LIMITS = np.iinfo(np.int64)


class _Count(Compiled):
    monoid = monoids.Counted()
    identity = (np.int64(0),)
    counts = True
    invertible = True

    def prepare(self, page: Page, times: Integers) -> Arrays:
        return (known(page, self.part.column),)


class _Sum(Compiled):
    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.monoid = monoids.Summed() if part.floating else monoids.Checked()
        self.identity = (np.float64(0) if part.floating else np.int64(0),)
        self.invertible = not part.floating


class _Extreme(Compiled):
    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.monoid = monoids.Largest() if part.kind == "max" else monoids.Smallest()
        self.identity = (_nothing(part),)


class _Edge(Compiled):
    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.monoid = monoids.Latest() if part.kind == "last" else monoids.Earliest()
        self.identity = _nothing(part), np.int64(_LIMITS.min if part.kind == "last" else _LIMITS.max)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        return values(page, self.part), fixed(times), known(page, self.part.column)


class _Moments(Compiled):
    monoid = monoids.Moments()
    identity = np.int64(0), np.float64(0), np.float64(0)


class _User(Accumulator):
    """A user-defined state, behind a column that tells whether there is one."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        assert part.user is not None
        self._user: UserDefined = part.user
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


_KINDS: dict[str, Callable[[Part], Accumulator]] = {
    "count": _Count,
    "sum": _Sum,
    "min": _Extreme,
    "max": _Extreme,
    "first": _Edge,
    "last": _Edge,
    "moments": _Moments,
    "user": _User,
}
_OURS = frozenset(_KINDS)


def register_accumulator(kind: str, of: Callable[[Part], Accumulator]) -> None:
    """Let parts of ``kind`` be kept by what ``of`` returns for them, an accumulator's class as a rule.

    Raises ``GraphError`` for a kind of the engine's own.
    """
    if kind in _OURS:
        got = f"got {kind!r}, which the engine has: name your parts otherwise"
        msg = f"register_accumulator: a kind must be a new one; {got}"
        raise GraphError(msg)
    _KINDS[kind] = of


def accumulator(part: Part) -> Accumulator:
    """Return what keeps ``part``; raises ``GraphError`` for a kind that is not registered."""
    if part.kind not in _KINDS:
        msg = (
            f"parts of kind {part.kind!r} have no accumulator; there are some for {', '.join(_KINDS)}: "
            f"register one with oop_engine.register_accumulator"
        )
        raise GraphError(msg)
    return _KINDS[part.kind](part)


def foldable(parts: Sequence[Part]) -> bool:
    """Tell whether each of ``parts`` is kept by compiled loops."""
    return all(isinstance(accumulator(part), Compiled) for part in parts)
