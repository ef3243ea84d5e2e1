"""Cores: what a second core gives to graphs that have nothing to do with each other, and to the operators of one.

    python -m benchmarks.studies.cores W2 ROWS TURNS

Two runs of the same graph, one after the other, in two threads, and in two processes.  The threads share Python's
lock; the processes share nothing but the machine, so what they gain is what there is to gain.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, wait
from typing import Any

from benchmarks.contender import Contender
from benchmarks.ours import contender, run_graph
from benchmarks.workload import PAGE
from benchmarks.workloads import WORKLOADS

__all__ = ["cores"]

_ABLE: list[Contender] = []
"""Of this process: what takes a turn."""


def cores(workload: str, rows: int, turns: int) -> dict[str, float]:
    """Return how many times as fast two runs are side by side, in the best of ``turns``, and their CPU.

    ``busiest``: the part of the busiest operator.  However many cores there are, a graph whose operators overlap
    takes no less of the time.
    """
    _load(workload, rows)
    spawn = multiprocessing.get_context("spawn")
    best: dict[str, tuple[float, float]] = {}
    with (
        ThreadPoolExecutor(2) as threads,
        ProcessPoolExecutor(2, spawn, _load, (workload, rows)) as processes,
    ):
        ways: dict[str, Callable[[], float]] = {
            "one": lambda: _turn() + _turn(),
            "threads": lambda: _both(threads),
            "processes": lambda: _both(processes),
        }
        for way in ways.values():
            way()
        for _ in range(turns):
            for name, way in ways.items():
                began = time.perf_counter()
                cpu = way()
                best[name] = min(best.get(name, (1e9, 0.0)), (time.perf_counter() - began, cpu))
    wall, cpu = best.pop("one")
    sides = {name: round(wall / its, 2) for name, (its, _) in best.items()}
    costs = {f"{name}_cpu": round(its / cpu, 2) for name, (_, its) in best.items()}
    return sides | costs | {"busiest": round(_busiest(workload, rows), 2)}


def _load(workload: str, rows: int) -> None:
    """Make ready, and take a turn to be warm."""
    _ABLE.append(contender("engine", workload, WORKLOADS[workload].data(rows)))
    _turn()


def _turn() -> float:
    """Return the CPU seconds of a run by this thread."""
    able = _ABLE[-1]
    given = able.prepare()
    cpu = time.thread_time()
    able.run(given)
    return time.thread_time() - cpu


def _both(pool: Executor) -> float:
    """Let two take a turn at once; return their CPU seconds."""
    turns: list[Any] = [pool.submit(_turn) for _ in range(2)]
    wait(turns)
    return float(sum(turn.result() for turn in turns))


def _busiest(workload: str, rows: int) -> float:
    asked = WORKLOADS[workload]
    feed = list(asked.feed(asked.data(rows), PAGE))
    operators = run_graph(asked.graph(), feed, lambda result: None).statistics.operators.values()
    return max(one.busy_s for one in operators) / sum(one.busy_s for one in operators)


if __name__ == "__main__":
    print(json.dumps(cores(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
