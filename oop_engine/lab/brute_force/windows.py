"""Windows of brute force, from their definitions: which tuples are in which window, as pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.lab.brute_force.aggregates import NoTruthError
from oop_engine.lab.brute_force.folded import FOLDED, GroupedTuples, Window
from oop_engine.operators.windows import FixedBand, Global, Intervals, Landmark, Session, Sliding, Tumbling

__all__ = ["Members", "members", "memberships"]

Integers = NDArray[np.int64]
_MOST = 50_000_000  # pairs of a tuple and a window: some GB, and a minute


class Members(NamedTuple):
    """Pairs of a tuple's row and a window of its group, ``[starts, ends)``, int64 (pairs,) each.

    Where extents do not tell windows apart, ``numbers`` do; ``more``: by number of the window, columns of its result.
    """

    rows: Integers
    starts: Integers
    ends: Integers
    numbers: Integers | None = None
    more: Sequence[pa.Array] = ()


def members(windows: Any, tuples: GroupedTuples) -> Members:
    """Return all pairs.  Raises ``NoTruthError`` for windows without a short definition."""
    schema, times, groups = tuples.schema, tuples.times, tuples.groups
    definition: Any = windows.bound(schema)
    if (spelt := FOLDED.get(type(windows))) is not None:
        return _numbered(list(spelt(windows, tuples)), getattr(definition, "more", lambda _: [])(schema))
    if isinstance(windows, Sliding | Tumbling):
        _check(times.size * -(-definition.range // definition.slide))
        pairs = list(memberships(times, definition.range, definition.slide, definition.origin))
        rows, ends = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return Members(rows, ends - definition.range, ends)
    if isinstance(windows, Session):
        return _sessions(times, groups, definition.gap, getattr(definition, "most", None))
    if isinstance(windows, Global):
        return _whole(times, groups)
    if isinstance(windows, Intervals | FixedBand):
        return _given([(start, end) for end, start in definition.sides_of], times)
    if isinstance(windows, Landmark) and not windows.lulls:
        inside = times[times >= definition.origin]
        many = 0 if not inside.size else (int(inside.max()) - definition.origin) // definition.slide + 1
        _check(times.size * many)
        first = definition.origin
        return _given([(first, first + (k + 1) * definition.slide) for k in range(many)], times)
    msg = f"windows of {type(windows).__name__} are not evaluated by brute force"
    raise NoTruthError(msg)


def memberships(
    times: Integers, range_: int, slide: int, origin: int = 0
) -> Iterator[tuple[Integers, Integers]]:
    """Yield (rows, window ends): all pairs in which the window ``[end - range_, end)`` contains the row's time."""
    first_end = ((times - origin) // slide + 1) * slide + origin  # the first end behind the time
    for k in range(-(-range_ // slide)):
        ends = first_end + k * slide
        inside = np.flatnonzero((ends - range_ <= times) & (times < ends))
        yield inside, ends[inside]


def _check(pairs: int) -> None:
    if pairs > _MOST:
        msg = f"{pairs:,} pairs of a tuple and a window are too many for brute force; {_MOST:,} would do"
        raise NoTruthError(msg)


def _numbered(windows: list[Window], more: Sequence[tuple[str, pa.DataType]]) -> Members:
    sizes = [window.rows.size for window in windows]
    _check(sum(sizes))
    rows = np.concatenate([np.empty(0, np.int64), *(window.rows for window in windows)])
    starts, ends = (np.array([window[side] for window in windows], np.int64) for side in (1, 2))
    columns = zip(*(window.more for window in windows), strict=True) if windows else [()] * len(more)
    numbers = np.repeat(np.arange(len(windows)), sizes)
    more_columns = [pa.array(column, kind) for column, (_, kind) in zip(columns, more, strict=True)]
    return Members(rows, starts[numbers], ends[numbers], numbers, more_columns)


def _given(extents: list[tuple[int, int]], times: Integers) -> Members:
    inside = [np.flatnonzero((times >= start) & (times < end)) for start, end in extents]
    sizes = [rows.size for rows in inside]
    starts, ends = np.array(extents, np.int64).reshape(-1, 2).T
    rows = np.concatenate([np.empty(0, np.int64), *inside])
    return Members(rows, np.repeat(starts, sizes), np.repeat(ends, sizes))


def _sessions(times: Integers, groups: Integers, gap: int, most: int | None) -> Members:
    """Cut each group's tuples, in order, where two are further apart than the gap, or one is ``most`` too late."""
    order = np.lexsort((times, groups))
    sessions: list[list[int]] = []
    for row in order.tolist():
        head = sessions[-1] if sessions else [row]
        near = bool(sessions) and groups[row] == groups[head[0]] and times[row] - times[head[-1]] <= gap
        if near and (most is None or times[row] - times[head[0]] < most):
            head.append(row)
        else:
            sessions.append([row])
    firsts, lasts = ([times[session[place]] for session in sessions] for place in (0, -1))
    starts, ends = np.array(firsts, np.int64), np.array(lasts, np.int64) + gap
    if most is not None:
        ends = np.minimum(ends, starts + most)
    sizes = [len(session) for session in sessions]
    return Members(order, np.repeat(starts, sizes), np.repeat(ends, sizes))


def _whole(times: Integers, groups: Integers) -> Members:
    distinct, group_of = np.unique(groups, return_inverse=True)
    first, last = (
        np.array([end(times[groups == g]) for g in distinct], np.int64) for end in (np.min, np.max)
    )
    return Members(np.arange(times.size), first[group_of], last[group_of] + 1)
