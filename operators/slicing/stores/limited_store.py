"""The limited store: any store, within the life of its definitions.

A definition that comes while a query runs has a life from ``since`` on, one that goes until ``until``.  It sees the
tuples of its life, ``[since, until)``, and of its windows those leave that lie within: ``start >= since`` and
``end <= until``.  So they do not depend on the other definitions, nor on the order of arrival.  Once a bound has
reached ``until``, no tuple of the life can come: all that is complete by itself leaves, and the store is over.

Definitions that share a store come together, and it lives as long as the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.store import Reach, Store
from oop_engine.operators.slicing.window_states import WindowStates

__all__ = ["LimitedStore", "Lives"]

Integers = NDArray[np.int64]


class Lives:
    """From when on, and until when, each definition holds, by its number: ``since`` and ``until``, int64 (n,)."""

    def __init__(self) -> None:
        self.since, self.until = np.empty(0, np.int64), np.empty(0, np.int64)

    def add(self, definitions: int, since: int = NEVER) -> None:
        """Let so many more definitions hold from a time on."""
        self.since = np.append(self.since, np.full(definitions, since))
        self.until = np.append(self.until, np.full(definitions, FOREVER))


class LimitedStore:
    """``store`` of the definitions ``numbers``, within their ``lives``."""

    def __init__(self, store: Store, numbers: Sequence[int], lives: Lives, output: Output) -> None:
        self._store, self.numbers, self._lives, self._output = store, list(numbers), lives, output
        self._since = int(lives.since[self.numbers].min())
        self.renew()

    def renew(self) -> None:
        """Learn that definitions have got another life."""
        self.until = int(self._lives.until[self.numbers].max())
        self._whole = self._since == NEVER and int(self._lives.until[self.numbers].min()) == FOREVER

    @property
    def alive(self) -> int:
        return self._store.alive

    @property
    def tuples(self) -> int:
        return self._store.tuples

    @property
    def nbytes(self) -> int:
        return self._store.nbytes

    def __len__(self) -> int:
        return len(self._store)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        if not self._whole and times.size:
            inside = self._inside(times)
            if not inside.all():
                page, times, slots = page.filter(inside), times[inside], slots[inside]
        self._store.add(page, times, slots, groups)

    def _inside(self, times: Integers) -> NDArray[np.bool_]:
        return (times >= self._since) & (times < self.until)

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        of = self._inside(times)
        self._store.add_late(page.filter(of), times[of], slots[of], self._bounds(bounds[of]))

    def _bounds(self, bounds: Any) -> Any:
        """Return bounds of the tuples of its life: of these none comes once its end is reached."""
        if self.until == FOREVER:
            return bounds
        if isinstance(bounds, int):
            return FOREVER if bounds >= self.until else bounds
        return np.where(bounds >= self.until, FOREVER, bounds)

    def _within(self, found: Iterable[WindowStates]) -> list[WindowStates]:
        """Return the windows that lie within the lives of their definitions."""
        if self._whole:
            return list(found)
        inside = list[WindowStates]()
        for some in found:
            since, until = self._lives.since[some.number], self._lives.until[some.number]
            lies = (self._output.starts(some) >= since) & (some.ends <= until)
            if lies.all():
                inside.append(some)
            elif lies.any():
                inside.append(some.take(np.flatnonzero(lies))._replace(in_order=some.in_order))
        return inside

    def due(self, bound: int) -> bool:
        return bound >= self.until or self._store.due(bound)

    def close(self, bound: int) -> list[WindowStates]:
        return self._within(self._store.close(self._bounds(bound)))

    def close_some(self, slots: Integers, bounds: Integers) -> list[WindowStates]:
        return self._within(self._store.close_some(slots, self._bounds(bounds)))

    def least_stamp(self, bound: int) -> int:
        return max(self._store.least_stamp(bound), self._since)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        return np.maximum(self._store.least_stamps(slots, of, bounds), self._since)

    def most_until(self, bound: int) -> float:
        return self._store.most_until(self._bounds(bound))

    def reach(self, slots: Integers | None, bounds: Integers | int) -> Reach:
        return self._store.reach(slots, self._bounds(bounds))

    def living(self, groups: int) -> NDArray[np.bool_]:
        return self._store.living(groups)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._store.rename(kept, slots)

    def successor(self) -> Store:
        self._store = self._store.successor()
        return self

    def save(self) -> dict[str, Any]:
        return self._store.save()

    def load(self, saved: Saved, groups: int) -> Store:
        self._store = self._store.load(saved, groups)
        return self
