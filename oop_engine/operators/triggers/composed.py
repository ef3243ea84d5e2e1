"""Triggers made of triggers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.triggers.basic import (
    Integers,
    Mask,
    Trigger,
    WindowView,
    check_trigger,
    fired,
    state_after,
)

__all__ = ["AfterAll", "AfterAny", "AfterEach", "Once", "OrFinally"]


@checked_arguments
class _Composed(Trigger):
    """``of`` some triggers; ``own`` columns of state of its own come first."""

    own = 0

    def __init__(self, *triggers: Trigger) -> None:
        if not triggers or not all(isinstance(trigger, Trigger) for trigger in triggers):
            msg = f"{type(self).__name__}: needs triggers, such as AfterCount(1); got {triggers}"
            raise GraphError(msg)
        for trigger in triggers:
            check_trigger(trigger)
        self.of = triggers
        self.width = self.own + sum(trigger.width for trigger in triggers)
        self.adds = (*(False,) * self.own, *(adds for trigger in triggers for adds in trigger.adds))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.of))})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, _Composed) and self.of == other.of

    def __hash__(self) -> int:
        return hash((type(self), self.of))

    def check(self, names: list[str], schema: Schema, place: str) -> None:
        for trigger in self.of:
            trigger.check(names, schema, place)

    def leaves(self) -> Iterator[Trigger]:
        for trigger in self.of:
            yield from trigger.leaves()

    def each(self, state: Integers) -> Iterator[tuple[Trigger, Integers]]:
        """Yield the triggers, each with its columns of state."""
        at = self.own
        for trigger in self.of:
            yield trigger, state[:, at : at + trigger.width]
            at += trigger.width

    def all_fire(self, view: WindowView, state: Integers) -> list[Mask]:
        """Return for each trigger where it fires."""
        return [fired(trigger, view, part) for trigger, part in self.each(state)]

    def after(self, view: WindowView, state: Integers, asked: Mask) -> Integers:
        parts = [state_after(trigger, view, part, asked) for trigger, part in self.each(state)]
        return np.hstack([state[:, : self.own], *parts])


class AfterAny(_Composed):
    """One of some triggers fires."""

    def fires(self, view: WindowView, state: Integers) -> Mask:
        """Return for which windows it fires, from the results of its parts."""
        fired: Mask = np.logical_or.reduce(self.all_fire(view, state))
        return fired


class AfterAll(_Composed):
    """All of some triggers fire."""

    def fires(self, view: WindowView, state: Integers) -> Mask:
        fired: Mask = np.logical_and.reduce(self.all_fire(view, state))
        return fired


class AfterEach(_Composed):
    """The first trigger, then the second, and so on; the last one again and again."""

    own = 1  # which one is next

    def fires(self, view: WindowView, state: Integers) -> Mask:
        fires: Mask = np.choose(state[:, 0], self.all_fire(view, state))
        return fires

    def after(self, view: WindowView, state: Integers, asked: Mask) -> Integers:
        turn = state[:, 0]
        parts = [
            state_after(trigger, view, part, asked & (turn == number))
            for number, (trigger, part) in enumerate(self.each(state))
        ]
        following = turn + (asked & self.fires(view, state))
        return np.hstack([np.minimum(following, len(self.of) - 1)[:, None], *parts])


@checked_arguments
class Once(_Composed):
    """A trigger the first time alone."""

    own = 1  # whether it is over

    def __init__(self, of: Trigger) -> None:
        super().__init__(of)

    def fires(self, view: WindowView, state: Integers) -> Mask:
        fired: Mask = self.all_fire(view, state)[0] & (state[:, 0] == 0)
        return fired

    def after(self, view: WindowView, state: Integers, asked: Mask) -> Integers:
        over = state[:, 0] | (asked & self.fires(view, state))
        state = super().after(view, state, asked)
        state[:, 0] = over
        return state


@checked_arguments
class OrFinally(_Composed):
    """A trigger until another one, ``last``, has fired; then no more."""

    own = 1  # whether it is over

    def __init__(self, of: Trigger, last: Trigger) -> None:
        super().__init__(of, last)

    def fires(self, view: WindowView, state: Integers) -> Mask:
        first, last = self.all_fire(view, state)
        fired: Mask = (first | last) & (state[:, 0] == 0)
        return fired

    def after(self, view: WindowView, state: Integers, asked: Mask) -> Integers:
        over = state[:, 0] | (asked & self.all_fire(view, state)[1])
        state = super().after(view, state, asked)
        state[:, 0] = over
        return state
