"""Pathway at a pace: ``.peers/pathway/bin/python -m benchmarks.peers.pathway_paced ROWS RATE`` (see ``pace``).

One source hands all rows over, and commits each: a commit is what makes it answer.  A window is complete at the first
row that has passed its end.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

import pathway as pw

from benchmarks.peers.pace import SLACK, WINDOW, Pace, key

__all__ = ["paced"]

logging.disable(logging.WARNING)


class _Source(pw.io.python.ConnectorSubject):
    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def run(self) -> None:
        for n in range(self._pace.rows):
            if (wait_s := self._pace.due(n)) > 0:
                time.sleep(wait_s)
            self._pace.give(n)
            self.next(ts=n, key=key(n), v=n)
            self.commit()


def paced(rows: int, rate: float) -> dict[str, float]:
    """Return latencies, and CPU microseconds a row."""
    pace = Pace(rows, rate)
    schema = pw.schema_from_types(ts=int, key=int, v=int)
    tuples = pw.io.python.read(_Source(pace), schema=schema, autocommit_duration_ms=None)
    grouped = tuples.windowby(
        tuples.ts,
        window=pw.temporal.tumbling(WINDOW),
        behavior=pw.temporal.exactly_once_behavior(shift=SLACK),
        instance=tuples.key,
    )
    found = grouped.reduce(
        key=pw.this._pw_instance,
        end=pw.this._pw_window_end,
        n=pw.reducers.count(),
        total=pw.reducers.sum(pw.this.v),
    )
    pw.io.subscribe(found, on_change=lambda key, row, time, is_addition: _answered(pace, row))
    began = time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return pace.latencies_ms("rows") | {"cpu_us": round(1e6 * (time.process_time() - began) / rows, 1)}


def _answered(pace: Pace, row: dict[str, Any]) -> None:
    pace.answer(int(row["end"]))


if __name__ == "__main__":
    print(json.dumps(paced(int(sys.argv[1]), float(sys.argv[2]))))
