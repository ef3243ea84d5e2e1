"""Clients of an application that are cancelled at any await, into a ``Local`` and into a service with a journal.

The laws: what a call accepted is processed once; what it refused is not; what was cancelled is there as a whole or not
at all, and once at most; nobody else is touched; behind the block, or the service, no task is left and nothing is
written.  ``python -m tests.simulation.cancelled 10000`` runs so many seeds, from ``FROM`` (0) on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any
from unittest import mock

import pyarrow as pa

from oop_engine import Graph, Local, Page, Schema, UsageError
from oop_engine.operators import BoundedDisorder, Meld, Punctuate
from oop_engine.outcomes import Result
from oop_engine.runners.feeds import forms
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.served import Served
from oop_engine.service.service import Service
from oop_engine.sources import Journal, Pushed
from tests.simulation.virtual_time import run_virtual
from tests.simulation.world import Killed, Process, SimulatedDisk, Store, Table, World

__all__ = ["CALLS", "cancel_in_a_service", "cancel_in_an_application"]

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
CALLS: Counter[str] = Counter()
"""How the calls ended, over all seeds."""


@dataclass
class Account:
    """The rows of all calls: ``sure`` those that have to be there once, ``maybe`` groups that are there or not."""

    random: Random
    count: int = 0
    sure: set[int] = field(default_factory=set)
    maybe: list[set[int]] = field(default_factory=list)

    def rows(self) -> list[dict[str, int]]:
        some = range(self.count, self.count + self.random.randint(1, 4))
        self.count = some.stop
        return [{"ts": n // 10, "n": n} for n in some]

    async def call(self, work: Awaitable[Any], rows: list[dict[str, int]], *, kept: bool = True) -> None:
        """Make a call with some rows; it is cancelled at any await, or not."""
        numbers = {row["n"] for row in rows}
        task = asyncio.ensure_future(work)
        if self.random.random() < 0.5:
            for _ in range(self.random.randint(0, 6)):
                await asyncio.sleep(0 if self.random.random() < 0.7 else self.random.uniform(0, 0.05))
            task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            CALLS["cancelled"] += 1
            self.maybe.append(numbers)
        except (UsageError, Killed):
            CALLS["refused"] += 1
            if kept:  # else it was accepted, and the service died behind it
                self.maybe.append(numbers)
        else:
            CALLS["accepted"] += 1
            if kept:
                self.sure |= numbers
            else:
                self.maybe.append(numbers)

    def check(self, found: list[int]) -> None:
        times = Counter(found)
        assert max(times.values(), default=1) == 1, "a row is there twice"
        assert self.sure <= set(times), "a row that was accepted is lost"
        for some in self.maybe:
            assert len(some & set(times)) in (0, len(some)), "a call that was cancelled is there in parts"


async def nothing_left() -> None:
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"tasks are left: {left}"


def _copies() -> Graph:
    graph = Graph("copies")
    graph.sink("out", graph.add("edge", Punctuate(BoundedDisorder(10**6)), graph.source("a", SCHEMA)))
    return graph


def _melds() -> Graph:
    graph = Graph("melds")
    sides = [graph.source(name, SCHEMA) for name in "ab"]
    graph.sink("out", graph.add("both", Meld(2), *sides))
    return graph


async def _application(random: Random) -> None:
    """Let clients push into a ``Local``, whose block ends while some of them are at it."""
    account, found, graph = Account(random), list[int](), _melds()
    slow = random.choice([0.0, 0.0, 0.03])

    async def take(result: Result) -> None:
        if slow:
            await asyncio.sleep(random.uniform(0, slow))
        if isinstance(result.message, Page):
            found.extend(row["n"] for row in result.message.to_pylist())

    async def client(local: Local) -> None:
        for _ in range(random.randint(1, 6)):
            rows, source = account.rows(), random.choice("ab")
            if random.random() < 0.4:
                rows = rows[:1]
                await account.call(local.push_row(source, rows[0]), rows)
            elif random.random() < 0.8:
                await account.call(local.push(source, rows), rows)
            else:
                await account.call(local.settle(), [])
            if random.random() < 0.3:
                await asyncio.sleep(random.uniform(0, 0.1))

    async with Local(graph, take, capacity=random.choice([1, 2, 16])) as local:
        clients = [asyncio.create_task(client(local)) for _ in range(random.randint(1, 5))]
        if random.random() < 0.5:
            await asyncio.gather(*clients)
        else:
            await asyncio.sleep(random.uniform(0, 0.2))
    await asyncio.gather(*clients)
    await nothing_left()
    account.check(found)


async def _is_over(task: asyncio.Task[Served]) -> bool:
    """Return whether all results are out; the service behind one that died with its last commit finds that out."""
    try:
        return (await task).over
    except UsageError as error:
        if "all results are out" in str(error):
            return True
        raise


class Lives:
    """Services over one journal, that are cancelled, killed or stopped, one after the other."""

    def __init__(self, random: Random, seed: int) -> None:
        self.random, self.world, self.store = random, World(seed), Store()
        self.account = Account(random)

    async def run(self) -> None:
        for number in range(self.random.randint(1, 4)):
            await self._live(number, self.random.choice(["cancel", "kill", "stop"]))
        number = 10
        while not await self._live(number, "drain"):  # the store does not answer now and then
            number += 1
        self.account.check([row["n"] for row in self.store.rows])

    async def _live(self, number: int, end: str) -> bool:
        """Run a service; return whether all results are out."""
        random, over = self.random, False
        process = Process(
            self.world, random.randint(5, 150) if end == "kill" else None, tears=random.random() < 0.5
        )
        disk, loop, stop = SimulatedDisk(process), asyncio.get_running_loop(), asyncio.Event()
        pushed = Pushed(room=random.choice([1, 3, 1024]))
        folder = CheckpointFolder(Path("/state"), keep=2, disk=disk, clock=loop.time, owner=f"life {number}")
        service = Service(
            _copies(),
            {"a": Journal(pushed, "/journal", segment_bytes=300, disk=disk, aside=process.aside)},
            {"out": Table(process, self.store)},
            folder=folder,
            every_s=random.uniform(0.05, 0.5),
            clock=loop.time,
            aside=process.aside,
        )
        process.task = task = asyncio.create_task(service.run(stop, drain=end == "drain"))
        clients = [asyncio.create_task(self._client(pushed)) for _ in range(random.randint(1, 4))]
        if end == "drain":
            await asyncio.wait({task, *clients}, return_when=asyncio.ALL_COMPLETED, timeout=1)
            pushed.end()
        else:
            await asyncio.wait({task}, timeout=random.uniform(0, 1.5))
            stop.set() if end == "stop" else task.cancel()
        with suppress(asyncio.CancelledError, Killed, TimeoutError):
            over = await _is_over(task)
        self.world.alive.discard(process)
        before = dict(self.world.disk.now), [*map(len, self.world.disk.contents)]
        await asyncio.gather(*clients)
        await nothing_left()
        await asyncio.sleep(5)
        assert before == (dict(self.world.disk.now), [*map(len, self.world.disk.contents)]), "it writes on"
        return over

    async def _client(self, pushed: Pushed) -> None:
        for _ in range(self.random.randint(1, 5)):
            rows, kept = self.account.rows(), self.random.random() < 0.7
            await self.account.call(pushed.push(rows, kept=kept), rows, kept=kept)
            if self.random.random() < 0.3:
                await asyncio.sleep(self.random.uniform(0, 0.2))


def cancel_in_an_application(seed: int) -> None:
    """Run the clients of a seed; an ``AssertionError`` names the law that is broken.  A call may have several pages."""
    with mock.patch.object(forms, "RING", Random(-1 - seed).choice([1, 2, 1024])):
        run_virtual(_application(Random(seed)))


def cancel_in_a_service(seed: int) -> None:
    """Run the services of a seed; an ``AssertionError`` names the law that is broken."""
    run_virtual(Lives(Random(seed), seed).run())


def main() -> int:
    seeds, first = int(sys.argv[1]), int(os.environ.get("FROM", "0"))
    logging.disable(logging.WARNING)
    began = perf_counter()
    for seed in range(first, first + seeds):
        try:
            cancel_in_an_application(seed)
            cancel_in_a_service(seed)
        except BaseException:
            print(
                f"seed {seed} breaks a law: FROM={seed} python -m tests.simulation.cancelled 1",
                file=sys.stderr,
            )
            raise
    ends = ", ".join(f"{count:,} {how}" for how, count in sorted(CALLS.items()))
    print(f"{seeds:,} seeds from {first}: all laws hold; calls: {ends} ({perf_counter() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
