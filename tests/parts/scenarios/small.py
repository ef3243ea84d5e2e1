"""Each scenario small: parameters and points of the sweep at which its claims have enough to go by, in seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from oop_engine.lab.scenario import Scenario, Sweep, find

__all__ = ["LARGER", "SMALL", "Small", "small"]


class Small(NamedTuple):
    """Parameters, the points of the sweep (none: the scenario has none, or all of its points), how many claims hold."""

    settings: dict[str, str]
    points: tuple[int | float | str, ...]
    claims: int


SMALL = {
    "adapt_wid": Small(
        {"rate": "1000", "seconds": "24"}, ("Q6-7 DS1", "Q6-7 DS5", "Q6-8 0 s", "Q6-8 10 s"), 8
    ),
    "aggregate_kinds": Small({"tuples": "25000"}, ("sum", "min", "median"), 9),
    "consolidation": Small({"minutes": "30"}, (20, 40), 3),
    "hammer_slide": Small({"tuples": "5000"}, ("64/1", "100/30", "40/64"), 6),
    "hammer_time": Small({"seconds": "100", "rate": "1500"}, (1, 16, 64), 4),
    "joint": Small({"seconds": "200"}, (15, 30), 3),
    "keyed_watermarks": Small({"sensors": "6", "minutes": "5"}, (0, 40), 5),
    "late_join": Small({"minutes": "11", "rate": "300", "every": "2 s"}, (0, 5), 3),
    "late_tumbling_join": Small({"rate": "40", "minutes": "2", "every": "2 s"}, (0, 10), 3),
    "links": Small(
        {"tuples": "12000", "rate": "50", "range": "25 s", "slide": "5 s", "lull": "15 s"}, (0, 5, 10), 8
    ),
    "netflow": Small({"tuples": "40000"}, (), 10),
    "nyc_flights": Small({"days": "21"}, (), 6),
    "packet_join": Small({"rate": "150", "seconds": "65"}, (1, 4, 8), 10),
    "paned_wid": Small({"tuples": "131072"}, ("1 x 5", "5 x 5", "20 x 2", "20 x 5", "20 x 20"), 6),
    "rows_wid": Small({"tuples": "6000", "range": "1000"}, (10, 100, 1000), 5),
    "sessions": Small({"minutes": "1", "players": "4"}, ("1", "1 3 5"), 3),
    "skew": Small({"tuples": "600000", "keys": "500"}, (0.7, 0.85), 4),
    "slice_latency": Small({}, (100, 1000), 4),
    "slice_memory": Small(
        {}, ("time 50/2000", "time 500/2000", "time 500/1000", "count 500/1000", "count 500/2000"), 5
    ),
    "slide_by_tuple": Small({"tuples": "2000"}, (0, 10), 4),
    "speculation": Small({"tuples": "40000"}, (0, 1280), 7),
    "stream_slicing": Small(
        {"tuples": "30000"}, ("1", "10", "100", "1000", "3 session", "100 late 50", "10 count"), 7
    ),
    "streaming_consistency": Small({"tuples": "6000", "accounts": "10"}, (0, 3), 4),
    "two_level": Small({"unit": "80", "minutes": "2", "each": "5"}, (2, 8), 6),
    "union_count": Small({"groups": "30", "minutes": "2"}, (0, 20, 40), 5),
    "union_join": Small({"rate": "60", "windows": "7", "every": "2 s"}, (0, 40), 3),
}


LARGER = {
    "consolidation": Small({"minutes": "40", "per_key": "5"}, (500, 1000), 5),
    "hammer_slide": Small({"tuples": "100000"}, ("64/1", "1024/1", "1024/8", "1024/1024"), 9),
    "sessions": Small({}, ("1", "1 3 5"), 5),
    "slice_latency": Small({}, (100, 1000, 100_000), 6),
    "stream_slicing": Small(
        {"tuples": "30000"}, ("1", "10", "100", "1000", "100 session", "100 late 50", "10 count"), 8
    ),
}
"""Scenarios whose claims on times have enough to go by with these alone."""


def small(name: str, asked: Small | None = None) -> Scenario:
    """Return a scenario with the points of its sweep that are tried small, or as ``asked``."""
    scenario, points = find(name), (asked or SMALL[name]).points
    return (
        replace(scenario, sweep=Sweep(scenario.sweep.parameter, points))
        if scenario.sweep and points
        else scenario
    )
