"""The scenarios of one figure each, small: all claims hold, those on times where a trace is long enough for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oop_engine.lab.compare import compare
from oop_engine.lab.scenario import Sweep, find

SMALL: dict[str, tuple[dict[str, str], tuple[int | float | str, ...], int]] = {
    "sessions": ({"minutes": "1", "players": "4"}, ("1", "1 3 5"), 3),
    "rows_wid": ({"tuples": "6000", "range": "1000"}, (10, 100, 1000), 4),
    "joint": ({"seconds": "200"}, (15, 30), 3),
}
"""Parameters, the points of the sweep, and how many claims there are."""


@pytest.mark.parametrize("name", SMALL)
def test_all_claims_hold(name: str) -> None:
    scenario = find(name)
    settings, points, claims = SMALL[name]
    assert scenario.sweep is not None
    small = replace(scenario, sweep=Sweep(scenario.sweep.parameter, points))
    compared = compare(small, settings)
    assert {c.claim: c.figures for c in compared.claims if not c.holds} == {}
    assert len(compared.claims) == claims
