"""A block that is left while others push, settle or wait: none of them hangs, and none is cancelled in place of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pyarrow as pa
import pytest

from oop_engine import Graph, Local, Page, Schema, UsageError
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate
from oop_engine.runners.dispatch import Result
from oop_engine.runners.event_loop import run_async

SCHEMA = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")
PAGE = Page.of(SCHEMA, {"ts": [1000], "host": ["a"]})


def counts() -> Graph:
    graph = Graph("counts")
    edge = graph.add("edge", Punctuate(BoundedDisorder(30)), graph.source("log", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(60), {"n": Count()}, by=("host",)), edge))
    return graph


async def push(local: Local) -> None:
    for _ in range(200):
        await local.push("log", PAGE)


async def push_list(local: Local) -> None:
    await local.push("log", [{"ts": 1000, "host": "a"}] * 5_000)


async def push_rows(local: Local) -> None:
    for _ in range(5_000):
        await local.push_row("log", (1000, "a"))


async def push_as_a_thread(local: Local) -> None:
    await asyncio.wrap_future(local.push_threadsafe("log", [{"ts": 1000, "host": "a"}] * 5_000))


async def settle(local: Local) -> None:
    for _ in range(50):
        await local.push("log", PAGE)
    await local.settle()


async def snapshot(local: Local) -> None:
    await local.push("log", PAGE)
    await local.snapshot()


async def tick(local: Local) -> None:
    for now in range(200):
        await local.clock(now)


async def end(local: Local) -> None:
    await push(local)
    await local.end("log")


CALLS = [push, push_list, push_rows, push_as_a_thread, settle, snapshot, tick, end]


class BodyError(Exception):
    pass


async def left(call: Callable[[Local], Awaitable[None]], how: str) -> set[str]:
    """Leave a block in some way while four tasks call; return how these end."""
    going = asyncio.Event()

    async def take(result: Result) -> None:
        await going.wait()

    tasks = list[asyncio.Future[None]]()
    try:
        async with Local(counts(), take, capacity=1, room=1) as local:
            tasks += [asyncio.ensure_future(call(local)) for _ in range(4)]
            for _ in range(50):
                await asyncio.sleep(0)
            if how == "leave":
                local.leave()
            if how == "raise":
                raise BodyError
            going.set()
    except BodyError:
        pass
    async with asyncio.timeout(60):
        await asyncio.wait(tasks)
    return {
        "cancelled" if task.cancelled() else type(task.exception()).__name__ for task in tasks if task.done()
    }


@pytest.mark.parametrize("how", ["end", "leave", "raise"])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_nobody_hangs_and_nobody_is_cancelled(call: Callable[[Local], Awaitable[None]], how: str) -> None:
    assert run_async(left(call, how)) <= {"UsageError", "NoneType", "BodyError"}


def test_a_block_is_not_left_from_another_thread() -> None:
    async def main() -> None:
        async with Local(counts(), lambda result: None) as local:
            found = list[BaseException]()

            def elsewhere() -> None:
                try:
                    local.leave()
                except UsageError as error:
                    found.append(error)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            await asyncio.to_thread(thread.join)
            assert "it runs in the event loop of another thread" in str(found[0])
            await local.push("log", PAGE)

    run_async(main())


@pytest.mark.parametrize("pushed", [1, 3, 20])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_an_end_that_is_cancelled_ends_the_source(pushed: int, one_by_one: bool) -> None:
    """Whoever waited for it has gone, and the operators still wait for it: the block would never end."""

    async def main() -> tuple[int, int]:
        going, found = asyncio.Event(), list[int]()

        async def take(result: Result) -> None:
            await going.wait()
            if isinstance(result.message, Page):
                found.extend(result.message.column("n").to_pylist())

        async with Local(counts(), take, capacity=1, room=1) as local:
            rows = [(100 * n, "a") for n in range(pushed)]
            calls = [local.push_row("log", row) if one_by_one else local.push("log", [row]) for row in rows]
            tasks = [asyncio.ensure_future(call) for call in calls]
            for _ in range(20):
                await asyncio.sleep(0)
            ending = asyncio.ensure_future(local.end("log"))
            await asyncio.sleep(0)
            ending.cancel()
            await asyncio.wait([ending])
            going.set()
            await asyncio.wait(tasks)
            with pytest.raises(UsageError, match="source 'log' has ended"):
                await local.push("log", PAGE)
        return sum(task.exception() is None for task in tasks), sum(found)

    async def in_time() -> tuple[int, int]:
        async with asyncio.timeout(60):
            return await main()

    assert run_async(in_time()) == (pushed, pushed)


def test_ticks_that_wait_for_rows_are_not_behind_the_end() -> None:
    """An operator that has ended takes nothing: a tick that went to it then would wait for ever."""

    async def main() -> None:
        going = asyncio.Event()

        async def take(result: Result) -> None:
            await going.wait()

        async with Local(counts(), take, capacity=1, room=1) as local:
            calls = [local.push_row("log", (100 * n, "a")) for n in range(5)]
            tasks = [asyncio.ensure_future(call) for call in calls]
            tasks += [asyncio.ensure_future(local.clock(n)) for n in range(20)]
            await asyncio.sleep(0)
            tasks.append(asyncio.ensure_future(local.end("log")))
            await asyncio.sleep(0)
            going.set()
        async with asyncio.timeout(5):
            await asyncio.gather(*tasks)

    run_async(main())
