from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, Graph, GraphError, Linear, Page, Schema
from oop_engine.operators import Count, Tumbling, WindowAggregate
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import (
    BoundedCount,
    BoundedDisorder,
    Heartbeat,
    Ordered,
    PerGroup,
    Upstream,
)
from oop_engine.operators.policies.running_bound import RunningBound, cut_rows, floored
from oop_engine.operators.policies.timer import Timer
from oop_engine.runners.replay import replay
from oop_engine.testing import Driver
from tests.naive.progress import bounded_count, bounded_disorder, least_next, ordered

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
LOWEST = -100
VALUES = st.lists(st.integers(0, 20), min_size=1, max_size=25)
LAGS = [
    (Ordered(), ordered),
    (BoundedDisorder(0), bounded_disorder(0)),
    (BoundedDisorder("7 s"), bounded_disorder(7)),
    (BoundedCount(0), bounded_count(0)),
    (BoundedCount(1), bounded_count(1)),
    (BoundedCount(4), bounded_count(4)),
]


def page(times, arrival=None) -> Page:
    return Page.of(SCHEMA, {"ts": times, "k": ["a"] * len(times)}, arrival)


def bounds_of(watermark: RunningBound, times: list[int], cut: int) -> list[int]:
    found: list[int] = []
    for start in range(0, len(times), cut):
        found += watermark.after(page(times[start : start + cut])).tolist()
    return found


@pytest.mark.parametrize(("policy", "keeps"), LAGS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_bound_is_the_least_value_that_may_follow(policy, keeps):
    @given(VALUES, st.integers(1, 25))
    @example([5, 3, 8, 8, 8, 1, 9, 0], 3)
    def holds(times, cut):
        least = [least_next(times[: i + 1], keeps, LOWEST) for i in range(len(times))]
        expected = [NEVER if bound is None else bound for bound in least]
        assert expected == bounds_of(policy.running(SCHEMA, "test"), times, cut)

    holds()


@pytest.mark.parametrize(("policy", "keeps"), LAGS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_nothing_that_keeps_to_the_assumption_is_behind_the_bound(policy, keeps):
    @given(VALUES)
    def holds(values):
        times: list[int] = []
        for value in values:
            if keeps(times, value):
                times.append(value)
        bounds = bounds_of(policy.running(SCHEMA, "test"), times, 4)
        assert all(time >= bound for bound, time in zip(bounds, times[1:], strict=False))

    holds()


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(0, 30))
def test_bounded_count_is_the_next_largest(times, n):
    ranked = [sorted(times[: i + 1], reverse=True) for i in range(len(times))]
    expected = [values[n] if len(values) > n else NEVER for values in ranked]
    assert expected == bounds_of(BoundedCount(n).running(SCHEMA, "test"), times, 7)


@pytest.mark.parametrize("policy", [Ordered(), BoundedCount(0), BoundedDisorder(0)])
def test_no_value_ends_the_stream(policy):
    assert policy.running(SCHEMA, "test").after(page([FOREVER])).tolist() == [FOREVER - 1]


def test_upstream_knows_nothing():
    watermark = Upstream().running(SCHEMA, "test")
    assert watermark.after(page([1, 2])).tolist() == [NEVER, NEVER]
    assert watermark.on_clock(99) == NEVER
    assert watermark.clock_every is None


def test_heartbeat_follows_the_clock_in_a_lull_only():
    watermark = Heartbeat(BoundedDisorder(5), threshold=10, slack=3, every=4).running(SCHEMA, "test")
    assert watermark.clock_every == 4
    assert watermark.after(page([100, 101], [104, 105])).tolist() == [95, 96]
    assert [watermark.on_clock(now) for now in (108, 112, 115, 116, 120)] == [NEVER, NEVER, NEVER, 113, 117]
    assert watermark.after(page([118, 119], [121, 122])).tolist() == [118, 118]  # it ended a silence of 16
    assert watermark.on_clock(124) == NEVER


def test_heartbeat_of_drift_follows_the_clock_where_times_stand_still():
    arrivals = list(range(0, 60, 5))
    for of, bound in (("silence", NEVER), ("drift", 49)):
        running = Heartbeat(Ordered(), threshold=10, slack=10, of=of).running(SCHEMA, "test")
        assert running.after(page([3] * len(arrivals), arrivals)).tolist() == [3] * len(arrivals)
        assert running.on_clock(59) == bound
    assert running.after(page([57], [60])).tolist() == [57]
    assert [running.on_clock(now) for now in (67, 68)] == [NEVER, 58]


def test_heartbeat_of_drift_holds_nobody_up():
    driver = Driver(Punctuate(Heartbeat(Ordered(), 10, 10, of="drift"), granularity=1), SCHEMA)
    for arrival in range(0, 60, 5):
        driver.feed(0, page([3], [arrival]))
    assert driver.punctuation() == [Linear(3)]
    assert list(driver.operator.on_clock(59)) == [(0, Linear(49))]
    driver.feed(0, page([48, 49], [60, 60]))
    assert driver.operator.counts() == {"late": 1}


def test_a_timer_puts_the_exact_bound_out_at_each_tick():
    driver = Driver(Punctuate(Timer(BoundedDisorder(5), every=10), granularity=100), SCHEMA)
    assert driver.operator.clock_every == 10
    driver.feed(0, page([40, 61], [41, 62]))
    assert [driver.clock(now) for now in (70, 80)] == [[(0, Linear(56))], []]
    driver.move()
    driver.feed(0, page([55, 64], [81, 82]))  # one is behind the bound of the tick
    assert driver.operator.counts() == {"late": 1}
    assert driver.clock(90) == [(0, Linear(59))]
    assert driver.feed(0, page([210], [91]))[1:] == [(0, Linear(200))]


def test_a_timer_goes_on_with_a_heartbeat_in_it():
    running = Timer(Heartbeat(Ordered(), threshold=10, slack=3, every=4), every=6).running(SCHEMA, "test")
    assert running.clock_every == 4
    assert running.after(page([100], [100])).tolist() == [100]
    assert [running.on_clock(now) for now in (108, 112)] == [100, 109]


def test_a_timer_is_the_same_in_every_runner():
    found = []
    for on in ("inline", "local"):
        graph = Graph("timed")
        edge = graph.add("edge", Punctuate(Timer(Ordered(), every=10), 1000), graph.source("in", SCHEMA))
        graph.sink("out", graph.add("count", WindowAggregate(Tumbling(7), {"n": Count()}), edge))
        times = list(range(100))
        outcome = replay(graph, {"in": [page(times[:50], times[:50]), page(times[50:], times[50:])]}, on=on)
        found.append((outcome.results["out"].to_pylist(), outcome.emitted["out"].tolist()))
    assert found[0] == found[1]
    waits = [at - row["window_end"] for row, at in zip(*found[0], strict=True)]
    assert max(waits) <= 10  # a tick, where the granularity lets them wait for the end
    assert len(waits) == 15


def test_heartbeat_when_nothing_ever_came():
    watermark = Heartbeat(Upstream(), threshold=10, slack=3).running(SCHEMA, "test")
    assert watermark.clock_every == 10
    assert [watermark.on_clock(now) for now in (1000, 1010, 1011)] == [NEVER, NEVER, 1008]


def test_a_page_without_arrival_came_at_the_next_tick():
    watermark = Heartbeat(Ordered(), threshold=10, slack=0).running(SCHEMA, "test")
    watermark.on_clock(0)
    assert watermark.after(page([1])).tolist() == [1]
    assert [watermark.on_clock(now) for now in (12, 22, 23)] == [NEVER, NEVER, 23]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=15), st.integers(1, 15)
)
def test_heartbeat_does_not_see_page_cuts(steps, cut):
    arrival = np.cumsum([gap for _, gap in steps]).tolist()
    times = [time for time, _ in steps]
    whole = Heartbeat(Ordered(), 10, 4).running(SCHEMA, "test")
    parts = Heartbeat(Ordered(), 10, 4).running(SCHEMA, "test")
    found = np.concatenate(
        [parts.after(page(times[at : at + cut], arrival[at : at + cut])) for at in range(0, len(times), cut)]
    )
    expected = whole.after(page(times, arrival))
    assert np.maximum.accumulate(found).tolist() == expected.tolist()
    assert whole.save()["last"] == parts.save()["last"] == arrival[-1]


def test_policies_are_values():
    policy = PerGroup(BoundedDisorder("5 s"), ("k",), linear=Heartbeat(Ordered(), 1, 2))
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert policy != PerGroup(BoundedDisorder("5 s"), ("k",))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BoundedCount(-1), "n must be a number of tuples from 0 to 2**30; got n=-1"),
        (lambda: BoundedDisorder(-1), "slack must be at least 0 s; got -1"),
        (lambda: BoundedDisorder("3 rows"), "slack must be a length of time; got '3 rows'"),
        (
            lambda: Heartbeat(Ordered(), 1, 0, of="rows"),  # type: ignore[arg-type]
            "of must be 'silence' or 'drift'; got 'rows'",
        ),
        (lambda: Heartbeat(Ordered(), -1, 0), "threshold must be at least 0"),
        (lambda: Heartbeat(Ordered(), 1, "-2 s"), "slack must be at least 0"),
        (lambda: Heartbeat(Ordered(), 1, 0, every=0), "every must be at least 1 s; got 0"),
        (lambda: Timer(Ordered(), every=0), "every must be at least 1 s; got 0"),
        (lambda: Timer(PerGroup(Ordered(), ("k",)), 1), "got PerGroup in it: write PerGroup"),
        (lambda: Heartbeat(PerGroup(Ordered(), ("k",)), 1, 0), "got PerGroup in it: write PerGroup"),
        (
            lambda: PerGroup(Upstream(), ("k",)),
            "policy must be a Lag such as Ordered, BoundedDisorder, BoundedCount",
        ),
        (lambda: PerGroup(Ordered(), ()), "at least one; got by=()"),
        (lambda: PerGroup(Ordered(), "zone"), "by: no column 'zone' in its input; there are ts, k"),
        (
            lambda: PerGroup(Ordered(), ("k",), linear=PerGroup(Ordered(), ("k",))),
            "whole stream; got PerGroup",
        ),
        (lambda: PerGroup(Ordered(), ("zone",)), "no column 'zone'"),
        (lambda: PerGroup(BoundedDisorder(-1), ("k",)), "slack must be at least 0 s"),
    ],
)
def test_bad_parameters(make, words):
    with pytest.raises(GraphError) as error:
        make().running(SCHEMA, "Punctuate")
    assert words in str(error.value)


def test_floored_keeps_the_sentinels_and_never_promises_more():
    bounds = np.array([NEVER, NEVER + 1, -11, -10, -1, 0, 9, 10, FOREVER - 1, FOREVER])
    found = floored(bounds, 10)
    assert found.tolist()[2:8] == [-20, -10, -10, 0, 0, 10]
    assert (found[0], found[-1]) == (NEVER, FOREVER)
    assert (found <= bounds).all()
    assert floored(bounds, None) is bounds


def test_a_page_is_cut_where_the_promise_grows():
    assert cut_rows(np.array([5, 10, 10, 10, 40, 40]), 5).tolist() == [2, 5]
    assert cut_rows(np.array([5, 5]), 5).tolist() == []
    assert cut_rows(np.array([], np.int64), 5).tolist() == []
