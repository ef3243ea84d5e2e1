"""Groups that are asleep: a bound that closes short windows looks at no group that is in long windows alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, GroupWise, Linear, Page, Schema
from oop_engine.aggregates import Median
from oop_engine.operators import Band, Count, Meld, OAJoin, Sliding, Sum, Tumbling, WindowAggregate
from oop_engine.operators.slicing import closing
from oop_engine.operators.slicing.panes import open_spans, pane_ring
from oop_engine.operators.slicing.panes.sleeping_groups import SleepingGroups
from oop_engine.operators.slicing.stores import slice_ring
from oop_engine.operators.slicing.stores.slice_ring import SliceRing
from oop_engine.testing import END, Driver
from oop_engine.windows import Landmark

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
ASKED: dict[str, Any] = {"n": Count(), "sum": Sum("v")}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "tumbling": {"short": Tumbling(4), "long": Tumbling(60)},
    "sliding": {"short": Tumbling(3), "long": Sliding(50, 7)},
    "gaps": {"short": Sliding(2, 9), "long": Sliding(40, 20), "third": Tumbling(6)},
}

RESTARTED: dict[str, Any] = {"ten": Tumbling(10), "fifteen": Sliding(15, 10), "thirty": Sliding(30, 5, 3)}


def script(draw: random.Random) -> list[Any]:
    """Return pages of few tuples of many groups, bounds of all and of some groups, ends, and moves."""
    linear, own, steps = 0, dict.fromkeys(range(40), 0), list[Any]()
    for _ in range(40):
        match draw.choice(["page", "page", "linear", "linear", "group", "move"]):
            case "page":
                keys = [k for k in draw.choices(range(40), k=draw.randint(1, 6)) if own[k] < FOREVER]
                times = [max(linear, own[k]) + draw.choice([0, 1, 3, 15, 70]) for k in keys]
                values = [draw.randint(-5, 5) for _ in keys]
                steps += [Page.of(SCHEMA, {"ts": times, "k": keys, "v": values})] if keys else []
            case "linear":
                linear += draw.choice([0, 1, 4, 30])
                steps.append(Linear(linear))
            case "group":
                keys = draw.sample(range(40), 2)
                bounds = [linear + draw.choice([0, 5, 40]) if draw.random() < 0.7 else FOREVER for _ in keys]
                for key, below in zip(keys, bounds, strict=True):
                    own[key] = max(own[key], below)
                steps.append(GroupWise.of({"k": keys}, bounds))
            case "move":
                steps.append("move")
    return [*steps, END]


def emissions(operator: WindowAggregate, steps: list[Any]) -> list[str]:
    driver = Driver(operator, SCHEMA)
    out = list[str]()
    for step in steps:
        if step == "move":
            driver.move()
            continue
        out += [str(m.to_pylist() if isinstance(m, Page) else m) for _, m in driver.feed(0, step)]
    return out


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("windows", DEFINITIONS)
def test_answers_are_those_of_a_look_at_all_groups(monkeypatch: pytest.MonkeyPatch, windows: str) -> None:
    slept = list[int]()
    until = SleepingGroups.until

    def counted(sleeping: SleepingGroups, spans: Any, *more: Any) -> Any:
        found = until(sleeping, spans, *more)
        slept.append(len(spans) - found.size if sleeping._known else 0)
        return found

    for seed in range(25):
        steps = script(random.Random(f"{windows} {seed}"))
        with monkeypatch.context() as patch:
            patch.setattr(SleepingGroups, "until", counted)
            found = emissions(WindowAggregate(DEFINITIONS[windows], ASKED, by=("k",)), steps)
        with monkeypatch.context() as patch:
            patch.setattr(SleepingGroups, "settle", lambda sleeping, *_: sleeping.forget())
            assert found == emissions(WindowAggregate(DEFINITIONS[windows], ASKED, by=("k",)), steps)
    assert sum(slept) > 100


def test_a_bound_looks_at_groups_that_have_a_result_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = list[int]()
    close = SliceRing._close_alike

    def counted(ring: SliceRing, slots: Any, cut: int) -> Any:
        closed.append(slots.size)
        return close(ring, slots, cut)

    monkeypatch.setattr(SliceRing, "_close_alike", counted)
    many = 5_000
    windows = {"short": Tumbling(1_000), "long": Tumbling(1_000_000)}
    operator = WindowAggregate(windows, {"n": Count()}, by=("k",)).opened(SCHEMA)
    numbers = np.arange(many)
    list(operator.on_page(0, Page.of(SCHEMA, {"ts": numbers, "k": numbers, "v": numbers})))
    list(operator.on_punctuation(0, Linear(400_000)))
    closed.clear()
    for now in range(400_000, 420_000, 1_000):
        list(operator.on_page(0, Page.of(SCHEMA, {"ts": [now + 1], "k": [5], "v": [0]})))
        [(_, result), _] = operator.on_punctuation(0, Linear(now + 1_000))
        assert isinstance(result, Page)
        assert result.to_pylist() == [
            {"k": 5, "window": "short", "window_start": now, "window_end": now + 1_000, "n": 1}
        ]
    assert closed == [1] * 20
    rows = [len(m) for _, m in operator.on_punctuation(0, Linear(1_000_000)) if isinstance(m, Page)]
    assert sum(rows) == many


@pytest.mark.parametrize("move", range(9))
def test_a_restart_cuts_results_in_the_same_places(monkeypatch: pytest.MonkeyPatch, move: int) -> None:
    for module in (closing, slice_ring):
        monkeypatch.setattr(module, "AT_ONCE", 7)
    for name in ("_FLOOR", "_SPARSE"):
        monkeypatch.setattr(pane_ring, name, 7)
    times = [(-30, 0), (-15, 1), (2, 1), 17, (17, 1), (38, 2), 41, (86, 1), END]
    found = list[list[str]]()
    for moves in (False, True):
        driver, out = Driver(WindowAggregate(RESTARTED, ASKED, by=("k",)), SCHEMA), list[str]()
        for at, step in enumerate(times):
            if moves and at == move:
                driver.move()
            match step:
                case (ts, k):
                    given: Any = Page.of(SCHEMA, {"ts": [ts], "k": [k], "v": [1]})
                case int():
                    given = Linear(step)
                case _:
                    given = step
            out += [str(m.to_pylist() if isinstance(m, Page) else m) for _, m in driver.feed(0, given)]
        found.append(out)
    assert found[0] == found[1]


STORES: dict[str, Any] = {
    "adaptive": lambda: WindowAggregate(Sliding(40, 4), ASKED, by=("k",), strategy="adaptive"),
    "adaptive, tumbling": lambda: WindowAggregate(Tumbling(60), ASKED, by=("k",), strategy="adaptive"),
    "windows": lambda: WindowAggregate(Sliding(40, 4), ASKED, by=("k",), strategy="windows"),
    "panes": lambda: WindowAggregate(Sliding(40, 4), ASKED, by=("k",), strategy="panes"),
    "every": lambda: WindowAggregate(Tumbling(20), ASKED, by=("k",), empty=True),
    "lists": lambda: WindowAggregate(Sliding(40, 4), {"m": Median("v")}, by=("k",)),
    "landmark": lambda: WindowAggregate(Landmark(20), ASKED, by=("k",)),
    "several": lambda: WindowAggregate(DEFINITIONS["sliding"], ASKED, by=("k",)),
}


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("store", STORES)
def test_groups_that_are_named_close_as_if_all_were_looked_at(
    monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    for seed in range(12):
        steps = script(random.Random(f"{store} {seed}"))
        found = list[list[str]]()
        for few in (True, False):
            monkeypatch.setattr(open_spans, "_APART", 0 if few else 1 << 40)
            found.append(emissions(STORES[store](), steps))
        assert found[0] == found[1]


IDLE: dict[str, tuple[Any, int, int]] = {
    "one input": (lambda: Meld(1), 1, 32),
    "two inputs": (lambda: Meld(2), 2, 64),
    "windows": (lambda: WindowAggregate(Tumbling(10), ASKED, by=("k",)), 1, 64),
    "join": (lambda: OAJoin([("k", "k")], Band(10, 10)), 2, 64),
}


@pytest.mark.parametrize("idle", IDLE)
def test_a_group_that_has_nothing_but_a_bound_takes_few_bytes(idle: str) -> None:
    made, inputs, most = IDLE[idle]
    operator = made().opened(*[SCHEMA] * inputs)
    for port in range(inputs):
        for first in range(0, 16_000, 4_000):
            keys = pa.record_batch({"k": pa.array(np.arange(first, first + 4_000) * 7919)})
            list(operator.on_punctuation(port, GroupWise(keys, np.full(4_000, 1_000_000 + first))))
    assert 8 * 16_000 < operator.state().nbytes < most * 16_000
