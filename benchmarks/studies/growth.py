"""Growth: nanoseconds of CPU a tuple, for longer streams and for more groups.

    python -m benchmarks.studies.growth ROWS KEYS

W3, at 4 167 tuples a second of event time: a stream with more rows is a longer one.  With more groups the
floor takes longer too: a tuple's place is then far from the last one's in memory.
"""

from __future__ import annotations

import gc
import json
import sys
import time

from benchmarks.contender import Contender
from benchmarks.data import links
from benchmarks.ours import engine, floor
from benchmarks.workloads import WORKLOADS

__all__ = ["growth"]

REPEATS = 3


def growth(rows: int, keys: int) -> dict[str, float]:
    """Return the least CPU nanoseconds a tuple of some runs, of the engine and of the floor."""
    asked, data = WORKLOADS["W3"], links(rows, keys=keys)
    ours, least = (_nanoseconds(make(asked, data), rows) for make in (engine, floor))
    return {"rows": rows, "keys": keys, "ns_per_tuple": ours, "floor_ns_per_tuple": least}


def _nanoseconds(able: Contender, rows: int) -> float:
    spent = []
    for _ in range(REPEATS):
        given = able.prepare()
        gc.collect()
        began = time.process_time()
        able.run(given)
        spent.append(time.process_time() - began)
    return min(spent) / rows * 1e9


if __name__ == "__main__":
    print(json.dumps(growth(int(sys.argv[1]), int(sys.argv[2]))))
