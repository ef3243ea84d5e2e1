from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, GraphError, GroupWise, Joint, Linear, Schema
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.operators.edge.describe import Describe
from oop_engine.testing import END, Driver
from tests.naive.progress import Promised

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64()}, "ts", "s")
GROUPS, TIMES = [(k, n) for k in "ab" for n in (0, 1)], range(12)
BY_K = st.tuples(st.sampled_from("ab"), st.integers(0, 12)).map(lambda p: GroupWise.of({"k": [p[0]]}, [p[1]]))
BY_N = st.tuples(st.integers(0, 1), st.integers(0, 12)).map(lambda p: GroupWise.of({"n": [p[0]]}, [p[1]]))
PROMISES = st.lists(st.one_of(st.integers(0, 12).map(Linear), BY_K, BY_N), max_size=15)


def driver(**parameters) -> Driver:
    return Driver(Describe(**parameters), SCHEMA)


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
        Describe(keep=["all"])
    with pytest.raises(GraphError, match="Describe: attributes: no column 'zone'"):
        driver(attributes=["zone"])
    with pytest.raises(GraphError, match="Describe: granularity must be at least 1 s; got 0"):
        driver(granularity=0)
