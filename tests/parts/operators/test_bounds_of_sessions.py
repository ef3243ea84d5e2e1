"""The bound of sessions is exact: the earliest start, or end, that a session may still have, over several blocks."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Linear, Page, Schema
from oop_engine.operators import Count, Session, WindowAggregate
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
def test_the_bound_behind_results_is_the_earliest_that_may_come(stamp: Any, spread: int) -> None:
    for seed in range(20):
        draw = random.Random(f"{stamp} {spread} {seed}")
        gap, bound, rows, reached = draw.choice([2, 5, 20, 100]), 0, list[tuple[int, int]](), -1
        driver = Driver(WindowAggregate(Session(gap), {"n": Count()}, by=("k",), stamp=stamp), SCHEMA)
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
