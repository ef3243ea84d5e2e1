"""The scenarios of one figure each, small: all claims hold, those on times where a trace is long enough for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oop_engine.lab.compare import compare
from oop_engine.lab.scenario import Sweep, find
from tests.scenarios.unfounded import unfounded

SMALL: dict[str, tuple[dict[str, str], tuple[int | float | str, ...], int]] = {
    "sessions": ({"minutes": "1", "players": "4"}, ("1", "1 3 5"), 3),
    "rows_wid": ({"tuples": "6000", "range": "1000"}, (10, 100, 1000), 4),
    "consolidation": ({"minutes": "30"}, (20, 40), 3),
    "slice_memory": (
        {},
        ("time 50/2000", "time 500/2000", "time 500/1000", "count 500/1000", "count 500/2000"),
        5,
    ),
    "stream_slicing": (
        {"tuples": "30000"},
        ("1", "10", "100", "1000", "3 session", "100 late 50", "10 count"),
        7,
    ),
    "slide_by_tuple": ({"tuples": "2000"}, (0, 10), 4),
    "hammer_time": ({"seconds": "100", "rate": "1500"}, (1, 16, 64), 4),
    "aggregate_kinds": ({"tuples": "25000"}, ("sum", "min", "median"), 8),
    "slice_latency": ({}, (100, 1000), 2),
    "joint": ({"seconds": "200"}, (15, 30), 3),
    "late_join": ({"minutes": "11", "rate": "300", "every": "2 s"}, (0, 5), 3),
    "late_tumbling_join": ({"rate": "40", "minutes": "2", "every": "2 s"}, (0, 10), 2),
    "union_join": ({"rate": "60", "windows": "7", "every": "2 s"}, (0, 40), 3),
    "two_level": ({"unit": "80", "minutes": "2", "each": "5"}, (2, 8), 6),
    "streaming_consistency": ({"tuples": "6000", "accounts": "10"}, (0, 3), 4),
    "keyed_watermarks": ({"sensors": "6", "minutes": "5"}, (0, 40), 4),
    "union_count": ({"groups": "30", "minutes": "2"}, (0, 20, 40), 4),
}
"""Parameters, the points of the sweep, and how many claims there are."""


@pytest.mark.parametrize("name", SMALL)
def test_all_claims_hold(name: str) -> None:
    scenario = find(name)
    settings, points, claims = SMALL[name]
    assert scenario.sweep is not None
    small = replace(scenario, sweep=Sweep(scenario.sweep.parameter, points))
    compared = compare(small, settings)
    assert unfounded(compared) == {}
    assert len(compared.claims) == claims
