"""Triggers, alone and composed: each version that leaves, and when, is that of the definition."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import FOREVER, Linear, Page, Schema, Watermark
from oop_engine.extend import Message, Trigger
from oop_engine.operators import Count, Emit, Max, Session, Sliding, Sum, Tumbling, WindowAggregate
from oop_engine.testing import Driver, multiset
from oop_engine.triggers import (
    AfterAll,
    AfterAny,
    AfterChange,
    AfterCount,
    AfterDelay,
    AfterEach,
    AfterFraction,
    AfterMatch,
    Once,
    OnRequest,
    OrFinally,
)
from tests.naive import triggers as naive
from tests.naive.versions import NaiveVersions, grid, sessions

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
ASK = Schema({"at": pa.int64(), "k": pa.string()}, "at", "s")
WINDOWS: dict[str, tuple[Any, Callable[[list[int]], list[tuple[int, int]]]]] = {
    "tumbling": (Tumbling(10), grid(10, 10)),
    "sliding": (Sliding(20, 5), grid(20, 5)),
    "sessions": (Session(4), sessions(4)),
}
ASKED = {"n": Count(), "s": Sum("v"), "m": Max("v")}
KEYS = "ab"
Row = dict[str, Any]
Pair = tuple[Trigger, naive.Fires] | None

COUNT = AfterCount(2), naive.after_count(2)
THREE = AfterCount(3), naive.after_count(3)
EACH_TUPLE = AfterCount(1), naive.after_count(1)
MATCH = AfterMatch(pc.field("v") == 2), naive.after_match(2)
DELAY = AfterDelay(8), naive.after_delay(8)
REQUEST = OnRequest(), naive.on_request()
HALF = AfterFraction(0.5), naive.after_fraction(0.5)
CHANGE = AfterChange("s", 1), naive.after_change("s", 1)
SIMPLE: list[Pair] = [COUNT, EACH_TUPLE, MATCH, DELAY, REQUEST]


def composed(real: Any, fires: Any, *of: Any) -> Pair:
    return real(*(one[0] for one in of)), fires(*(one[1] for one in of))


COMPOSED: list[Pair] = [
    HALF,
    CHANGE,
    composed(AfterAny, naive.after_any, THREE, DELAY),
    composed(AfterAll, naive.after_all, COUNT, MATCH),
    composed(AfterEach, naive.after_each, EACH_TUPLE, MATCH, THREE),
    composed(Once, naive.once, COUNT),
    composed(OrFinally, naive.or_finally, EACH_TUPLE, MATCH),
]


def drawn(draw: random.Random, depth: int) -> Any:
    """Return a trigger at random, and its definition."""
    if not depth:
        return draw.choice([*SIMPLE, THREE, HALF, CHANGE])
    real, fires, least, most = draw.choice([
        (AfterAny, naive.after_any, 2, 3), (AfterAll, naive.after_all, 2, 2),
        (AfterEach, naive.after_each, 2, 3), (Once, naive.once, 1, 1), (OrFinally, naive.or_finally, 2, 2),
    ])  # fmt: skip
    return composed(
        real, fires, *(drawn(draw, draw.randrange(depth)) for _ in range(draw.randint(least, most)))
    )


class Both:
    """An operator, and its definition for each key; each message is given to both, and their versions compared."""

    def __init__(self, kind: str, early: Pair, on_time: bool, late: Pair, names: tuple[str, ...]) -> None:
        windows, extents = WINDOWS[kind]
        first, second = (one and one[0] for one in (early, late))
        emit = Emit(early=first, on_time=on_time, late=second, info=True)
        operator = WindowAggregate(windows, {name: ASKED[name] for name in names}, ("k",), emit=emit)
        self.driver = Driver(operator, SCHEMA, *[ASK][: len(emit.inputs) - 1])
        self.naive = {
            key: NaiveVersions(
                extents, early and early[1], on_time, late and late[1],
                strict=kind == "sessions", info=True, names=names, clocked=operator.clock_every is not None,
            )
            for key in KEYS
        }  # fmt: skip
        self.script: list[Any] = []
        self.clock(0)

    def page(self, rows: list[tuple[int, str, int]], cuts: int = 1) -> None:
        columns = [list(column) for column in zip(*rows, strict=True)]
        page = Page.of(SCHEMA, dict(zip(SCHEMA.fields.names, columns, strict=True)))
        places = [len(rows) * cut // cuts for cut in range(cuts + 1)]
        parts = [page.slice(at, stop) for at, stop in pairwise(places)]
        found = [out for part in parts for out in self.driver.feed(0, part)]
        self._same(
            found,
            {
                key: one.page([(t, v) for t, k, v in rows if k == key])
                for key, one in self.naive.items()
                if any(k == key for _, k, _ in rows)
            },
            ("page", rows),
        )

    def clock(self, now: int) -> None:
        self._all(self.driver.clock(now), lambda one: one.tick(now), ("clock", now))

    def watermark(self, bound: int) -> None:
        found = self.driver.feed(0, Watermark(Linear(bound)))
        self._all(found, lambda one: one.watermark(bound), ("watermark", bound))

    def promise(self, bound: int) -> None:
        found = self.driver.feed(0, Linear(bound))
        self._all(found, lambda one: one.promise(bound), ("promise", bound))

    def request(self, key: str) -> None:
        if len(self.driver.operator.inputs) == 2:
            found = self.driver.feed(1, Page.of(ASK, {"at": [0], "k": [key]}))
            self._same(found, {key: self.naive[key].request()}, ("request", key))

    def _all(
        self, found: list[tuple[int, Message]], versions: Callable[[NaiveVersions], list[Row]], what: object
    ) -> None:
        self._same(found, {key: versions(one) for key, one in self.naive.items()}, what)

    def _same(self, found: list[tuple[int, Message]], wanted: dict[str, list[Row]], what: object) -> None:
        self.script.append(what)
        rows = [row for _, out in found if isinstance(out, Page) for row in out.to_pylist()]
        versions = [{"k": key} | row for key, some in wanted.items() for row in some]
        assert multiset(rows) == multiset(versions), self.script


def any_script(both: Both, draw: random.Random) -> None:
    """Give messages at random, tuples one by one or some in a page."""
    promised = now = 0
    for _ in range(30):
        what = draw.choice(["page", "page", "page", "clock", "soft", "hard", "request"])
        if what == "page":
            both.page([
                (promised + draw.randrange(25), draw.choice(KEYS), draw.randrange(3))
                for _ in range(draw.randrange(1, 4))
            ])  # fmt: skip
        elif what == "clock":
            now += draw.randrange(1, 7)
            both.clock(now)
        elif what == "soft":
            both.watermark(promised + draw.randrange(25))
        elif what == "hard":
            promised += draw.randrange(10)
            both.promise(promised)
        else:
            both.request(draw.choice(KEYS))
        if draw.random() < 0.2:
            both.driver.move()
    both.promise(FOREVER)
    assert both.driver.operator.state().in_use == (0, 0, 0)


ONE_HISTORY = [("tumbling", one) for one in [*SIMPLE, *COMPOSED]] + [("sliding", one) for one in COMPOSED]


@pytest.mark.slow(keep=8)
@pytest.mark.parametrize(("kind", "trigger"), [*ONE_HISTORY, *(("sessions", one) for one in SIMPLE)])
def test_versions_by_a_trigger_are_those_of_the_definition(kind: str, trigger: Pair) -> None:
    for seed, (early, on_time) in enumerate([(None, False), (trigger, True)]):
        any_script(Both(kind, early, on_time, trigger, ("n", "s")), random.Random(seed))


@pytest.mark.parametrize("seed", range(8))
def test_versions_by_any_composed_triggers_are_those_of_the_definition(seed: int) -> None:
    draw = random.Random(seed)
    early, late = (drawn(draw, 2) for _ in range(2))
    names = draw.choice([("n", "s"), ("m", "s")])
    any_script(Both(draw.choice(["tumbling", "sliding"]), early, draw.random() < 0.5, late, names), draw)


@pytest.mark.parametrize("kind", WINDOWS)
def test_versions_by_clock_request_and_bounds_depend_on_no_cut_nor_order(kind: str) -> None:
    asked = composed(AfterAny, naive.after_any, DELAY, REQUEST)
    for seed, trigger in enumerate([None, asked, composed(AfterEach, naive.after_each, REQUEST, DELAY)]):
        both = [Both(kind, trigger, True, trigger, ("n", "s")) for _ in range(3)]
        draw, promised = random.Random(seed), 0
        for now in range(1, 14):
            rows = [
                (promised + draw.randrange(25), draw.choice(KEYS), draw.randrange(3))
                for _ in range(draw.randrange(1, 6))
            ]
            bound, promised, key = (
                promised + draw.randrange(20),
                promised + draw.randrange(5),
                draw.choice(KEYS),
            )
            for cuts, one in enumerate(both, 1):
                one.page(draw.sample(rows, len(rows)) if cuts > 1 else rows, cuts)
                one.request(key)
                one.clock(3 * now)
                one.watermark(bound)
                one.promise(promised)
        assert (
            multiset(both[0].driver.rows())
            == multiset(both[1].driver.rows())
            == multiset(both[2].driver.rows())
        )
