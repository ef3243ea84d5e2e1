"""Window joins by definition: every pair is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

__all__ = ["as_of", "band", "joined", "multi_joined", "tumbling", "window_ids", "window_join"]

Row = dict[str, Any]
Times = Callable[[int, int], bool]


def band(before: int, after: int) -> Times:
    return lambda left, right: left - before <= right <= left + after


def tumbling(length: int, origin: int = 0) -> Times:
    return lambda left, right: (left - origin) // length == (right - origin) // length


def window_ids(range_left: int, range_right: int, slide: int, origin: int = 0) -> Times:
    """Both are in a window of one id: windows of one id end together."""

    def ids(time: int, length: int) -> set[int]:
        ends = range(time + 1, time + length + 1)
        return {end for end in ends if (end - origin) % slide == 0}

    return lambda left, right: bool(ids(left, range_left) & ids(right, range_right))


def as_of(
    kind: str,
    left: list[Row],
    right: list[Row],
    keys: Sequence[tuple[str, str]],
    names: tuple[Sequence[str], Sequence[str]],
    within: int | None = None,
    suffix: str = "_right",
) -> list[Row]:
    """Return each left row with the latest right rows of its key that are not after it."""
    found = []
    for a in left:
        before = [
            b
            for b in right
            if all(equal(a[x], b[y]) for x, y in keys)
            and b["ts"] <= a["ts"]
            and (within is None or a["ts"] - b["ts"] <= within)
        ]
        latest = [b for b in before if b["ts"] == max(other["ts"] for other in before)]
        found += joined(kind, [a], latest, keys, lambda *_: True, names=names, suffix=suffix)
    return found


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


def multi_joined(
    inputs: Sequence[list[Row]],
    keys: Sequence[Sequence[str]],
    bands: dict[str, Times],
    on: Sequence[str] = (),
) -> list[Row]:
    """Return every combination of one row of each input, with keys equal to the first one's and times in its bands."""
    on = on or ["ts"] * len(inputs)
    found = []
    for anchor, *others in product(*inputs):
        fits = all(
            times(anchor[on[0]], row[name])
            for times, row, name in zip(bands.values(), others, on[1:], strict=True)
        )
        if fits and all(
            equal(anchor[key[0]], row[n]) for key in keys for row, n in zip(others, key[1:], strict=True)
        ):
            joined = dict(anchor)
            for name, row in zip(bands, others, strict=True):
                joined |= {f"{n}_{name}" if n in joined else n: value for n, value in row.items()}
            found.append(joined)
    return found


def equal(a: Any, b: Any) -> bool:
    both_nan = a != a and b != b
    return a is not None and b is not None and (a == b or both_nan)
