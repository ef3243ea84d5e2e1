"""Each scenario, small: all claims hold, those on times where a trace is long enough for them."""

from __future__ import annotations

import pytest

from oop_engine.lab.comparison import compare
from oop_engine.lab.scenario import find, names
from tests.parts.scenarios.small import SMALL, small
from tests.parts.scenarios.unfounded import unfounded

OTHERS = {
    "adapt_wid",
    "hammer_slide",
    "links",
    "netflow",
    "nyc_flights",
    "packet_join",
    "paned_wid",
    "skew",
    "speculation",
}
"""Scenarios that have tests of their own, with this one among them."""


def test_every_scenario_is_tried_small() -> None:
    assert set(names()) == set(SMALL)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("name", sorted(set(SMALL) - OTHERS))
def test_all_claims_hold(name: str) -> None:
    compared = compare(small(name), SMALL[name].settings)
    assert unfounded(compared) == {}
    assert len(compared.claims) == SMALL[name].claims


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [("union_count", {"groups": "100", "minutes": "2"}), ("two_level", {"unit": "80", "minutes": "2"})],
)
def test_small_parameters_hold_the_claims_or_check_none(name: str, settings: dict[str, str]) -> None:
    assert compare(find(name), settings).holds


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("packet_join", {"rate": "20", "seconds": "130", "band": "2"}),
        ("netflow", {"tuples": "40000", "slack": "band 0 ms"}),
        ("late_tumbling_join", {"rate": "40", "minutes": "2", "late": "5"}),
        ("slice_latency", {"slices": "100"}),
        ("union_count", {"groups": "30", "minutes": "2", "skew": "20"}),
    ],
)
def test_one_point_has_nothing_to_say_of_growth(name: str, settings: dict[str, str]) -> None:
    claims = [
        claim
        for claim in compare(find(name), settings).claims
        if " grow" in claim.claim or "the most" in claim.claim
    ]
    assert {claim.verdict for claim in claims} <= {"not checked"}
