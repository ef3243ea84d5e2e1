"""Pathway at a pace: ``.peers/pathway/bin/python -m benchmarks.peers.pathway_paced ROWS PORT...`` (see ``pace``).

One source hands all rows over, and commits each: a commit is what makes it answer.  A window is complete at the first
row that has passed its end.
"""

from __future__ import annotations

import logging
from selectors import EVENT_READ, DefaultSelector
from typing import Any

import pathway as pw

from benchmarks.peers.pace import SLACK, WINDOW, Lines, Pace, told

__all__ = ["answers"]

logging.disable(logging.WARNING)


class _Source(pw.io.python.ConnectorSubject):
    def __init__(self, ports: list[int]) -> None:
        super().__init__()
        self._ports = ports

    def run(self) -> None:
        sources = DefaultSelector()
        for port in self._ports:
            lines = Lines(port)
            sources.register(lines.socket, EVENT_READ, lines)
        while sources.get_map():
            for ready, _ in sources.select():
                for row in ready.data.rows():
                    self.next(**row)
                    self.commit()
                if ready.data.over:
                    sources.unregister(ready.fileobj)


def answers(pace: Pace, ports: list[int]) -> None:
    """Note in ``pace`` when windows are answered."""
    schema = pw.schema_from_types(ts=int, key=int, v=int)
    tuples = pw.io.python.read(_Source(ports), schema=schema, autocommit_duration_ms=None)
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
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def _answered(pace: Pace, row: dict[str, Any]) -> None:
    pace.answer(int(row["end"]))


if __name__ == "__main__":
    told(answers)
