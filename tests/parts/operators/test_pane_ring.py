"""Panes: what the ring has room for, what it leaves to the table of windows, and what both give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import ContractError, GroupWise, Linear, Page, Schema
from oop_engine.operators.aggregates import Avg, Count, First, Last, Max, Min, Sum, Var
from oop_engine.operators.slicing.panes import pane_ring
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding, Tumbling
from oop_engine.testing import Driver, multiset
from tests.naive import windows as naive
from tests.parts.operators.window_streams import SCHEMA, Checked, events, rows

AGGREGATES = {
    "n": Count(), "s": Sum("v"), "sx": Sum("x"), "lo": Min("x"), "hi": Max("v"), "first": First("x"),
    "last": Last("v"), "mean": Avg("v"), "var": Var("v"),
}  # fmt: skip
ORACLE = {
    "n": naive.aggregate("count"), "s": naive.aggregate("sum", "v"), "sx": naive.aggregate("sum", "x"),
    "lo": naive.aggregate("min", "x"), "hi": naive.aggregate("max", "v"),
    "first": naive.aggregate("first", "x"), "last": naive.aggregate("last", "v"),
    "mean": naive.aggregate("avg", "v"), "var": naive.aggregate("var", "v"),
}  # fmt: skip
KEYED = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "ms")
FAR = 10**12
TIMES = st.integers(-20, 60) | st.integers(-FAR, -FAR + 30) | st.integers(FAR, FAR + 30)


def check(operator: WindowAggregate, said, expected) -> None:
    driver = Checked(operator, SCHEMA).play(said)
    assert multiset(driver.rows()) == multiset(expected)
    assert driver.operator.state().partials == driver.operator.state().groups == 0


def keyed(ts, k, v=None) -> Page:
    return Page.of(KEYED, {"ts": ts, "k": k, "v": np.ones(len(ts), np.int64) if v is None else v})


def ring(driver):
    return driver.operator._closing.stores[0].cells.ring


def in_table(driver):
    return len(driver.operator._closing.stores[0].cells.table)


@pytest.mark.parametrize("floor", [0, 300, 4000])
def test_what_does_not_fit_goes_to_the_table(floor, monkeypatch):
    monkeypatch.setattr(pane_ring, "_FLOOR", floor)
    monkeypatch.setattr(pane_ring, "_SPARSE", 1)

    @settings(max_examples=30, deadline=None)
    @given(
        data=st.data(), of=rows(TIMES), by=st.sampled_from([(), ("k",), ("k", "j")]),
        range_=st.integers(1, 20), slide=st.integers(1, 20), origin=st.integers(-9, 9),
    )  # fmt: skip
    def holds(data, of, by, range_, slide, origin):
        operator = WindowAggregate(Sliding(range_, slide, origin), AGGREGATES, by, strategy="panes")
        expected = naive.sliding(of, "ts", by, ORACLE, range_, slide, origin)
        check(operator, data.draw(events(of)), expected)

    holds()


def test_a_tuple_right_before_the_ring_is_not_in_it(monkeypatch):
    """Of one group neighbours of one pane are counted together; the first has no neighbour before it."""
    monkeypatch.setattr(pane_ring, "_FLOOR", 0)
    monkeypatch.setattr(pane_ring, "_SPARSE", 1)
    schema = Schema({"ts": pa.int64()}, "ts", "s")
    driver = Driver(WindowAggregate(Sliding(4, 3), {"n": Count()}, strategy="panes"), schema)
    for times in ([4], [2, 10**9, 2, 10], "end"):
        driver.feed(0, times if times == "end" else Page.of(schema, {"ts": times}))
    found = {row["window_start"]: row["n"] for row in driver.rows()}
    assert found == {-1: 2, 2: 3, 8: 1, 10**9 - 2: 1}


@settings(max_examples=40, deadline=None)
@given(
    skew=st.sampled_from([0.5, 2.0]), seed=st.integers(0, 99), range_=st.sampled_from([30, 70, 100]),
    slide=st.sampled_from([10, 20, 140]), by_group=st.booleans(),
)  # fmt: skip
def test_the_strategies_give_the_same(skew, seed, range_, slide, by_group):
    rng = np.random.default_rng(seed)
    drivers = [
        Driver(
            WindowAggregate(Sliding(range_, slide), {"n": Count(), "s": Sum("v")}, ("k",), strategy=how),
            KEYED,
        )
        for how in ("windows", "panes")
    ]
    for start in range(-300, 500, 50):
        times = start + rng.integers(0, 200, 60)
        keys = (rng.pareto(skew, 60) * 5).astype(np.int64) % 1000
        page = keyed(times, keys, rng.integers(-9, 9, 60))
        ahead = (
            GroupWise.of({"k": list(range(0, 20, 3))}, [start + 50] * 7) if by_group else Linear(start + 50)
        )
        for driver in drivers:
            driver.feed(0, page)
            driver.feed(0, ahead)
            driver.move()
    for driver in drivers:
        driver.feed(0, "end")
    plain, paned = drivers
    assert plain.punctuation() == paned.punctuation()
    assert [p.to_pylist() for p in plain.pages()] == [p.to_pylist() for p in paned.pages()]


def test_groups_may_be_closed_far_apart():
    driver = Driver(WindowAggregate(Sliding(30, 10), {"n": Count()}, ("k",)), KEYED)
    expected = []
    driver.feed(0, keyed([5], [1]))
    for start in range(0, 3000, 10):
        driver.feed(0, keyed([start + 3, start + 8], [2, 2]))
        driver.feed(0, GroupWise.of({"k": [2]}, [start + 10]))
        assert driver.operator.state().partials <= 1 + 3
        inside = range(max(0, start - 20), start + 10, 10)
        expected.append((2, start + 10, 2 * len(inside)))
    assert [(r["k"], r["window_end"], r["n"]) for r in driver.rows()] == expected
    driver.feed(0, keyed([7, 2995], [1, 1]))
    driver.out[0].clear()
    driver.feed(0, "end")
    found = {(r["k"], r["window_end"]): r["n"] for r in driver.rows()}
    ends = [(1, end) for end in (10, 20, 30, 3000, 3010, 3020)] + [(2, 3010), (2, 3020)]
    assert found == dict(zip(ends, [2, 2, 2, 1, 1, 1, 4, 2], strict=True))


def test_panes_too_long_for_floats_are_told_apart():
    slide = 2**51 + 1
    driver = Driver(WindowAggregate(Tumbling(slide), {"n": Count()}, ("k",), strategy="panes"), KEYED)
    times = [pane * slide + near for pane in range(9) for near in (-1, 0, 1)]
    driver.feed(0, keyed(times, [7] * len(times)))
    assert ring(driver).used == 10
    driver.feed(0, "end")
    assert [row["n"] for row in driver.rows()] == [1, *[3] * 8, 2]


@pytest.mark.parametrize("gap", [10**6, 10**12])
def test_a_gap_in_time_takes_no_memory(gap):
    driver = Driver(WindowAggregate(Sliding(100, 10), {"n": Count()}, ("k",)), KEYED)
    keys = np.arange(500)
    driver.feed(0, keyed([0] * 500 + [gap], [*keys, 3]))
    driver.feed(0, keyed(np.full(500, gap), keys))
    driver.feed(0, keyed([55], [1]))
    of = ring(driver)
    assert of.room * of.groups * of.cell_bytes <= pane_ring._FLOOR
    driver.feed(0, Linear(gap))
    assert sum(r["n"] for r in driver.rows()) == 10 * 500 + 10
    driver.feed(0, keyed(np.full(500, gap + 7), keys))
    driver.feed(0, "end")
    assert sum(r["n"] for r in driver.rows()) == 10 * (500 + 1 + 500 + 1 + 500)
    assert driver.operator.state().partials == 0


def test_a_ring_begun_at_the_wrong_time_begins_anew():
    driver = Driver(WindowAggregate(Sliding(100, 10), {"n": Count()}, ("k",)), KEYED)
    driver.feed(0, keyed([FAR], [0]))
    driver.feed(0, keyed([5, 5, 15], [0, 1, 2]))
    assert (ring(driver).used, in_table(driver)) == (0, 10 + 30)
    driver.feed(0, keyed([5, 5, 15, 25], [0, 1, 2, 2]))
    assert (ring(driver).used, in_table(driver)) == (4, 10 + 30)
    driver.feed(0, "end")
    assert sum(r["n"] for r in driver.rows()) == 10 * 8


def test_one_time_far_ahead_does_not_drive_a_page_out_of_the_ring():
    driver = Driver(WindowAggregate(Sliding(100, 10), {"n": Count()}, ("k",)), KEYED)
    driver.feed(0, keyed([*range(200), FAR], [*([0, 1] * 100), 1]))
    assert (ring(driver).used, in_table(driver)) == (40, 10)
    driver.feed(0, Linear(10_000))
    assert in_table(driver) == 10
    driver.feed(0, keyed([20_000], [5]))
    assert ring(driver).used == 1


def test_sparse_groups_are_left_to_the_table():
    driver = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, ("k",)), KEYED)
    for at in range(40):
        driver.feed(0, keyed(np.arange(2000) * 100 + at, np.arange(2000) + 2000 * at))
    of = ring(driver)
    assert of.room * of.groups * of.cell_bytes <= pane_ring._FLOOR
    driver.feed(0, "end")
    assert sum(r["n"] for r in driver.rows()) == 40 * 2000


def test_a_stall_gives_its_memory_back():
    driver = Driver(WindowAggregate(Sliding(100, 10), {"n": Count()}, ("k",)), KEYED)
    keys = np.tile(np.arange(100), 100)
    for start in range(0, 20_000, 1000):
        driver.feed(0, keyed(start + np.repeat(np.arange(0, 1000, 10), 100), keys))
    assert 2000 <= ring(driver).room <= 2048
    driver.feed(0, Linear(20_000))
    driver.feed(0, keyed(np.full(100, 20_000), np.arange(100)))
    assert ring(driver).room == 16
    assert in_table(driver) == 0


def test_overflow_at_closing_names_window_and_group():
    driver = Driver(WindowAggregate(Sliding(30, 10), {"s": Sum("v")}, ("k",)), KEYED)
    driver.feed(0, keyed([1, 2, 11, 21], [7, 8, 8, 8], [2**62, 5, 2**62, 2**62]))
    with pytest.raises(ContractError, match=r"Sum\('v'\) must fit 64 bits.*\[0, 30\) of group \{'k': 8\}"):
        driver.feed(0, Linear(30))


def test_overflow_of_what_lies_in_ring_and_table_names_window_and_group():
    driver = Driver(WindowAggregate(Tumbling(10), {"s": Sum("v")}, ("k",)), KEYED)
    driver.feed(0, keyed([FAR], [8], [1]))
    driver.feed(0, keyed([5, 5], [7, 8], [3, 2**62]))
    driver.feed(0, keyed([5], [8], [2**62]))
    with pytest.raises(ContractError, match=r"\[0, 10\) of group \{'k': 8\}"):
        driver.feed(0, Linear(30))


def test_a_snapshot_is_narrow():
    driver = Driver(WindowAggregate(Sliding(100, 10), {"n": Count(), "s": Sum("v")}, ("k",)), KEYED)
    for start in range(0, 200, 20):
        driver.feed(0, keyed(start + np.tile([3, 13], 1000), np.repeat(np.arange(1000), 2)))
        driver.feed(0, Linear(start))
    cells = driver.operator.state().partials
    assert cells >= 10_000
    assert len(driver.operator.snapshot()) < 5 * cells
    before = driver.operator.state().in_use
    driver.move()
    assert driver.operator.state().in_use == before
