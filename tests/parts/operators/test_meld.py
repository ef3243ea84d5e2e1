from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.operators.meld import Meld
from oop_engine.testing import END, Driver
from tests.naive.progress import Promised

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int32()}, "ts", "s")
KS, NS, TIMES = "ab", (0, 1), range(12)
GROUPS = [(k, n) for k in (*KS, "of no bound of its own") for n in NS]
BELOW = st.sampled_from([*range(13), FOREVER])


@st.composite
def group_wise(draw: st.DrawFn) -> GroupWise:
    keys = draw(st.lists(st.sampled_from(KS), min_size=1, max_size=2, unique=True))
    return GroupWise.of({"k": keys}, [draw(BELOW) for _ in keys])


PROMISES = st.one_of(BELOW.map(Linear), group_wise())
EVENTS = st.lists(st.tuples(st.integers(0, 2), PROMISES), max_size=25)


@given(EVENTS)
def test_meld_promises_exactly_what_every_input_promised(events):
    driver = Driver(Meld(3), SCHEMA, SCHEMA, SCHEMA)
    ins, out = [Promised(GROUPS, TIMES) for _ in range(3)], Promised(GROUPS, TIMES)
    for port, promise in events:
        ins[port].add(promise)
        for _, said in driver.feed(port, promise):
            before = set(out.cells)
            out.add(said)
            assert out.cells > before or bound(said) not in range(
                1, max(TIMES) + 1
            )  # else no time is between
        assert out.cells == ins[0].cells & ins[1].cells & ins[2].cells
        driver.move()


def bound(promise: Linear | GroupWise) -> int:
    return promise.below if isinstance(promise, Linear) else int(promise.below.max())


def test_pages_leave_at_once_and_in_the_order_they_come():
    driver = Driver(Meld(2), SCHEMA, SCHEMA)
    first = Page.of(SCHEMA, {"ts": [9], "k": ["a"], "n": [1]}, [10])
    second = Page.of(SCHEMA, {"ts": [1], "k": ["b"], "n": [2]}, [11])
    assert driver.feed(1, first) == [(0, first)]
    assert driver.feed(0, second) == [(0, second)]
    assert driver.operator.state().tuples == 0


def test_an_input_that_has_ended_holds_up_nobody():
    driver = Driver(Meld(2), SCHEMA, SCHEMA)
    driver.feed(0, Linear(40))
    assert driver.feed(1, END) == [(0, Linear(40))]
    assert driver.feed(0, Linear(50)) == [(0, Linear(50))]


def test_groups_go_when_the_streams_have_caught_up():
    driver = Driver(Meld(2), SCHEMA, SCHEMA)
    driver.feed(0, GroupWise.of({"k": ["a", "b"]}, [40, 60]))
    assert driver.operator.state().groups == 2
    driver.feed(0, Linear(60))
    assert driver.operator.state().groups == 0


def test_joint_punctuation_only_from_one():
    assert Driver(Meld(2), SCHEMA, SCHEMA).feed(0, Joint.of(ts=3, n=4)) == []
    assert Driver(Meld(1), SCHEMA).feed(0, Joint.of(ts=3, n=4)) == [(0, Joint.of(ts=3, n=4))]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s"), "columns 'n'"),
        (
            Schema({"ts": pa.int64(), "n": pa.int32(), "k": pa.string()}, "ts", "s"),
            "the order of columns ['ts', 'n', 'k']",
        ),
        (Schema({"ts": pa.int64(), "k": pa.int64(), "n": pa.int32()}, "ts", "s"), "column 'k'"),
        (Schema(SCHEMA.fields, "n", "s"), "the progressing attribute: 'n' instead of 'ts'"),
        (Schema(SCHEMA.fields, "ts", "ms"), "the unit: 'ms' instead of 's'"),
    ],
)
def test_schemas_must_be_equal(other, words):
    with pytest.raises(GraphError) as error:
        Meld(3).output_schemas((SCHEMA, SCHEMA, other))
    assert "Meld: inputs must have the same schema; in2 differs from in0 in" in str(error.value)
    assert words in str(error.value)


def test_no_inputs():
    with pytest.raises(GraphError, match="from 1 to 10,000; got 0"):
        Meld(0)
