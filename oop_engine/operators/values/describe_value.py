"""How a value of the library is written: for the drawings of a graph."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["describe_value"]


def describe_value(value: Any) -> str:
    """Return a value as one would write it, defaults left out.

    >>> from oop_engine.operators.windows import Sliding
    >>> describe_value(Sliding("3 h", "15 min"))
    "Sliding('3 h', '15 min')"
    """
    if not is_dataclass(value) or isinstance(value, type):
        return str(getattr(value, "__name__", repr(value))) if callable(value) else repr(value)
    given = [(f, getattr(value, f.name)) for f in fields(value) if f.init]
    given = [(f, v) for f, v in given if type(v) is not type(f.default) or v != f.default]
    by_place = [f for f in fields(value) if f.init and not f.kw_only]
    plain = len(given) <= 2 and [f for f, _ in given] == by_place[: len(given)]
    words = (describe_value(v) if plain else f"{f.name}={describe_value(v)}" for f, v in given)
    return f"{type(value).__name__}({', '.join(words)})"
