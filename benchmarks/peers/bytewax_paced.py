"""Bytewax at a pace: ``.peers/bytewax/bin/python -m benchmarks.peers.bytewax_paced ROWS RATE`` (see ``pace``).

Its clock of event time is one of each key, so a window of a key is complete at a row of that key.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.testing import run_main

from benchmarks.peers.pace import SLACK, SOURCES, WINDOW, Pace, key

__all__ = ["paced"]

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
FROZEN = datetime(2030, 1, 1, tzinfo=UTC)
STEP = timedelta(milliseconds=1)


class _Rows(StatelessSourcePartition[Any]):
    def __init__(self, pace: Pace, source: int) -> None:
        self._pace, self._row = pace, source

    def next_batch(self) -> list[Any]:
        rows = []
        while self._row < self._pace.rows and self._pace.due(self._row) <= 0:
            n = self._pace.give(self._row)
            rows.append((EPOCH + n * STEP, str(key(n)), n))
            self._row += SOURCES
        if not rows and self._row >= self._pace.rows:
            raise StopIteration
        return rows

    def next_awake(self) -> datetime | None:
        wait_s = self._pace.due(self._row) if self._row < self._pace.rows else 0
        return datetime.now(UTC) + timedelta(seconds=wait_s) if wait_s > 0 else None


class _Source(DynamicSource[Any]):
    def __init__(self, pace: Pace, source: int) -> None:
        self._given = pace, source

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Rows:
        return _Rows(*self._given)


def paced(rows: int, rate: float) -> dict[str, float]:
    """Return latencies, and CPU microseconds a row."""
    pace = Pace(rows, rate)
    flow = Dataflow("rows")
    inputs = [op.input(f"in{at}", flow, _Source(pace, at)) for at in range(SOURCES)]
    keyed = op.key_on("key", op.merge("merged", *inputs), lambda row: row[1])
    clock = win.EventClock(lambda row: row[0], SLACK * STEP, now_getter=lambda: FROZEN)
    windows = win.TumblingWindower(WINDOW * STEP, EPOCH)
    found = win.fold_window(
        "windows", keyed, clock, windows, lambda: (0, 0), _more, lambda a, b: (a[0] + b[0], a[1] + b[1]), ordered=False
    )  # fmt: skip
    op.inspect("out", found.down, lambda _, result: pace.answer((result[1][0] + 1) * WINDOW, int(result[0])))
    began = time.process_time()
    run_main(flow)
    return pace.latencies_ms("key") | {"cpu_us": round(1e6 * (time.process_time() - began) / rows, 1)}


def _more(state: tuple[int, int], row: Any) -> tuple[int, int]:
    return state[0] + 1, state[1] + row[2]


if __name__ == "__main__":
    print(json.dumps(paced(int(sys.argv[1]), float(sys.argv[2]))))
