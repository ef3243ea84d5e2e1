"""Memory: what the engine takes beyond its base, what is open, and whether it says so.

    python -m benchmarks.studies.memory W3 ROWS PAGE

Base: the process with everything imported and compiled and all pages of the input in memory.
Results are dropped as they come.  NumPy asks for huge pages for large arrays, as those of the input are; where one of
them has been, 2 MiB would count for each small array that comes there later.  So it is told not to.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys

os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"  # before NumPy is there

import pyarrow as pa

from benchmarks.ours import run_graph
from benchmarks.process import forget_peak, peak_bytes, resident_bytes
from benchmarks.studies.sizes import held_bytes
from benchmarks.workloads import WORKLOADS
from oop_engine.runners.inline import Inline

__all__ = ["memory"]

PARTIAL = 16  # bytes of a partial aggregate: its value, and 8 for the group and the pane it is of


def memory(workload: str, rows: int, page: int) -> dict[str, float]:
    """Return bytes: open partial aggregates, peak beyond the base, state told and state held midway."""
    asked = WORKLOADS[workload]
    graph, feed = asked.graph(), list(asked.feed(asked.data(rows), page))
    run_graph(graph, feed[:2], lambda result: None)
    _give_back()
    base = resident_bytes()
    forget_peak()
    peak = run_graph(graph, feed, lambda result: None).statistics.peak
    beyond = peak_bytes() - base
    open_bytes = peak.partials * PARTIAL
    halfway = Inline(graph, lambda result: None)
    for source, cut in feed[: len(feed) // 2]:
        halfway.push(source, cut)
        halfway.drain()
    told = sum(operator.state().nbytes for operator in halfway.operators.values())
    held = held_bytes(halfway.operators.values())
    return {
        "page": page,
        "open_partials": peak.partials,
        "open_bytes": open_bytes,
        "beyond_base_bytes": beyond,
        "beyond_of_open": beyond / max(open_bytes, 1),
        "state_told_bytes": told,
        "state_held_bytes": held,
        "told_of_held": told / max(held, 1),
    }


def _give_back() -> None:
    """Give the system back all that is free, which is kept for the next pages: else it counts as the base."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # of glibc
        trim(0)


if __name__ == "__main__":
    print(json.dumps(memory(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
