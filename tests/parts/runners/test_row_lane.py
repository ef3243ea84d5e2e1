"""Rows that come one by one: they wait for each other, go in as pages, and nothing else is different."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Linear, Page
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.runners import door
from oop_engine.runners.door import RowLane
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.feeds.forms import RING
from oop_engine.runners.inline import Inline
from oop_engine.runners.local import Local
from tests.parts.runners.test_local_behind import GRAPHS, Pushed, inline, pushes, rows
from tests.parts.toys import SCHEMA, Fail, Hold, chain, page_of


def one_by_one(pushed: Pushed) -> list[tuple[str, Any, int | None]]:
    """Return rows, each with its arrival, in place of pages."""
    found: list[tuple[str, Any, int | None]] = []
    for source, message in pushed:
        if not isinstance(message, Page):
            found.append((source, message, None))
            continue
        for number, row in enumerate(message.to_pylist()):
            arrival = None if message.arrival is None else int(message.arrival[number])
            found.append((source, row if number % 2 else tuple(row.values()), arrival))
    return found


@pytest.mark.parametrize("name", ["promises at multiples", "promises of groups", "sorted", "two sources"])
@settings(max_examples=max(settings().max_examples // 4, 1))
@given(st.data(), st.booleans())
def test_results_and_late_tuples_are_those_of_pages(name: str, data: st.DataObject, arrivals: bool) -> None:
    graph = GRAPHS[name]()
    sources = [node.name for node in graph.plan().of_kind("source")]
    pushed = data.draw(pushes(sources, arrivals=arrivals and len(sources) == 1))
    expected, by_pages = inline(graph, pushed)
    inline_results, results = [], []
    drains = data.draw(st.sets(st.integers(0, 40)))
    here = Inline(graph, inline_results.append)
    feed = one_by_one(pushed)

    async def local() -> Local:
        runner = Local(graph, results.append)
        async with runner:
            await part(runner, feed[: len(feed) // 2])
            saved = await runner.snapshot()  # while rows wait
            runner.leave()
        runner = Local(graph, results.append)
        runner.restore(saved)
        async with runner:
            await part(runner, feed[len(feed) // 2 :])
        return runner

    async def part(runner: Local, some: list[tuple[str, Any, int | None]]) -> None:
        for number, (source, row, arrival) in enumerate(some):
            if isinstance(row, Linear):
                await runner.push(source, row)
            else:
                await runner.push_row(source, row, arrival)
            if number in drains:
                await asyncio.sleep(0)

    there = run_async(local())
    for number, (source, row, arrival) in enumerate(feed):
        if isinstance(row, Linear):
            here.push(source, row)
        else:
            here.push_row(source, row, arrival)
        if number in drains:
            here.drain()
    for source in sources:
        here.end(source)
    here.drain()
    assert rows(inline_results) == rows(results) == rows(expected)
    late = by_pages.statistics.count("late")
    assert here.statistics.count("late") == there.statistics.count("late") == late


async def test_a_flood_of_rows_goes_in_as_few_pages() -> None:
    sizes: list[int] = []
    async with Local(chain(Hold()), lambda result: None) as local:
        for number in range(5_000):
            await local.push_row("source", (number, number))
        await local.settle()
        edge = local.statistics.edges["source -> o0"]
        sizes.append(edge.pages)
        assert edge.tuples == 5_000
    assert sizes == [-(-5_000 // RING)]


async def test_rows_go_in_as_soon_as_their_source_has_nothing_more() -> None:
    local = Local(chain(Hold()), lambda result: None)
    async with local:
        await local.push_row("source", {"ts": 1, "id": 1})
        edge = local.statistics.edges["source -> o0"]
        assert edge.tuples == 0
        await asyncio.sleep(0)
        assert edge.tuples == 1


def test_the_first_row_waits_no_longer_than_the_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(door, "wall", lambda: now[0])
    lane = RowLane("here", SCHEMA, max_delay_s=0.5)
    assert not lane.add((1, 1))
    now[0] = 0.4
    assert not lane.add((2, 2))
    now[0] = 0.5
    assert lane.add((3, 3))
    assert lane.take().times.tolist() == [1, 2, 3]
    assert not lane.add((4, 4))


def test_a_row_must_have_a_value_for_each_column() -> None:
    lane = RowLane("graph 'g', source 's'", SCHEMA)
    wrong = {
        "ts is null": {"id": 1},
        r"must have 2 values \(ts, id\); got 1": (1,),
        "a row must be a dict": 5,
    }
    for words, row in wrong.items():
        with pytest.raises(ContractError, match=f"graph 'g', source 's': push_row: {words}"):
            lane.add(row)
    lane.add((1, 1), 5)
    with pytest.raises(ContractError, match="must all have arrivals, or none; got None"):
        lane.add((2, 2))
    lane.add((2, 2), 6)
    assert lane.take().arrival.tolist() == [5, 6]  # type: ignore[union-attr]


async def test_a_value_of_a_wrong_type_is_shown_when_the_page_is_made() -> None:
    runner = Inline(chain(Hold()), lambda result: None)
    runner.push_row("source", (1, 1))
    runner.push_row("source", ("x", 2))
    expected = r"source 'source': row 2 of 2 that waited, \('x', 2\): page: 'ts' must be int64"
    for _ in range(2):
        with pytest.raises(ContractError, match=expected):
            runner.drain()
    local = Local(chain(Hold()), lambda result: None)

    async def push() -> None:
        async with local:
            await local.push_row("source", ("x", 2))
            await asyncio.Event().wait()

    with pytest.raises(ContractError, match=r"row 1 of 1 that waited, \('x', 2\)"):
        await push()
    with pytest.raises(ContractError, match="row 1 of 1"):
        await local.push_row("source", (1, 1))


async def test_rows_that_wait_do_not_hold_up_who_leaves() -> None:
    found: list[Any] = []
    local = Local(chain(Fail(10**9)), found.append)
    async with asyncio.timeout(60), local:
        await local.push_row("source", (1, 1))
        local.leave()
    assert found == []


def test_rows_come_before_what_follows_them() -> None:
    found: list[Any] = []
    runner = Inline(chain(Hold()), found.append)
    runner.push_row("source", (5, 1))
    with pytest.raises(UsageError, match="1 messages are queued; drain before a snapshot"):
        runner.snapshot()
    runner.push("source", Linear(6))
    runner.push_row("source", (7, 2))
    runner.clock(10)
    runner.push_row("source", (8, 3))
    runner.push("source", page_of([(9, 4)]))
    runner.end("source")
    with pytest.raises(UsageError, match="has ended"):
        runner.push_row("source", (8, 3))
    runner.drain()
    assert [row["id"] for r in found if isinstance(r.message, Page) for row in r.message.to_pylist()] == [
        1,
        2,
        3,
        4,
    ]


def test_who_takes_results_may_push_rows() -> None:
    found: list[int] = []

    def take(result: Any) -> None:
        if isinstance(result.message, Page):
            found.append(len(result.message))
            if len(found) < 3:
                runner.push_row("source", (len(found), 0))
                runner.push("source", Linear(len(found) + 1))

    runner = Inline(chain(Hold()), take)
    runner.push_row("source", (0, 0))
    runner.push("source", Linear(1))
    runner.drain()
    assert found == [1, 1, 1]
