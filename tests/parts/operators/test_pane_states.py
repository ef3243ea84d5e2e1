"""Counts that are shared with the number of tuples, and numbers of tuples that outgrow 32 bits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Linear, Page, Schema
from oop_engine.operators.aggregates import Avg, Count, Max, Sum
from oop_engine.operators.slicing.panes import pane_ring, pane_windows
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding, Tumbling
from oop_engine.testing import Driver
from tests.naive import windows as naive
from tests.parts.operators.test_pane_ring import AGGREGATES, ORACLE, check
from tests.parts.operators.window_streams import events, rows

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
ASKED = {"n": Count(), "some": Count("v"), "s": Sum("v"), "mean": Avg("v"), "hi": Max("v")}


def held(driver: Driver) -> pane_ring.PaneRing:
    operator: Any = driver.operator
    found: pane_ring.PaneRing = operator._closing.stores[0].cells.ring
    return found


@pytest.mark.slow
@pytest.mark.parametrize("swept", [True, False])
def test_numbers_of_tuples_may_outgrow_their_type(swept, monkeypatch):
    monkeypatch.setattr(pane_ring, "_NARROW", 5)
    monkeypatch.setattr(pane_ring, "_SHORT", 2)
    turns = itertools.cycle([swept, True, False])
    monkeypatch.setattr(pane_windows, "is_dense", lambda *_: next(turns))

    @settings(max_examples=25, deadline=None)
    @given(data=st.data(), of=rows(), by=st.sampled_from([(), ("k",)]), range_=st.integers(1, 20))
    def holds(data, of, by, range_):
        operator = WindowAggregate(Sliding(range_, 5), AGGREGATES, by, strategy="panes")
        check(operator, data.draw(events(of)), naive.sliding(of, "ts", by, ORACLE, range_, 5, 0))

    holds()


@pytest.mark.slow
def test_tuples_are_counted_in_64_bits_once_32_may_be_too_few(monkeypatch):
    monkeypatch.setattr(pane_ring, "_NARROW", 100)
    monkeypatch.setattr(pane_ring, "_SHORT", 32)
    driver = Driver(WindowAggregate(Sliding(20, 10), ASKED, ("k",), strategy="panes"), SCHEMA)
    page = Page.of(SCHEMA, {"ts": [5] * 60, "k": [1] * 60, "v": range(60)})
    kinds = []
    for _ in range(3):
        driver.feed(0, page)
        kinds.append(held(driver).tuples.dtype.name)
    assert kinds == ["int32", "int64", "int64"]
    driver.feed(0, Linear(100))
    assert [(row["n"], row["s"]) for row in driver.rows()] == [(180, 3 * 1770)] * 2


@pytest.mark.slow
def test_tuples_of_one_pane_are_counted_in_16_bits_until_a_cell_has_too_many(monkeypatch):
    monkeypatch.setattr(pane_ring, "_SHORT", 1024)
    driver = Driver(WindowAggregate(Tumbling(10), ASKED, ("k",), strategy="panes"), SCHEMA)
    pages = [(5, 300, 300), (15, 900, 0), (5, 2000, 600), (5, 70_000, 70_000)]
    kinds, total = [], 0
    for time, many, ones in pages:
        keys = [1] * ones + [2 + i % 300 for i in range(many - ones)]
        driver.feed(0, Page.of(SCHEMA, {"ts": [time] * many, "k": keys, "v": [1] * many}))
        total += ones
        kinds.append(held(driver).tuples.dtype.name)
        if len(kinds) == 2:
            driver.move()
    assert kinds == ["int16", "int16", "int16", "int32"]
    driver.feed(0, Linear(100))
    found = {(row["k"], row["window_end"]): (row["n"], row["s"]) for row in driver.rows()}
    assert found[1, 10] == (total, total)
    assert sum(n for n, _ in found.values()) == sum(many for _, many, _ in pages)
    assert all(n == s for n, s in found.values())


def sums_of(driver: Driver) -> str:
    """Return the type of the sums in the ring."""
    first = held(driver).columns[0]
    assert first is not None
    return str(first[0].dtype.name)


@pytest.mark.parametrize("swept", [True, False])
def test_sums_are_kept_in_32_bits_until_one_does_not_fit(swept, monkeypatch):
    """In the middle of a page, at either end of their range, and before and behind a snapshot."""
    monkeypatch.setattr(pane_windows, "is_dense", lambda *_: swept)
    most = 2**31 - 1
    pages = [
        ([1, 2, 3], [most, -most - 1, 7]), ([2, 1, 3], [most, 0, -7]), ([3, 1, 2, 1], [5, 1, most, 2]),
        ([1, 2, 3], [2**62, -(2**62), 1]),
    ]  # fmt: skip
    total, kinds = dict.fromkeys((1, 2, 3), 0), []
    driver = Driver(WindowAggregate(Sliding(20, 10), {"s": Sum("v")}, ("k",), strategy="panes"), SCHEMA)
    for keys, values in pages:
        driver.feed(0, Page.of(SCHEMA, {"ts": [5] * len(keys), "k": keys, "v": values}))
        for key, value in zip(keys, values, strict=True):
            total[key] += value
        kinds.append(sums_of(driver))
        driver.move()
        kinds.append(sums_of(driver))
    assert kinds == ["int32", "int32", "int32", "int32", "int64", "int64", "int64", "int64"]
    driver.feed(0, Linear(100))
    assert [(row["k"], row["s"]) for row in driver.rows()] == 2 * list(total.items())


def test_room_for_stacks_is_made_when_they_are_asked_for(monkeypatch):
    """They take wide cells, one more a group; a sweep needs none."""
    monkeypatch.setattr(pane_windows, "_KERNEL", 0)
    monkeypatch.setattr(pane_windows, "is_dense", lambda *_: True)
    driver = Driver(WindowAggregate(Sliding(30, 10), ASKED, ("k",), strategy="panes"), SCHEMA)
    for start in range(0, 100, 10):
        driver.feed(0, Page.of(SCHEMA, {"ts": [start + 5] * 50, "k": range(50), "v": range(50)}))
    driver.feed(0, Linear(40))
    before = held(driver)
    assert (before.tuples.dtype.name, before.turns.size, before.stacked) == ("int16", 0, False)
    monkeypatch.setattr(pane_windows, "is_dense", lambda *_: False)
    narrow = before.nbytes
    driver.feed(0, Linear(60))
    assert (before.tuples.dtype.name, before.turns.shape, before.stacked) == ("int32", (4, 50), True)
    assert before.nbytes > narrow
    driver.feed(0, "end")
    found = {(row["k"], row["window_end"]): (row["n"], row["s"]) for row in driver.rows()}
    many = {end: min(end // 10, 3, (130 - end) // 10) for end in range(10, 130, 10)}
    assert found == {(k, end): (n, n * k) for end, n in many.items() for k in range(50)}


@pytest.mark.parametrize("groups", [1, 3])
def test_no_cell_of_16_bits_overflows(groups):
    driver = Driver(WindowAggregate(Tumbling(10), ASKED, ("k",) * (groups > 1), strategy="panes"), SCHEMA)
    sizes = [16_000, 383, 512, 512, 511, 20_000, 40_000]
    for many in sizes:  # of the first group; of others one
        keys = [0] * many + list(range(1, groups))
        driver.feed(0, Page.of(SCHEMA, {"ts": [3] * len(keys), "k": keys, "v": [1] * len(keys)}))
    assert held(driver).tuples.dtype == np.int32
    driver.feed(0, Linear(100))
    assert [row["n"] for row in driver.rows()] == [sum(sizes)] + [len(sizes)] * (groups - 1)


def test_values_are_counted_apart_from_the_first_null_on():
    driver = Driver(WindowAggregate(Sliding(20, 10), ASKED, ("k",), strategy="panes"), SCHEMA)
    driver.feed(0, Page.of(SCHEMA, {"ts": [5, 15, 15], "k": [1, 1, 2], "v": [4, 6, 9]}))
    apart = sum(state is not None for state in held(driver).columns)
    driver.feed(0, Page.of(SCHEMA, {"ts": [6, 16, 25], "k": [1, 2, 2], "v": [None, None, None]}))
    assert sum(state is not None for state in held(driver).columns) == apart + 1
    driver.move()
    driver.feed(0, "end")
    found = {
        (r["k"], r["window_end"]): (r["n"], r["some"], r["s"], r["mean"], r["hi"]) for r in driver.rows()
    }
    assert found == {
        (1, 10): (2, 1, 4, 4.0, 4),
        (1, 20): (3, 2, 10, 5.0, 6),
        (1, 30): (1, 1, 6, 6.0, 6),
        (2, 20): (2, 1, 9, 9.0, 9),
        (2, 30): (3, 1, 9, 9.0, 9),
        (2, 40): (1, 0, None, None, None),
    }


def test_shared_counts_are_not_saved_twice():
    def saved(nulls: int) -> int:
        driver = Driver(WindowAggregate(Sliding(20, 10), ASKED, ("k",), strategy="panes"), SCHEMA)
        values = np.arange(20_000)
        column = pa.array(values, mask=values < nulls)
        driver.feed(0, Page.of(SCHEMA, {"ts": values % 100, "k": values % 1000, "v": column}))
        return len(driver.operator.snapshot())

    assert saved(0) < saved(1)
