"""The generator keeps to what it says of the disorder it makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oop_engine import GraphError, Linear, Page, open_trace, write_trace
from oop_engine.core.page import concat
from oop_engine.traces import Disorder, Link, disorder

TWO = (Link("a", 2000), Link("b", 500))
ONE = Disorder(TWO, duration="20 s", seed=7)
KINDS = {
    "none": ONE,
    "band": replace(ONE, band="3 s"),
    "block": replace(ONE, block="4 s"),
    "skew": replace(ONE, links=(Link("a", 2000), Link("b", 500, skew="5 s")), band=10),
    "lulls": replace(ONE, links=(Link("a", 2000, lulls=(("2 s", "9 s"), (15_000, 16_000))), Link("b", 1))),
    "late": replace(ONE, band="1 s", late=0.05, late_by="4 s", origin=-5_000),
}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Make the joints between chunks frequent."""
    monkeypatch.setattr(disorder, "_CHUNK", 3000)


def whole(trace: Disorder, page_rows: int = 65_536) -> Page:
    return concat(trace.schema, [m for m in trace.messages(page_rows) if isinstance(m, Page)])


def arrival_of(page: Page) -> np.ndarray:
    assert page.arrival is not None
    return page.arrival


def column(page: Page, name: str) -> np.ndarray:
    return page.column(name).to_numpy(zero_copy_only=False)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_tuples_come_by_arrival_and_never_before_their_time(kind):
    page = whole(KINDS[kind])
    assert (np.diff(arrival_of(page)) >= 0).all()
    assert (arrival_of(page) >= page.times).all()


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_seed_decides_not_the_pages(kind):
    trace = KINDS[kind]
    page = whole(trace)
    for page_rows in (7, 1000):
        cut = whole(trace, page_rows)
        assert cut == page
        np.testing.assert_array_equal(arrival_of(cut), arrival_of(page))
    assert whole(replace(trace, seed=8)) != page


def test_rates_and_duration_are_kept():
    page = whole(ONE)
    links = column(page, "link")
    assert (links == "a").sum() == 40_000
    assert (links == "b").sum() == 10_000
    assert page.times.min() >= 0
    assert page.times.max() < 20_000
    assert (np.diff(page.times) >= 0).all()  # no disorder was asked for


def test_a_band_bounds_the_disorder_and_is_used():
    page = whole(KINDS["band"])
    delay = arrival_of(page) - page.times
    assert delay.min() >= 0
    assert 2_990 < delay.max() <= 3_000
    assert abs(delay.mean() - 1_500) < 50


def test_blocks_are_flushed_at_their_end_and_shuffled():
    page = whole(KINDS["block"])
    block = page.times // 4_000
    np.testing.assert_array_equal(arrival_of(page), (block + 1) * 4_000)
    for number in range(5):
        times = page.times[block == number]
        assert abs(np.corrcoef(times, np.arange(len(times)))[0, 1]) < 0.05


def test_skew_delays_a_link_as_a_whole():
    page = whole(KINDS["skew"])
    delay = arrival_of(page) - page.times
    links = column(page, "link")
    assert set(np.unique(delay[links == "a"])) == set(range(11))
    assert set(np.unique(delay[links == "b"])) == set(range(5_000, 5_011))


def test_a_link_is_silent_in_its_lulls_and_only_then():
    page = whole(KINDS["lulls"])
    times = page.times[column(page, "link") == "a"]
    silent = ((times >= 2_000) & (times < 9_000)) | ((times >= 15_000) & (times < 16_000))
    assert not silent.any()
    assert abs(len(times) - 12 * 2000) < 1000
    assert (column(page, "link") == "b").sum() == 20


def test_a_share_is_late():
    page = whole(KINDS["late"])
    delay = arrival_of(page) - page.times
    late = delay > 1_000
    assert 0.045 < late.mean() < 0.055
    assert delay[late].min() >= 4_000
    assert delay[late].max() <= 9_000
    assert page.times.min() >= -5_000


def test_keys_follow_zipf():
    page = whole(replace(ONE, keys=100, zipf=1.0))
    counts = np.bincount(column(page, "key"), minlength=100)
    expected = len(page) / np.arange(1, 101) / (1 / np.arange(1, 101)).sum()
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected).max()
    flat = np.bincount(column(whole(replace(ONE, keys=4, zipf=0)), "key"))
    assert np.abs(flat / flat.sum() - 0.25).max() < 0.02
    addresses = set(column(whole(replace(ONE, keys=300, ipv4=True)), "key"))
    assert "10.0.0.0" in addresses
    assert "10.0.1.43" in addresses
    assert len(addresses) == 300


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("step", [250, 4_000])
def test_carried_promises_are_true_and_come_as_soon_as_they_are(kind, step):
    messages = list(replace(KINDS[kind], punctuate=step).messages(999))
    page = concat(ONE.schema, [m for m in messages if isinstance(m, Page)])
    least = np.minimum.accumulate(page.times[::-1])[::-1]  # (rows,) of each row and all after it
    at, promised = 0, KINDS[kind].origin
    for message in messages:
        if isinstance(message, Linear):
            assert message.below > promised
            promised = message.below
            assert at == len(page) or promised == least[at] // step * step
        else:
            assert isinstance(message, Page)
            held_true = least[at + 1 : at + len(message)] // step * step
            assert (held_true <= promised).all()  # nothing could have been said within the page
            at += len(message)
    assert promised >= 15_000 - 5_000


def test_each_block_ends_with_its_promise():
    messages = list(replace(KINDS["block"], punctuate="4 s").messages())
    said = [m if not isinstance(m, Page) else np.unique(m.times // 4_000).tolist() for m in messages]
    assert said == [[0], Linear(4_000), [1], Linear(8_000), [2], Linear(12_000), [3], Linear(16_000), [4]]


def test_it_can_be_written(tmp_path):
    trace = replace(KINDS["band"], punctuate="1 s")
    write_trace(tmp_path / "t.msgpack", trace.schema, trace.messages(500))
    assert list(open_trace(tmp_path / "t.msgpack")) == list(trace.messages(500))


@pytest.mark.parametrize(
    "wrong",
    [{"links": ()}, {"links": (Link("a", 1), Link("a", 1))}, {"late": 1.5}, {"keys": 0}, {"zipf": -1.0},
     {"band": "-1 s"}, {"duration": "3 rows"}, {"links": (Link("a", -1.0),)}, {"links": (Link("a", 1, skew=-1),)}],
)  # fmt: skip
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(GraphError, match="Disorder: "):
        replace(ONE, **wrong)


def test_nothing_is_a_trace_too():
    assert list(Disorder((Link("a", 0),), duration="1 h").messages()) == []
    assert list(Disorder((Link("a", 10),), duration=0).messages()) == []
