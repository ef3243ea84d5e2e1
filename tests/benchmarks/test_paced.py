"""Rows at a pace: what a latency is, and that a service answers every window behind the row that completes it."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from benchmarks.peers.lone_pace import LonePace
from benchmarks.peers.pace import KEYS, SLACK, WINDOW, Pace, key
from benchmarks.studies.paced import FLOOD, feeds, from_ports, served


@pytest.mark.parametrize(("complete", "row"), [("sources", 142), ("rows", 140), ("key", 140 + KEYS - 1)])
def test_a_latency_is_from_the_row_that_completes_the_window(complete: str, row: int) -> None:
    pace = Pace(300, FLOOD)
    pace.given_s = np.arange(300) / 1000
    pace.answered_s = {(40, key(140 + KEYS - 1)): 1.0}
    assert WINDOW + SLACK <= 140
    found = pace.latencies_ms(complete)  # type: ignore[arg-type]
    assert found == {"p50_ms": 1000 - row, "p99_ms": 1000 - row, "windows": 1}


def test_each_window_is_answered_once_it_is_complete() -> None:
    pace = Pace(2_000, FLOOD)
    asyncio.run(served(pace, feeds(pace)))
    assert {(end, 0) for end in range(WINDOW, 2_000 - SLACK, WINDOW)} <= set(pace.answered_s)
    assert pace.latencies_ms("sources")["p50_ms"] > 0


def test_rows_that_are_sent_are_answered() -> None:
    pace = LonePace(600, FLOOD)

    async def main() -> None:
        serving = asyncio.create_task(served(pace, from_ports(pace.ports)))
        while not (pace.reached or serving.done()):
            await asyncio.sleep(0)
        while not (pace.over or serving.done()):
            pace.send()
        await serving

    asyncio.run(main())
    assert {(end, 0) for end in range(WINDOW, 600 - SLACK, WINDOW)} <= set(pace.answered_s)
    assert pace.over
