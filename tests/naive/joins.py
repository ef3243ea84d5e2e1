"""Window joins by definition: every pair is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

__all__ = ["band", "joined", "tumbling", "window_join"]

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


def joined(
    kind: str,
    left: list[Row],
    right: list[Row],
    keys: Sequence[tuple[str, str]],
    times: Times,
    residual: Callable[[Row], bool | None] = lambda row: True,
    names: tuple[Sequence[str], Sequence[str]] = (),  # type: ignore[assignment]
    on: tuple[str, str] = ("ts", "ts"),
    suffix: str = "_right",
) -> list[Row]:
    """Return the rows of a join of a ``kind``; ``names``: the columns of both sides."""
    renamed = [n + suffix if n in names[0] or (kind == "full" and n == "time") else n for n in names[1]]
    pairs, left_met, right_met = list[Row](), set[int](), set[int]()
    for (i, a), (j, b) in product(enumerate(left), enumerate(right)):
        row = {**a, **dict(zip(renamed, (b[n] for n in names[1]), strict=True))}
        if times(a[on[0]], b[on[1]]) and all(equal(a[x], b[y]) for x, y in keys) and residual(row):
            pairs.append({"time": min(a[on[0]], b[on[1]]), **row} if kind == "full" else row)
            left_met.add(i)
            right_met.add(j)
    if kind in ("semi", "anti"):
        return [a for i, a in enumerate(left) if (i in left_met) == (kind == "semi")]
    lone = [{**a, **dict.fromkeys(renamed)} for i, a in enumerate(left) if i not in left_met]
    if kind != "full":
        return pairs + lone * (kind == "left")
    nothing = dict.fromkeys(names[0])
    of_right = [
        {**nothing, **dict(zip(renamed, (b[n] for n in names[1]), strict=True)), "time": b[on[1]]}
        for j, b in enumerate(right)
        if j not in right_met
    ]
    return pairs + [{**row, "time": row[on[0]]} for row in lone] + of_right


def equal(a: Any, b: Any) -> bool:
    both_nan = a != a and b != b
    return a is not None and b is not None and (a == b or both_nan)
