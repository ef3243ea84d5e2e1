"""Aggregate behind Bucket gives what WindowAggregate gives, message by message."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import GraphError, Page
from oop_engine.operators.aggregate import Aggregate
from oop_engine.operators.aggregates import Count, First, Sum
from oop_engine.operators.bucket import Bucket
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, PartitionedTupleBased, Sliding, Tumbling, TupleBased
from oop_engine.testing import multiset
from tests.parts.operators.window_streams import MOVE, SCHEMA, Checked, events, rows

WINDOWS = st.sampled_from(
    [
        Sliding(20, 7, 3),
        Tumbling(10),
        Sliding(3, 8),
        Landmark(9),
        TupleBased(5, 3),
        PartitionedTupleBased(3, 2),
    ]
)
AGGREGATES = {"n": Count(), "s": Sum("v"), "first": First("x")}


@settings(max_examples=30, deadline=None)
@given(data=st.data(), of=rows(), windows=WINDOWS, empty=st.booleans())
def test_bucket_and_aggregate_are_window_aggregate(data, of, windows, empty):
    said = data.draw(events(of))
    whole = Checked(WindowAggregate(windows, AGGREGATES, ("k",), empty=empty), SCHEMA).play(said)
    bucket = Checked(Bucket(windows, by=("k",)), SCHEMA).play(said)
    between = [message for message in bucket.out[0] if message is not None]
    if data.draw(st.booleans()):
        between.insert(len(between) // 2, MOVE)
    tail = Aggregate(windows, AGGREGATES, ("k",), empty=empty)
    halves = Checked(tail, bucket.operator.schemas_out[0]).play(between)
    assert multiset(halves.rows()) == multiset(whole.rows())
    assert halves.punctuation() == whole.punctuation()
    assert halves.operator.state().partials == 0


def test_it_needs_a_bucket_before_it():
    with pytest.raises(GraphError, match="put a Bucket before it"):
        Aggregate(Tumbling(10), {"n": Count()}).opened(SCHEMA)


def test_tuple_based_windows_need_the_row_of_their_bucket():
    tagged = Bucket(Tumbling(10)).opened(SCHEMA).schemas_out[0]
    with pytest.raises(GraphError, match="'row' of its Bucket; got progress by 'ts'"):
        Aggregate(TupleBased(10, 10), {"n": Count()}).opened(tagged)


def test_empty_pages_are_harmless():
    tagged = Bucket(Tumbling(10)).opened(SCHEMA).schemas_out[0]
    operator = Aggregate(Tumbling(10), {"n": Count()}, ("k",)).opened(tagged)
    assert list(operator.on_page(0, Page.empty(tagged))) == []
