"""Registry of accumulators: which one keeps which kind of part.  Nothing else asks for the kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from oop_engine.core.errors import GraphError
from oop_engine.core.registry import Registry
from oop_engine.operators.aggregates import Part
from oop_engine.operators.slicing.accumulator import Accumulator
from oop_engine.operators.slicing.compiled import Compiled

__all__ = ["ACCUMULATORS", "accumulator", "is_compiled", "is_ragged", "register_accumulator"]

ACCUMULATORS = Registry[type[Accumulator]]("accumulator of parts")
"""Accumulators, by the kinds of parts that they keep."""

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


@lru_cache(256)
def accumulator(part: Part) -> Accumulator:
    """Return the accumulator of ``part``; raises ``GraphError`` for a kind that is not registered."""
    if part.kind not in ACCUMULATORS:
        known = ", ".join(ACCUMULATORS)
        msg = f"a part must be of a kind that has an accumulator ({known}); got {part.kind!r}: register_accumulator"
        raise GraphError(msg)
    return ACCUMULATORS[part.kind](part)


def is_compiled(parts: Sequence[Part]) -> bool:
    """Tell whether each of ``parts`` is kept by compiled loops: others take a Python step to put windows together."""
    return all(isinstance(accumulator(part), Compiled) for part in parts)


def is_ragged(parts: Sequence[Part]) -> bool:
    """Tell whether a state of some of ``parts`` is a list: it does not fit cells of one size."""
    return any(accumulator(part).ragged for part in parts)
