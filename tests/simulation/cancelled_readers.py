"""Tasks that read the rows of a query, each cancelled at any await, by a time limit or for good.

The laws: each row comes to one reader; under ``async with`` none is lost to a time limit; all readers of one run see
the same end; behind it no task is left, and the feed is closed.  ``python -m tests.simulation.cancelled_readers 1000``
runs so many seeds, from ``FROM`` (0) on, each with sizes of its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from random import Random
from time import perf_counter
from typing import Any
from unittest import mock

from oop_engine import UsageError, stream
from oop_engine.runners.feeds import result_rows
from tests.simulation.cancelled import nothing_left
from tests.simulation.virtual_time import run_virtual

__all__ = ["LOG", "Feed", "cancel_readers"]

LOG = stream("log", {"ts": "int64", "n": "int64"}).event_time("ts", "5 s", unit="s")


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
    stays, leaves, waits = random.random() < 0.6, random.random() < 0.3, random.random() < 0.3

    async def read(rows: result_rows.ResultRows) -> None:
        """Read row by row, under time limits that are short now and then."""
        with suppress(asyncio.CancelledError):
            while len(found) < 100 or not leaves:
                limit = random.choice([0, 0.001, 0.05, 9, 9, 9])
                try:
                    if waits:
                        row = await asyncio.wait_for(anext(rows), limit)
                    else:
                        async with asyncio.timeout(limit):
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


def cancel_readers(seed: int) -> str:
    """Run the readers of a seed; return how they ended.  An ``AssertionError`` names the law that is broken."""
    random = Random(-1 - seed)
    sizes: dict[str, Any] = {"RING": random.choice([1, 3, 50, 1024]), "_WAITING": random.choice([1, 2, 64])}
    with mock.patch.multiple(result_rows, **sizes):
        return str(run_virtual(_read_by_many(seed)))


def main() -> int:
    seeds, first, began, ends = (
        int(sys.argv[1]),
        int(os.environ.get("FROM", "0")),
        perf_counter(),
        Counter[str](),
    )
    for seed in range(first, first + seeds):
        try:
            ends[cancel_readers(seed)] += 1
        except BaseException:
            again = f"FROM={seed} python -m tests.simulation.cancelled_readers 1"
            print(f"seed {seed} breaks a law: {again}", file=sys.stderr)
            raise
    ways = ", ".join(f"{count:,} {how}" for how, count in sorted(ends.items()))
    print(f"{seeds:,} seeds from {first}: all laws hold; ends: {ways} ({perf_counter() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
