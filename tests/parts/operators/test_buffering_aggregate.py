"""BufferingAggregate: the in-order twin, equal to the definition and to WindowAggregate."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GraphError, Joint, Linear, Page
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.windows import Landmark, Sliding, Tumbling, TupleBased
from oop_engine.testing import Driver, multiset
from tests.naive import windows as naive
from tests.parts.operators.test_aggregates import USER, naive_user
from tests.parts.operators.test_window_aggregate import AGGREGATES, BY, LENGTH, ORACLE
from tests.parts.operators.window_streams import SCHEMA, Checked, events, page, rows


def in_order(of):
    return sorted(of, key=lambda r: r["ts"])


def row(ts, k="a", v=0):
    return {"ts": ts, "k": k, "j": 0, "v": v, "x": 0.0}


def check(operator, said, expected):
    driver = Checked(operator, SCHEMA).play(said)
    assert multiset(driver.rows()) == multiset(expected)
    ends = [r["window_end"] for r in driver.rows()]
    assert ends == sorted(ends)
    state = driver.operator.state()
    assert (state.tuples, state.groups if operator.by else 0) == (0, 0)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), by=BY, range_=LENGTH, slide=LENGTH, origin=st.integers(-9, 9))
def test_sliding_windows_are_those_of_the_definition(data, of, by, range_, slide, origin):
    of = in_order(of)
    operator = BufferingAggregate(Sliding(range_, slide, origin), AGGREGATES, by)
    check(operator, data.draw(events(of)), naive.sliding(of, "ts", by, ORACLE, range_, slide, origin))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), range_=LENGTH, slide=LENGTH)
def test_empty_windows_of_the_whole_stream(data, of, range_, slide):
    of = in_order(of)
    operator = BufferingAggregate(Sliding(range_, slide), AGGREGATES, empty=True)
    check(operator, data.draw(events(of)), naive.sliding(of, "ts", (), ORACLE, range_, slide, empty=True))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), by=BY, slide=LENGTH, origin=st.integers(-9, 9))
def test_landmark_windows_keep_everything(data, of, by, slide, origin):
    of = in_order(of)
    operator = BufferingAggregate(Landmark(slide, origin), {"u": USER, "n": Count()}, by)
    functions = {"u": naive_user, "n": ORACLE["n"]}
    check(operator, data.draw(events(of)), naive.landmark(of, "ts", by, functions, slide, origin))


@settings(max_examples=30, deadline=None)
@given(data=st.data(), of=rows(st.sampled_from([-(2**62), -(2**62) + 3, 0, 2**62, 2**62 + 9])), by=BY)
def test_lulls_without_end(data, of, by):
    of = in_order(of)
    expected = naive.sliding(of, "ts", by, {"n": ORACLE["n"]}, 7, 3)
    check(BufferingAggregate(Sliding(7, 3), {"n": Count()}, by), data.draw(events(of, kinds="pm")), expected)


def test_the_order_of_tuples_closes_windows():
    driver = Driver(BufferingAggregate(Tumbling(10), {"n": Count()}), SCHEMA)
    driver.feed(0, page([row(1), row(9)]))
    assert driver.operator.state().tuples == 2
    driver.feed(0, page([row(10)]))
    assert driver.rows() == [{"window_start": 0, "window_end": 10, "n": 2}]
    assert driver.punctuation() == [Linear(10), Linear(20)]
    assert driver.feed(0, Joint.of(j=5)) == []
    assert driver.feed(0, Linear(57))[-1] == (0, Linear(60))
    assert driver.operator.state().tuples == 0


def test_stragglers_join_the_open_extents_and_are_lost_for_closed_ones():
    operator = BufferingAggregate(Sliding(20, 10), {"n": Count(), "s": Sum("v")}, late=True)
    driver = Driver(operator, SCHEMA, SCHEMA)
    assert operator.inputs == ("in", "late")
    driver.feed(0, page([row(5, v=1), row(15, v=2), row(31, v=4)]))
    driver.feed(1, page([row(18, v=8), row(25, v=16), row(39, v=32), row(3, v=64)]))
    assert driver.operator.counts() == {"late_for_some": 3, "late_for_all": 2}
    driver.move()
    driver.feed(0, "end")
    driver.feed(1, page([row(50)]))
    found = {r["window_end"]: (r["n"], r["s"]) for r in driver.rows()}
    assert found == {10: (1, 1), 20: (2, 3), 30: (1, 2), 40: (3, 52), 50: (2, 36)}
    assert driver.operator.state().tuples == 0


def test_only_columns_that_are_read_are_kept():
    narrow, wide = (
        Driver(BufferingAggregate(Tumbling(10), aggregates), SCHEMA)
        for aggregates in ({"n": Count()}, {"n": Sum("v")})
    )
    for driver in (narrow, wide):
        driver.feed(0, page([row(1)] * 100))
    assert wide.operator.state().nbytes - narrow.operator.state().nbytes >= 800


def test_integer_sums_are_checked():
    driver = Driver(BufferingAggregate(Tumbling(10), {"s": Sum("v")}, ("k",)), SCHEMA)
    with pytest.raises(
        ContractError, match=r"BufferingAggregate: Sum\('v'\).*\[0, 10\) of group \{'k': 'a'\}"
    ):
        driver.run([(0, page([row(1, v=2**62), row(2, v=2**62)]))])


@pytest.mark.parametrize(
    "said", [[page([row(3), row(25), row(7)])], [page([row(9)]), page([row(8)])], [Linear(5), page([row(4)])]]
)
def test_the_input_must_be_sorted(said):
    driver = Driver(BufferingAggregate(Tumbling(10), {"n": Count()}), SCHEMA)
    for message in said[:-1]:
        driver.feed(0, message)
    with pytest.raises(
        ContractError, match=r"BufferingAggregate: input 'in' must be sorted by 'ts'; got . after"
    ):
        driver.feed(0, said[-1])


def test_empty_pages_and_the_end():
    driver = Driver(BufferingAggregate(Tumbling(10), {"n": Count()}), SCHEMA)
    assert driver.feed(0, Page.empty(SCHEMA)) == []
    assert driver.feed(0, "end") == [(0, Linear(FOREVER))]


def test_what_cannot_be_in_order_is_refused():
    with pytest.raises(GraphError, match="use WindowAggregate"):
        BufferingAggregate(TupleBased(2, 1), {"n": Count()}).opened(SCHEMA)
    with pytest.raises(GraphError, match=r"empty=True goes with by=\(\) only"):
        BufferingAggregate(Tumbling(2), {"n": Count()}, ("k",), empty=True)
    other = BufferingAggregate(Tumbling(2), {"n": Count()}).opened(SCHEMA).schemas_out[0]
    with pytest.raises(GraphError, match="stragglers must be of the schema"):
        BufferingAggregate(Tumbling(2), {"n": Count()}, late=True).opened(SCHEMA, other)
