"""AdaptWID: groups that change sides, at thresholds so low that small streams cross them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import ContractError, GraphError, GroupWise, Linear, Page, Schema
from oop_engine.operators.aggregates import Avg, Count, First, Max, Sum, UserDefined
from oop_engine.operators.slicing.stores import window_store
from oop_engine.operators.slicing.stores.sparse_groups import EagerBytes
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Sliding, Tumbling, TupleBased
from oop_engine.testing import Driver, multiset
from tests.cases import all_cases
from tests.naive import windows as naive
from tests.parts.operators.window_streams import SCHEMA, Checked, events, rows

AGGREGATES = {"n": Count(), "s": Sum("v"), "x": Max("x"), "f": First("v")}
ORACLE = {
    "n": naive.aggregate("count"), "s": naive.aggregate("sum", "v"), "x": naive.aggregate("max", "x"),
    "f": naive.aggregate("first", "v"),
}  # fmt: skip
KEYED = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
TUMBLING = Tumbling(10)
FAR = [-(2**62), -(2**62) + 3, 0, 2**62, 2**62 + 9]
BY = st.sampled_from([(), ("k",), ("j", "k")])


class Turned:
    """The dials turned: thresholds, and when plain panes are sparse."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> None:
        self._patch.setattr(EagerBytes, "threshold", lambda *_, **__: self._threshold)
        self._patch.setattr(window_store, "_FLOOR", 0)
        self._patch.setattr(window_store, "_SPARSE", 1)

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


DIALS = st.builds(Turned, st.sampled_from([0, 1, 2, 4, 9]))


@settings(max_examples=30, deadline=None)
@given(
    data=st.data(), of=rows(size=40), by=BY, range_=st.integers(1, 25), slide=st.integers(1, 25),
    origin=st.integers(-9, 9), strategy=st.sampled_from(["adaptive", "auto"]), dials=DIALS,
)  # fmt: skip
def test_windows_are_those_of_the_definition(data, of, by, range_, slide, origin, strategy, dials):
    expected = naive.sliding(of, "ts", by, ORACLE, range_, slide, origin)
    with dials:
        operator = WindowAggregate(Sliding(range_, slide, origin), AGGREGATES, by, strategy=strategy)
        driver = Checked(operator, SCHEMA).play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(expected)
    assert driver.operator.state().partials == driver.operator.state().tuples == 0


@pytest.mark.parametrize("strategy", ["adaptive", "auto"])
@pytest.mark.parametrize("seed", range(3))
def test_times_far_apart(seed, strategy):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.choice(FAR, 60) + rng.integers(0, 9, 60))
    of = [{"ts": int(t), "k": int(k), "v": 1} for t, k in zip(times, rng.integers(0, 3, 60), strict=True)]
    with Turned(threshold=2):
        driver = adaptive(Sliding(7, 3), {"n": Count()}, strategy)
        for start in range(0, 60, 5):
            part = of[start : start + 5]
            driver.feed(0, keyed(*([row[name] for row in part] for name in ("ts", "k", "v"))))
            driver.feed(0, Linear(part[-1]["ts"]))
            driver.move()
        driver.feed(0, "end")
    assert multiset(driver.rows()) == multiset(naive.sliding(of, "ts", ("k",), {"n": ORACLE["n"]}, 7, 3))


def keyed(times, keys, values=None) -> Page:
    return Page.of(KEYED, {"ts": times, "k": keys, "v": [1] * len(times) if values is None else values})


def adaptive(windows=TUMBLING, aggregates=None, strategy="adaptive") -> Driver:
    return Driver(WindowAggregate(windows, aggregates or {"s": Sum("v")}, ("k",), strategy=strategy), KEYED)


def held(driver: Driver) -> tuple[int, int]:
    state = driver.operator.state()
    return state.tuples, state.partials


def test_a_group_is_lazy_until_it_has_more_than_its_partial_aggregate_takes():
    driver = adaptive()  # a cell, a back, and where those of the group are, take 88 bytes; a tuple takes 20
    driver.feed(0, keyed([1, 2, 3, 3, 3], [7, 8, 7, 7, 7]))
    assert held(driver) == (5, 0)
    driver.feed(0, keyed([4], [7]))
    assert held(driver) == (1, 1)
    driver.feed(0, keyed([5] * 9, [7] * 9))
    assert held(driver) == (1, 1)
    driver.feed(0, Linear(10))
    assert [(r["k"], r["s"]) for r in driver.rows()] == [(7, 14), (8, 1)]
    assert held(driver) == (0, 0)


def rounds(driver: Driver, of: range, per_round: int, move: bool = False) -> None:
    for start in of:
        driver.feed(0, keyed(10 * start + np.linspace(9, 0, per_round).astype(int), [7] * per_round))
        driver.feed(0, Linear(10 * start + 10))
        if move:
            driver.move()


def is_eager(driver):
    return bool(driver.operator._closing.stores[0].adaptive.volumes.eager[0])


def test_a_group_that_gets_sparse_becomes_lazy_and_comes_back():
    driver = adaptive(Sliding(40, 10))
    rounds(driver, range(6), 30)
    assert is_eager(driver)
    rounds(driver, range(6, 24), 1)
    assert not is_eager(driver)
    assert held(driver) == (3, 0)
    rounds(driver, range(24, 30), 30)
    assert is_eager(driver)
    driver.feed(0, "end")
    counts = [30] * 6 + [1] * 18 + [30] * 6
    expected = [sum(counts[max(0, last - 3) : last + 1]) for last in range(len(counts) + 3)]
    assert [r["s"] for r in driver.rows()] == expected


def test_a_volume_between_the_thresholds_changes_nothing():
    with Turned(threshold=10):
        dense, sparse = adaptive(Sliding(40, 10)), adaptive(Sliding(40, 10))
        rounds(dense, range(6), 3)  # 12 in a window
        rounds(sparse, range(6), 1)
        for driver, eager in ((dense, True), (sparse, False)):
            assert is_eager(driver) == eager
            for start in range(6, 40, 4):  # 9 in a window: above 7.5, below 10
                for at, each in enumerate((2, 2, 2, 3)):
                    rounds(driver, range(start + at, start + at + 1), each)
                assert is_eager(driver) == eager


def test_a_group_without_a_tuple_is_forgotten_and_begins_lazy():
    driver = adaptive()
    rounds(driver, range(3), 30)
    driver.feed(0, keyed([35], [7]))
    assert held(driver) == (1, 0)


def test_snapshots_in_the_middle_of_a_transition():
    stayed, moved = adaptive(Sliding(40, 10)), adaptive(Sliding(40, 10))
    both = 0
    for start, stop, each in ((0, 6, 30), (6, 20, 1), (20, 24, 30)):
        for at in range(start, stop):
            rounds(stayed, range(at, at + 1), each)
            rounds(moved, range(at, at + 1), each, move=True)
            assert moved.operator.state().in_use == stayed.operator.state().in_use
            both += all(held(moved))
    assert both  # panes and tuples of one group at one time
    assert moved.run([]).out == stayed.run([]).out


def test_group_wise_promises_close_tuples_and_partial_aggregates():
    driver = adaptive(Sliding(20, 10))
    driver.feed(0, keyed([1, 2] + [5] * 30, [1, 2] + [3] * 30))
    tuples, partials = held(driver)
    assert (tuples, partials > 0) == (2, True)
    driver.feed(0, GroupWise.of({"k": [1, 3]}, [40, 40]))
    assert held(driver) == (1, 0)
    found = [(r["k"], r["window_end"], r["s"]) for r in driver.rows()]
    assert found == [(1, 10, 1), (3, 10, 30), (1, 20, 1), (3, 20, 30)]


def test_dense_groups_lie_side_by_side_however_many_sparse_ones_there_are():
    driver = adaptive(Sliding(100, 10))
    for start in range(0, 300, 10):
        sparse = np.arange(2000) + 10_000 * start + 10
        keys = np.concatenate([np.repeat(np.arange(4), 50), sparse])
        driver.feed(0, keyed(np.full(keys.size, start), keys))
        driver.feed(0, Linear(start + 10))
    block = driver.operator._closing.stores[0].adaptive.block
    assert (block.panes.used, block.panes.tuples.size) == (4 * 9, 4 * 17)
    assert held(driver) == (9 * 2000, 4 * 9)


def test_auto_adapts_when_panes_turn_out_to_be_sparse(monkeypatch):
    monkeypatch.setattr(window_store, "_FLOOR", 50_000)
    auto, windows, panes = (adaptive(Sliding(100, 10), strategy=s) for s in ("auto", "windows", "panes"))
    for start in range(0, 300, 10):
        keys = np.concatenate([np.repeat(np.arange(20), 30), np.arange(300) + 10_000 * start + 100])
        for driver in (auto, windows, panes):
            driver.feed(0, keyed(np.full(keys.size, start), keys))
            driver.feed(0, Linear(start + 10))
    assert auto.operator.state().tuples == 9 * 300
    assert 2 * auto.operator.state().nbytes < windows.operator.state().nbytes
    block, plain = (
        auto.operator._closing.stores[0].adaptive.block,
        panes.operator._closing.stores[0].cells.ring,
    )
    assert 4 * block.panes.tuples.size < plain.tuples.size
    for driver in (auto, windows):
        driver.feed(0, "end")
    assert summed(auto) == summed(windows)


def summed(driver: Driver) -> list[tuple[int, int]]:
    """Return for each page of results how many there are, and what they add up to."""
    return [(len(page), pc.sum(page.column("s")).as_py()) for page in driver.pages()]


def test_auto_stays_with_panes_where_groups_are_dense():
    driver = adaptive(Sliding(100, 10), strategy="auto")
    for start in range(0, 400, 10):
        driver.feed(0, keyed(np.full(20_000, start), np.arange(20_000) % 10_000))
        driver.feed(0, Linear(start + 10))
    assert held(driver) == (0, 9 * 10_000)


@pytest.mark.parametrize("windows", [Tumbling(10), Sliding(30, 10)])
def test_sums_are_checked_wherever_they_are_formed(windows):
    for times in ([1, 2], [1] + [2] * 40):
        driver = adaptive(windows)
        driver.feed(0, keyed([3], [4]))
        said = [keyed(times, [8] * len(times), [2**62] * len(times)), Linear(10)]
        with pytest.raises(ContractError, match=r"\[-?\d+, 10\) of group \{'k': 8\}"):
            driver.run((0, message) for message in said)


def test_user_defined_aggregates_adapt_too():
    product = UserDefined(
        lift=lambda v: (v.to_numpy().astype("float64"),), combine=lambda a, b: (a[0] * b[0],),
        lower=lambda state: state[0], reads=("v",), state_types=("float64",), returns=pa.float64(),
    )  # fmt: skip
    driver = adaptive(Sliding(20, 10), {"p": product})
    driver.feed(0, keyed([1] * 9 + [2], [1] * 9 + [2], [2] * 9 + [5]))
    assert held(driver) == (1, 1)
    driver.feed(0, "end")
    assert [(r["k"], r["p"]) for r in driver.rows()] == [(1, 512.0), (2, 5.0)] * 2


@pytest.mark.parametrize(
    "operator",
    [
        WindowAggregate(Landmark(10), {"n": Count()}, strategy="adaptive"),
        WindowAggregate(TupleBased(10, 5), {"n": Count()}, strategy="adaptive"),
    ],
)
def test_where_tuples_cannot_be_kept_for_later(operator):
    with pytest.raises(GraphError, match="strategy='adaptive' needs windows of one length"):
        operator.opened(KEYED)


def test_disorder_raises_the_threshold():
    calm, stormy = adaptive(Sliding(20, 10)), adaptive(Sliding(20, 10))
    for start in range(0, 400, 10):
        calm.feed(0, keyed([start], [1]))
        stormy.feed(0, keyed([start + 60], [1]))
        for driver in (calm, stormy):
            driver.feed(0, Linear(start + 10))
    durations = [d.operator._closing.stores[0].adaptive.volumes.duration.wed for d in (calm, stormy)]
    assert durations[0] <= 20 < 60 < durations[1]


def test_each_strategy_is_explained_in_a_line():
    asked = {"n": Count(), "a": Avg("v")}
    said = {
        strategy: WindowAggregate(Sliding(50, 10), asked, ("k",), strategy=strategy).explain((KEYED,))
        for strategy in ("auto", "windows", "panes", "adaptive")
    }
    assert said["auto"].startswith("panes: 5 a window, 0.38 of the time of windows at 1 tuple")
    assert "where groups are sparse" in said["auto"]
    for strategy in ("windows", "panes", "adaptive"):
        assert said[strategy].startswith(f"{strategy}, as asked: ")
    assert not any("\n" in line for line in said.values())
    landmark = WindowAggregate(Landmark(10), asked).explain((KEYED,))
    assert landmark.endswith(": a landmark window has no fixed number of panes")


def test_a_punctuation_makes_no_state_grow_where_groups_have_become_sparse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Panes go on as they are where another store takes over."""
    monkeypatch.setattr(window_store, "_FLOOR", 0)
    monkeypatch.setattr(window_store, "_SPARSE", 1)
    [case] = [case for case in all_cases() if case.id == "wid-sliding-many"]
    [schema] = case.inputs
    driver = Driver(case.operator, schema)
    some = {"k": ["c", "b", "b", "a"], "j": [2, 0, 1, 0], "v": [7, 1, 1, 1], "x": [0.0, 1.0, 0.0, 3.0]}
    driver.feed(0, Page.of(schema, {"ts": [-4, 20, 52, -15], **some}))
    before = driver.operator.state().in_use
    driver.feed(0, GroupWise.of({"k": ["a"]}, [15]))
    driver.move()
    assert (before, driver.operator.state().in_use) == ((0, 4, 4), (0, 3, 3))
    driver.feed(0, Page.of(schema, {"ts": [52], "k": ["b"], "j": [1], "v": [1], "x": [0.0]}))
    assert is_eager(driver)
    assert driver.operator.state().in_use == (0, 3, 3)


def test_a_ring_that_is_empty_says_nothing_of_groups_that_are_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_store, "_FLOOR", 3)
    monkeypatch.setattr(window_store, "_SPARSE", 2)
    schema = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
    asked = WindowAggregate(Sliding(10, 5), {"n": Count()}, ("k",), empty=True)
    drivers = [Driver(asked, schema) for _ in range(2)]
    for page, bounds in (({"ts": [-15, -28], "k": ["a", "b"]}, [63, 63, 63]), ({"ts": [63], "k": ["c"]}, [])):
        for number, driver in enumerate(drivers):
            for message in (Page.of(schema, page), *map(Linear, bounds)):
                driver.feed(0, message)
                if number:
                    driver.move()  # to leave and come back elsewhere
    assert drivers[0].operator.state().in_use == drivers[1].operator.state().in_use
