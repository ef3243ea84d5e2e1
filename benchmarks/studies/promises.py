"""Promises: a punctuation of 100 000 groups against a page of as many tuples.

    python -m benchmarks.studies.promises GROUPS

A count per group and second has seen every group.  Then, in turns, it takes a page with a tuple of
every group, in another order, and a group-wise promise for every group: one that closes nothing, and
one that closes the window of each, results included.
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.data import SECOND
from oop_engine import GroupWise, Operator, Page, Schema
from oop_engine.core.operator import Message
from oop_engine.core.punctuation import NEVER
from oop_engine.operators import Count, Tumbling, WindowAggregate
from oop_engine.runners.dispatch import handle

__all__ = ["promises"]

TURNS = 15
SCHEMA = Schema({"ts": pa.timestamp("us"), "src": pa.int64()}, "ts")


def promises(groups: int) -> dict[str, float]:
    """Return CPU seconds of a page and of each promise, and the ratios of these to that."""
    windows = WindowAggregate(Tumbling("1 s"), {"count": Count()}, by=("src",)).opened(SCHEMA)
    rng = np.random.default_rng(3)
    spent = np.array([_turn(windows, turn, rng.permutation(groups)) for turn in range(TURNS)])
    page, idle, closing = (median(column) for column in spent[2:].T)
    return {
        "groups": groups,
        "page_s": page,
        "promise_s": idle,
        "closing_promise_s": closing,
        "promise_of_page": idle / page,
        "closing_promise_of_page": closing / page,
    }


def _turn(windows: Operator, turn: int, order: np.ndarray) -> tuple[float, ...]:
    start = turn * SECOND
    times = start + np.arange(order.size) % SECOND
    groups = pa.RecordBatch.from_arrays([pa.array(order[::-1])], ["src"])
    return (
        _take(windows, Page.of(SCHEMA, {"ts": pa.array(times, SCHEMA.type_of("ts")), "src": order})),
        _take(windows, GroupWise(groups, np.full(order.size, start + SECOND // 2))),
        _take(windows, GroupWise(groups, np.full(order.size, start + SECOND))),
    )


def _take(windows: Operator, message: Message) -> float:
    began = time.process_time()
    emissions = handle(windows, 0, message, NEVER)
    for _ in emissions:
        pass
    return time.process_time() - began


if __name__ == "__main__":
    print(json.dumps(promises(int(sys.argv[1]))))
