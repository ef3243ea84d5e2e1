"""Feeds that block: a row is answered before its generator goes on, whatever the generator does between its rows."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, UsageError, serve
from oop_engine.connectors.sources.on_thread import ThreadReader
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import Generated, Journal, Replayed
from tests.children import MOST_S

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
BLOCK_S = 0.06


def through(*sources: str) -> Graph:
    graph = Graph("g")
    for name in sources or ("in",):
        graph.sink(f"{name}-out", graph.source(name, SCHEMA))
    return graph


class Answers:
    """A generator of rows that blocks until each of them has been answered, and the sink that answers."""

    def __init__(self, count: int, block_s: float = 0.0) -> None:
        self.count, self.block_s = count, block_s
        self.came = threading.Event()
        self.rows: list[int] = []
        self.late = 0

    def plain(self) -> Iterator[dict[str, Any]]:
        for ts in range(self.count):
            self.came.clear()
            yield {"ts": ts}
            if self.block_s:
                time.sleep(self.block_s)
            self.late += not self.came.wait(MOST_S)

    async def blocking(self) -> AsyncIterator[dict[str, Any]]:
        for row in self.plain():
            yield row

    async def mixed(self) -> AsyncIterator[dict[str, Any]]:
        for row in self.plain():
            yield row
            await asyncio.sleep(0)

    def take(self, page: Page) -> None:
        self.rows += page.times.tolist()
        self.came.set()


class Blocking(LiveSource):
    """A source of one's own that reads without asyncio."""

    def __init__(self, rows: Iterator[Any]) -> None:
        self._rows = rows

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        for number, row in enumerate(self._rows):
            yield row, number


FEEDS: dict[str, Callable[[Answers, Path], Any]] = {
    "plain": lambda answers, _: answers.plain(),
    "plain map": lambda answers, _: map(dict, answers.plain()),
    "async, blocking": lambda answers, _: answers.blocking(),
    "async, mixed": lambda answers, _: answers.mixed(),
    "generated": lambda answers, _: Generated(answers.plain()),
    "replayed": lambda answers, _: Replayed(lambda start: answers.plain()),
    "journal": lambda answers, folder: Journal(answers.plain(), folder),
    "own source": lambda answers, _: Blocking(answers.plain()),
}


@pytest.mark.parametrize("block_s", [0.0, BLOCK_S])
@pytest.mark.parametrize("kind", FEEDS)
def test_a_row_is_answered_before_its_feed_goes_on(kind: str, block_s: float, tmp_path: Path) -> None:
    answers = Answers(3, block_s)
    feed = FEEDS[kind](answers, tmp_path)
    served = run_async(serve(through(), {"in": feed}, {"in-out": answers.take}, signals=False))
    assert served.over
    assert (answers.rows, answers.late) == ([0, 1, 2], 0)
    assert not [each.name for each in threading.enumerate() if "source" in each.name]


@pytest.mark.parametrize("kind", ["plain", "async, blocking"])
def test_other_sources_are_read_while_a_feed_blocks(kind: str, tmp_path: Path) -> None:
    """The feed waits until another source is answered: from its second row on where it is asynchronous."""
    other, moved = Answers(0), threading.Event()

    def rows() -> Iterator[dict[str, Any]]:
        yield {"ts": 0}
        time.sleep(BLOCK_S)
        yield {"ts": 1}
        moved.set()
        other.late += not other.came.wait(MOST_S)

    async def blocking() -> AsyncIterator[Any]:
        for row in rows():
            yield row

    async def well_behaved() -> AsyncIterator[Any]:
        while not moved.is_set():
            await asyncio.sleep(0.001)
        yield {"ts": 7}

    sources = {"in": rows() if kind == "plain" else blocking(), "other": well_behaved()}
    sinks = {"in-out": Gathered(), "other-out": other.take}
    run_async(serve(through("in", "other"), sources, sinks, signals=False))
    assert (other.rows, other.late) == ([7], 0)


def test_rows_of_a_thread_are_all_in_when_the_service_is_stopped() -> None:
    """Also those that the thread reads after the stop; then it has ended, and the generator is closed."""
    stop, found, closed = asyncio.Event(), Gathered(), list[int]()
    loop: Any = None

    def rows() -> Iterator[dict[str, Any]]:
        try:
            for ts in itertools.count():
                if ts == 3_000:
                    loop.call_soon_threadsafe(stop.set)
                yield {"ts": ts}
        finally:
            closed.append(ts)

    async def main() -> Any:
        nonlocal loop
        loop = asyncio.get_running_loop()
        return await serve(through(), {"in": rows()}, {"in-out": found}, stop=stop, signals=False)

    served = run_async(main())
    assert closed[0] == served.tuples["in"] - 1 == found.rows[-1]["ts"]
    assert closed[0] >= 3_000
    assert not [each.name for each in threading.enumerate() if "source" in each.name]


def test_the_error_of_a_plain_generator_comes_out() -> None:
    def rows() -> Iterator[Any]:
        yield {"ts": 0}
        msg = "no such port"
        raise ConnectionError(msg)

    with pytest.raises(ConnectionError, match="no such port"):
        run_async(serve(through(), {"in": rows()}, {"in-out": Gathered()}, signals=False))


def test_a_feed_that_was_moved_and_uses_an_object_of_another_loop_is_refused_with_a_way_out() -> None:
    async def main() -> None:
        queue = asyncio.Queue[Any](1)
        queue.put_nowait(1)
        waits = asyncio.create_task(queue.put(2))  # binds the queue to this loop
        await asyncio.sleep(0)

        async def feed() -> AsyncIterator[Any]:
            yield {"ts": 0}
            time.sleep(BLOCK_S)
            yield {"ts": 1}
            for _ in range(3):
                await queue.get()
            yield {"ts": 2}

        try:
            await serve(through(), {"in": feed()}, {"in-out": Gathered()}, signals=False)
        finally:
            waits.cancel()

    with pytest.raises(
        UsageError, match=r"object of another loop.*as a plain generator \(def\), or await asyncio.to"
    ):
        run_async(main())


def test_a_feed_that_blocks_for_ever_lets_the_service_stop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("oop_engine.connectors.sources.on_thread._END_S", 0.01)
    go, stop = threading.Event(), asyncio.Event()
    loop: Any = None

    def rows() -> Iterator[Any]:
        yield {"ts": 0}
        loop.call_soon_threadsafe(stop.set)
        go.wait(MOST_S)

    async def main() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        await serve(through(), {"in": rows()}, {"in-out": Gathered()}, stop=stop, signals=False)

    run_async(main())
    assert "source 'in': its generator still blocks" in caplog.text
    go.set()


async def test_a_thread_waits_where_nobody_takes_its_items() -> None:
    given = []

    def rows() -> Iterator[int]:
        for number in range(5_000):
            given.append(number)
            yield number

    reader = ThreadReader("source 'in'", rows())
    items = reader.items()
    assert await anext(items) == 0
    while len(given) < 1_024:
        await asyncio.sleep(0.001)
    assert [0] + [item async for item in items] == [*range(5_000)]
