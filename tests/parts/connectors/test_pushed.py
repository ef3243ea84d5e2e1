"""A stream that a program pushes into a service: nothing is lost that was accepted, and what was not is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, UsageError, serve
from oop_engine.extend import LiveSink, LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import Journal, Pushed

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
OVER = "push into a service that runs"


def copied() -> Graph:
    graph = Graph("copied")
    graph.sink("out", graph.source("in", SCHEMA))
    return graph


def serving(
    work: Callable[[Pushed, asyncio.Event], Awaitable[Any]],
    source: Callable[[Pushed], LiveSource] = lambda pushed: pushed,
    sink: LiveSink | None = None,
    room: int = 1024,
    **options: Any,
) -> tuple[list[int], Any]:
    """Return the times that a service has seen, and what ``work`` returned, which runs beside it."""
    found, pushed = Gathered(), Pushed(room=room)

    async def main() -> Any:
        stop = asyncio.Event()
        service = asyncio.create_task(
            serve(copied(), {"in": source(pushed)}, {"out": sink or found}, stop=stop, **options)
        )
        try:
            result = await work(pushed, stop)
            stop.set()
        finally:
            await service
        return result

    result = run_async(main())
    return [row["ts"] for row in found.rows], result


def test_rows_pages_and_lists_come_in_their_order() -> None:
    async def work(pushed: Pushed, stop: asyncio.Event) -> None:
        row = {"ts": 1}
        await pushed.push(row)
        row["ts"] = 9  # it is the caller's again
        await pushed.push([{"ts": 2}, (3,)])
        await pushed.push(Page.of(SCHEMA, {"ts": [4, 5]}))

    assert serving(work)[0] == [1, 2, 3, 4, 5]


def test_it_ends_behind_all_that_was_pushed() -> None:
    async def work(pushed: Pushed, stop: asyncio.Event) -> None:
        for ts in range(3):
            await pushed.push({"ts": ts})
        pushed.end()
        with pytest.raises(UsageError, match=f"the stream has ended: {OVER}"):
            await pushed.push({"ts": 3})

    assert serving(work)[0] == [0, 1, 2]


def test_a_push_waits_while_the_service_is_behind() -> None:
    going = asyncio.Event()

    class Slow(LiveSink):
        async def write(self, epoch: int, page: Page) -> None:
            await going.wait()

    async def work(pushed: Pushed, stop: asyncio.Event) -> int:
        accepted = 0

        async def push() -> None:
            nonlocal accepted
            for ts in range(10**6):
                await pushed.push({"ts": ts})
                accepted += 1

        pushing = asyncio.create_task(push())
        before = -1
        while accepted > before:
            before = accepted
            for _ in range(1000):
                await asyncio.sleep(0)
        going.set()
        pushing.cancel()
        return accepted

    assert serving(work, sink=Slow(), room=2)[1] < 10**5


@pytest.mark.parametrize("how", ["bare", "checkpoint", "journal"])
def test_a_kept_row_is_in_a_checkpoint_a_journal_or_at_the_end_in_the_sink(how: str, tmp_path: Path) -> None:
    source = (lambda pushed: Journal(pushed, tmp_path / "j")) if how == "journal" else (lambda pushed: pushed)
    options: dict[str, Any] = {"checkpoint": tmp_path / "c", "every_s": 0.01} if how != "bare" else {}

    async def work(pushed: Pushed, stop: asyncio.Event) -> list[Any]:
        if how != "bare":
            await pushed.push({"ts": 1}, kept=True)
        last = asyncio.create_task(pushed.push({"ts": 2}, kept=True))
        gone = asyncio.create_task(pushed.push({"ts": 3}, kept=True))
        await asyncio.sleep(0)
        gone.cancel()  # it was handed over before
        stop.set()
        return [*await asyncio.gather(last, gone, return_exceptions=True)]

    seen, (last, gone) = serving(work, source, **options)
    assert last is None
    assert isinstance(gone, asyncio.CancelledError)
    if how == "journal":  # rows that the stop left there come with the next service
        assert {*seen} <= {1, 2, 3}
        more, _ = serving(lambda pushed, stop: pushed.push({"ts": 4}, kept=True), source, **options)
        seen += [ts for ts in more if ts != 4]
    assert seen == ([2, 3] if how == "bare" else [1, 2, 3])


def test_who_waits_when_the_service_fails_is_refused() -> None:
    class Broken(LiveSink):
        async def write(self, epoch: int, page: Page) -> None:
            raise ValueError("the disk is gone")

    refused: list[str] = []

    async def work(pushed: Pushed, stop: asyncio.Event) -> None:
        async def push(ts: int) -> None:
            try:
                await pushed.push({"ts": ts}, kept=True)
            except UsageError as error:
                refused.append(str(error))

        await asyncio.gather(*map(push, range(10)))

    with pytest.raises(Exception, match="the disk is gone"):
        serving(work, sink=Broken(), room=3)
    assert set(refused) <= {
        f"source 'in': the service has ended: {OVER}",
        f"source 'in': the service ended before these rows were kept: {OVER}",
    }
    assert len(refused) == 10


def test_another_thread_pushes_by_its_own_call() -> None:
    async def work(pushed: Pushed, stop: asyncio.Event) -> None:
        await pushed.push({"ts": 1}, kept=False)
        while pushed._home is None:
            await asyncio.sleep(0)

        def wrong() -> None:
            with pytest.raises(UsageError, match=r"on another thread: from here call push_threadsafe\(row\)"):
                asyncio.run(pushed.push({"ts": 0}))
            pushed.push_threadsafe({"ts": 2}).result()

        await asyncio.to_thread(wrong)

    assert serving(work)[0] == [1, 2]
    with pytest.raises(
        UsageError, match=r"push_threadsafe is for a service that runs: start serve\(...\) first"
    ):
        Pushed().push_threadsafe({"ts": 1})
    with pytest.raises(UsageError, match="room must be 1 push at least; got 0"):
        Pushed(room=0)


async def test_a_push_that_is_taken_wakes_one_who_waits() -> None:
    """Thousands of clients may wait: to wake all for each push would cost milliseconds a row."""
    calls, looks = Pushed(room=2), 0
    check = calls._check

    def counted() -> None:
        nonlocal looks
        looks += 1
        check()

    calls._check = counted  # type: ignore[method-assign]
    tasks = [asyncio.ensure_future(calls.push({"n": n})) for n in range(500)]
    await asyncio.sleep(0)
    tasks[100].cancel()
    found, reading = list[int](), calls.read(None)
    async for row, _ in reading:
        found.append(row["n"])
        if len(found) % 7 == 0 and len(found) < 200:
            victim = tasks[2 * len(found)]
            victim.cancel()  # it may have been woken already
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if all(task.done() for task in tasks):
            calls.end()
    kept = [n for n, task in enumerate(tasks) if not task.cancelled()]
    assert found == kept
    assert looks < 3 * len(tasks)
