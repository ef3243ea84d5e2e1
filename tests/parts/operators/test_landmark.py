"""Landmark windows that go on through lulls, against the definition; the global window."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, GraphError, Linear, Page, Schema
from oop_engine.operators import Count, Sliding, Tumbling, WindowAggregate
from oop_engine.testing import Driver, multiset
from oop_engine.thesis import BufferingAggregate
from oop_engine.windows import Global, Landmark, LastRows
from tests.naive import windows as naive
from tests.naive.sessions import whole
from tests.parts.operators.test_sessions import KEYED, group, keyed
from tests.parts.operators.test_window_aggregate import AGGREGATES, BY, ORACLE
from tests.parts.operators.window_streams import SCHEMA, Checked, events, rows

TIMES = Schema({"ts": pa.int64()}, "ts", "s")


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(size=30), by=BY, slide=st.integers(1, 15), origin=st.integers(-30, 30))
def test_windows_of_a_lull_are_those_that_a_bound_has_passed(data, of, by, slide, origin):
    stream = data.draw(events(of, kinds="plm"))
    said = [event.below for event in stream if isinstance(event, Linear) and event.below < FOREVER]
    last = data.draw(st.integers(70, 120))
    stream += [Linear(last)]
    driver = Checked(WindowAggregate(Landmark(slide, origin, lulls=True), AGGREGATES, by), SCHEMA)
    found = driver.play(stream).rows()
    lull = max([last, *said])
    assert multiset(found) == multiset(naive.landmark(of, "ts", by, ORACLE, slide, origin, lull))


def test_each_group_goes_on_by_its_own_bound():
    driver = Driver(WindowAggregate(Landmark(10, lulls=True), {"n": Count()}, ("k",)), KEYED)
    driver.feed(0, keyed(3, "a"))
    driver.feed(0, keyed(4, "b"))
    driver.feed(0, group("a", 30))
    assert [(row["k"], row["window_end"]) for row in driver.rows()] == [("a", 10), ("a", 20), ("a", 30)]
    assert driver.feed(0, Linear(20))[-1] == (0, Linear(30))
    assert [(row["k"], row["window_end"]) for row in driver.rows()[3:]] == [("b", 10), ("b", 20)]


def test_a_lull_of_too_many_windows_is_told():
    driver = Driver(WindowAggregate(Landmark(1, lulls=True), {"n": Count()}), TIMES)
    driver.feed(0, Page.of(TIMES, {"ts": [3]}))
    with pytest.raises(Exception, match="windows without a tuple"):
        driver.feed(0, Linear(2**50))


def test_a_buffer_does_not_wait_for_punctuation():
    with pytest.raises(GraphError, match="lulls"):
        BufferingAggregate(Landmark(10, lulls=True), {"n": Count()}).opened(TIMES)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), of=rows(size=30), by=BY)
def test_the_global_window_is_all_tuples_of_a_group(data, of, by):
    driver = Checked(WindowAggregate(Global(), AGGREGATES, by), SCHEMA).play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(whole(of, "ts", by, ORACLE))


def test_a_group_that_has_ended_leaves_before_the_stream_does():
    driver = Driver(WindowAggregate(Global(), {"n": Count()}, ("k",)), KEYED)
    driver.feed(0, keyed(3, "a"))
    driver.feed(0, keyed(4, "b"))
    driver.feed(0, Linear(100))
    assert driver.rows() == []
    driver.feed(0, group("a", FOREVER))
    assert driver.rows() == [{"k": "a", "window_start": 3, "window_end": 4, "n": 1}]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("windows", [Landmark, Tumbling, partial(Sliding, "2 d"), partial(LastRows, 1)])
def test_an_origin_may_be_a_moment_in_any_unit(windows, unit):
    schema = Schema({"at": pa.timestamp(unit)}, "at")
    times = [datetime(2026, 1, 1, 5), datetime(2026, 1, 2, 1)]
    ends = [
        [row["window_end"] for row in driver.run([(0, Page.of(schema, {"at": times}))]).rows()]
        for origin in (datetime(2026, 1, 1, 3), np.datetime64("2026-01-01T03", "h"))
        for driver in [Driver(WindowAggregate(windows("1 d", origin=origin), {"n": Count()}), schema)]
    ]
    assert ends[0] == ends[1]
    assert ends[0][0] == datetime(2026, 1, 2, 3)


@pytest.mark.parametrize("origin", [2**61 + 5, -(2**61) - 5])
def test_landmark_windows_far_from_zero_are_those_near_it(origin):
    found = []
    for base in (0, origin):
        driver = Driver(WindowAggregate(Landmark(10, base), {"n": Count()}), TIMES)
        driver.run([(0, Page.of(TIMES, {"ts": [base + 12, base - 1, base + 3]}))])
        found.append(
            [(row["window_start"] - base, row["window_end"] - base, row["n"]) for row in driver.rows()]
        )
    assert found[1] == found[0] == [(0, 10, 1), (0, 20, 2)]


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        (2**62, r"origin must be within 2\*\*62 ms of 0; got 4611686018427387904"),
        (
            "2026-01-01",
            r"origin must read like .* or '900'; got '2026-01-01'; write a moment as a datetime",
        ),
        (datetime(2026, 1, 1, tzinfo=UTC), "origin must be a moment without a zone"),
        (1.5, r"origin must be an integer, .*write a moment as a datetime"),
    ],
)
def test_an_origin_that_is_none_is_refused(origin, message):
    with pytest.raises(GraphError, match=message):
        Landmark(10, origin).bound(Schema({"ts": pa.timestamp("ms")}, "ts"))
