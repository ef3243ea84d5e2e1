"""The store of whole groups: the same answers as by runs, and no look at groups that a message does not name."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import FOREVER, ContractError, GroupWise, Linear, Page, Schema
from oop_engine.operators import Count, Max, Sum, WindowAggregate
from oop_engine.operators.slicing import strategy
from oop_engine.operators.slicing.stores.run_store import RunStore
from oop_engine.testing import END, Driver
from oop_engine.windows import Global

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")


def page(times: Any, keys: Any, values: Any = None) -> Page:
    return Page.of(SCHEMA, {"ts": times, "k": keys, "v": keys if values is None else values})


def script(draw: random.Random) -> list[Any]:
    """Return pages, bounds, ends of groups and moves; nothing contradicts a bound."""
    linear, own, steps = 0, dict.fromkeys(range(6), 0), list[Any]()
    for _ in range(30):
        match draw.choice(["page", "page", "linear", "group", "move"]):
            case "page":
                keys = [k for k in draw.choices(range(6), k=4) if own[k] < FOREVER]
                times = [max(linear, own[k]) + draw.randint(0, 20) for k in keys]
                steps += [page(times, keys, [draw.randint(-5, 5) for _ in keys])] if keys else []
            case "linear":
                linear += draw.randint(0, 10)
                steps.append(Linear(linear))
            case "group":
                key = draw.randrange(6)
                own[key] = FOREVER if draw.random() < 0.4 else max(own[key], linear + draw.randint(0, 15))
                steps.append(GroupWise.of({"k": [key]}, [own[key]]))
            case "move":
                steps.append("move")
    return [*steps, END]


def emissions(steps: list[Any], stamp: Any) -> list[str]:
    asked = {"n": Count(), "sum": Sum("v"), "most": Max("v")}
    driver = Driver(WindowAggregate(Global(), asked, by=("k",), stamp=stamp), SCHEMA)
    out = list[str]()
    for step in steps:
        if step == "move":
            driver.move()
            continue
        out += [str(m.to_pylist() if isinstance(m, Page) else m) for _, m in driver.feed(0, step)]
    return out


@pytest.mark.parametrize("stamp", ["end", "start"])
def test_answers_and_bounds_are_those_of_runs(monkeypatch: pytest.MonkeyPatch, stamp: str) -> None:
    for seed in range(12):
        steps = script(random.Random(seed))
        found = emissions(steps, stamp)
        with monkeypatch.context() as patch:
            patch.setattr(
                strategy, "WholeStore", lambda n, one, parts, stamp: RunStore({n: one}, parts, stamp)
            )
            assert found == emissions(steps, stamp)


def test_a_sum_that_does_not_fit_names_the_group_and_its_window() -> None:
    driver = Driver(WindowAggregate(Global(), {"sum": Sum("v")}, by=("k",)), SCHEMA)
    driver.feed(0, page([3, 9], [7, 7], [2**63 - 1, 1]))
    with pytest.raises(ContractError, match=r"\[3, 10\).*7"):
        driver.feed(0, END)
