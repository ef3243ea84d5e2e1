from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, NEVER, GraphError, Schema
from oop_engine.errors import UnitError
from oop_engine.operators.joining.bands import (
    AsOf,
    AsOfRule,
    Band,
    BandRule,
    Rule,
    TumblingBand,
    TumblingRule,
    WindowIdBand,
    WindowIdRule,
)
from tests.naive.joins import band, tumbling, window_ids

MS = Schema({"ts": pa.timestamp("ms")}, "ts")
ROWS = Schema({"n": pa.int64()}, "n", "rows")
TIMES = range(-40, 41)
RULES = [
    (BandRule(0, 0), band(0, 0)),
    (BandRule(2, 5), band(2, 5)),
    (BandRule(-2, 5), band(-2, 5)),
    (BandRule(7, -7), band(7, -7)),
    (TumblingRule(7, 0), tumbling(7)),
    (TumblingRule(6, -2), tumbling(6, -2)),
    (TumblingRule(1, 5), tumbling(1, 5)),
    (WindowIdRule(10, 10, 5, 0), window_ids(10, 10, 5)),
    (WindowIdRule(7, 4, 3, -1), window_ids(7, 4, 3, -1)),
    (WindowIdRule(3, 8, 3, 1), window_ids(3, 8, 3, 1)),
    (WindowIdRule(6, 6, 6, -2), tumbling(6, -2)),
    (WindowIdRule(5, 3, 1, 0), band(2, 4)),
]
each_rule = pytest.mark.parametrize(
    ("rule", "matches"), RULES, ids=lambda r: str(r) if not callable(r) else ""
)
BOUNDS = [(left, right) for left in range(-10, 11, 3) for right in range(-10, 11)]


@each_rule
def test_reach_is_what_matches(rule: Rule, matches) -> None:
    some = np.arange(-15, 16)
    for side in (0, 1):
        low, high = rule.reach(side, some)
        for time, first, last in zip(some.tolist(), low.tolist(), high.tolist(), strict=True):
            others = [o for o in TIMES if (matches(time, o) if side == 0 else matches(o, time))]
            assert others == list(range(first, last + 1))


@each_rule
def test_keep_from_is_the_least_time_that_can_match_what_is_to_come(rule: Rule, matches) -> None:
    for bound in range(-10, 11):
        to_come = range(bound, 41)
        assert rule.keep_from(0, bound) == min(t for t in TIMES if any(matches(t, r) for r in to_come))
        assert rule.keep_from(1, bound) == min(t for t in TIMES if any(matches(left, t) for left in to_come))
        for side in (0, 1):
            assert rule.keep_from(side, np.array([bound])).tolist() == [rule.keep_from(side, bound)]


@each_rule
def test_promise_is_the_least_of_the_results_to_come(rule: Rule, matches) -> None:
    pairs = [(a, b) for a in TIMES for b in TIMES if matches(a, b)]
    for left, right in BOUNDS:
        to_come = [(a, b) for a, b in pairs if a >= left or b >= right]
        assert rule.output_bounds(left, right) == (min(a for a, _ in to_come), min(b for _, b in to_come))


@each_rule
def test_a_box_that_misses_the_band_says_no_more_than_a_slab(rule: Rule, matches) -> None:
    pairs = {(a, b) for a in TIMES for b in TIMES if matches(a, b)}
    for left, right in BOUNDS:
        box = {(a, b) for a, b in pairs if a < left and b < right}
        promised_left, promised_right = rule.output_bounds(left, right)
        slabs = (
            {(a, b) for a, b in pairs if a < promised_left},
            {(a, b) for a, b in pairs if b < promised_right},
        )
        assert rule.meets(left, right) or box in slabs


@each_rule
def test_sentinels_stay(rule: Rule, matches) -> None:
    for side in (0, 1):
        assert (rule.keep_from(side, NEVER), rule.keep_from(side, FOREVER)) == (NEVER, FOREVER)
        assert rule.keep_from(side, np.array([NEVER, FOREVER])).tolist() == [NEVER, FOREVER]
    assert rule.output_bounds(FOREVER, 60) == (rule.keep_from(0, 60), 60)
    assert rule.output_bounds(NEVER, 60) == (NEVER, NEVER)
    assert rule.meets(FOREVER, FOREVER)
    assert not rule.meets(NEVER, NEVER)
    assert not rule.meets(FOREVER, 60)


def test_reach_does_not_wrap_round() -> None:
    low, high = BandRule(10, 10).reach(0, np.array([NEVER + 1, FOREVER - 1]))
    assert low.tolist() == [NEVER, FOREVER - 11]
    assert high.tolist() == [NEVER + 11, FOREVER]


def test_windows_of_one_id_do_not_wrap_round() -> None:
    ends = np.array([NEVER, FOREVER])
    for rule in (WindowIdRule(10, 7, 5, 1), TumblingRule(7, 3), AsOfRule(3), AsOfRule(None)):
        for side in (0, 1):
            low, high = rule.reach(side, ends)
            assert (low <= ends).all()
            assert (high >= ends).all()
            assert rule.keep_from(side, NEVER + 1) <= NEVER + 1


def test_the_latest_has_to_be_waited_for() -> None:
    assert AsOfRule(3).keep_from(0, 10) == 10
    assert (AsOfRule(3).keep_from(1, 10), AsOfRule(None).keep_from(1, 10)) == (7, NEVER)
    assert AsOfRule(3).output_bounds(10, 8) == (8, 5)
    assert AsOfRule(None).output_bounds(10, 8) == (8, NEVER)
    assert AsOf("3 s").fitted(MS, "J") == AsOfRule(3000)


def test_lengths_are_in_the_unit_of_the_attribute() -> None:
    assert Band("1 s", "2 min").fitted(MS, "J") == BandRule(1000, 120_000)
    assert TumblingBand("1 s", origin=5).fitted(MS, "J") == TumblingRule(1000, 5)
    assert Band(-3, 3).fitted(ROWS, "J") == BandRule(-3, 3)


@pytest.mark.parametrize(
    ("band", "said"),
    [
        (Band(-3, 2), r"before \+ after must be at least 0 rows; got before=-3, after=2"),
        (TumblingBand(0), "range must be more than 0 rows; got 0"),
        (
            WindowIdBand(4, 10, 5),
            "at least the slide, and that more than 0 rows; got range_left=4, range_right=10",
        ),
        (WindowIdBand(4, 10, 0), "slide=0"),
        (AsOf(-1), "within must be at least 0 rows; got -1"),
        (TumblingBand(-60), "range must be more than 0 rows; got -60"),
    ],
)
def test_an_empty_band_is_refused(band: Band | TumblingBand, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        band.fitted(ROWS, "OAJoin")


def test_a_foreign_unit_is_refused() -> None:
    with pytest.raises(UnitError, match="after must be in 'rows'"):
        Band(0, "2 s").fitted(ROWS, "OAJoin")


@pytest.mark.parametrize("origin", [0, 3, -3, 2**62])
@pytest.mark.parametrize("edge", [NEVER + 1, FOREVER - 40])
def test_windows_at_the_ends_of_int64_do_not_wrap_round(origin: int, edge: int) -> None:
    rule, matches = TumblingRule(10, origin), tumbling(10, origin)
    times = np.arange(edge, edge + 40)
    low, high = rule.reach(0, times)
    for time, first, last in zip(times.tolist(), low.tolist(), high.tolist(), strict=True):
        assert [other for other in times.tolist() if matches(time, other)] == [
            other for other in times.tolist() if first <= other <= last
        ]
    kept = rule.keep_from(0, times)
    assert (kept <= times).all()
    assert kept.tolist() == [rule.keep_from(0, time) for time in times.tolist()]
