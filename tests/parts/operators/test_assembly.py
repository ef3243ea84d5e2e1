"""However windows are put together from slices, they are the same: by two stacks, by running sums, by a tree."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Linear, Page, Schema
from oop_engine.aggregates import Last, Median
from oop_engine.extend import Windows
from oop_engine.operators import Avg, Count, Max, Session, Sliding, Sum, Tumbling, WindowAggregate
from oop_engine.operators.slicing.panes import window_plans
from oop_engine.testing import END, Driver, multiset
from oop_engine.windows import Landmark, TupleBased
from tests.naive import windows as naive
from tests.parts.operators.test_exact_edges import KINDS, results, said

SUMS = {"n": Count(), "sum": Sum("v")}
ALL = SUMS | {"most": Max("v"), "last": Last("v"), "mean": Avg("v")}
WAYS: tuple[Any, ...] = ("stacks", "tree")
ONE = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")


def aggregate(kind: str, assembly: Any, aggregates: Any) -> WindowAggregate:
    windows = {str(number): one for number, one in enumerate(KINDS[kind])}
    return WindowAggregate(windows, aggregates, by=("k",), assembly=assembly)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_same(kind: str) -> None:
    for seed in range(5):
        messages = said(seed, (4, 30, 200)[seed % 3])
        way = aggregate(kind, "stacks", ALL)
        wanted = results(way, messages)
        assert results(aggregate(kind, "tree", ALL), messages, moves=seed == 1) == wanted


def feed(driver: Driver, times: list[int], bound: int) -> None:
    driver.feed(0, Page.of(ONE, {"ts": times, "v": [t % 7 for t in times]}))
    driver.feed(0, Linear(bound))


def test_a_window_of_many_slices_goes_on_when_its_ring_grows_and_turns() -> None:
    """One window closes at a time; tuples come far ahead, and behind nodes that were read already."""
    tree = Driver(WindowAggregate(Sliding(300, 1), {"n": Count(), "most": Max("v")}, assembly="tree"), ONE)
    rows = list[int]()
    for step in range(12):
        some = [step * 90 + (i * 37) % 200 for i in range(25)] + [step * 90 + 500] * (step in (2, 7))
        rows += some
        feed(tree, some, step * 90)
    assert tree.operator.state().nbytes > 2 * 512 * 8
    tree.feed(0, Linear(FOREVER))
    wanted = naive.sliding(
        [{"ts": ts, "v": ts % 7} for ts in rows], "ts", (),
        {"n": naive.aggregate("count", None, "ts", ""), "most": naive.aggregate("max", "v", "ts", "")}, 300, 1, 0,
    )  # fmt: skip
    assert multiset(tree.rows()) == multiset(wanted)


def test_a_bound_that_closes_no_window_leaves_a_tree_as_stale_as_it_was() -> None:
    driver = Driver(WindowAggregate({"w": Sliding(16, 5)}, {"n": Count()}, assembly="tree"), ONE)
    feed(driver, [3], 13)
    feed(driver, [13], 14)  # where a window begins, and none ends
    driver.feed(0, Linear(15))
    assert [(row["window_end"], row["n"]) for row in driver.rows()] == [(5, 1), (10, 1), (15, 2)]


@pytest.mark.parametrize(("long", "assembly"), [(5, "tree"), (2000, "auto")])
def test_a_group_that_has_ended_is_in_no_window_that_is_read_from_a_tree_later(
    long: int, assembly: Any
) -> None:
    windows: dict[str, Windows] = {"long": Sliding(long, 1), "short": Tumbling(4)}
    schema = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
    driver = Driver(
        WindowAggregate(windows, {"n": Count(), "most": Max("ts")}, ("k",), assembly=assembly), schema
    )
    at = long + 40
    times, keys = list(range(45, at + 1)), (20, 30, 24)
    driver.feed(0, Page.of(schema, {"ts": times * 3, "k": [key for key in keys for _ in times]}))
    driver.feed(0, Linear(at))
    driver.feed(0, Linear(at + 1))  # by a tree
    driver.feed(0, GroupWise.of({"k": [24]}, [FOREVER]))
    for step in range(2, 6):
        driver.feed(0, Linear(at + step))
    driver.feed(0, END)
    counted = Counter((row["k"], row["window"], row["window_end"]) for row in driver.rows())
    assert set(counted.values()) == {1}
    assert sum(row["n"] for row in driver.rows()) == 3 * len(times) * (long + 1)


def test_auto_takes_a_tree_where_few_windows_of_many_slices_close(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()
    by_tree = window_plans.SliceTree.planned

    def noted(*of: Any) -> Any:
        read.append("tree")
        return by_tree(*of)

    monkeypatch.setattr(window_plans.SliceTree, "planned", noted)
    windows: dict[str, Windows] = {"long": Sliding(2000, 1), "short": Tumbling(4)}
    auto, stacks = (
        Driver(WindowAggregate(windows, {"most": Max("v")}, assembly=way), ONE) for way in ("auto", "stacks")
    )
    times = list(range(0, 3000, 2))
    for driver in (auto, stacks):
        feed(driver, times, 3000)
    assert read == []
    for driver in (auto, stacks):
        feed(driver, [3001], 3004)
    assert auto.rows() == stacks.rows()
    assert read == ["tree"]


def test_a_sum_of_slices_that_no_window_has_together_may_be_too_large() -> None:
    """Nodes are of slices that lie side by side; windows of 6 begin at 3, in the middle of a node."""
    huge = 2**62
    windows: dict[str, Windows] = {"3": Tumbling(3), "6": Tumbling(6, origin=3)}
    for way in WAYS:
        driver = Driver(WindowAggregate(windows, {"sum": Sum("v")}, assembly=way), ONE)
        driver.feed(0, Page.of(ONE, {"ts": [0, 3, 14], "v": [huge, huge, 5]}))
        driver.feed(0, Linear(20))
        assert sorted(row["sum"] for row in driver.rows()) == [5, 5, huge, huge, huge, huge]
        driver.feed(0, Page.of(ONE, {"ts": [33, 36], "v": [huge, huge]}))
        with pytest.raises(ContractError, match=r"\[33, 39\)"):
            driver.feed(0, Linear(40))


def test_explain_says_how() -> None:
    explained = {
        way: WindowAggregate(Tumbling(10), {"n": Count()}, assembly=way).explain((ONE,))
        for way in (*WAYS, "prefix")
    }
    name = "slices of 10 s of 'Tumbling(10)': 1 a window, one ring, "
    assert explained == {
        "stacks": f"{name}windows by two stacks, as asked",
        "prefix": f"{name}windows by differences of running sums, as asked",
        "tree": f"{name}windows by a tree, as asked",
    }
    long = WindowAggregate({"long": Sliding(2000, 1)}, {"most": Max("v")})
    assert "one ring, windows by a tree where less than one closes in 64 slices, else by two stacks" in str(
        long.explain((ONE,))
    )


@pytest.mark.parametrize(
    ("windows", "aggregates", "options", "says"),
    [
        (Tumbling(5), {"n": Count()}, {"assembly": "trees"}, "assembly must be one of 'auto', 'stacks', 'prefix'"),
        (Tumbling(5), {"m": Max("v")}, {"assembly": "prefix"}, "'prefix' needs counts and integer sums alone"),
        (Tumbling(5), {"n": Count()}, {"assembly": "prefix", "by": ("v",)}, "'prefix' needs counts .* and no groups"),
        (Tumbling(5), {"m": Median("v")}, {"assembly": "tree"}, "'tree' needs slices in a ring.*no aggregate of lists"),
        (Tumbling(5), {"n": Count()}, {"assembly": "tree", "empty": True}, "'tree' needs slices in a ring"),
        (Tumbling(5), {"n": Count()}, {"assembly": "stacks", "strategy": "panes"}, "strategy='auto'"),
        (Session(5), {"n": Count()}, {"assembly": "tree"}, "windows on a grid"),
        (Landmark(5), {"n": Count()}, {"assembly": "tree"}, "windows on a grid"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(windows: Any, aggregates: Any, options: Any, says: str) -> None:
    with pytest.raises(GraphError, match=says):
        WindowAggregate(windows, aggregates, **options).opened(ONE)


def test_windows_by_arrival_are_put_together_so_too() -> None:
    for way in WAYS:
        driver = Driver(WindowAggregate(TupleBased(3, 1), {"sum": Sum("v")}, assembly=way), ONE)
        driver.feed(0, Page.of(ONE, {"ts": [5, 1, 4, 2], "v": [1, 2, 3, 4]}))
        driver.feed(0, Linear(FOREVER))
        assert [row["sum"] for row in driver.rows()] == [1, 3, 6, 9, 7, 4]
