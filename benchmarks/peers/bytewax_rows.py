"""Bytewax, messages of one row: three inputs, merged, a count and a sum per key and second.

    .peers/bytewax/bin/python benchmarks/peers/bytewax_rows.py ROWS

Prints CPU microseconds a row.  Rows are made before; each input hands them out one at a time.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

__all__ = ["spent"]

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
FROZEN = datetime(2030, 1, 1, tzinfo=UTC)
KEYS = 50


def spent(rows: int) -> float:
    """Return CPU microseconds a row."""
    feeds: list[list[Any]] = [[], [], []]
    for n in range(rows):
        feeds[n % 3].append((EPOCH + timedelta(milliseconds=n), str(n * 7919 % KEYS), n))
    out: list[Any] = []
    flow = Dataflow("rows")
    inputs = [op.input(f"in{at}", flow, TestingSource(feed, batch_size=1)) for at, feed in enumerate(feeds)]
    keyed = op.key_on("key", op.merge("merged", *inputs), lambda row: row[1])
    clock = win.EventClock(lambda row: row[0], timedelta(milliseconds=100), now_getter=lambda: FROZEN)
    windows = win.TumblingWindower(timedelta(seconds=1), EPOCH)
    found = win.fold_window(
        "windows", keyed, clock, windows, lambda: (0, 0), _more, lambda a, b: (a[0] + b[0], a[1] + b[1]), ordered=False
    )  # fmt: skip
    op.output("out", found.down, TestingSink(out))
    began = time.process_time()
    run_main(flow)
    took = time.process_time() - began
    assert sum(count for _, (_, (count, _)) in out) == rows
    return 1e6 * took / rows


def _more(state: tuple[int, int], row: Any) -> tuple[int, int]:
    return state[0] + 1, state[1] + row[2]


if __name__ == "__main__":
    print(spent(int(sys.argv[1])))
