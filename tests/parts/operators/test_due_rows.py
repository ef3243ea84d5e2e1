from __future__ import annotations

import pyarrow as pa
import pytest

from oop_engine import Graph, GraphError, GroupWise, Linear, Operator, Page, Schema
from oop_engine.operators import (
    AsOf,
    Band,
    BoundedDisorder,
    Count,
    Emit,
    OAJoin,
    Punctuate,
    Tumbling,
    WindowAggregate,
)
from oop_engine.policies import AtOnce, Lazy, Slow
from oop_engine.runners.replay import replay
from oop_engine.testing import Driver, multiset
from oop_engine.windows import TupleBased

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
COUNT = {"n": Count()}


def page(*rows: tuple[int, int]) -> Page:
    return Page.of(SCHEMA, {"ts": [ts for ts, _ in rows], "k": [k for _, k in rows]})


def of_groups(flush: Slow) -> Driver:
    driver = Driver(WindowAggregate(Tumbling(10), COUNT, ("k",), flush=flush), SCHEMA)
    driver.feed(0, page(*((1, k) for k in range(6)), (11, 7), (21, 7), (31, 7)))
    return driver


def ends(driver: Driver) -> list[int]:
    return [row["window_end"] for row in driver.rows()]


def bounds(driver: Driver) -> list[object]:
    return [message for message in driver.out[0] if not isinstance(message, Page)]


def test_one_row_leaves_for_each_so_many_tuples_and_one_a_message_and_the_bound_waits() -> None:
    driver = of_groups(Slow(every=2, within=3))
    driver.feed(0, Linear(10))
    assert ends(driver) == [10]
    assert bounds(driver) == [Linear(10)]
    driver.feed(0, page((40, 7)))
    assert ends(driver) == [10] * 2
    driver.feed(0, page(*((41, 7),) * 5))  # with the one before, six tuples
    assert ends(driver) == [10] * 5
    assert driver.operator.state().partials == 1 + 4
    assert bounds(driver) == [Linear(10)]
    driver.feed(0, page((42, 7)))
    assert ends(driver) == [10] * 6
    assert bounds(driver) == [Linear(10), Linear(20)]


def test_all_that_a_bound_made_due_has_left_before_so_many_later_ones_are_answered() -> None:
    driver = of_groups(Slow(every=100, within=2))
    driver.feed(0, Linear(10))
    driver.feed(0, Linear(20))
    assert ends(driver) == [10, 10]
    driver.feed(0, Linear(30))  # the second that closes windows behind that of 10
    assert ends(driver) == [10] * 6 + [20]
    assert bounds(driver)[-1] == Linear(30)
    driver.run([])
    assert sorted(ends(driver)) == [10] * 6 + [20, 30, 40, 50][:3]
    assert driver.operator.state().in_use == (0, 0, 0)


def test_the_bound_of_a_group_waits_for_its_own_rows() -> None:
    driver = of_groups(Slow(every=100, within=9))
    driver.feed(0, Linear(10))  # one of six leaves, the group 0
    driver.feed(0, GroupWise.of({"k": [0, 5]}, [50, 50]))
    assert bounds(driver)[-1] == GroupWise.of({"k": [0]}, [60])
    for _ in range(4):
        driver.feed(0, page((60, 7)))
    assert ends(driver) == [10] * 6
    driver.feed(0, Linear(11))
    assert bounds(driver)[-1] == GroupWise.of({"k": [5]}, [60])


QUIET = [page((ts, 0)) for ts in range(40, 90)]  # the end lets go of all that is due


def bursts(operator: Operator, feeds: dict[str, list[Page]]) -> tuple[int, object]:
    graph = Graph("bursts")
    edges = [
        graph.add(f"{n}-edge", Punctuate(BoundedDisorder(0), granularity=10), graph.source(n, SCHEMA))
        for n in feeds
    ]
    graph.sink("out", graph.add("it", operator, *edges))
    outcome = replay(graph, feeds)
    return outcome.statistics.operators["it"].burst, multiset(outcome.results["out"].to_pylist())


def test_bursts_are_lower_and_results_the_same() -> None:
    feed = [page(*((ts, (7 * ts + i) % 50) for i in range(50))) for ts in range(40)] + QUIET
    windows = [
        WindowAggregate(Tumbling(10), COUNT, ("k",), flush=flush)
        for flush in (AtOnce(), Slow(every=10, within=9))
    ]
    at_once, slow = (bursts(one, {"in": feed}) for one in windows)
    assert at_once[1] == slow[1]
    assert at_once[0] == 50
    assert slow[0] <= 10


def test_bursts_of_joins_are_lower_too() -> None:
    left = [page(*((ts, k) for k in range(9))) for ts in range(40)] + QUIET
    right = [page((ts, ts % 3)) for ts in range(40)] + QUIET
    joins = [
        OAJoin([("k", "k")], Band(1, 1), how="left", flush=flush) for flush in (None, Slow(every=1, within=2))
    ]
    at_once, slow = (bursts(join, {"left": left, "right": right}) for join in joins)
    assert at_once[1] == slow[1]
    assert 2 * slow[0] < at_once[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: WindowAggregate(Tumbling(10), COUNT, flush=Lazy()),
            "must be AtOnce.. or Slow.every, within.; got Lazy",
        ),
        (
            lambda: WindowAggregate(Tumbling(10), COUNT, flush=Slow(9), emit=Emit()),
            "without emit and changing",
        ),
        (
            lambda: WindowAggregate(TupleBased(3, 3), COUNT, flush=Slow(9)),
            "results that wait for punctuation",
        ),
        (lambda: OAJoin([], Band(1, 1), flush=Slow(9)), "which are none of how='inner'"),
    ],
)
def test_where_nothing_waits_there_is_nothing_to_spread(make: object, message: str) -> None:
    assert OAJoin([], AsOf(), flush=Slow(9)).flush == Slow(9)
    with pytest.raises(GraphError, match=message):
        make()  # type: ignore[operator]
