"""Pathway: temporal windows over a table that a Python source fills, ten thousand tuples at a time.

Windows close when the largest time has passed their end by the slack (``exactly_once_behavior``).
The source hands each tuple over by a Python call; that is part of what is measured, for there is no
other way in from memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pathway as pw
from pathway.internals.parse_graph import G

from benchmarks.contender import Contender
from benchmarks.data import SECOND, Columns

__all__ = ["contender"]

MINUTE = 60 * SECOND
COMMIT = 10_000
SLACK = 7 * SECOND
Row = tuple[Any, ...]
logging.disable(logging.WARNING)


def contender(name: str, workload: str, columns: Columns) -> Contender:
    """Return the query of ``workload`` over ``columns``."""
    query, names = QUERIES[workload]
    rows = [
        dict(zip(columns, row, strict=True))
        for row in zip(*(c.tolist() for c in columns.values()), strict=True)
    ]
    schema = pw.schema_from_types(**dict.fromkeys(columns, int))

    def run(_: object) -> dict[Any, Row]:
        G.clear()
        kept: dict[Any, Row] = {}

        def changed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
            if is_addition:
                kept[key] = tuple(row[name] for name in names)
            else:
                kept.pop(key, None)

        tuples = pw.io.python.read(_Source(rows), schema=schema, autocommit_duration_ms=None)
        pw.io.subscribe(query(tuples), on_change=changed)
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        return kept

    return Contender(
        lambda: None, run, lambda kept: dict(zip(names, np.array(list(kept.values())).T, strict=True))
    )


class _Source(pw.io.python.ConnectorSubject):
    def __init__(self, rows: list[dict[str, int]]) -> None:
        super().__init__()
        self._rows = rows

    def run(self) -> None:
        for at, row in enumerate(self._rows, 1):
            self.next(**row)
            if at % COMMIT == 0:
                self.commit()


def sliding(length: int, slide: int, value: Any, by_sender: bool = True) -> Callable[[Any], Any]:
    """Return windows with one value, named as in the results."""
    window = (
        pw.temporal.sliding(hop=slide, duration=length) if length > slide else pw.temporal.tumbling(length)
    )
    behavior = pw.temporal.exactly_once_behavior(shift=SLACK)

    def query(tuples: Any) -> Any:
        by = {"instance": tuples.src} if by_sender else {}
        grouped = tuples.windowby(tuples.ts, window=window, behavior=behavior, **by)
        key = {"src": pw.this._pw_instance} if by_sender else {}
        return grouped.reduce(window_start=pw.this._pw_window_start, **key, **value)

    return query


COUNT, TOTAL = {"count": pw.reducers.count()}, {"total": pw.reducers.sum(pw.this.len)}
QUERIES: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "W1": (sliding(5 * MINUTE, MINUTE, COUNT, by_sender=False), ("window_start", "count")),
    "W2": (sliding(10 * SECOND, SECOND, TOTAL), ("window_start", "src", "total")),
    "W3": (sliding(SECOND, SECOND, COUNT), ("window_start", "src", "count")),
}
