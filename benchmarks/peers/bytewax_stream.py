"""Bytewax: windows over an event clock, in one worker.

Tuples are Python tuples that were made before; the source hands out a thousand at a time.  The
clock of the wall stands still, so that only tuples make progress.  Progress is kept for each key.
There is no band join: it is a ``stateful_map`` with a list of each side for each flow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import numpy as np
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

from benchmarks.contender import Contender
from benchmarks.data import ORIGIN, SECOND, Columns

__all__ = ["contender"]

MINUTE = 60 * SECOND
SLACK = 7 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FROZEN = datetime(2030, 1, 1, tzinfo=UTC)
Row = tuple[Any, ...]


def contender(name: str, workload: str, columns: Columns) -> Contender:
    """Return the dataflow of ``workload`` over ``columns``."""
    make, run, results = FLOWS[workload]
    rows = list(make(columns))
    return Contender(lambda: None, lambda _: run(rows), results)


class _Batches(StatelessSourcePartition[Row]):
    def __init__(self, rows: list[Row]) -> None:
        self._batches = (rows[start : start + 1000] for start in range(0, len(rows), 1000))

    def next_batch(self) -> Iterable[Row]:
        return next(self._batches)


class _Source(DynamicSource[Row]):
    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Batches:
        return _Batches(self._rows)


class _Kept(StatelessSinkPartition[Any]):
    def __init__(self, kept: list[Any]) -> None:
        self._kept = kept

    def write_batch(self, items: list[Any]) -> None:
        self._kept.extend(items)


class _Sink(DynamicSink[Any]):
    def __init__(self, kept: list[Any]) -> None:
        self._kept = kept

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Kept:
        return _Kept(self._kept)


def instants(columns: Columns) -> Iterable[datetime]:
    return (EPOCH + timedelta(microseconds=int(time)) for time in columns["ts"])


def folded(
    windowers: dict[int, Any], slack: int, add: Callable[[int, Row], int]
) -> Callable[[list[Row]], Any]:
    """Return a run of one fold for each windower; it returns (key, (window, value)) for each."""

    def run(rows: list[Row]) -> dict[int, list[Any]]:
        kept: dict[int, list[Any]] = {at: [] for at in windowers}
        flow = Dataflow("bench")
        keyed = op.key_on("key", op.input("in", flow, _Source(rows)), lambda row: row[1])
        for at, windower in windowers.items():
            clock = win.EventClock(
                lambda row: row[0], timedelta(microseconds=slack), now_getter=lambda: FROZEN
            )
            windows = win.fold_window(
                f"windows_{at}", keyed, clock, windower, lambda: 0, add, lambda a, b: a + b, ordered=False
            )
            op.output(f"out_{at}", windows.down, _Sink(kept[at]))
        run_main(flow)
        return kept

    return run


def sliding(length: int, slide: int) -> Any:
    """Return windows, of which number 0 begins at the origin of the data."""
    if length == slide:
        return win.TumblingWindower(timedelta(microseconds=length), EPOCH + timedelta(microseconds=ORIGIN))
    lengths = timedelta(microseconds=length), timedelta(microseconds=slide)
    return win.SlidingWindower(*lengths, EPOCH + timedelta(microseconds=ORIGIN))


def keyed_results(slide: int, value: str, by: bool) -> Callable[[dict[int, list[Any]]], Columns]:
    def results(kept: dict[int, list[Any]]) -> Columns:
        [rows] = kept.values()
        found = {"window_start": np.array([ORIGIN + window * slide for _, (window, _) in rows])}
        if by:
            found["src"] = np.array([int(key) for key, _ in rows])
        return {**found, value: np.array([total for _, (_, total) in rows])}

    return results


def all_lengths(kept: dict[int, list[Any]]) -> Columns:
    rows = [(at, window * at * SECOND, total) for at, found in kept.items() for _, (window, total) in found]
    return dict(zip(("length", "window_start", "total"), np.array(rows).T, strict=True))


def join(rows: list[Row]) -> Counter[int]:
    """Keep both sides of each flow; look along the other side for what is near."""

    def step(state: tuple[list[int], list[int]] | None, row: Row) -> tuple[Any, list[int]]:
        time, _, side = row
        state = state or ([], [])
        mine, other = state[side], state[1 - side]
        other[:] = [there for there in other if there >= time - SECOND - SLACK]
        mine.append(time)
        near = (there for there in other if abs(time - there) <= SECOND)
        return state, [(there if side else time) // MINUTE for there in near]

    kept: list[Any] = []
    flow = Dataflow("bench")
    keyed = op.key_on("key", op.input("in", flow, _Source(rows)), lambda row: row[1])
    op.output("out", op.stateful_map("join", keyed, step), _Sink(kept))
    run_main(flow)
    return Counter(minute for _, minutes in kept for minute in minutes)


def counted(found: Counter[int]) -> Columns:
    return {
        "window_start": np.array([minute * MINUTE for minute in found]),
        "count": np.array(list(found.values())),
    }


def with_key(name: str, value: str) -> Callable[[Columns], Iterable[Row]]:
    return lambda c: zip(instants(c), map(str, c[name].tolist()), c[value].tolist(), strict=True)


def without_key(value: str) -> Callable[[Columns], Iterable[Row]]:
    return lambda c: (
        (instant, "all", number) for instant, number in zip(instants(c), c[value].tolist(), strict=True)
    )


def one_more(total: int, row: Row) -> int:
    return total + 1


def more(total: int, row: Row) -> int:
    return total + int(row[2])


LENGTHS = {at: win.TumblingWindower(timedelta(seconds=at), EPOCH) for at in range(1, 21)}
FLOWS: dict[str, tuple[Any, Any, Any]] = {
    "W1": (
        without_key("len"),
        folded({0: sliding(5 * MINUTE, MINUTE)}, SLACK, one_more),
        keyed_results(MINUTE, "count", by=False),
    ),
    "W2": (
        with_key("src", "len"),
        folded({0: sliding(10 * SECOND, SECOND)}, SLACK, more),
        keyed_results(SECOND, "total", by=True),
    ),
    "W3": (
        with_key("src", "len"),
        folded({0: sliding(SECOND, SECOND)}, SLACK, one_more),
        keyed_results(SECOND, "count", by=True),
    ),
    "W4": (
        lambda c: zip(c["ts"].tolist(), map(str, c["flow"].tolist()), c["side"].tolist(), strict=True),
        join,
        counted,
    ),
    "W5": (without_key("v"), folded(LENGTHS, 2 * SECOND, more), all_lengths),
}
