"""Promises and watermarks from their definitions, so plainly that they must be right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oop_engine import FOREVER, GroupWise, Joint, Linear, Punctuation

__all__ = [
    "Keeps",
    "Promised",
    "bounded_count",
    "bounded_disorder",
    "floor",
    "guard_by_stream",
    "least_next",
    "ordered",
    "punctuate",
    "punctuate_groups",
]

Row = dict[str, Any]
Keeps = Callable[[Sequence[int], int], bool]


class Promised:
    """All that was promised, as a set of (group, time) cells; groups are (k, n) pairs."""

    def __init__(self, groups: Iterable[tuple[Any, Any]], times: Iterable[int]) -> None:
        self.all = {(g, t) for g in groups for t in times}
        self.cells: set[tuple[tuple[Any, Any], int]] = set()

    def add(self, punctuation: Punctuation) -> None:
        match punctuation:
            case Linear(below):
                self.cells |= {(g, t) for g, t in self.all if t < below}
            case GroupWise(groups, below):
                for key, bound in zip(groups.to_pylist(), below.tolist(), strict=True):
                    self.cells |= {
                        ((k, n), t)
                        for (k, n), t in self.all
                        if t < bound and key.items() <= {"k": k, "n": n}.items()
                    }
            case Joint():
                raise AssertionError(punctuation)


def ordered(prefix: Sequence[int], value: int) -> bool:
    return all(before <= value for before in prefix)


def bounded_disorder(slack: int) -> Keeps:
    return lambda prefix, value: all(before - value <= slack for before in prefix)


def bounded_count(n: int) -> Keeps:
    return lambda prefix, value: sum(before > value for before in prefix) <= n


def least_next(prefix: Sequence[int], keeps: Keeps, lowest: int) -> int | None:
    """Return the least value that may follow; None if it can be as low as one likes."""
    found = next(v for v in range(lowest, max(prefix, default=lowest) + 1) if keeps(prefix, v))
    return None if found == lowest else found


def floor(bound: int | None, granularity: int) -> int | None:
    return bound if bound in (None, FOREVER) else bound // granularity * granularity


def punctuate(
    rows: list[Row], keeps: Keeps, granularity: int, lowest: int
) -> tuple[list[Row], list[Row], list[int]]:
    """Return the tuples on time, those late, and the promises, one tuple after the other."""
    on_time, late, said = [], [], []
    for i, row in enumerate(rows):
        (late if said and row["ts"] < said[-1] else on_time).append(row)
        bound = floor(least_next([r["ts"] for r in rows[: i + 1]], keeps, lowest), granularity)
        if bound is not None and (not said or bound > said[-1]):
            said.append(bound)
    return on_time, late, said


def punctuate_groups(
    rows: list[Row], keeps: Keeps, granularity: int, lowest: int
) -> tuple[list[Row], list[Row], list[dict[Any, int]]]:
    """The same for each ``k``: promises of all groups when the pace-maker's has grown.

    That is a group that has grown twice since the last time, or that made the last time.
    """
    on_time, late, said = [], [], []
    told: dict[Any, int] = {}
    bounds: dict[Any, int] = {}
    pending: set[Any] = set()
    leader: list[Any] = []
    for i, row in enumerate(rows):
        k = row["k"]
        (late if k in told and row["ts"] < told[k] else on_time).append(row)
        bound = floor(least_next([r["ts"] for r in rows[: i + 1] if r["k"] == k], keeps, lowest), granularity)
        if bound is None or bound <= bounds.get(k, lowest):
            continue
        bounds[k] = bound
        if not leader or k == leader[0] or k in pending:
            said.append({g: b for g, b in bounds.items() if b > told.get(g, lowest)})
            told, pending, leader = dict(bounds), set(), [k]
        else:
            pending.add(k)
    return on_time, late, said


def guard_by_stream(rows: list[Row], limit: int, patience: int | None) -> tuple[list[Row], list[Row]]:
    """Return the accepted and the refused."""
    accepted, refused, far = [], [], []
    reference: int | None = None
    for row in rows:
        ts = row["ts"]
        if reference is not None and ts > reference + limit:
            far.append(ts)
            if patience is not None and len(far) > patience:
                reference, far = min(far), []
            if ts > reference + limit:
                refused.append(row)
                continue
        far = []
        reference = ts if reference is None else max(reference, ts)
        accepted.append(row)
    return accepted, refused
