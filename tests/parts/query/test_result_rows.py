"""Rows of a query as they become final, whose readers leave at any await."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema, UsageError, stream
from oop_engine.runners.feeds import result_rows
from tests.simulation.cancelled import nothing_left
from tests.simulation.virtual_time import run_virtual

LOG = stream("log", {"ts": "int64", "n": "int64"}).event_time("ts", "5 s", unit="s")
SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")


class Feed:
    """Rows, one to some at a time; ``begun`` and ``closed``: how often it was."""

    def __init__(self, count: int, random: Random | None = None, fails: bool = False) -> None:
        self.count, self.random, self.fails = count, random, fails
        self.given, self.begun, self.closed = 0, 0, 0

    async def __call__(self) -> AsyncIterator[Any]:
        random = self.random
        self.begun += 1
        try:
            while self.given < self.count:
                n = self.given
                self.given += random.randint(1, 9) if random else 1
                rows = [{"ts": each // 10, "n": each} for each in range(n, min(self.given, self.count))]
                yield rows[0] if len(rows) == 1 else rows
                if random and random.random() < 0.3:
                    await asyncio.sleep(random.choice([0, 0, random.uniform(0, 0.1)]))
            if self.fails:
                raise ValueError("the feed fails")
        finally:
            self.closed += 1
            if random:
                await asyncio.sleep(random.choice([0, 0.01]))


async def _read_by_many(seed: int) -> str:
    """Let tasks read the rows of one query, each of which is cancelled now and then; return how it ended."""
    random = Random(seed)
    feed = Feed(random.randint(0, 300), random, fails=random.random() < 0.2)
    found, ends, lost = list[int](), list[BaseException | None](), asyncio.Event()
    stays, leaves = random.random() < 0.6, random.random() < 0.3

    async def read(rows: result_rows.ResultRows) -> None:
        """Read row by row, under time limits that are short now and then."""
        with suppress(asyncio.CancelledError):
            while len(found) < 100 or not leaves:
                try:
                    async with asyncio.timeout(random.choice([0, 0.001, 0.05, 9, 9, 9])):
                        row = await anext(rows)
                except TimeoutError:
                    if not stays:
                        lost.set()
                    continue
                except (StopAsyncIteration, ValueError, UsageError) as error:
                    ends.append(error)
                    return
                found.append(row["n"])
                if random.random() < 0.2:
                    await asyncio.sleep(random.uniform(0, 0.05))

    async def all_read(rows: result_rows.ResultRows) -> None:
        tasks = [asyncio.create_task(read(rows)) for _ in range(random.randint(1, 3))]
        if random.random() < 0.3:
            await asyncio.sleep(random.uniform(0, 0.3))
            random.choice(tasks).cancel()
        await asyncio.gather(*tasks)

    rows = LOG.rows(feed())
    if stays:
        async with rows:
            await all_read(rows)
    else:
        async with aclosing(rows):
            await all_read(rows)
    await nothing_left()
    assert feed.closed == feed.begun, "the feed is open"
    assert len({*found}) == len(found), "a row came twice"
    if not lost.is_set():
        assert len({*map(type, ends)}) <= 1, f"readers of one run ended otherwise: {ends}"
        if StopAsyncIteration in map(type, ends):
            assert sorted(found) == [*range(feed.count)], "a row is lost"
    return type(ends[0]).__name__ if ends else "left"


def test_each_row_comes_to_one_reader_whoever_is_cancelled() -> None:
    ended = [run_virtual(_read_by_many(seed)) for seed in range(150)]
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
