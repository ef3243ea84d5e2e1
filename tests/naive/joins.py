"""Window joins by definition: every pair is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["band", "tumbling", "window_join"]

Row = dict[str, Any]
Times = Callable[[int, int], bool]


def band(before: int, after: int) -> Times:
    return lambda left, right: left - before <= right <= left + after


def tumbling(length: int, origin: int = 0) -> Times:
    return lambda left, right: (left - origin) // length == (right - origin) // length


def window_join(
    left: list[Row],
    right: list[Row],
    keys: Sequence[tuple[str, str]],
    times: Times,
    residual: Callable[[Row], bool | None] = lambda row: True,
    on: tuple[str, str] = ("ts", "ts"),
    suffix: str = "_right",
) -> list[Row]:
    """Return every pair with equal keys (null equals nothing) and fitting times, as one row."""
    pairs = [
        (a, b)
        for a in left
        for b in right
        if times(a[on[0]], b[on[1]]) and all(equal(a[x], b[y]) for x, y in keys)
    ]
    joined = [{**a, **{n + suffix if n in a else n: v for n, v in b.items()}} for a, b in pairs]
    return [row for row in joined if residual(row)]


def equal(a: Any, b: Any) -> bool:
    both_nan = a != a and b != b
    return a is not None and b is not None and (a == b or both_nan)
