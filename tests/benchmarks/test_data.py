"""Generators of the workloads: the same data for the same seed, as disordered as they say."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.data import BID, SECOND, auctions, cycles, flows, links, numbers
from benchmarks.workloads.w3 import address, number

GENERATORS = [links, flows, cycles, numbers, auctions]
ROWS = 20_000


@pytest.mark.parametrize("make", GENERATORS)
def test_a_seed_makes_the_same_data(make):
    first, second = make(500), make(500)
    assert {name: column.tolist() for name, column in first.items()} == {
        name: column.tolist() for name, column in second.items()
    }


@pytest.mark.parametrize("make", GENERATORS)
def test_another_seed_makes_other_data(make):
    first, second = make(500), make(500, seed=1)
    assert any((first[name] != second[name]).any() for name in first)


@pytest.mark.parametrize("make", GENERATORS)
def test_as_many_rows_as_asked_for(make):
    assert {column.size for column in make(500).values()} == {500}


def furthest_behind(times):
    return int((np.maximum.accumulate(times) - times).max())


def test_links_are_disordered_by_less_than_their_slack():
    assert 5 * SECOND < furthest_behind(links(ROWS)["ts"]) <= 7 * SECOND


def test_cycles_are_disordered_by_less_than_their_slack():
    assert 0 < furthest_behind(cycles(ROWS)["ts"]) <= 2 * SECOND


def test_each_side_of_flows_is_disordered_by_less_than_its_slack():
    found = flows(ROWS)
    for side in (0, 1):
        assert 0 < furthest_behind(found["ts"][found["side"] == side]) <= 2 * SECOND


def test_events_of_an_auction_house_have_the_usual_ratios():
    found = auctions(ROWS)
    shares = np.bincount(found["kind"]) / ROWS
    assert shares == pytest.approx([0.02, 0.06, 0.92])
    bids = found["kind"] == BID
    assert np.mean(found["auction"][bids] % 100 == 0) == pytest.approx(0.5, abs=0.05)
    assert np.mean(found["bidder"][bids] % 100 == 0) == pytest.approx(0.75, abs=0.05)
    assert 0 < furthest_behind(found["ts"]) <= 2 * SECOND


def test_longer_streams_are_not_denser():
    shorter, longer = links(10_000, per_second=50), links(20_000, per_second=50)
    lengths = [int(np.ptp(found["ts"])) // SECOND for found in (shorter, longer)]
    assert lengths == pytest.approx([200, 400], abs=2)


def test_senders_are_skewed():
    counts = np.sort(np.bincount(links(ROWS)["src"], minlength=10_000))
    assert counts[-1] > 0.05 * ROWS
    assert counts.size == 10_000


def test_addresses_are_texts_of_their_senders():
    keys = range(10_000)
    texts = [address(key) for key in keys]
    assert len(set(texts)) == 10_000
    assert [number(text) for text in texts] == list(keys)
