"""Rows of a query as they become final, whose readers leave at any await."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema, UsageError
from oop_engine.runners.feeds import result_rows
from tests.simulation.cancelled import nothing_left
from tests.simulation.cancelled_readers import LOG, Feed, cancel_readers
from tests.simulation.virtual_time import run_virtual

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")


def test_each_row_comes_to_one_reader_whoever_is_cancelled() -> None:
    ended = [cancel_readers(seed) for seed in range(150)]
    assert {*ended} == {"StopAsyncIteration", "UsageError", "ValueError", "left"}


def test_a_reader_that_runs_into_a_time_limit_goes_on_within_a_block() -> None:
    async def feed() -> AsyncIterator[Any]:
        for n in range(3):
            yield {"ts": n, "n": n}
            await asyncio.sleep(1)

    async def main() -> tuple[list[int], int]:
        found, limits = list[int](), 0
        async with LOG.rows(feed()) as rows:
            while len(found) < 3:
                try:
                    found.append((await asyncio.wait_for(anext(rows), 0.3))["n"])
                except TimeoutError:
                    limits += 1
        await nothing_left()
        return found, limits

    found, limits = run_virtual(main())
    assert found == [0, 1, 2]
    assert limits > 3


def test_without_a_block_the_rest_is_an_error_and_not_an_end() -> None:
    """It would look as if there were no further rows."""
    feed = Feed(10, Random(1))

    async def main() -> None:
        rows = LOG.rows(feed())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await anext(rows)
        await nothing_left()
        with pytest.raises(UsageError, match=r"`async with query\.rows\(\.\.\.\) as rows`"):
            await anext(rows)

    run_virtual(main())


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("how", ["break", "error", "cancelled", "never read", "dropped while it waits"])
def test_nothing_goes_on_behind_a_reader_that_leaves(how: str) -> None:
    feed = Feed(50_000, Random(2))

    async def reader() -> None:
        async for row in LOG.rows(feed()):
            if row["n"] == 5:
                if how == "break":
                    break
                if how == "error":
                    raise KeyError("mine")
                await asyncio.sleep(9)

    async def main() -> None:
        if how == "never read":
            LOG.rows(feed())
        elif how == "dropped while it waits":
            rows = LOG.rows(feed())
            await anext(rows)
            await asyncio.sleep(5)
            del rows
        else:
            task = asyncio.create_task(reader())
            await asyncio.sleep(3)
            task.cancel()
            error = (await asyncio.gather(task, return_exceptions=True))[0]
            kinds = {"break": type(None), "error": KeyError, "cancelled": asyncio.CancelledError}
            assert isinstance(error, kinds[how])
            del error, task
        gc.collect()
        await asyncio.sleep(1)
        await nothing_left()
        assert feed.closed == feed.begun
        assert feed.given < 25_000, "it is read on"

    run_virtual(main())


def test_an_end_that_is_cancelled_closes_all_the_same_and_is_cancelled() -> None:
    closing = asyncio.Event()

    async def feed() -> AsyncIterator[Any]:
        try:
            yield {"ts": 1, "n": 1}
            await asyncio.sleep(9)
        finally:
            closing.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(9)

    async def main() -> None:
        rows = LOG.rows(feed())
        await anext(rows)
        task = asyncio.create_task(rows.aclose())
        await closing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await nothing_left()

    run_virtual(main())


def test_an_error_of_a_feed_that_is_closed_comes_out() -> None:
    async def feed() -> AsyncIterator[Any]:
        try:
            yield {"ts": 1, "n": 1}
            await asyncio.sleep(9)
        finally:
            raise ValueError("it does not close")

    async def main() -> None:
        async with LOG.rows(feed()) as rows:
            await anext(rows)

    with pytest.raises(ValueError, match="it does not close"):
        run_virtual(main())


@pytest.mark.parametrize("form", ["rows", "one list", "one page"])
def test_a_reader_that_never_waits_does_not_hold_up_the_event_loop(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_rows, "RING", 100)
    monkeypatch.setattr("oop_engine.runners.feeds.forms.RING", 100)
    rows = [{"ts": n, "n": n} for n in range(3_000)]

    async def feed() -> AsyncIterator[Any]:
        if form == "rows":
            for row in rows:
                yield row
        elif form == "one list":
            yield rows
        else:
            yield Page.of(SCHEMA, {"ts": [*range(3_000)], "n": [*range(3_000)]})

    async def main() -> tuple[int, list[int]]:
        turns, count, read = 0, 0, [0]

        async def beside() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1
                read.append(0)

        other = asyncio.create_task(beside())
        async for _ in LOG.rows(feed()):
            count += 1
            read[-1] += 1
        other.cancel()
        return count, read

    count, read = run_virtual(main())
    assert count == 3_000
    assert max(read) <= 2 * 100, "rows in a turn of the event loop"


def test_an_error_behind_the_rows_that_a_reader_leaves_is_left_with_them() -> None:
    """And is no report of the event loop, which would come when the rows are collected as garbage."""
    reports, kept = list[Any](), list[Any]()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, report: reports.append(report))
        async with LOG.rows(Feed(5, fails=True)()) as rows:
            await anext(rows)
            await asyncio.sleep(1)  # the feed has failed behind all rows
        kept.append(rows)

    run_virtual(main())
    kept.clear()
    gc.collect()
    assert reports == []


def test_another_thread_has_the_way_out() -> None:
    """Whatever it calls, the rows and their reader go on."""

    def elsewhere(work: Any) -> str:
        async def main() -> None:
            await work()

        with pytest.raises(UsageError) as refused:
            asyncio.run(main())
        return str(refused.value)

    async def main() -> None:
        loop, going = asyncio.get_running_loop(), asyncio.Event()

        async def slow() -> AsyncIterator[Any]:
            async for row in Feed(5)():
                yield row
                await going.wait()

        async with LOG.rows(slow()) as rows:
            found = [(await anext(rows))["n"]]
            for work in (rows.__anext__, rows.aclose):
                assert "run_coroutine_threadsafe(anext(rows), loop)" in await asyncio.to_thread(
                    elsewhere, work
                )
            going.set()
            row = asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(anext(rows), loop).result())  # type: ignore[arg-type]
            found += [(await row)["n"], *[row["n"] async for row in rows]]
        assert found == [0, 1, 2, 3, 4]

    asyncio.run(main())
