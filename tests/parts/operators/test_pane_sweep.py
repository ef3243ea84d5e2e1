"""The sweep over all groups gives what going from group to group gives, whichever is taken when."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import ContractError, GroupWise, Linear, Page, Schema
from oop_engine.operators.aggregates import Avg, Count, Max, Sum, UserDefined, Var
from oop_engine.operators.kernels.panes import Geometry
from oop_engine.operators.slicing.accumulators import is_compiled
from oop_engine.operators.slicing.panes import pane_ring, pane_windows
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.stores import window_store
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Extents, Sliding, Tumbling
from oop_engine.testing import Driver, multiset
from tests.naive import windows as naive
from tests.parts.operators.test_pane_ring import AGGREGATES, ORACLE, check
from tests.parts.operators.window_streams import events, rows

KEYED = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "ms")
SUMS = {"n": Count(), "s": Sum("v"), "mean": Avg("v")}
CHOICES = [(True,), (False, True, True)]


@pytest.mark.parametrize("part", [1, 1 << 14])
@pytest.mark.parametrize("aggregates", [AGGREGATES, SUMS], ids=["stacks", "running"])
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_swept_windows_are_those_of_the_definition(aggregates, choice, part, monkeypatch):
    """Also in a ring whose rows are no power of two, and where results leave window by window."""
    monkeypatch.setattr(pane_windows, "_PART", part)
    monkeypatch.setattr(pane_ring, "_SMALL", 0 if part == 1 else 1 << 16)
    turns = itertools.cycle(choice)
    monkeypatch.setattr(pane_windows, "is_dense", lambda *_: next(turns))
    monkeypatch.setattr(window_store, "_FEW", 0)
    oracle = {name: ORACLE[name] for name in aggregates}

    @settings(max_examples=25, deadline=None)
    @given(
        data=st.data(), of=rows(), by=st.sampled_from([(), ("k",), ("k", "j")]),
        range_=st.integers(1, 20), slide=st.integers(1, 20), origin=st.integers(-9, 9),
    )  # fmt: skip
    def holds(data, of, by, range_, slide, origin):
        operator = WindowAggregate(Sliding(range_, slide, origin), aggregates, by, strategy="panes")
        expected = naive.sliding(of, "ts", by, oracle, range_, slide, origin)
        check(operator, data.draw(events(of)), expected)

    holds()


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("aggregates", [AGGREGATES, SUMS], ids=["stacks", "running"])
def test_many_groups_are_swept_in_blocks(aggregates, monkeypatch):
    """In blocks of 256 groups, and with no choice but the cheaper way."""
    monkeypatch.setattr(pane_windows, "_SCRATCH", 1)
    schema = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64(), "x": pa.float64()}, "ts", "ms")
    rng = np.random.default_rng(1)
    drivers = [
        Driver(WindowAggregate(Sliding(50, 10), aggregates, ("k",), strategy=how), schema)
        for how in ("windows", "panes")
    ]
    for start in range(0, 300, 100):
        columns = {
            "ts": start + rng.integers(0, 110, 20_000),
            "k": rng.integers(0, 1000, 20_000),
            "v": rng.integers(-9, 9, 20_000),
            "x": rng.integers(-9, 9, 20_000).astype(np.float64),
        }
        for driver in drivers:
            driver.feed(0, Page.of(schema, columns))
            driver.feed(0, Linear(start + 100))
    plain, paned = drivers
    assert paned.rows()
    assert multiset(plain.rows()) == multiset(paned.rows())


def test_what_is_dense_is_a_matter_of_cost():
    geometry = Geometry(step=1, length=10, low=0, high=31, last=31, groups=10_000, first=0)
    count, largest = Count().parts(KEYED), Max("v").parts(KEYED)
    assert pane_windows.is_dense(geometry, windows=15, closing=15 * 5000, compiled=is_compiled(largest))
    assert not pane_windows.is_dense(geometry, windows=15, closing=15 * 100, compiled=is_compiled(largest))
    assert not pane_windows.is_dense(
        geometry._replace(groups=10), windows=1, closing=10, compiled=is_compiled(count)
    )
    one, ten = geometry._replace(groups=1), geometry._replace(groups=10)
    assert not pane_windows.is_dense(one, windows=10_000, closing=10_000, compiled=is_compiled(largest))
    assert pane_windows.is_dense(ten, windows=10_000, closing=100_000, compiled=is_compiled(largest))
    few = geometry._replace(groups=200)
    assert pane_windows.is_dense(few, windows=15, closing=15 * 100, compiled=is_compiled(count))
    assert pane_windows.is_dense(few, windows=15, closing=15 * 100, compiled=is_compiled(largest))
    own = UserDefined(tuple, lambda a, b: a, tuple, ("v",), ("int64",), pa.int64()).parts(KEYED)
    assert not pane_windows.is_dense(
        few, windows=15, closing=15 * 100, compiled=is_compiled(own)
    )  # Python goes from row to row


def test_the_sum_that_wraps_is_named(monkeypatch):
    monkeypatch.setattr(pane_windows, "is_dense", lambda *_: True)
    for aggregates in ({"s": Sum("v")}, {"s": Sum("v"), "hi": AGGREGATES["hi"]}):
        driver = Driver(WindowAggregate(Sliding(20, 10), aggregates, ("k",), strategy="panes"), KEYED)
        driver.feed(0, Page.of(KEYED, {"ts": [5, 5, 15], "k": [1, 7, 7], "v": [3, 2**62, 2**62]}))
        with pytest.raises(ContractError, match=r"Sum\('v'\).*\[0, 20\) of group \{'k': 7\}"):
            driver.feed(0, Linear(100))


def test_windows_that_some_groups_have_closed_before_do_not_leave_again(monkeypatch):
    monkeypatch.setattr(pane_windows, "is_dense", lambda *_: True)
    monkeypatch.setattr(window_store, "_FEW", 0)
    for moves in (False, True):
        driver = Driver(WindowAggregate(Sliding(30, 10), SUMS, ("k",), strategy="panes"), KEYED)
        keys = np.repeat(np.arange(3), 4)
        driver.feed(0, Page.of(KEYED, {"ts": np.tile([5, 15, 25, 35], 3), "k": keys, "v": keys}))
        driver.feed(0, GroupWise.of({"k": [1]}, [30]))
        if moves:
            driver.move()
        for bound in (20, 40, 70):
            driver.feed(0, Linear(bound))
        found = [(row["window_end"], row["k"], row["n"], row["s"]) for row in driver.rows()]
        many = {10: 1, 20: 2, 30: 3, 40: 3, 50: 2, 60: 1}
        expected = [(end, k, n, n * k) for end, n in many.items() for k in range(3)]
        assert sorted(found) == expected
        assert driver.operator.state().partials == 0


def test_results_of_one_bound_leave_in_parts():
    driver = Driver(WindowAggregate(Sliding(50, 10), SUMS, ("k",), strategy="panes"), KEYED)
    keys = np.arange(8000)
    for start in range(0, 100, 10):
        driver.feed(0, Page.of(KEYED, {"ts": np.full(8000, start), "k": keys, "v": keys}))
    driver.feed(0, Linear(100))
    rows = [len(page) for page in driver.pages()]
    assert sum(rows) == 80_000
    assert max(rows) <= 40_000 + 8000
    found = driver.rows()
    assert [(row["window_end"], row["k"]) for row in found] == [
        (end, k) for end in range(10, 101, 10) for k in range(8000)
    ]
    assert all(row["s"] == row["n"] * row["k"] == min(row["window_end"] // 10, 5) * row["k"] for row in found)


def test_cells_are_given_back():
    driver = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, ("k",), strategy="panes"), KEYED)
    keys = np.arange(5000)
    for start in range(0, 100, 10):
        driver.feed(0, Page.of(KEYED, {"ts": np.full(5000, start), "k": keys, "v": keys}))
    assert driver.operator.state().partials == 50_000
    driver.feed(0, Linear(90))
    assert driver.operator.state().partials == 5000
    assert len(driver.rows()) == 45_000


@pytest.mark.parametrize("panes", [255, 256, 65_535, 65_536])
def test_a_window_may_have_any_number_of_panes(panes):
    ring = PaneRing(Count().parts(KEYED), Extents(panes, 1, 0))
    ring.high = panes - 1
    ring._allot(1 << 16, groups=1)
    ring.tuples[:] = 1
    some = np.array([[0], [panes - 1], [panes]])
    _, ends, [(numbers,)] = pane_windows.PaneSweep(ring, some, panes - 1, panes, closing=1).closed()
    assert (ends.tolist(), numbers.tolist()) == ([panes], [panes])


def test_windows_of_very_many_panes_are_not_swept():
    geometry = Geometry(step=1, length=10_000, low=0, high=31, last=31, groups=10_000, first=0)
    assert not pane_windows.is_dense(geometry, windows=10_000, closing=10_000 * 10_000, compiled=True)


def test_infinities_are_summed_without_a_word(monkeypatch):
    """As IEEE has it, and a warning, which tests take for an error, tells nobody anything."""
    monkeypatch.setattr(pane_windows, "is_dense", lambda *_: True)
    schema = Schema({"ts": pa.int64(), "x": pa.float64()}, "ts", "s")
    aggregates = {"s": Sum("x"), "var": Var("x")}
    driver = Driver(WindowAggregate(Sliding(20, 10), aggregates, strategy="panes"), schema)
    driver.feed(0, Page.of(schema, {"ts": [5, 15, 25], "x": [np.inf, -np.inf, 1e308]}))
    driver.feed(0, Page.of(schema, {"ts": [35], "x": [1e308]}))
    driver.feed(0, "end")
    assert [str(row["s"]) for row in driver.rows()] == ["inf", "nan", "-inf", "inf", "1e+308"]
