"""Window aggregation from the definition: which windows there are, and which tuples are in each.

Extents are spelt out window by window and tuple by tuple; nothing here knows a promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.naive.aggregates import aggregate

__all__ = ["aggregate", "extent", "landmark", "number", "result", "sliding"]

Row = dict[str, Any]
Functions = dict[str, Callable[[list[Row]], Any]]


def extent(wid: int, range: int | None, slide: int, origin: int = 0) -> tuple[int, int]:
    """Return what window ``wid`` covers, [start, end)."""
    end = origin + (wid + 1) * slide
    return (origin if range is None else end - range), end


def candidates(time: int, range_: int, slide: int, origin: int) -> Iterable[int]:
    """Return more windows than ``time`` can be in."""
    middle = (time - origin) // slide
    return range(middle - 2, middle + range_ // slide + 3)


def sliding(
    rows: list[Row], time: str, by: tuple[str, ...], functions: Functions,
    range: int, slide: int, origin: int = 0, *, empty: bool = False,
) -> list[Row]:  # fmt: skip
    """Return the result of every (group, window) with a tuple; ``empty``: those between as well."""
    windows: dict[tuple[Any, ...], dict[int, list[Row]]] = {}
    for row in rows:
        for wid in candidates(row[time], range, slide, origin):
            start, end = extent(wid, range, slide, origin)
            if start <= row[time] < end:
                windows.setdefault(tuple(row[b] for b in by), {}).setdefault(wid, []).append(row)
    results = []
    for key, of_group in windows.items():
        wids = sorted(of_group)
        for wid in _between(wids) if empty else wids:
            bounds = extent(wid, range, slide, origin)
            results.append(result(by, key, bounds, functions, of_group.get(wid, [])))
    return results


def landmark(
    rows: list[Row],
    time: str,
    by: tuple[str, ...],
    functions: Functions,
    slide: int,
    origin: int = 0,
    lull: int | None = None,
) -> list[Row]:
    """Return every group with a tuple in the extent, for every window up to that of the last tuple.

    ``lull``: and for those that end by this bound.
    """
    rows = [row for row in rows if row[time] >= origin]
    results = []
    latest = max(((row[time] - origin) // slide for row in rows), default=-1)
    if lull is not None:
        latest = max(latest, (lull - origin) // slide - 1)
    for wid in range(latest + 1):
        start, end = extent(wid, None, slide, origin)
        inside = [row for row in rows if row[time] < end]
        for key in {tuple(row[b] for b in by) for row in inside}:
            of_group = [row for row in inside if tuple(row[b] for b in by) == key]
            results.append(result(by, key, (start, end), functions, of_group))
    return results


def number(rows: list[Row], by: tuple[str, ...] = ()) -> list[Row]:
    """Return the rows with their number of arrival, ``row``, within their group."""
    seen: dict[tuple[Any, ...], int] = {}
    numbered = []
    for row in rows:
        key = tuple(row[b] for b in by)
        numbered.append({**row, "row": seen.get(key, 0)})
        seen[key] = seen.get(key, 0) + 1
    return numbered


def _between(wids: list[int]) -> Iterable[int]:
    return range(wids[0], wids[-1] + 1)


def result(
    by: tuple[str, ...], key: tuple[Any, ...], extent: tuple[int, int], functions: Functions, rows: list[Row]
) -> Row:
    start, end = extent
    values = {name: function(rows) for name, function in functions.items()}
    return {**dict(zip(by, key, strict=True)), "window_start": start, "window_end": end, **values}
