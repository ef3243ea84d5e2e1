"""Growth: nanoseconds of CPU a tuple, for longer streams and for more groups.

    python -m benchmarks.studies.growth ROWS KEYS

W3, at 4 167 tuples a second of event time: a stream with more rows is a longer one.
"""

from __future__ import annotations

import json
import sys
import time

from benchmarks.data import links
from benchmarks.ours import engine
from benchmarks.workloads import WORKLOADS

__all__ = ["growth"]

REPEATS = 3


def growth(rows: int, keys: int) -> dict[str, float]:
    """Return the least CPU nanoseconds a tuple of some runs."""
    asked = WORKLOADS["W3"]
    able = engine(asked, links(rows, keys=keys))
    spent = []
    for _ in range(REPEATS):
        given = able.prepare()
        began = time.process_time()
        able.run(given)
        spent.append(time.process_time() - began)
    return {"rows": rows, "keys": keys, "ns_per_tuple": min(spent) / rows * 1e9}


if __name__ == "__main__":
    print(json.dumps(growth(int(sys.argv[1]), int(sys.argv[2]))))
