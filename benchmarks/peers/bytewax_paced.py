"""Bytewax at a pace: ``.peers/bytewax/bin/python -m benchmarks.peers.bytewax_paced ROWS PORT...`` (see ``pace``).

Its clock of event time is one of each key, so a window of a key is complete at a row of that key.  It asks its sources
again at once: after a millisecond, as it does unless told, rows would wait for that.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.testing import run_main

from benchmarks.peers.pace import SLACK, WINDOW, Lines, Pace, told

__all__ = ["answers"]

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
FROZEN = datetime(2030, 1, 1, tzinfo=UTC)
STEP = timedelta(milliseconds=1)


class _Rows(StatelessSourcePartition[Any]):
    def __init__(self, port: int, asked: Callable[[], object]) -> None:
        self._lines, self._asked = Lines(port, block=False), asked

    def next_batch(self) -> list[Any]:
        self._asked()
        rows = [(EPOCH + row["ts"] * STEP, str(row["key"]), row["v"]) for row in self._lines.rows()]
        if self._lines.over:
            raise StopIteration
        return rows

    def next_awake(self) -> datetime | None:
        return EPOCH


class _Source(DynamicSource[Any]):
    def __init__(self, port: int, asked: Callable[[], object]) -> None:
        self._given = port, asked

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Rows:
        return _Rows(*self._given)


def answers(pace: Pace, ports: list[int], asked: Callable[[], object] = bool) -> None:
    """Note in ``pace`` when windows of keys are answered; ``asked`` is called each time that a source is."""
    flow = Dataflow("rows")
    inputs = [op.input(f"in{port}", flow, _Source(port, asked)) for port in ports]
    keyed = op.key_on("key", op.merge("merged", *inputs), lambda row: row[1])
    clock = win.EventClock(lambda row: row[0], SLACK * STEP, now_getter=lambda: FROZEN)
    windows = win.TumblingWindower(WINDOW * STEP, EPOCH)
    found = win.fold_window(
        "windows", keyed, clock, windows, lambda: (0, 0), _more, lambda a, b: (a[0] + b[0], a[1] + b[1]), ordered=False
    )  # fmt: skip
    op.inspect("out", found.down, lambda _, result: pace.answer((result[1][0] + 1) * WINDOW, int(result[0])))
    run_main(flow)


def _more(state: tuple[int, int], row: Any) -> tuple[int, int]:
    return state[0] + 1, state[1] + row[2]


if __name__ == "__main__":
    told(answers)
