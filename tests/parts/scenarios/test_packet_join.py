from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oop_engine.lab.comparison import Comparison, compare
from oop_engine.lab.scenario import COMPLETE_AT, Sweep, Timed
from oop_engine.scenarios.thesis import packet_join
from tests.naive.joins import band, window_join
from tests.parts.scenarios.unfounded import unfounded

TINY = {"rate": 15, "seconds": 65, "seed": 1, "band": 3, "every": "500 ms"}
SMALL = {"rate": "150", "seconds": "65"}
SWEPT = replace(packet_join.SCENARIO, sweep=Sweep("band", (1, 4, 8), "s"))


@pytest.fixture(scope="module")
def small() -> Comparison:
    return compare(SWEPT, SMALL)


def test_links_are_sorted_and_arrive_when_sent():
    for link in packet_join.packets(100, 20, 0):
        assert (np.diff(link.page.times) >= 0).all()
        assert link.page.arrival.tolist() == link.page.times.tolist()
        assert 1200 < len(link.page) < 2800


def test_the_seed_makes_the_trace():
    first, again, other = (packet_join.packets.__wrapped__(50, 10, seed)[0].page for seed in (3, 3, 4))
    assert first.batch.equals(again.batch)
    assert not first.batch.equals(other.batch)


def test_truth_is_what_the_definition_says():
    one, other = (
        link.page.to_pylist() for link in packet_join.packets(TINY["rate"], TINY["seconds"], TINY["seed"])
    )
    for rows in (one, other):
        for row in rows:
            row["ts"] = round(row["ts"].timestamp() * 1000)
    pairs = window_join(one, other, packet_join.KEYS, band(3000, 3000))
    expected = {}
    for pair in pairs:
        n, complete = expected.get(pair["ts"] // 60_000, (0, 0))
        expected[pair["ts"] // 60_000] = n + 1, max(complete, pair["ts"], pair["ts_right"])
    table = packet_join.truth(TINY)
    minutes = table["window_start"].cast("int64").to_numpy() // 60_000
    values = zip(table["pairs"].to_pylist(), table[COMPLETE_AT].to_pylist(), strict=True)
    assert len(pairs) > 100
    assert dict(zip(minutes.tolist(), values, strict=True)) == expected


def test_every_join_gives_the_answer(small):
    assert len(small.runs) == 9
    assert all(run.results == 2 and run.missing == run.wrong == run.late == 0 for run in small.runs)


def test_claims_hold_on_a_small_trace(small):
    assert len([claim for claim in small.claims if isinstance(claim, Timed)]) == 2
    assert unfounded(small) == {}


def test_an_oa_join_keeps_the_band_of_either_link(small):
    for run in small.runs:
        if run.variant == "OA-Join":
            sent = run.tuples / 65  # packets a second of both links
            assert run.peak_tuples == pytest.approx(sent * (run.parameters["band"] + 0.5), rel=0.2)


def test_claims_fail_when_an_oa_join_keeps_too_much(small):
    runs = [replace(run, peak_tuples=10**6) if run.variant == "OA-Join" else run for run in small.runs]
    failed = [
        claim.claim for claim in packet_join.claims(runs) if not claim.holds and not isinstance(claim, Timed)
    ]
    assert [claim[:27] for claim in failed] == ["an OA-Join keeps less than ", "an OA-Join keeps less than "]


def test_one_band_alone_is_not_timed():
    found = compare(packet_join.SCENARIO, {**SMALL, "band": "2"})
    assert found.holds
    assert not any(isinstance(claim, Timed) for claim in found.claims)
