"""Bounds of others: the values of a policy and a running bound that somebody else wrote, checked with their names."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from oop_engine.core.errors import ContractError, EngineError, GraphError, SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.registry import is_ours
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.policies.running_bound import Bounds, Late, Policy, RunningBound

__all__ = ["running_of"]


def running_of(policy: Policy, schema: Schema, place: str) -> RunningBound:
    """Return a fresh running bound of ``policy``, one of others with checks; raises ``GraphError`` if it gives none."""
    kind = type(policy).__name__
    try:
        running: Any = policy.running(schema, place)
    except EngineError:
        raise
    except Exception as error:
        method = "lag" if hasattr(policy, "lag") else "running"
        msg = f"{place}: {kind}.{method} failed: {type(error).__name__}: {error}"
        raise GraphError(msg) from error
    if not isinstance(running, RunningBound):
        msg = f"{place}: {kind}.running must return a RunningBound; got {running!r:.60} ({type(running).__name__})"
        raise GraphError(msg)
    if is_ours(type(running)):
        return running
    every: object = running.clock_every
    if every is not None and (type(every) is not int or every < 1):
        wanted = f"None, or a whole number of {schema.unit} above 0"
        msg = f"{place}: {type(running).__name__}: clock_every must be {wanted}; got {every!r:.60}"
        raise GraphError(msg)
    return _OwnBound(running)


class _OwnBound(RunningBound):
    """A running bound of others: each bound that it returns is checked; O(rows) a page."""

    def __init__(self, inner: RunningBound) -> None:
        self._inner, self._name = inner, type(inner).__name__
        self.clock_every, self.exact_ticks = inner.clock_every, inner.exact_ticks
        self._fresh = _content(inner)

    def after(self, page: Page) -> Bounds:
        returned: Any = self._inner.after(page)
        bounds = np.asarray(returned)
        if bounds.shape != (len(page),) or bounds.dtype.kind not in "iu":
            got = f"{bounds.dtype} {bounds.shape}" if bounds.dtype.kind != "O" else repr(returned)[:60]
            msg = f"{self._name}: after must return the bound after each row, int64 ({len(page)},); got {got}"
            raise ContractError(msg)
        less = np.flatnonzero(bounds[1:] < bounds[:-1])
        if less.size:
            row = int(less[0]) + 1
            msg = (
                f"{self._name}: after must return bounds that never decrease; got {bounds[row]} behind "
                f"{bounds[row - 1]}, at row {row} of the page: np.maximum.accumulate"
            )
            raise ContractError(msg)
        return bounds.astype(np.int64, copy=False)

    def over(
        self, page: Page, bounds: tuple[int, int], granularity: int | None, soft: RunningBound | None = None
    ) -> tuple[tuple[int, int], Late | None, int]:
        if type(self._inner).over is not RunningBound.over:
            return self._inner.over(page, bounds, granularity, soft)
        return super().over(page, bounds, granularity, soft)

    def on_clock(self, now: int) -> int:
        returned: Any = self._inner.on_clock(now)
        if isinstance(returned, int | np.integer) and not isinstance(returned, bool):
            return int(returned)
        msg = f"{self._name}: on_clock must return a bound, an int; got {returned!r:.60} ({type(returned).__name__})"
        raise ContractError(msg)

    @property
    def nbytes(self) -> int:
        return self._inner.nbytes

    def save(self) -> dict[str, Any]:
        returned: object = self._inner.save()
        if not isinstance(returned, dict):
            msg = (
                f"{self._name}: save must return a dictionary of the parts of its state; got {returned!r:.80}"
            )
            raise SnapshotError(msg)
        if not returned and self._fresh is not None and _content(self._inner) != self._fresh:
            names = ", ".join(vars(self._inner))
            lost = "so a restart would lose it: write save and load"
            msg = f"{self._name}: keeps a state ({names}) and saves none, {lost}"
            raise SnapshotError(msg)
        return returned

    def load(self, saved: Saved) -> None:
        self._inner.load(saved)


def _content(bound: RunningBound) -> bytes | None:
    """Return the attributes of a bound as bytes, to be compared; None: they cannot be."""
    try:
        return pickle.dumps(vars(bound))
    except Exception:  # an attribute that is no value, such as a function
        return None
