"""Stamps, shedding and negative tuples: where they stand, how far off they are, and their refusals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, Graph, GraphError, Linear, Page, Schema
from oop_engine.joins import TumblingBand
from oop_engine.operators import (
    ArrivalTime,
    Count,
    Expire,
    OAJoin,
    Ordered,
    Punctuate,
    Shed,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.testing import Driver, GraphDriver, multiset
from oop_engine.windows import Landmark

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")


def page(times, keys=None, arrival=None):
    return Page.of(SCHEMA, {"ts": times, "k": keys if keys is not None else times}, arrival=arrival)


def test_windows_of_processing_time_are_windows_of_the_stamp():
    graph = Graph("clock")
    stamped = graph.add("stamp", ArrivalTime("came"), graph.source("in", SCHEMA))
    edge = graph.add("edge", Punctuate(Ordered(), 10), stamped)
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    driver = GraphDriver(graph)
    driver.feed("in", page([500, 3, 77], arrival=[1, 9, 10]))
    driver.expect("out", [{"window_start": 0, "window_end": 10, "n": 2}])
    driver.end()
    driver.expect("out", [{"window_start": 10, "window_end": 20, "n": 1}])


def test_a_stamp_drops_bounds_of_the_other_clock_and_ends():
    driver = Driver(ArrivalTime("came"), SCHEMA)
    assert driver.feed(0, Linear(5)) == []
    assert driver.feed(0, "end") == [(0, Linear(FOREVER))]
    with pytest.raises(ContractError, match="tuples must have arrivals"):
        driver.feed(0, page([1]))
    with pytest.raises(GraphError, match="column must be a new one; got 'k'"):
        ArrivalTime("k").opened(SCHEMA)


@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(st.integers(0, 60), max_size=30), range_=st.integers(1, 30), slide=st.integers(1, 12),
    bounds=st.lists(st.integers(0, 60), max_size=3),
)  # fmt: skip
def test_a_sliding_count_is_a_sum_of_weights_since_the_beginning(times, range_, slide, bounds):
    graph = Graph("negative")
    twice = graph.add("twice", Expire(range_), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("n", WindowAggregate(Landmark(slide), {"n": Sum("weight")}), twice))
    driver, left = GraphDriver(graph), sorted(times)
    for bound in sorted(bounds):
        some, left = [t for t in left if t < bound], [t for t in left if t >= bound]
        driver.feed("in", page(some[::-1]))
        driver.feed("in", Linear(bound))
    driver.feed("in", page(left[::-1]))
    driver.end()
    for row in driver.rows("out"):
        end = row["window_end"]
        assert row["n"] == sum(end - range_ <= time < end for time in times)


def test_shedding_keeps_whole_keys_so_that_a_join_of_those_left_is_right():
    draw = np.random.default_rng(1)
    sides = [draw.integers(0, 50, 400) for _ in range(2)]

    def joined(shed):
        graph = Graph("join")
        streams = []
        for side in ("left", "right"):
            stream = graph.source(side, SCHEMA)
            streams.append(graph.add(f"{side}-shed", Shed(4, ("k",)), stream) if shed else stream)
        graph.sink("out", graph.add("join", OAJoin([("k", "k")], TumblingBand(10)), *streams))
        driver = GraphDriver(graph)
        for side, keys in zip(("left", "right"), sides, strict=True):
            driver.feed(side, page(list(range(400)), keys))
        driver.end()
        return [{name: row[name] for name in ("ts", "k", "ts_right")} for row in driver.rows("out")]

    some, every = joined(True), joined(False)
    left = {row["k"] for row in some}
    assert 0 < len(left) < 30
    assert multiset(some) == multiset(row for row in every if row["k"] in left)


def test_the_error_of_a_weighted_count_is_that_which_explain_names():
    driver, n = Driver(Shed(8), SCHEMA), 40_000
    driver.feed(0, page(list(range(n))))
    counted = sum(row["weight"] for row in driver.rows())
    assert abs(counted - n) <= 3 * (7 * n) ** 0.5
    assert driver.operator.counts() == {"shed": n - counted // 8}
    assert Shed(8).explain((SCHEMA,)).endswith("has the standard error sqrt(7 n)")
    assert (
        Shed(1, ("k",)).explain((SCHEMA,)).endswith("n values of k by their weights has the standard error 0")
    )


def test_a_budget_keeps_about_so_many_a_second_and_weights_are_right_in_the_mean():
    driver, rates = Driver(Shed(budget=1000), SCHEMA), [500, 8000, 8000, 8000, 200, 3000, 3000]
    stayed = []
    for second, rate in enumerate(rates):
        times = list(range(second * 10_000, second * 10_000 + rate))
        for part in range(0, rate, 300):  # pages of a second
            some = times[part : part + 300]
            driver.feed(0, Page.of(SCHEMA, {"ts": some, "k": some}, [second] * len(some)))
        stayed.append(sum(1 for row in driver.rows() if row["ts"] // 10_000 == second))
    assert stayed[0] == 500
    assert stayed[4] == pytest.approx(200 / 8, abs=20)  # it begins at the rate of the second before
    assert stayed[1] < 4 * 1000  # a burst: thousand a doubling
    assert stayed[1] > 3 * 1000  # as Shed says, no budget of its own for the first second
    assert max(stayed[2:4] + stayed[6:]) < 1150
    weights = [row["weight"] for row in driver.rows()]
    error = sum(weight * (weight - 1) for weight in weights) ** 0.5
    assert abs(sum(weights) - sum(rates)) <= 3 * error
    assert driver.operator.counts() == {"shed": sum(rates) - len(weights), "one_in": 16}
    assert driver.operator.explain((SCHEMA,)).endswith("the standard error sqrt(sum of w (w - 1))")


def test_a_budget_needs_arrivals():
    with pytest.raises(ContractError, match="with a budget tuples must have arrivals"):
        Driver(Shed(budget=9), SCHEMA).feed(0, page([1]))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Shed(budget=0), "budget must be more than 0 tuples a second; got 0"),
        (lambda: Shed(budget=5).opened(Schema({"ts": pa.int64()}, "ts", "rows")), "got the unit 'rows'"),
        (lambda: Shed(0), "one_in must be a whole number from 1"),
        (lambda: Shed(2, ("gone",)).opened(SCHEMA), "gone"),
        (lambda: Shed(2, weight="k").opened(SCHEMA), "weight must be a new column"),
        (lambda: Expire(0).opened(SCHEMA), "range"),
        (lambda: Expire(5, at="k").opened(SCHEMA), "at and weight must be new columns"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_when_the_graph_is_built(make, named):
    with pytest.raises(GraphError, match=named):
        make()


def test_a_time_that_cannot_be_shifted_is_refused():
    with pytest.raises(ContractError, match="times must be at most"):
        Driver(Expire(10), SCHEMA).feed(0, page([FOREVER - 5]))
    small = Schema({"ts": pa.int8()}, "ts", "s")
    with pytest.raises(ContractError, match="must fit 'at', int8"):
        Driver(Expire(10), small).feed(0, Page.of(small, {"ts": [120]}))
