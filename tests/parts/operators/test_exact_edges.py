"""Slices from edge to edge, where windows begin and end at few of their units: the same results as slices of a unit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, NEVER, GroupWise, Linear, Page, Schema
from oop_engine.aggregates import First
from oop_engine.errors import SnapshotError
from oop_engine.operators import Count, Max, Sliding, Sum, Tumbling, WindowAggregate
from oop_engine.operators.slicing.panes import pane_ring, shared_slices
from oop_engine.operators.slicing.panes.shared_slices import Slicing
from oop_engine.operators.windows import Extents
from oop_engine.testing import Driver, multiset

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
KINDS: dict[str, Sequence[Any]] = {
    "3 and 5": [Tumbling(3), Tumbling(5)],
    "60 and 61": [Tumbling(60), Tumbling(61)],
    "sliding": [Sliding(25, 10), Sliding(77, 70), Tumbling(35, origin=5)],
    "far origins": [Tumbling(14, origin=1_000_003), Tumbling(22, origin=-17), Sliding(8, 77)],
    "gaps": [Sliding(2, 30), Sliding(3, 42)],
}
AGGREGATES = {"n": Count(), "sum": Sum("v"), "most": Max("v"), "first": First("v")}


def aggregate(kind: str, aggregates: Any = None, by: tuple[str, ...] = ("k",)) -> WindowAggregate:
    windows = {str(number): one for number, one in enumerate(KINDS[kind])}
    return WindowAggregate(windows, aggregates or AGGREGATES, by=by)


def said(seed: int, spread: int) -> list[Any]:
    """Pages out of order with bounds between them, for all or for some groups; some tuples are far ahead."""
    draw = random.Random(seed)
    messages, bound, own = list[Any](), -200, dict[int, int]()
    for _ in range(12):
        keys = [draw.randrange(4) for _ in range(20)]
        least = [max(bound, own.get(k, NEVER)) for k in keys]
        times = [t + draw.randrange(draw.choice([spread, spread, 9 * spread])) for t in least]
        values = [draw.randrange(-50, 50) for _ in keys]
        messages.append(Page.of(SCHEMA, {"ts": times, "k": keys, "v": values}))
        if draw.random() < 0.4:
            key = draw.randrange(4)
            own[key] = max(own.get(key, NEVER), bound + draw.randrange(2 * spread))
            messages.append(GroupWise.of({"k": [key]}, [own[key]]))
        else:
            bound += draw.randrange(spread)
            messages.append(Linear(bound))
    return messages


def results(operator: WindowAggregate, messages: Sequence[Any], *, moves: bool = False) -> Any:
    driver, found = Driver(operator, SCHEMA), list[Any]()
    for message in messages:
        driver.feed(0, message)
        if moves:
            driver.move()
    driver.feed(0, Linear(FOREVER))
    return multiset([*found, *driver.rows()])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sums", [False, True], ids=["stacks", "sums"])
def test_they_are_those_of_slices_of_a_unit(kind: str, sums: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Any = ({"n": Count(), "sum": Sum("v")}, ()) if sums else (AGGREGATES, ("k",))
    for seed in range(6):
        messages = said(seed, (4, 30, 200)[seed % 3])
        if sums:
            messages = [message for message in messages if not isinstance(message, GroupWise)]
        found = results(aggregate(kind, *asked), messages, moves=seed == 1)
        with monkeypatch.context() as units:
            units.setattr(shared_slices, "_PERIOD", 0)
            assert found == results(aggregate(kind, *asked), messages)


def test_slices_that_do_not_fit_the_ring_are_the_same_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pane_ring, "_FLOOR", 0)
    monkeypatch.setattr(pane_ring, "_SPARSE", 1)
    for seed in range(4):
        found = results(aggregate("3 and 5"), said(seed, 400))
        with monkeypatch.context() as units:
            units.setattr(shared_slices, "_PERIOD", 0)
            assert found == results(aggregate("3 and 5"), said(seed, 400))


def test_they_lie_between_edges() -> None:
    three_five = Slicing([Extents(3, 3, 0), Extents(5, 5, 0)], [0, 1])
    assert (three_five.slices, three_five.period * three_five.unit) == (7, 15)
    assert three_five.time(np.arange(-7, 8)).tolist() == [
        *(-15, -12, -10, -9, -6, -5, -3), *(0, 3, 5, 6, 9, 10, 12), 15,
    ]  # fmt: skip
    assert (three_five.fewest, three_five.longest) == (1, 3)
    assert [three_five.cut(t) for t in (-1, 0, 2, 3, 14, 15)] == [-1, 0, 0, 1, 6, 7]
    assert Slicing([Extents(2, 2, 0), Extents(3, 3, 0)], [0, 1]).period == 1  # four edges in six


def test_explain_says_it() -> None:
    assert aggregate("3 and 5").explain((SCHEMA,)) == (
        "7 slices in 15 s, from edge to edge, shared by '0', '1': 1 to 3 a window, one ring, "
        "windows by two stacks"
    )
    assert "120 slices in 3660 s" in str(aggregate("60 and 61").explain((SCHEMA,)))


def test_a_snapshot_of_other_slices_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as units:
        units.setattr(shared_slices, "_PERIOD", 0)
        state = aggregate("3 and 5").opened(SCHEMA).snapshot()
    with pytest.raises(SnapshotError, match="slices must be 7 in 15 units; got 1 in 1"):
        aggregate("3 and 5").opened(SCHEMA).restore(state)
