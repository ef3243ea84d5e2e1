"""Triggers by definition: each looks at the whole history of a window anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Window = tuple[int, int]


class Tuple(NamedTuple):
    """A tuple, with its number in the stream and when it arrived."""

    number: int
    time: int
    v: int
    arrived: int


class Look(NamedTuple):
    """One look at a window: what is in it and known then."""

    timing: str
    window: Window
    inside: frozenset[Tuple]
    results: dict[str, Any]
    expected: int
    clock: int
    requested: bool


Firings = Sequence[Look]
"""The looks before at which the window fired, in order."""
Fires = Callable[[Look, Firings, frozenset[int]], bool]
"""Whether a trigger fires now; at the firings of these places it was asked."""


def _new(now: Look, before: Firings) -> frozenset[Tuple]:
    return now.inside.difference(*(look.inside for look in before))


def after_count(n: int) -> Fires:
    return lambda now, before, _: len(_new(now, before)) >= n


def after_match(v: int) -> Fires:
    return lambda now, before, _: any(one.v == v for one in _new(now, before))


def after_fraction(share: float) -> Fires:
    def passed(look: Look) -> bool:
        start, end = look.window
        return look.expected - start >= share * (end - start)

    return lambda now, before, _: passed(now) and not (before and passed(before[-1]))


def after_change(name: str, by: float) -> Fires:
    return lambda now, before, _: not before or abs(now.results[name] - before[-1].results[name]) > by


def after_delay(length: int) -> Fires:
    return lambda now, before, _: any(now.clock - one.arrived >= length for one in _new(now, before))


def on_request() -> Fires:
    return lambda now, _before, _: now.requested


def after_any(*of: Fires) -> Fires:
    return lambda now, before, asked: any(one(now, before, asked) for one in of)


def after_all(*of: Fires) -> Fires:
    return lambda now, before, asked: all(one(now, before, asked) for one in of)


def _fired(one: Fires, before: Firings, asked: frozenset[int]) -> list[int]:
    """The places at which a trigger was asked and fired."""
    return [at for at in sorted(asked) if one(before[at], before[:at], frozenset(a for a in asked if a < at))]


def once(of: Fires) -> Fires:
    return lambda now, before, asked: not _fired(of, before, asked) and of(now, before, asked)


def or_finally(of: Fires, last: Fires) -> Fires:
    def fires(now: Look, before: Firings, asked: frozenset[int]) -> bool:
        return not _fired(last, before, asked) and (of(now, before, asked) or last(now, before, asked))

    return fires


def after_each(*of: Fires) -> Fires:
    def fires(now: Look, before: Firings, asked: frozenset[int]) -> bool:
        for one in of[:-1]:
            if not (fired := _fired(one, before, asked)):
                return one(now, before, asked)
            asked = frozenset(at for at in asked if at > fired[0])  # the next one is asked from then on
        return of[-1](now, before, asked)

    return fires
