"""Windows that need the order of time, from their definitions: tuples sorted, windows spelt out one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from tests.naive.windows import Functions, Row, candidates, extent, result

__all__ = [
    "delimited",
    "frames",
    "groups_of",
    "intervals",
    "last_rows",
    "ranked",
    "rows_between",
    "slide_by_tuple",
]

Key = tuple[Any, ...]
Predicate = Callable[[Row], bool]


def in_time(rows: list[Row], tie: Sequence[str] = ()) -> list[Row]:
    """Return rows by time, tie and arrival; null is behind all others."""
    return sorted(rows, key=lambda row: (row["ts"], *((row[name] is None, row[name] or 0) for name in tie)))


def groups_of(rows: list[Row], by: tuple[str, ...]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[b] for b in by), []).append(row)
    return found


def ranked(
    rows: list[Row], by: tuple[str, ...], functions: Functions, range_: int, slide: int,
    tie: Sequence[str] = (), *, grouped: bool,
) -> list[Row]:  # fmt: skip
    """Return the windows of ranks, of the stream or of each group, for each group in them."""
    results = []
    for some in groups_of(rows, by).values() if grouped else [rows]:
        ordered = in_time(some, tie)
        wids = {wid for rank in range(len(ordered)) for wid in candidates(rank, range_, slide, 0)}
        for start, end in (extent(wid, range_, slide) for wid in wids):
            window = [row for rank, row in enumerate(ordered) if start <= rank < end]
            times = {"time_start": window[0]["ts"], "time_end": window[-1]["ts"] + 1} if window else {}
            for key, inside in groups_of(window, by).items():
                results.append({**result(by, key, (start, end), functions, inside), **times})
    return results


def intervals(
    rows: list[Row], by: tuple[str, ...], functions: Functions, extents: Sequence[tuple[int, int]]
) -> list[Row]:
    """Return every interval of each group with a tuple in it."""
    results = []
    for start, end in set(extents):
        window = [row for row in rows if start <= row["ts"] < end]
        for key, inside in groups_of(window, by).items():
            results.append(result(by, key, (start, end), functions, inside))
    return results


def delimited(
    rows: list[Row], by: tuple[str, ...], functions: Functions, marker: Predicate, scope: str
) -> list[Row]:
    """Return the windows from marker to marker, and those before the first and behind the last one."""
    results = []
    for key, of_group in groups_of(rows, by).items():
        deciding = rows if scope == "stream" else of_group
        times = [row["ts"] for row in deciding]
        edges = sorted({min(times), max(times) + 1, *(row["ts"] for row in deciding if marker(row))})
        for start, end in pairwise(edges):
            inside = [row for row in of_group if start <= row["ts"] < end]
            if inside:
                results.append(result(by, key, (start, end), functions, inside))
    return results


def slide_by_tuple(
    rows: list[Row], by: tuple[str, ...], functions: Functions, range_: int, every: int = 1, of: str = "tuple",
    carry: Sequence[str] = (), *, own: bool = False,
) -> list[Row]:  # fmt: skip
    """Return the window that ends with each tuple that asks; ``own``: its extent is that of the tuple."""
    results = []
    for key, of_group in groups_of(rows, by).items():
        ordered = of_group if of == "arrival" else in_time(of_group)
        for asking in ordered[every - 1 :: every]:
            end = asking["ts"] + 1
            inside = [row for row in of_group if end - range_ <= row["ts"] < end]
            carried = {name: asking[name] for name in carry}
            start = end - 1 if own else end - range_
            results.append({**result(by, key, (start, end), functions, inside), **carried})
    return results


def rows_between(
    rows: list[Row], by: tuple[str, ...], functions: Functions, first: int, last: int,
    tie: Sequence[str] = (), carry: Sequence[str] = (),
) -> list[Row]:  # fmt: skip
    """Return for each tuple the window of those from the offset ``first`` to ``last`` of its group."""
    results = []
    for key, of_group in groups_of(rows, by).items():
        ordered = in_time(of_group, tie)
        for rank, own in enumerate(ordered):
            inside = [row for at, row in enumerate(ordered) if first <= at - rank <= last]
            carried = {name: own[name] for name in carry}
            extent_of = (own["ts"], own["ts"] + 1)
            results.append({**result(by, key, extent_of, functions, inside), **carried})
    return results


def last_rows(
    rows: list[Row], by: tuple[str, ...], functions: Functions, number: int, every: int, origin: int = 0,
    tie: Sequence[str] = (), bound: int | None = None,
) -> list[Row]:  # fmt: skip
    """Return the last tuples before each time of the grid, up to that of the last tuple, or as far as ``bound``."""
    results = []
    for key, of_group in groups_of(rows, by).items():
        ordered = in_time(of_group, tie)
        first, last = ((row["ts"] - origin) // every + 1 for row in (ordered[0], ordered[-1]))
        if bound is not None:
            last = max(last, (bound - origin) // every)
        for at in range(first, last + 1):
            end = origin + at * every
            inside = [row for row in ordered if row["ts"] < end][-number:]
            results.append(result(by, key, (inside[0]["ts"], end), functions, inside))
    return results


def frames(
    rows: list[Row], by: tuple[str, ...], functions: Functions, enter: Predicate, leave: Predicate,
    tie: Sequence[str] = (), most: int | None = None, *, unfinished: bool = False,
) -> list[Row]:  # fmt: skip
    """Return the frames from a tuple that enters to the next one that leaves."""
    results = []
    for key, of_group in groups_of(rows, by).items():
        closed, frame = [], list[Row]()
        for row in in_time(of_group, tie):
            if frame and most is not None and row["ts"] >= frame[0]["ts"] + most:
                closed.append(frame)
                frame = []
            if frame or enter(row):
                frame = [*frame, row]
            if len(frame) > 1 and leave(row):
                closed.append(frame)
                frame = []
        if frame and (unfinished or most is not None):
            closed.append(frame)
        for some in closed:
            results.append(result(by, key, (some[0]["ts"], some[-1]["ts"] + 1), functions, some))
    return results
