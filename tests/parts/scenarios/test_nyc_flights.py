"""The flights: their instants, the airports' promises, and the claims on three weeks of them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from oop_engine import GroupWise, Linear, Page
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.lab.comparison import compare
from oop_engine.scenarios.nyc_flights import AIRPORTS, SCENARIO, _read, feeds, flights


def test_every_flight_of_the_year_is_there_or_diverted():
    known = flights()
    assert known.rows == 336_776
    assert len(known.landed) == 327_346
    assert sum(known.diverted.values()) == 9_430
    assert (np.diff(known.landed) >= 0).all()
    behind = np.maximum.accumulate(known.departed) - known.departed
    assert 10 * 3600 < behind.max() < 11 * 3600  # what the slack of the scenario covers


@pytest.mark.slow
def test_departures_are_the_local_ones_across_midnight_and_summer_time():
    raw = _read()
    raw = raw.filter(raw["air_time"].is_valid())
    hour = raw["time_hour"].to_pylist()
    for row in range(0, raw.num_rows, 997):
        clock = raw["dep_time"][row].as_py() % 2400  # midnight is written 2400
        minutes = raw["minute"][row].as_py() + raw["dep_delay"][row].as_py()
        local = datetime.fromtimestamp(hour[row].timestamp() + 60 * minutes, ZoneInfo("America/New_York"))
        assert (local.hour, local.minute) == divmod(clock, 100)


@pytest.mark.parametrize("airport", AIRPORTS)
def test_airports_keep_their_promises_and_make_all_three_kinds_of_messages(airport):
    feed = feeds(SCENARIO.values({"days": "10"}))[airport]
    contract = EdgeContract(airport)
    for message in feed:
        contract.check(message)
    assert {type(message) for message in feed} == {Page, Linear, GroupWise}


@pytest.mark.slow
def test_the_claims_hold_on_three_weeks():
    found = compare(SCENARIO, {"days": "21"})
    assert [claim for claim in found.claims if not claim.holds] == []
    assert {(run.missing, run.wrong, run.late) for run in found.runs} == {(0, 0, 0)}
