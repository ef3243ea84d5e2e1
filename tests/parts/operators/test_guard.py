from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, ContractError, GraphError, Linear, Page, Schema
from oop_engine.operators.edge.guard import Ahead, Guard
from oop_engine.operators.policies.late import Late
from oop_engine.testing import Driver
from tests.naive.progress import guard_by_stream

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


def page(times, arrival=None) -> Page:
    return Page.of(SCHEMA, {"ts": times}, arrival)


def times(driver: Driver, port: int = 0) -> list[int]:
    return [row["ts"] for row in driver.rows(port)]


def test_by_arrival_each_tuple_for_itself():
    driver = Driver(Guard("10 s", late=Late.DIVERT), SCHEMA)
    driver.feed(0, page([5, 15, 16, 3, 40], [5, 5, 5, 6, 30]))
    assert (times(driver, 0), times(driver, 1)) == ([5, 15, 3, 40], [16])
    assert driver.pages()[0].arrival.tolist() == [5, 5, 6, 30]
    assert driver.operator.counts() == {"future": 1}


def test_the_limit_does_not_wrap_round():
    driver = Driver(Guard(FOREVER), SCHEMA)
    driver.feed(0, page([FOREVER, NEVER + 1], [100, 200]))
    assert len(times(driver)) == 2
    driver = Driver(Guard(FOREVER, of=Ahead.STREAM), SCHEMA)
    driver.feed(0, page([NEVER + 1, 1, FOREVER]))
    assert times(driver) == [NEVER + 1]


@given(
    st.lists(st.sampled_from([0, 4, 9, 15, 300, 305, 320, 9000]), max_size=20),
    st.sampled_from([None, 0, 1, 3]),
    st.integers(1, 20),
)
def test_by_stream_as_defined(values, patience, cut):
    accepted, refused = guard_by_stream([{"ts": v} for v in values], 10, patience)
    driver = Driver(Guard(10, of="stream", patience=patience, late=Late.DIVERT), SCHEMA)
    for start in range(0, len(values), cut):
        driver.feed(0, page(values[start : start + cut]))
        driver.move()
    assert (accepted, refused) == (driver.rows(0), driver.rows(1))
    assert driver.operator.counts() == {"future": len(refused)}


def test_a_true_gap_is_found_out():
    driver = Driver(Guard(10, of="stream", patience=2), SCHEMA)
    driver.feed(0, page([1, 2, 501, 500, 503, 504, 3]))
    assert times(driver) == [1, 2, 503, 504, 3]


def test_punctuation_passes():
    assert Driver(Guard(10), SCHEMA).feed(0, Linear(60)) == [(0, Linear(60))]


def test_raise_names_the_tuple():
    driver = Driver(Guard(10, late=Late.RAISE), SCHEMA)
    with pytest.raises(
        ContractError, match=r"at most 10 s ahead of the arrival; got ts=99 \(row 1 of the page\)"
    ):
        driver.feed(0, page([1, 99], [1, 2]))


def test_arrivals_are_needed():
    with pytest.raises(ContractError, match="use of='stream'"):
        Driver(Guard(10), SCHEMA).feed(0, page([1]))


def test_bad_parameters():
    with pytest.raises(GraphError, match="of must be one of arrival, stream; got 'wall'"):
        Guard(10, of="wall")
    with pytest.raises(GraphError, match="patience must be at least 0"):
        Guard(10, patience=-1)
    with pytest.raises(GraphError, match="Guard: limit must be at least 0 s; got -1"):
        Guard(-1).output_schemas((SCHEMA,))
