"""Windows that are given one by one, against the definition, and what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, GraphError, Linear, Page, Schema
from oop_engine.operators import Count, WindowAggregate
from oop_engine.testing import Driver, multiset
from oop_engine.windows import FixedBand, Intervals
from tests.naive.folded import intervals
from tests.parts.operators.test_sessions import KEYED, keyed
from tests.parts.operators.test_window_aggregate import AGGREGATES, BY, ORACLE
from tests.parts.operators.window_streams import SCHEMA, Checked, events, rows

EXTENT = st.tuples(st.integers(-25, 60), st.integers(1, 40)).map(lambda pair: (pair[0], sum(pair)))


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(), of=rows(size=30), by=BY, extents=st.lists(EXTENT, min_size=1, max_size=6),
    stamp=st.sampled_from(["start", "end"]),
)  # fmt: skip
def test_windows_are_those_that_are_given(data, of, by, extents, stamp):
    operator = WindowAggregate(Intervals(extents), AGGREGATES, by, stamp=stamp)
    driver = Checked(operator, SCHEMA).play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(intervals(of, by, ORACLE, extents))
    assert driver.operator.state().in_use == (0, 0, 0)


def test_nothing_comes_behind_the_last_interval():
    driver = Driver(WindowAggregate(FixedBand(18, 10), {"n": Count()}), KEYED)
    driver.feed(0, keyed(20))
    assert driver.feed(0, Linear(5)) == [(0, Linear(28))]
    assert driver.feed(0, Linear(28))[-1] == (0, Linear(FOREVER))
    driver.feed(0, keyed(40))
    assert driver.feed(0, Linear(100)) == []
    assert driver.operator.state().in_use == (0, 0, 0)


@pytest.mark.parametrize("extents", [[], [(3, 3)], [(5, 1)], [(1, 2, 3)], ["ab"], "ab", [(0, 2**62)]])
def test_extents_must_be_pairs_in_order(extents):
    with pytest.raises(GraphError, match="extent"):
        WindowAggregate(Intervals(extents), {"n": Count()}).opened(KEYED)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_extents_of_timestamps_are_written_as_such(unit):
    schema = Schema({"at": pa.timestamp(unit)}, "at")
    noon, one = datetime(2026, 11, 22, 12), datetime(2026, 11, 22, 13)
    of_numpy = np.datetime64(one, "m")
    for windows in (Intervals([(noon, one)]), Intervals([(noon, of_numpy)]), FixedBand(noon, "1 h")):
        driver = Driver(WindowAggregate(windows, {"n": Count()}), schema)
        driver.feed(0, Page.of(schema, {"at": [noon, one, noon - timedelta(seconds=1)]}))
        driver.feed(0, "end")
        [row] = next(page for page in driver.out[0] if isinstance(page, Page)).to_pylist()
        assert (row["window_start"], row["window_end"], row["n"]) == (noon, one, 1)


def test_an_instant_is_refused_where_it_cannot_be():
    noon = datetime(2026, 11, 22, 12)
    with pytest.raises(
        GraphError, match=r"start must be a number of s, for the column is int64; got datetime"
    ):
        WindowAggregate(FixedBand(noon, 10), {"n": Count()}).opened(KEYED)
    seconds = Schema({"at": pa.timestamp("s")}, "at")
    with pytest.raises(GraphError, match="start must be a whole number of s"):
        WindowAggregate(FixedBand(noon.replace(microsecond=5), 10), {"n": Count()}).opened(seconds)


@pytest.mark.parametrize("length", [0, -1, "1 fortnight"])
def test_a_band_has_a_length(length):
    with pytest.raises(GraphError, match=r"length|fortnight"):
        WindowAggregate(FixedBand(1, length), {"n": Count()}).opened(KEYED)
