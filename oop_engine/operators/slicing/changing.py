"""Changing: windows of definitions that come and go while the query runs.

Definitions that come at one time share stores among themselves, as those of the beginning do; stores of before go on
as they are, for another slicing would have to cut sums that are there already.  A store goes when the bound of the
stream has reached the end of all of its definitions.

A definition that comes has a life from ``since`` on, one that goes until ``until``.  It sees the tuples of its life,
``[since, until)``, and of its windows those leave that lie within: ``start >= since`` and ``end <= until``.  So they do
not depend on the other definitions, nor on the order of arrival.  Once a bound has reached ``until``, no tuple of the
life can come: all that is complete by itself leaves, and the store is over.  Definitions that share a store come
together, and it lives as long as the last of them.

Later definitions limit the bound of the results: that of hourly windows alone is the end of the hour, and then
windows of ten seconds could not come before.  An added window starts at ``at`` or later, and ``at`` is not below the
bound of the input.  So the bound of the results is never above that of the input (``LimitedStore.least_stamp``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.change import Change, Reached
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.slicing.closing import Closing
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.strategy import Query, numbered_stores
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.slicing.written import definition_of, written
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.windows import Definition, Windows, is_grid

__all__ = ["Changing", "changed_windows", "read_change"]


class Lives:
    """From when on, and until when, each definition holds, by its number: ``since`` and ``until``, int64 (n,)."""

    def __init__(self) -> None:
        self.since, self.until = np.empty(0, np.int64), np.empty(0, np.int64)

    def add(self, definitions: int, since: int = NEVER) -> None:
        """Let so many more definitions hold from a time on."""
        self.since = np.append(self.since, np.full(definitions, since))
        self.until = np.append(self.until, np.full(definitions, FOREVER))

    def end(self, until: Integers) -> None:
        """Let the definitions hold until a time each, int64 (n,)."""
        self.until = until


class LimitedStore:
    """``store`` of the definitions ``numbers``, within their ``lives``; no result has a stamp above the bound."""

    def __init__(self, store: Store, numbers: Sequence[int], lives: Lives, output: Output) -> None:
        self.numbers, self._lives, self._output = list(numbers), lives, output
        self._since = int(lives.since[self.numbers].min())
        self.renew()
        # Methods that do not depend on lives are the store's own.
        self._store, self.state, self.living = store, store.state, store.living
        self.rename, self.save, self.load = store.rename, store.save, store.load

    def renew(self) -> None:
        """Learn until when the last of the definitions holds."""
        self.until = int(self._lives.until[self.numbers].max())

    @property
    def alive(self) -> int:
        return self._store.alive

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        if not (inside := self._inside(times)).all():
            page, times, slots = page.filter(inside), times[inside], slots[inside]
        self._store.add(page, times, slots, groups)

    def _inside(self, times: Integers) -> NDArray[np.bool_]:
        return (times >= self._since) & (times < self.until)

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        of = self._inside(times)
        self._store.add_late(page.filter(of), times[of], slots[of], self._bounds(bounds[of]))

    def _bounds(self, bounds: Any) -> Any:
        """Return bounds of the tuples of its life: of these none comes once its end is reached."""
        if isinstance(bounds, int):
            return FOREVER if bounds >= self.until else bounds
        return np.where(bounds >= self.until, FOREVER, bounds)

    def _within(self, found: Iterable[WindowStates]) -> list[WindowStates]:
        """Return the windows that lie within the lives of their definitions."""
        inside = list[WindowStates]()
        for some in found:
            since, until = self._lives.since[some.number], self._lives.until[some.number]
            rows = ((self._output.starts(some) >= since) & (some.ends <= until)).nonzero()[0]
            if rows.size == some.slots.size:
                inside.append(some)
            elif rows.size:
                inside.append(some.take(rows)._replace(in_order=some.in_order))
        return inside

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        return self._within(self._store.close(slots, self._bounds(bounds)))

    def least_stamp(self, bound: int) -> int:
        return min(max(self._store.least_stamp(bound), self._since), bound)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        return np.minimum(np.maximum(self._store.least_stamps(slots, of, bounds), self._since), bounds)

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        return self._store.most_until(slots, self._bounds(bounds))

    def copied(self, slots: Integers) -> None:
        return None


class Changing:
    """The definitions of ``query``, by name ``windows``, and those that come; ``closing`` has their open windows."""

    def __init__(
        self, query: Query, by: tuple[str, ...], windows: Mapping[str, Windows],
        bind: Callable[[str, Windows], Definition],
    ) -> None:  # fmt: skip
        self.closing = Closing(query.output, query.schema, by)
        self._output, self._stores = query.output, list[LimitedStore]()
        self._query, self._bind, self._reached = replace(query, changing=True), bind, Reached()
        self._lives = Lives()
        self._windows = list(windows.values())  # of all definitions, by number
        self._came = list[tuple[int, dict[str, Windows]]]()  # those that came, and since when they hold
        self._make_stores(NEVER)

    def _make_stores(self, since: int) -> None:
        """Make the stores of the definitions that have none yet."""
        query = replace(self._query, first=self._lives.since.size)
        self._lives.add(len(query.numbers), since)
        none, known = np.empty(0, np.int64), self.closing.groups.size
        for numbers, store in numbered_stores(query):
            limited = LimitedStore(store, numbers, self._lives, query.output)
            if known:  # let it have room for the groups
                limited.add(Page.empty(query.schema), none, none, known)
            self._stores.append(limited)
        self.closing.replace_stores(self._stores)

    def change(self, change: Change) -> None:
        """Let definitions go, and others come.  Raises ``ContractError`` if their time has begun already."""
        self._reached.check(change, self._output.place)
        until, named = self._lives.until, np.array([name in change.drop for name in self._output.names])
        self._end(np.where(named & (until == FOREVER), change.at, until))
        if change.add:
            self._add(change.at, dict(change.add))

    def _end(self, until: Integers) -> None:
        """Let the definitions hold until a time each, int64 (n,)."""
        self._lives.end(until)
        for store in self._stores:
            store.renew()

    def _add(self, since: int, windows: dict[str, Windows]) -> None:
        self._output.add({name: self._bind(name, one) for name, one in windows.items()})
        self._windows += windows.values()
        self._came.append((since, windows))
        self._make_stores(since)

    @property
    def windows(self) -> dict[str, Windows]:
        """The definitions that have not been dropped, by name."""
        every = zip(self._output.names, self._windows, self._lives.until.tolist(), strict=True)
        return {name: one for name, one, until in every if until == FOREVER}

    def add(self, page: Page, times: Integers) -> None:
        """Fold tuples in, at ``times``."""
        self._reached.note(page)
        self.closing.add(page, times)

    def take(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Put out the windows that a punctuation completes; let stores go whose definitions are over."""
        self._reached.note(punctuation)
        yield from self.closing.take(punctuation)
        if isinstance(punctuation, Linear):
            below = min(punctuation.below, FOREVER - 1)
            self._stores = [store for store in self._stores if store.until > below]
            self.closing.replace_stores(self._stores)

    def save(self) -> dict[str, Any]:
        came = [[since, {n: written(one) for n, one in windows.items()}] for since, windows in self._came]
        more = {"came": came, "numbers": [store.numbers for store in self._stores]}
        return self.closing.save() | more | {"until": self._lives.until, "reached": self._reached.largest}

    def load(self, saved: Saved) -> None:
        for part in saved.parts("came"):
            definitions = part.part(1)
            self._add(part.integer(0), {str(name): definition_of(definitions[name]) for name in definitions})
        self._end(saved.integers("until", self._lives.until.shape))
        kept = [list(part.values()) for part in saved.parts("numbers")]
        self._stores = [store for store in self._stores if store.numbers in kept]
        self._reached = Reached(saved.integer("reached"))
        self.closing.replace_stores(self._stores)
        self.closing.load(saved)


def read_change(change: Change) -> Change:
    """Return a change with definitions of windows where they were written down as plain values."""
    some = {name: definition_of(one) for name, one in change.add.items() if isinstance(one, list)}
    return replace(change, add={**change.add, **some}) if some else change


def changed_windows(
    windows: Mapping[str, Windows], change: Change, schema: Schema, place: str
) -> dict[str, Windows]:
    """Return the definitions after a change, by name.

    Raises ``GraphError`` in the name of ``place`` if it does not fit them.
    """
    if unknown := [name for name in change.drop if name not in windows]:
        dropped = f"a change drops {', '.join(unknown)}"
        msg = f"{place}: there are the windows {', '.join(windows)}; {dropped}: name one there is"
        msg += did_you_mean(unknown[0], windows)
        raise GraphError(msg)
    left = {name: one for name, one in windows.items() if name not in change.drop}
    if twice := [name for name in change.add if name in left]:
        way_out = "drop them in the same change, or take another name"
        msg = f"{place}: windows {', '.join(twice)} are there already: {way_out}"
        raise GraphError(msg)
    if not left and not change.add:
        msg = f"{place}: a change drops the last windows, {', '.join(windows)}: leave some, or end the query"
        raise GraphError(msg)
    for name, one in change.add.items():
        is_value = isinstance(one, Windows) and not isinstance(one, type)
        definition = one.bound(schema, f"{place}: {name!r}") if is_value else None
        if (
            definition is not None
            and is_grid(definition)
            and definition.landmark
            and definition.origin < change.at
        ):
            msg = (
                f"{place}: {name!r} would have no window that starts at {change.at} or later, for all start at the "
                f"origin, {definition.origin}: give it a later origin"
            )
            raise GraphError(msg)
    return left | dict(change.add)
