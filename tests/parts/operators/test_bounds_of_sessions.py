"""The bound of sessions is exact: the earliest start, or end, that a session may still have, over several blocks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import GroupWise, Linear, Page, Schema
from oop_engine.aggregates import Median
from oop_engine.core.punctuation import FOREVER
from oop_engine.operators import Count, Session, WindowAggregate
from oop_engine.operators.slicing.stores import run_store
from oop_engine.testing import END, Driver

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")


def open_sessions(rows: list[tuple[int, int]], gap: int, bound: int) -> list[tuple[int, int]]:
    """Return the starts and ends of sessions, by the definition, that a bound does not complete."""
    found = list[tuple[int, int]]()
    for key in {k for _, k in rows}:
        times = sorted(ts for ts, k in rows if k == key)
        start = times[0]
        for ts, following in zip(times, [*times[1:], None], strict=True):
            if following is None or following - ts > gap:
                found.append((start, ts + gap))
                start = following or 0
    return [(start, end) for start, end in found if end >= bound]


def fed(driver: Driver, rows: list[tuple[int, int]], new: list[tuple[int, int]]) -> None:
    """Feed a page of new tuples, which become rows."""
    rows += new
    ts, k = zip(*new, strict=True)
    driver.feed(0, Page.of(SCHEMA, {"ts": ts, "k": k}))


@pytest.mark.parametrize("spread", [5, 60, 400])
@pytest.mark.parametrize("stamp", ["start", "end"])
@pytest.mark.parametrize("asked", [Count(), Median("ts")], ids=["count", "lists of values"])
def test_the_bound_behind_results_is_the_earliest_that_may_come(
    monkeypatch: pytest.MonkeyPatch, asked: Any, stamp: Any, spread: int
) -> None:
    for seed in range(20):
        draw = random.Random(f"{stamp} {spread} {seed}")
        monkeypatch.setattr(run_store, "_MANY", draw.choice([0, 4, 1 << 40]))  # few groups, or all together
        gap, bound, rows, reached = draw.choice([2, 5, 20, 100]), 0, list[tuple[int, int]](), -1
        driver = Driver(WindowAggregate(Session(gap), {"n": asked}, by=("k",), stamp=stamp), SCHEMA)
        # Groups of three blocks are there.  Few get tuples again, in half of the traces ever earlier ones: then
        # sessions begin earlier than was known of their block.
        few, falling = draw.sample(range(150), 4), draw.random() < 0.5
        if falling:
            bound = 160
            fed(driver, rows, [(200 + draw.randint(0, spread), key) for key in range(150)])
        for step in range(draw.randint(3, 60)):
            new = list[tuple[int, int]]()
            match draw.choice(["page"] * 4 + ["bound"] * 4 + ["move"]):
                case "page":
                    for _ in range(draw.randint(1, 3)):
                        ts = max(bound, 200 - step) if falling else bound + draw.randint(0, spread)
                        new.append((ts, draw.choice([*few, draw.randint(0, 150)])))
                    fed(driver, rows, new)
                case "bound":
                    bound += draw.choice([1, 1, 3, 10] if falling else [1, 3, 10, 60])
                    given = driver.feed(0, Linear(bound))
                    reached = max([reached, *(m.below for _, m in given if isinstance(m, Linear))])
                    least = bound if stamp == "start" else bound + gap
                    side = 0 if stamp == "start" else 1
                    assert reached == min([least, *(one[side] for one in open_sessions(rows, gap, bound))])
                case "move":
                    driver.move()
        driver.feed(0, END)


class Traced:
    """Rows of keys and the bounds of each, and the sessions by the definition."""

    def __init__(self, gaps: list[int]) -> None:
        self.gaps = gaps
        self.rows: dict[int, list[int]] = {}
        self.bounds: dict[int, int] = {}

    def sessions(self, key: int, gap: int) -> list[tuple[int, int, int]]:
        """Return start, end and number of tuples of each session of a key."""
        found = list[list[int]]()
        for ts in sorted(self.rows.get(key, [])):
            if found and ts - found[-1][-1] <= gap:
                found[-1].append(ts)
            else:
                found.append([ts])
        return [(one[0], one[-1] + gap, len(one)) for one in found]

    def least(self, key: int, stamp: str) -> int:
        """Return the least stamp of a later result of a key."""
        bound = self.bounds[key]
        if bound == FOREVER:
            return FOREVER
        least = bound if stamp == "start" else bound + min(self.gaps)
        some = [one for gap in self.gaps for one in self.sessions(key, gap) if one[1] >= bound]
        return min([least, *(one[0 if stamp == "start" else 1] for one in some)])


@pytest.mark.parametrize("gaps", [[5], [2, 9], [3, 4, 40]], ids=str)
@pytest.mark.parametrize("asked", [Count(), Median("ts")], ids=["count", "lists of values"])
@pytest.mark.parametrize("stamp", ["start", "end"])
def test_bounds_of_keys_complete_the_sessions_of_the_definition(
    monkeypatch: pytest.MonkeyPatch, stamp: Any, asked: Any, gaps: list[int]
) -> None:
    for seed in range(15):
        draw = random.Random(f"{stamp} {gaps} {seed}")
        monkeypatch.setattr(run_store, "_MANY", draw.choice([0, 4, 1 << 40]))
        windows = {f"gap{gap}": Session(gap) for gap in gaps}
        operator = WindowAggregate(windows, {"n": Count(), "m": asked}, by=("k",), stamp=stamp)
        driver, traced, found = Driver(operator, SCHEMA), Traced(gaps), list[tuple[Any, ...]]()
        keys = range(draw.choice([3, 90, 200]))
        traced.bounds = dict.fromkeys(keys, 0)
        for _ in range(draw.randint(5, 40)):
            open_ = [key for key in keys if traced.bounds[key] < FOREVER]
            match draw.choice(["page"] * 3 + ["bound"] * 3 + ["move", "large page"]):
                case "page" | "large page" as size if open_:
                    some = [draw.choice(open_) for _ in range(4 if size == "page" else 300)]
                    new = [(traced.bounds[key] + draw.choice([0, 1, 3, 8, 30, 200]), key) for key in some]
                    for ts, key in new:
                        traced.rows.setdefault(key, []).append(ts)
                    fed(driver, [], new)
                case "bound":
                    some = draw.sample(list(keys), draw.choice([1, 2, len(keys)]))
                    for key in some:
                        more = draw.choice([1, 4, 15, 60, FOREVER])
                        traced.bounds[key] = min(traced.bounds[key] + more, FOREVER)
                    groups = pa.RecordBatch.from_pydict({"k": pa.array(some, pa.int64())})
                    below = np.array([traced.bounds[key] for key in some])
                    for _, message in driver.feed(0, GroupWise(groups, below)):
                        if isinstance(message, Page):
                            found += [tuple(row.values())[:-1] for row in message.to_pylist()]
                        if isinstance(message, GroupWise):
                            reached = dict(zip(message.groups["k"].to_pylist(), message.below, strict=True))
                            assert reached == {key: traced.least(key, stamp) for key in reached}
                case "move":
                    driver.move()
        expected = list[tuple[Any, ...]]()
        for key in keys:
            for gap in gaps:
                done = [one for one in traced.sessions(key, gap) if one[1] < traced.bounds[key]]
                expected += [(key, f"gap{gap}", start, end, n) for start, end, n in done]
        assert sorted(map(str, found)) == sorted(map(str, expected))
