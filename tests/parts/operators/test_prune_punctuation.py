from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.operators import Count, Tumbling, WindowAggregate
from oop_engine.operators.edge.prune_punctuation import PrunePunctuation
from oop_engine.testing import END, Driver
from tests.naive.progress import Promised

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64()}, "ts", "s")
GROUPS, TIMES = [(k, n) for k in "ab" for n in (0, 1)], range(12)
BY_K = st.tuples(st.sampled_from("ab"), st.integers(0, 12)).map(lambda p: GroupWise.of({"k": [p[0]]}, [p[1]]))
BY_N = st.tuples(st.integers(0, 1), st.integers(0, 12)).map(lambda p: GroupWise.of({"n": [p[0]]}, [p[1]]))
PROMISES = st.lists(st.one_of(st.integers(0, 12).map(Linear), BY_K, BY_N), max_size=15)


def driver(**parameters) -> Driver:
    return Driver(PrunePunctuation(**parameters), SCHEMA)


@given(PROMISES, st.sampled_from([None, 1, 4]))
def test_what_is_said_is_what_is_wanted_rounded_down(promises, granularity):
    said = driver(granularity=granularity, attributes=["k"])
    wanted, out, contract = Promised(GROUPS, TIMES), Promised(GROUPS, TIMES), EdgeContract("out")
    for promise in promises:
        for _, message in said.feed(0, promise):
            contract.check(message)
            out.add(message)
        said.move()
        if isinstance(promise, Linear):
            wanted.add(Linear(promise.below // (granularity or 1) * (granularity or 1)))
        elif promise.attributes == ("k",):
            wanted.add(GroupWise(promise.groups, promise.below // (granularity or 1) * (granularity or 1)))
        assert wanted.cells == out.cells


def test_each_promise_once():
    said = driver(granularity=10)
    assert [len(said.feed(0, Linear(below))) for below in (12, 15, 19, 20, 31)] == [1, 0, 0, 1, 1]
    assert said.feed(0, GroupWise.of({"k": ["a", "b"]}, [39, 45])) == [(0, GroupWise.of({"k": ["b"]}, [40]))]
    assert said.feed(0, GroupWise.of({"k": ["b"]}, [49])) == []


def test_kinds_that_are_not_wanted():
    assert driver(keep=("groups",)).feed(0, Linear(10)) == []
    assert driver(keep=("linear",)).feed(0, GroupWise.of({"k": ["a"]}, [10])) == []
    assert driver(keep=("linear", "groups")).feed(0, Joint.of(ts=1, n=2)) == []
    assert driver().feed(0, Joint.of(ts=1, n=2)) == [(0, Joint.of(ts=1, n=2))]


def test_the_end_always_passes():
    assert driver(keep=(), granularity=60).feed(0, END) == [(0, Linear(FOREVER))]


def test_bad_parameters():
    with pytest.raises(GraphError, match="keep must name some of linear, groups, joint"):
        PrunePunctuation(keep=["all"])
    with pytest.raises(GraphError, match="PrunePunctuation: attributes: no column 'zone'"):
        driver(attributes=["zone"])
    with pytest.raises(GraphError, match="PrunePunctuation: granularity must be at least 1 s; got 0"):
        driver(granularity=0)


KNOWN = pa.record_batch({"k": ["a", "a", "b"], "n": [0, 1, 0]})


@given(PROMISES, st.sampled_from([None, 1, 4]))
def test_where_all_groups_are_known_their_least_bound_is_one_of_the_stream(promises, granularity):
    rolled, of = driver(granularity=granularity, groups=KNOWN), Promised(GROUPS, TIMES)
    groups, linear = [tuple(row.values()) for row in KNOWN.to_pylist()], -(2**63)
    for promise in promises:
        out = [message for _, message in rolled.feed(0, promise)]
        linear = max([linear, *(message.below for message in out if isinstance(message, Linear))])
        rolled.move()
        of.add(promise)
        least = min(sum((group, time) in of.cells for time in TIMES) for group in groups)
        assert max(linear, 0) == least // (granularity or 1) * (granularity or 1)


BY_BOTH = st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 12)).map(
    lambda p: GroupWise.of({"n": [p[1]], "k": [p[0]]}, [p[2]])
)


@given(st.lists(st.one_of(BY_BOTH, BY_N, BY_K, st.integers(0, 12).map(Linear)), max_size=15))
def test_where_all_groups_are_known_their_bounds_are_rolled_up_to_fewer_attributes(promises):
    rolled, of, contract = (
        driver(attributes=["k"], groups=KNOWN),
        Promised(GROUPS, TIMES),
        EdgeContract("out"),
    )
    known, out = [tuple(row.values()) for row in KNOWN.to_pylist()], Promised(GROUPS, TIMES)
    for promise in promises:
        of.add(promise)
        for _, message in rolled.feed(0, promise):
            contract.check(message)
            assert not isinstance(message, GroupWise) or message.attributes == ("k",)
            out.add(message)
        rolled.move()
        for key in "ab":
            least = min(
                sum((group, time) in of.cells for time in TIMES) for group in known if group[0] == key
            )
            assert sum(((key, 0), time) in out.cells for time in TIMES) == least


def test_bounds_of_finer_groups_close_the_windows_of_coarser_ones():
    count = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, ("k",)), SCHEMA)
    rolled = driver(attributes=["k"], groups=KNOWN)
    count.feed(0, Page.of(SCHEMA, {"ts": [1, 2, 3], "k": ["a", "a", "b"], "n": [0, 1, 0]}))
    for n in (0, 1):
        for _, message in rolled.feed(0, GroupWise.of({"k": ["a"], "n": [n]}, [15])):
            count.feed(0, message)
    assert count.rows() == [{"k": "a", "window_start": 0, "window_end": 10, "n": 2}]


def test_a_tuple_of_another_group_is_refused():
    rolled = driver(groups=KNOWN)
    page = Page.of(SCHEMA, {"ts": [1, 2], "k": ["a", "b"], "n": [0, 1]})
    with pytest.raises(ContractError, match=r"got a tuple of \{'k': 'b', 'n': 1\}"):
        rolled.feed(0, page)
    with pytest.raises(GraphError, match="groups must have a column"):
        driver(groups=KNOWN.slice(0, 0))
    with pytest.raises(GraphError, match="groups"):
        driver(groups=pa.record_batch({"gone": [1]}))
