"""Between two turns of the event loop a service reads a bounded number of rows, in whatever form they come."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, arun, serve
from oop_engine.extend import LiveSource
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate
from oop_engine.runners import local as local_module
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.feeds import forms
from oop_engine.runners.local import Local
from oop_engine.service.letters import parts
from oop_engine.service.letters.record_reader import RecordReader
from oop_engine.sinks import Gathered

SCHEMA = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")
ROWS, MOST = 3_000, 100


def counts() -> Graph:
    graph = Graph("counts")
    edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("log", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(60), {"n": Count()}, by=("host",)), edge))
    return graph


def row(n: int) -> dict[str, Any]:
    return {"ts": n // 50, "host": "ab"[n % 2]}


class Source(LiveSource):
    """Gives its data and never awaits."""

    replayable = True

    def __init__(self, data: list[Any], format: str = "rows") -> None:
        self.data, self.format = data, format

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        for number in range(position or 0, len(self.data)):
            yield self.data[number], number + 1


ROW_BY_ROW = [row(n) for n in range(ROWS)]
LINES = [b'{"ts": %d, "host": "a"}' % (n // 50) for n in range(ROWS)]
SOURCES: dict[str, Callable[[], LiveSource]] = {
    "dicts": lambda: Source(ROW_BY_ROW),
    "one list": lambda: Source([ROW_BY_ROW]),
    "rows beside a list": lambda: Source([*ROW_BY_ROW[:90], ROW_BY_ROW[90:2_000], *ROW_BY_ROW[2_000:]]),
    "tuples in a list": lambda: Source([[(n // 50, "a") for n in range(ROWS)]]),
    "messages": lambda: Source([line + b"\n" for line in LINES], "jsonl"),
    "a list of messages": lambda: Source([LINES], "jsonl"),
}


class Turns:
    """Counts the rows that are pushed in each turn of the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turn, self.rows = 0, Counter[int]()
        push = Local._push

        async def counted(local: Local, source: str, message: Any, *given: Any, **more: Any) -> None:
            self.rows[self.turn] += len(message) if isinstance(message, Page) else 0
            await push(local, source, message, *given, **more)

        monkeypatch.setattr(Local, "_push", counted)

    async def count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.turn += 1


async def beside(turns: Turns, work: Any) -> Any:
    other = asyncio.create_task(turns.count())
    found = await work
    other.cancel()
    return found


@pytest.mark.parametrize("dead_letters", [False, True], ids=["", "dead-letters"])
@pytest.mark.parametrize("kind", SOURCES)
def test_a_turn_reads_a_part_of_the_rows(
    kind: str, dead_letters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oop_engine.service.inlet.RING", MOST)
    monkeypatch.setattr(parts, "_PART", MOST)
    turns, found = Turns(monkeypatch), Gathered()
    letters: Any = {"dead_letters": Gathered()} if dead_letters else {}
    run_async(beside(turns, serve(counts(), {"log": SOURCES[kind]()}, {"out": found}, **letters)))
    assert sum(turns.rows.values()) == sum(each["n"] for each in found.rows) == ROWS
    assert max(turns.rows.values()) <= 2 * MOST, "rows in one turn of the event loop"


def test_rows_of_a_long_list_that_do_not_fit_are_dead_letters_of_their_own() -> None:
    rows = [row(n) | ({"ts": "x"} if n in (70, 5_000, 9_999) else {}) for n in range(10_000)]
    found, letters = Gathered(), Gathered()
    run_async(serve(counts(), {"log": Source([rows])}, {"out": found}, dead_letters=letters))
    assert sum(each["n"] for each in found.rows) == 9_997
    assert [each["record"] for each in letters.rows] == [f'{{"ts": "x", "host": "{host}"}}' for host in "aab"]


@pytest.mark.parametrize("dead_letters", [False, True], ids=["", "dead-letters"])
@pytest.mark.parametrize("kind", ["dicts", "one list"])
def test_a_turn_refuses_few_rows(kind: str, dead_letters: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs as much as a thousand good ones, since those around it are read again."""
    monkeypatch.setattr(parts, "_PART", 16)
    monkeypatch.setattr(parts, "_REFUSED_PART", 4)
    rows = [row(n) | ({"ts": "x"} if n % 3 == 0 else {}) for n in range(60)]
    turns, found, of_turn = Turns(monkeypatch), Gathered(), Counter[int]()
    refused = RecordReader._refused

    def counted(reader: RecordReader, *given: Any) -> None:
        of_turn[turns.turn] += 1
        refused(reader, *given)

    monkeypatch.setattr(RecordReader, "_refused", counted)
    letters: Any = {"dead_letters": Gathered()} if dead_letters else {}
    source = Source([row(0)] * 20 + rows if kind == "dicts" else [rows])
    run_async(beside(turns, serve(counts(), {"log": source}, {"out": found}, **letters)))
    assert sum(each["n"] for each in found.rows) == (60 if kind == "dicts" else 40)
    assert len(of_turn) > 10, "all rows are refused in a few turns"


def test_a_list_in_a_feed_is_read_as_it_goes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "RING", MOST)
    monkeypatch.setattr("oop_engine.runners.local.TURN_S", 0.0)
    monkeypatch.setattr("oop_engine.system.turn.TURN_S", 0.0)
    turns = Turns(monkeypatch)

    async def feed() -> AsyncIterator[Any]:
        yield ROW_BY_ROW

    outcome = run_async(beside(turns, arun(counts(), {"log": feed()})))
    assert sum(outcome.results["out"].column("n").to_pylist()) == ROWS
    assert max(turns.rows.values()) <= 2 * MOST


def copies(found: list[int]) -> tuple[Graph, Callable[[Any], None]]:
    """Return a graph that emits its rows, and a function that gathers their times."""
    graph = Graph("copies")
    graph.sink("out", graph.add("edge", Punctuate(BoundedDisorder(0)), graph.source("log", SCHEMA)))

    def take(result: Any) -> None:
        if isinstance(result.message, Page):
            found.extend(result.message.column("ts").to_pylist())

    return graph, take


@pytest.mark.parametrize("as_tasks", [False, True], ids=["gathered", "in a group"])
def test_a_turn_takes_a_part_of_many_rows_that_are_pushed_at_once(
    as_tasks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that come while a page of rows waits stand in line, in their order; each is there once."""
    monkeypatch.setattr(local_module, "RING", MOST)
    monkeypatch.setattr("oop_engine.runners.door.RING", MOST)
    turns, found = Turns(monkeypatch), list[int]()

    async def push() -> None:
        async with Local(*copies(found)) as local:
            pushes = [local.push_row("log", (n, "a")) for n in range(ROWS)]
            if as_tasks:
                async with asyncio.TaskGroup() as tasks:
                    for each in pushes:
                        tasks.create_task(each)
            else:
                await asyncio.gather(*pushes)
            await local.settle()
            assert len(found) == ROWS

    run_async(beside(turns, push()))
    assert found == [*range(ROWS)]
    assert max(turns.rows.values()) <= MOST


@pytest.mark.parametrize("gone", ["all that are woken", "every other one", "the one that made them full"])
def test_rows_that_stand_in_line_go_in_though_others_are_cancelled(
    gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_module, "RING", 4)
    monkeypatch.setattr("oop_engine.runners.door.RING", 4)
    wake, woken, found, cancelled = local_module._wake, list[int](), list[int](), set[int]()

    async def main() -> None:
        async with Local(*copies(found)) as local:
            tasks = [asyncio.create_task(local.push_row("log", (n, "a"))) for n in range(40)]

            def waking(line: Any, most: int) -> None:
                before = len(line)
                wake(line, most)
                if gone == "all that are woken" and before > len(line) and not woken:
                    woken.extend(range(4, 7))  # the first place in line is that of row 3, which is in
                    cancelled.update(woken)
                    for number in woken:
                        tasks[number].cancel()

            monkeypatch.setattr(local_module, "_wake", waking)
            await asyncio.sleep(0)
            if gone == "every other one":
                cancelled.update(range(4, 40, 2))
            for number in [3] if gone == "the one that made them full" else cancelled:
                tasks[number].cancel()  # of 3 the row is in
            await asyncio.gather(*tasks, return_exceptions=True)
            await local.push_row("log", (40, "a"))

    run_async(main())
    assert found == [n for n in range(41) if n not in cancelled]
    assert len(cancelled) == {"all that are woken": 3, "every other one": 18}.get(gone, 0)
