"""``Local`` looks at the state of an operator where it may be most: in front of a bound, and when somebody asks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pyarrow as pa
import pytest

from oop_engine import Graph, Linear, Local, Operator, Page, Schema
from oop_engine.errors import OperatorError
from oop_engine.extend import Emission, State
from oop_engine.runners import station
from oop_engine.runners.inline import Inline

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
PAGES = 50


class Held(Operator):
    """Holds all tuples until a bound comes, and counts how often it is asked for its state."""

    def open(self) -> None:
        self.held, self.asked, self.broken = 0, 0, False

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.held += len(page)
        return iter(())

    def on_punctuation(self, port: int, punctuation: object) -> Iterator[Emission]:
        self.held = 0
        return iter(())

    def state(self) -> State:
        self.asked += 1
        if self.broken:
            msg = "it has none"
            raise ValueError(msg)
        return State(self.held, 0, 0, 8 * self.held)


def graph() -> Graph:
    made = Graph("g")
    made.sink("out", made.add("held", Held(), made.source("in", SCHEMA)))
    return made


def page(ts: int) -> Page:
    return Page.of(SCHEMA, {"ts": [ts]})


async def test_the_peak_is_that_in_front_of_a_bound() -> None:
    inline = Inline(graph(), lambda _: None)
    async with Local(graph(), lambda _: None) as local:
        for ts in range(PAGES):
            await local.push("in", page(ts), at_once=True)
            inline.push("in", page(ts))
        await local.push("in", Linear(PAGES))
        inline.push("in", Linear(PAGES))
        await local.settle()
        inline.drain()
        assert local.statistics.peak == inline.statistics.peak == State(PAGES, 0, 0, 8 * PAGES)
        assert local.statistics.state == State()


async def test_a_state_is_that_of_now_when_somebody_asks() -> None:
    async with Local(graph(), lambda _: None) as local:
        for ts in range(PAGES):
            await local.push("in", page(ts), at_once=True)
            assert local.statistics.operators["held"].state.tuples == ts + 1


async def test_another_thread_sees_what_was_seen_last() -> None:
    async with Local(graph(), lambda _: None) as local:
        await local.push("in", page(0), at_once=True)
        await local.push("in", page(1), at_once=True)
        held = local.operators["held"]
        assert isinstance(held, Held)
        seen = await asyncio.to_thread(lambda: local.statistics.state.tuples)
        assert (seen, held.asked) == (1, 1)
        assert local.statistics.state.tuples == 2


async def test_pages_between_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(station, "_LOOKS", 20)
    async with Local(graph(), lambda _: None) as local:
        for ts in range(PAGES):
            await local.push("in", page(ts), at_once=True)
        held = local.operators["held"]
        assert isinstance(held, Held)
        assert held.asked == 1 + (PAGES - 1) // 20


async def test_a_state_that_fails_is_the_error_of_its_operator() -> None:
    async with Local(graph(), lambda _: None) as local:
        await local.push("in", page(0), at_once=True)
        await local.push("in", page(1), at_once=True)
        held = local.operators["held"]
        assert isinstance(held, Held)
        held.broken = True
        with pytest.raises(
            OperatorError, match=r"graph 'g', operator 'held' \(Held\).*ValueError: it has none"
        ):
            _ = local.statistics
        held.broken = False
