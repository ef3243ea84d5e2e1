"""What a bound costs windows that are folded on it: the groups that it touches, not those at rest."""

from __future__ import annotations

import random
import tracemalloc
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, GroupWise, Linear, Page, Schema
from oop_engine.aggregates import UserDefined
from oop_engine.core.saved import Saved
from oop_engine.extend import Windows
from oop_engine.operators import Count, Session, Sliding, WindowAggregate
from oop_engine.operators.kernels.sliding import bisect
from oop_engine.operators.slicing import closing
from oop_engine.operators.slicing.ordered import ordered_store, slice_table
from oop_engine.operators.slicing.ordered.slice_table import SliceRows, in_groups
from oop_engine.operators.windows import SliceView
from oop_engine.operators.windows.capped import Capped
from oop_engine.testing import Driver
from oop_engine.windows import (
    Delimited,
    Frames,
    Global,
    Intervals,
    Landmark,
    LastRows,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
    TupleBased,
    UserWindows,
)

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
BIG, SMALL = pc.field("v") > 7, pc.field("v") < 2
SPELT = UserDefined(  # of values in order: the number they spell, modulo a prime; not commutative
    lambda v: (v.to_numpy() % 1009, np.full(len(v), 31)),
    lambda a, b: ((a[0] * b[1] + b[0]) % 1009, a[1] * b[1] % 1009),
    lambda state: state[0],
    reads=("v",),
    state_types=("int64", "int64"),
    returns=pa.int64(),
    commutative=False,
)


def every_five(times: Any, columns: Any, begin: int, bound: int, ended: bool) -> tuple[Any, Any]:
    ends = np.arange(-50, 2000, 5)
    ends = ends[(ends > begin) & (ends <= bound)]
    return ends - 12, ends


GROUPED: dict[str, Windows] = {
    "ranks": PartitionedTupleBased(5, 2, order="time"),
    "ranks with gaps": PartitionedTupleBased(2, 3, order="time"),
    "marks": Delimited(BIG),
    "each": SlideByTuple(12),
    "each third": SlideByTuple(9, every=3, of="rank"),
    "each second to arrive": SlideByTuple(9, every=2, of="arrival"),
    "around": RowsBetween(-2, 1),
    "before": RowsBetween(-3, -3),
    "last": LastRows(3, 7),
    "last in lulls": LastRows(2, 9, lulls=True),
    "frames": Frames(BIG, SMALL),
    "long frames": Frames(BIG, SMALL, most=15, unfinished=True),
    "capped": Session(6, most=20),
    "intervals": Intervals([(-10, 40), (20, 90), (60, 61), (95, 200)]),
    "grid": Sliding(17, 5),
    "grid with gaps": Sliding(4, 9),
    "whole": Global(),
    "function": UserWindows(every_five, reads=("v",), back=12),
}
OF_STREAM: dict[str, Windows] = {
    "ranks of all": TupleBased(7, 3, order="time"),
    "marks of all": Delimited(BIG, "stream"),
    "landmark": Landmark(10),
}


def operator(windows: Windows, stamp: Any = "end") -> WindowAggregate:
    return WindowAggregate(windows, {"s": SPELT, "n": Count()}, ("k",), stamp=stamp)


def page(times: Any, keys: Any, values: Any) -> Page:
    return Page.of(SCHEMA, {"ts": times, "k": keys, "v": values})


def played(windows: Windows, seed: int, stamp: str) -> list[Any]:
    """Return all that is emitted, message by message, and the state after each; most groups are at rest."""
    draw = random.Random(seed)
    driver, found, now = Driver(operator(windows, stamp), SCHEMA), list[Any](), 0
    busy = range(draw.choice([2, 5, 40]))
    for step in range(50):
        some, most = (busy, 4) if step % 9 else (range(40), 30)
        keys = [draw.choice(some) for _ in range(draw.randrange(most))]
        times = [now + draw.randrange(-1, 25) for _ in keys]
        driver.feed(0, page(times, keys, [draw.randrange(10) for _ in keys]))
        match draw.randrange(8):
            case 0:
                keys = draw.sample(range(40), 3)
                below = np.array([draw.choice([now + draw.randrange(20), FOREVER]) for _ in keys])
                emitted = driver.feed(0, GroupWise(pa.RecordBatch.from_pydict({"k": keys}), below))
            case 1:
                driver.operator, saved = driver.operator.opened(SCHEMA), driver.operator.save()
                driver.operator.load(Saved.of(saved))
                emitted = driver.feed(0, Linear(now))
            case _:
                now += draw.randrange(6)
                emitted = driver.feed(0, Linear(now))
        state = driver.operator.state()
        given = [of.to_pylist() if isinstance(of, Page) else repr(of) for _, of in emitted]
        found.append((given, state.tuples, state.partials, state.groups))
    found.append(
        [of.to_pylist() if isinstance(of, Page) else repr(of) for _, of in driver.feed(0, Linear(FOREVER))]
    )
    return found


@pytest.mark.slow(keep=5)
@pytest.mark.parametrize("windows", [*GROUPED, *OF_STREAM])
def test_bounds_that_touch_some_groups_emit_the_results_of_those_of_all(
    windows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = (GROUPED | OF_STREAM)[windows]
    monkeypatch.setattr(closing, "_DEAD", 0)
    for seed, stamp in enumerate(("end", "end" if windows == "landmark" else "start")):
        monkeypatch.setattr(ordered_store, "_FEW", 1 << 40)
        of_all = played(definition, seed, stamp)
        monkeypatch.setattr(ordered_store, "_FEW", -1)
        monkeypatch.setattr(ordered_store, "_SHARE", 0)
        assert played(definition, seed, stamp) == of_all


AT_REST: dict[str, Windows] = {
    "ranks": PartitionedTupleBased(3, 3, order="time"),
    "marks": Delimited(BIG),
    "each": SlideByTuple(10**9),
    "each third": SlideByTuple(10**9, every=3, of="rank"),
    "between": RowsBetween(-1, 1),
    "last": LastRows(1, 10**7),
    "frames": Frames(BIG, SMALL),
    "long frames": Frames(BIG, SMALL, most=10**9),
    "capped": Session(10**9, most=10**10),
    "intervals": Intervals([(0, 10**9)]),
    "grid": Sliding(10**9, 10**9),
    "whole": Global(),
    "ranks of all": TupleBased(10**7, 10**7, order="time"),
    "marks of all": Delimited(BIG, "stream"),
}


def peaks(windows: Windows, groups: int) -> list[int]:
    """Return the peak memory, in bytes, of each of some pages of one row and the bound that passes it."""
    of, entering = operator(windows).opened(SCHEMA), isinstance(windows, Frames)
    values = np.full(groups, 8 if entering else 5)
    list(of.on_page(0, page(np.arange(groups), np.arange(groups), values)))
    list(of.on_punctuation(0, Linear(10**6)))
    assert of.state().groups == groups
    found = []
    tracemalloc.start()
    try:
        for now in range(10**6, 10**6 + 15):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            list(of.on_page(0, page([now], [5], [5])))
            list(of.on_punctuation(0, Linear(now + 1)))
            found.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return found


@pytest.mark.slow(keep=5)
@pytest.mark.parametrize("windows", AT_REST)
def test_a_bound_makes_no_array_of_the_groups_at_rest(windows: str) -> None:
    groups = 300_000
    assert median(peaks(AT_REST[windows], groups)) < groups / 4  # bytes: less than a boolean each


def test_a_bound_of_all_groups_does(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = 30_000
    monkeypatch.setattr(ordered_store, "_FEW", 1 << 40)
    assert median(peaks(LastRows(1, 10**7), groups)) > 8 * groups


@dataclass(frozen=True)
class Unforetold(Capped):
    """Capped sessions that return no bound that they wait for."""

    def bound(self, schema: Schema, place: str = "Unforetold") -> Unforetold:
        return self

    def next_due(self, view: SliceView) -> Any:
        return None


def test_any_bound_may_complete_windows_where_a_definition_returns_none_that_it_waits_for() -> None:
    driver, groups = Driver(operator(Unforetold(6, most=20)), SCHEMA), 3000  # more than are all taken out
    driver.feed(0, page(np.full(groups, 5), np.arange(groups), np.ones(groups, np.int64)))
    assert len(driver.feed(0, Linear(8))) == 1
    [(_, results), _] = driver.feed(0, Linear(20))
    assert isinstance(results, Page)
    assert results.rows == groups


def test_slices_taken_out_are_those_of_groups_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    of = operator(LastRows(2, 100)).opened(SCHEMA)
    list(of.on_page(0, page(np.arange(5000), np.arange(5000), np.ones(5000, np.int64))))
    list(of.on_punctuation(0, Linear(10_000)))
    rows, with_more = list[int](), SliceRows.with_more

    def counted(one: SliceRows, more: SliceRows, parts: Any) -> SliceRows:
        rows.append(one.slots.size + more.slots.size)
        return with_more(one, more, parts)

    monkeypatch.setattr(SliceRows, "with_more", counted)
    for now in range(10_000, 10_200):
        list(of.on_page(0, page([now], [now % 10], [1])))
        list(of.on_punctuation(0, Linear(now + 1)))
    assert of.state().partials == 5000 + 10
    assert sum(rows) < 200 * 50


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=25), st.data())
def test_windows_of_the_stream_are_found_for_each_group_in_them(
    slices: list[tuple[int, int]], data: st.DataObject
) -> None:
    slots, places = np.array(sorted(set(slices))).T
    edges = np.unique(places)
    side = st.integers(0, edges.size)
    pairs = data.draw(
        st.lists(st.tuples(side, side).filter(lambda pair: pair[0] < pair[1]), min_size=1, max_size=8)
    )
    low, high = np.array(pairs).T
    nothing = SliceRows.none((), None)
    found = in_groups(nothing._replace(slots=slots, places=places), edges, low, high)
    wanted = [
        (window, slot, int(rows[0]), int(rows[-1]) + 1)
        for slot in np.unique(slots).tolist()
        for window, (lo, hi) in enumerate(pairs)
        if (rows := np.flatnonzero((slots == slot) & (places >= edges[lo]) & (places <= edges[hi - 1]))).size
    ]
    assert list(zip(*(column.tolist() for column in found), strict=True)) == wanted


def test_ranks_of_the_stream_cost_their_results_not_tuples_times_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = list[int]()

    def counted(values: Any, begins: Any, groups: Any, *rest: Any) -> None:
        looked.append(groups.size)
        bisect(values, begins, groups, *rest)

    monkeypatch.setattr(slice_table, "bisect", counted)
    of = operator(TupleBased(10, 5, order="time")).opened(SCHEMA)
    list(of.on_page(0, page(np.arange(5000), np.arange(5000), np.ones(5000, np.int64))))
    pages = [out for _, out in of.on_punctuation(0, Linear(10**6)) if isinstance(out, Page)]
    assert sum(map(len, pages)) == 5 + 999 * 10 == sum(looked)
