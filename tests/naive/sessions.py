"""Session windows from the definition: a group's tuples, sorted, are cut where two are further apart than the gap."""

from __future__ import annotations

from tests.naive.windows import Functions, Row, result

__all__ = ["sessions", "whole"]


def sessions(
    rows: list[Row], time: str, by: tuple[str, ...], functions: Functions, gap: int, most: int | None = None
) -> list[Row]:
    """Return the result of every session; ``most``: none is longer."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[b] for b in by), []).append(row)
    results = []
    for key, of_group in groups.items():
        for session in _cut(sorted(of_group, key=lambda row: row[time]), time, gap, most):
            first, end = session[0][time], session[-1][time] + gap
            bounds = (first, end if most is None else min(end, first + most))
            results.append(result(by, key, bounds, functions, session))
    return results


def whole(rows: list[Row], time: str, by: tuple[str, ...], functions: Functions) -> list[Row]:
    """Return the result of all tuples of each group."""
    results = []
    for key in {tuple(row[b] for b in by) for row in rows}:
        inside = [row for row in rows if tuple(row[b] for b in by) == key]
        times = [row[time] for row in inside]
        results.append(result(by, key, (min(times), max(times) + 1), functions, inside))
    return results


def _cut(ordered: list[Row], time: str, gap: int, most: int | None) -> list[list[Row]]:
    found: list[list[Row]] = []
    for row in ordered:
        near = bool(found) and row[time] - found[-1][-1][time] <= gap
        if near and (most is None or row[time] - found[-1][0][time] < most):
            found[-1].append(row)
        else:
            found.append([row])
    return found
