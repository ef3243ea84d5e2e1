"""Bucket: window ids beside the tuple, and promises at the ends of windows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, GraphError, GroupWise, Joint, Linear, Page
from oop_engine.operators.bucket import Bucket
from oop_engine.operators.windows import Landmark, PartitionedTupleBased, Sliding, TupleBased
from oop_engine.testing import Driver
from tests.naive import windows as naive
from tests.parts.operators.window_streams import SCHEMA, Checked, events, page, rows


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), range_=st.integers(1, 20), slide=st.integers(1, 20))
def test_every_tuple_leaves_with_its_windows(data, of, range_, slide):
    driver = Checked(Bucket(Sliding(range_, slide)), SCHEMA).play(data.draw(events(of, kinds="plgm")))
    found = driver.rows()
    assert [r["ts"] for r in found] == [r["ts"] for r in of]
    for r in found:
        for wid in naive.candidates(r["ts"], range_, slide, 0):
            start, end = naive.extent(wid, range_, slide)
            assert (start <= r["ts"] < end) == (r["first_wid"] <= wid <= r["last_wid"])


def test_promises_are_rounded_down_to_the_last_window_they_close():
    driver = Driver(Bucket(Sliding(20, 10)), SCHEMA)
    assert driver.feed(0, Linear(38)) == [(0, Linear(30))]
    assert driver.feed(0, Linear(39)) == []
    assert driver.feed(0, GroupWise.of({"k": ["a", "b"]}, [41, 39])) == [
        (0, GroupWise.of({"k": ["a"]}, [40]))
    ]
    assert driver.feed(0, Joint.of(j=1, ts=3)) == [(0, Joint.of(j=1, ts=3))]
    assert driver.feed(0, "end") == [(0, Linear(FOREVER))]


def test_landmark_tuples_are_in_all_later_windows():
    driver = Driver(Bucket(Landmark(10)), SCHEMA)
    driver.feed(0, page([row(25), row(-1)]))
    inside, outside = driver.rows()
    assert (inside["first_wid"], inside["last_wid"]) == (2, FOREVER)
    assert outside["last_wid"] < outside["first_wid"]


def test_tuple_based_windows_number_arrivals_and_promise_the_next_number():
    driver = Driver(Bucket(TupleBased(4, 2)), SCHEMA)
    assert driver.operator.schemas_out[0].unit == "rows"
    driver.feed(0, page([row(9), row(3), row(7)]))
    assert [r["row"] for r in driver.rows()] == [0, 1, 2]
    assert driver.punctuation() == [Linear(2)]
    assert driver.feed(0, Linear(50)) == []
    driver.move()
    driver.feed(0, page([row(1)]))
    assert driver.rows()[-1]["row"] == 3
    assert driver.punctuation() == [Linear(2), Linear(4)]


def test_partitioned_windows_number_and_promise_by_group():
    driver = Driver(Bucket(PartitionedTupleBased(4, 1), by=("k",)), SCHEMA)
    driver.feed(0, page([row(9, "a"), row(3, "b"), row(7, "a")]))
    assert [(r["k"], r["row"]) for r in driver.rows()] == [("a", 0), ("b", 0), ("a", 1)]
    assert driver.punctuation() == [GroupWise.of({"k": ["a", "b"]}, [2, 1])]
    assert driver.operator.state().groups == 2
    ended = GroupWise.of({"k": ["a", "b"]}, [FOREVER, 30])
    assert driver.feed(0, ended) == [(0, GroupWise.of({"k": ["a"]}, [FOREVER]))]
    assert driver.operator.state().groups == 1


@pytest.mark.parametrize("ended", [{"k": ["a", "b"]}, {"j": [0], "k": ["a"]}, {"k": ["b", "a"], "j": [0, 0]}])
def test_numbers_of_groups_that_are_over_are_let_go(ended):
    """Also where the promise names only some of the columns."""
    driver = Driver(Bucket(PartitionedTupleBased(4, 1), by=("k", "j")), SCHEMA)
    driver.feed(0, page([row(9, "a"), row(3, "b"), row(7, "c")]))
    driver.feed(0, GroupWise.of(ended, [FOREVER] * len(ended["k"])))
    driver.move()
    driver.feed(0, page([row(9, "c")]))
    assert driver.rows()[-1]["row"] == 1
    assert driver.operator.state().groups == 3 - len(ended["k"])
    driver.feed(0, "end")
    assert driver.operator.state().groups == 0


def test_empty_pages():
    for windows in (Sliding(3, 2), TupleBased(3, 2)):
        [(_, out)] = Driver(Bucket(windows), SCHEMA).feed(0, Page.empty(SCHEMA))
        assert len(out) == 0


def test_taken_names_and_missing_groups_are_refused():
    tagged = Bucket(Sliding(3, 2)).opened(SCHEMA).schemas_out[0]
    with pytest.raises(GraphError, match="the input has first_wid, last_wid"):
        Bucket(Sliding(3, 2)).opened(tagged)
    with pytest.raises(GraphError, match="name its columns with by"):
        Bucket(PartitionedTupleBased(3, 2)).opened(SCHEMA)
    with pytest.raises(
        GraphError, match=r"Bucket: slide must be > 0 and in the unit of 'ts' \(s\); got slide=-60"
    ):
        Bucket(Sliding("1 h", "-1 min")).opened(SCHEMA)


def row(ts, k="a"):
    return {"ts": ts, "k": k, "j": 0, "v": 0, "x": 0.0}
