"""The work of planning, counted in calls of functions: a clock would measure the machine.

The text is read a first time before, so that imports and caches are not counted.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from oop_engine import sql
from tests.parts.query.duck import logs, streams

STREAMS = streams(logs(0, rows=1))
WINDOW = "SELECT host, window_end, count(*) AS n FROM TUMBLE(log, ts, INTERVAL '1' MINUTE) GROUP BY ALL"
JOIN = (
    "WITH p AS (SELECT a.ts, a.host FROM log a JOIN other b ON a.host = b.host AND b.ts BETWEEN a.ts"
    " AND a.ts + INTERVAL '5' SECOND WHERE a.bytes < 3)"
    " SELECT window_end, count(*) AS n FROM TUMBLE(p, ts, INTERVAL '1' MINUTE) GROUP BY ALL"
)


def calls(text: str) -> int:
    """Return how many functions of the project planning a text calls, its graph included."""
    found = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal found
        found += event == "call" and "oop_engine" in frame.f_code.co_filename

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        _ = sql(text, **STREAMS).graph
    finally:
        sys.setprofile(before)
    return found


def union(parts: int) -> str:
    return " UNION ALL ".join(f"SELECT ts, host FROM log WHERE bytes > {at}" for at in range(parts))


@pytest.mark.parametrize(("text", "most"), [(WINDOW, 4_500), (JOIN, 7_500)], ids=["window", "join"])
def test_planning_calls_few_functions(text: str, most: int) -> None:
    calls(text)
    assert calls(text) < most


def test_planning_grows_as_the_text_does() -> None:
    calls(union(2))
    assert calls(union(40)) < 5 * calls(union(10))
