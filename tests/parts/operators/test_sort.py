from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, GraphError, GroupWise, Linear, Page, Schema
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.core.graphs.graph import Graph
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.ordering import reorder_buffer as module
from oop_engine.operators.policies.policies import (
    BoundedCount,
    BoundedDisorder,
    Heartbeat,
    Ordered,
    PerGroup,
    Upstream,
)
from oop_engine.runners.replay import replay
from oop_engine.testing import END, Driver
from tests.naive.progress import bounded_count, bounded_disorder, ordered, punctuate

SCHEMA = Schema({"ts": pa.int64(), "id": pa.int64()}, "ts", "s")
LAGS = [
    (Ordered(), ordered),
    (BoundedDisorder("7 s"), bounded_disorder(7)),
    (BoundedCount(3), bounded_count(3)),
]
TIMES = st.lists(st.integers(0, 60), max_size=30)


def page(times, first: int = 0, *, arrival: bool = False) -> Page:
    ids = range(first, first + len(times))
    return Page.of(SCHEMA, {"ts": times, "id": list(ids)}, list(ids) if arrival else None)


def fed(operator: Sort, times: list[int], cut: int, *, moves: bool = False) -> Driver:
    driver = Driver(operator, SCHEMA)
    for start in range(0, len(times), cut):
        driver.feed(0, page(times[start : start + cut], start, arrival=True))
        if moves:
            driver.move()
    return driver


def plain(out: list[Any]) -> list[Any]:
    return [x for m in out for x in (m.to_pylist() if isinstance(m, Page) else [m])]


@pytest.mark.parametrize("late", ["consistent", "generous"])
@pytest.mark.parametrize(("policy", "keeps"), LAGS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_sorted_as_far_as_the_twin_promises(policy, keeps, late):
    @given(TIMES, st.integers(1, 30))
    def holds(times, cut):
        rows = [{"ts": t, "id": i} for i, t in enumerate(times)]
        on_time, too_late, said = punctuate(rows, keeps, 5, -100)
        driver = fed(Sort(policy, 5, late), times, cut)
        below = said[-1] if said else -100
        assert sorted((r for r in on_time if r["ts"] < below), key=lambda r: r["ts"]) == driver.rows()
        assert [Linear(b) for b in said] == driver.punctuation()
        assert driver.operator.state().tuples == sum(r["ts"] >= below for r in on_time)
        driver.feed(0, END)
        assert sorted(on_time, key=lambda r: r["ts"]) == driver.rows()
        assert driver.operator.state().tuples == driver.operator._waiting.nbytes == 0
        assert driver.operator.counts() == {"late": len(too_late)}
        if late == "generous":
            assert too_late == driver.rows(1)

    holds()


@given(TIMES, st.integers(1, 30), st.sampled_from([None, 5]))
def test_moving_midway_changes_nothing(times, cut, granularity):
    operator = Sort(Heartbeat(BoundedDisorder(9), 3, 20), granularity, "generous")
    stayed, moved = fed(operator, times, cut), fed(operator, times, cut, moves=True)
    assert stayed.out == moved.out
    assert stayed.feed(0, END) == moved.feed(0, END)


def test_many_small_runs_are_merged(monkeypatch):
    monkeypatch.setattr(module, "_SMALL", 64)
    rng = np.random.default_rng(7)
    times = (np.arange(3000) - rng.integers(0, 500, 3000)).tolist()
    driver = Driver(Sort(BoundedDisorder(500), 50), SCHEMA)
    for start in range(0, len(times), 3):
        driver.feed(0, page(times[start : start + 3], start))
        runs = driver.operator._waiting.save()["runs"]
        assert len(runs) < 40
        assert driver.operator.state().tuples == sum(len(run) for run in runs)
    driver.feed(0, END)
    expected = sorted(((t, i) for i, t in enumerate(times)))
    assert expected == [(r["ts"], r["id"]) for r in driver.rows()]


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_promise_comes_with_the_arrival_that_makes_it_even_if_nothing_is_released(on):
    graph = Graph("sorted")
    graph.sink("out", graph.add("sort", Sort(BoundedDisorder(10), 10), graph.source("in", SCHEMA)))
    feed = Page.of(SCHEMA, {"ts": [100, 106, 112, 121], "id": [0, 1, 2, 3]}, arrival=[0, 5, 9, 20])
    told = []
    replay(graph, {"in": [feed]}, on=on, on_result=told.append)
    promises = [(r.message.below, r.now) for r in told if isinstance(r.message, Linear)]
    assert promises == [(90, 0), (100, 9), (110, 20), (FOREVER, 20)]
    assert [(len(r.message), r.now) for r in told if isinstance(r.message, Page)] == [(2, 20), (2, 20)]


def test_tuples_on_their_way_out_are_no_longer_held():
    operator = Sort(BoundedDisorder(5), 10).opened(SCHEMA)
    steps = operator.on_page(0, page([6, 8, 7, 16, 17], arrival=True))
    held = [(type(m).__name__, operator.state().tuples) for _, m in steps]
    assert held == [("Linear", 1), ("Page", 1), ("Linear", 1)]
    assert operator.state().tuples == 2


def test_punctuation_and_clock_release_too():
    driver = Driver(Sort(Heartbeat(Upstream(), threshold=10, slack=3), 5), SCHEMA)
    driver.feed(0, page([30, 10, 20], 100, arrival=True))
    assert driver.feed(0, GroupWise.of({"id": [1]}, [50])) == []
    assert [str(m) for _, m in driver.feed(0, Linear(15))] == ["Page(1 rows of ts, id)", "Linear(below=15)"]
    said = driver.clock(120)
    assert [row["ts"] for row in driver.rows()] == [10, 20, 30]
    assert (len(said[0][1]), said[1][1], driver.operator.moment) == (2, Linear(115), 120)


@given(TIMES, st.integers(1, 30), st.sampled_from([policy for policy, _ in LAGS]))
def test_a_page_without_arrivals_is_taken_as_a_whole_with_the_same_outcome(times, cut, policy):
    parted, whole = fed(Sort(policy, 5), times, cut), Driver(Sort(policy, 5), SCHEMA)
    for start in range(0, len(times), cut):
        said = whole.feed(0, page(times[start : start + cut], start))
        assert [type(m) for _, m in said] in ([], [Linear], [Page, Linear])
    assert whole.rows() == parted.rows()
    assert whole.punctuation()[-1:] == parted.punctuation()[-1:]
    assert whole.operator.counts() == parted.operator.counts()
    assert whole.operator.state().in_use == parted.operator.state().in_use


@given(TIMES, st.integers(1, 30))
def test_what_is_put_out_is_in_order(times, cut):
    driver = fed(Sort(PerGroup(Ordered(), ("id",), linear=BoundedDisorder(4))), times, cut)
    driver.feed(0, END)
    contract = EdgeContract("out")
    for message in driver.out[0]:
        contract.check(message)
    assert [r["ts"] for r in driver.rows()] == sorted(r["ts"] for r in driver.rows())
    assert driver.punctuation()[-1] == Linear(FOREVER)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sort(PerGroup(Ordered(), ("id",))), "give PerGroup a linear=..."),
        (lambda: Sort(Ordered(), late="never"), "late must be one of consistent, generous; got 'never'"),
        (
            lambda: Sort(Ordered(), "0 s").output_schemas((SCHEMA,)),
            "granularity must be at least 1 s; got '0 s'",
        ),
        (
            lambda: Sort(BoundedDisorder("1 mile")).output_schemas((SCHEMA,)),
            "Sort: slack must be a length of time",
        ),
    ],
)
def test_bad_parameters(make, words):
    with pytest.raises(GraphError) as error:
        make()
    assert words in str(error.value)
