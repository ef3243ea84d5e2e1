"""Registered: windows and aggregates that SQL knows by name; packages and programs add their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oop_engine.core.registry import Registry
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.windows import Windows

__all__ = ["AGGREGATES", "WINDOWS", "register_aggregate", "register_windows"]

MadeWindows = Callable[..., Windows | dict[str, Windows]]
MadeAggregate = Callable[..., Aggregation]

WINDOWS = Registry[MadeWindows]("window function of SQL")
AGGREGATES = Registry[MadeAggregate]("aggregate of SQL")
"""All windows and aggregates of SQL, by their names in capitals."""


def register_windows(name: str) -> Callable[[MadeWindows], MadeWindows]:
    """Make windows known to SQL: ``@register_windows("DOUBLING")`` over a function that makes some, or a class.

    ``FROM DOUBLING(log, ts, INTERVAL '1' MINUTE, 2)`` calls it with the values behind the event time: intervals are of
    ``timedelta``, numbers are integers.
    """
    return _register(WINDOWS, name)


def register_aggregate(name: str) -> Callable[[MadeAggregate], MadeAggregate]:
    """Make an aggregate known to SQL: ``@register_aggregate("ANY_BIT")`` over a function that makes one, or a class.

    ``any_bit(bytes, 3)`` calls it with the names of the columns, then the constants.
    """
    return _register(AGGREGATES, name)


def _register(kinds: Registry[Any], name: str) -> Callable[[Any], Any]:
    return lambda made: kinds.register(name.upper(), made, made.__module__)
