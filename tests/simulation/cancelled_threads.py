"""Services with a checkpoint on a thread and a real disk, cancelled at any await, and killed now and then.

The laws: no accepted row is lost or processed twice; when ``await`` has come back, no thread still works for the
service, no file of it changes or is open, no task and no socket is left.
``python -m tests.simulation.cancelled_threads 1000`` runs so many seeds, from ``FROM`` (0) on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import pyarrow as pa

from oop_engine import Graph, Page, Schema, UsageError
from oop_engine.connectors.sink import Prepared
from oop_engine.extend import LiveSink, LiveSource
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate
from oop_engine.runners.event_loop import run_async
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.service import Service
from oop_engine.sources import Journal, Pushed
from oop_engine.system.disk import Disk
from oop_engine.system.on_thread import on_thread
from tests.simulation.world import Killed

__all__ = ["ENDS", "cancel_on_threads"]

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
ROWS, MOST_LIVES = 60, 60
ENDS: Counter[str] = Counter()
"""How lives ended, and where a cancellation found the service, over all seeds."""


class SlowDisk(Disk):
    """The disk of this machine as one process sees it: slow now and then, and dead at its ``kill``-th step."""

    def __init__(self, random: Random, kill: int | None) -> None:
        self._random, self._left = random, kill
        self.dead, self.inside = False, 0
        self._lock = threading.Lock()

    def step(self, work: Callable[..., Any], *given: Any) -> Any:
        with self._lock:
            self.inside += 1
        try:
            if self._random.random() < 0.3:
                time.sleep(
                    self._random.uniform(0, 0.0005)
                )  # as a busy disk: cancellations meet the thread at work
            if self._left is not None:
                self._left -= 1
                self.dead = self.dead or self._left < 0
            if self.dead:
                raise Killed
            return work(*given)
        finally:
            with self._lock:
                self.inside -= 1


def _stepped(work: Callable[..., Any]) -> Callable[..., Any]:
    return lambda disk, *given: disk.step(work, disk, *given)


for _name in (
    "write",
    "append",
    "lock",
    "create",
    "replace",
    "sync",
    "make",
    "read",
    "exists",
    "names",
    "remove",
):
    setattr(SlowDisk, _name, _stepped(getattr(Disk, _name)))


class Numbers(LiveSource):
    """So many rows, each with its number; it awaits now and then."""

    replayable = True

    def __init__(self, random: Random) -> None:
        self._random = random

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        for n in range(position or 0, ROWS):
            yield {"ts": n // 4, "n": n}, n + 1
            if self._random.random() < 0.5:
                await asyncio.sleep(0)


@dataclass
class Shown:
    """What outlives the processes: rows that were committed, by the epoch."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    prepared: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


class Epochs(LiveSink):
    """Shows the rows of an epoch once, whoever commits it again."""

    def __init__(self, shown: Shown, disk: SlowDisk) -> None:
        self._shown, self._disk, self._rows, self.run = shown, disk, dict[int, list[Any]](), ""

    async def open(self, schema: Schema, run: str, prepared: Any) -> None:
        self.run = run

    async def write(self, epoch: int, page: Page) -> None:
        self._rows.setdefault(epoch, []).extend(page.to_pylist())

    async def prepare(self, epoch: int) -> Prepared:
        await asyncio.sleep(0)
        rows = self._rows.pop(epoch, [])
        if rows and not self._disk.dead:
            self._shown.prepared[f"{self.run} {epoch}"] = rows
        return f"{self.run} {epoch}" if rows else None

    async def commit(self, prepared: Prepared) -> None:
        await asyncio.sleep(0)
        if not self._disk.dead:
            self._shown.rows[prepared] = self._shown.prepared[prepared]
        await asyncio.sleep(0)


def _counts(source: str) -> Graph:
    graph = Graph("counts")
    edge = graph.add("edge", Punctuate(BoundedDisorder(2)), graph.source(source, SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(5), {"rows": Count()}), edge))
    graph.sink("rows", edge)
    return graph


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (stat.st_mtime_ns, stat.st_size)
        for path in folder.rglob("*")
        if path.is_file() and (stat := path.stat())
    }


def _open(folder: Path) -> list[str]:
    """Return the files below a folder, and the sockets, that this process has open."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            to = os.readlink(each)
            if to.startswith((str(folder), "socket:")):
                found.append(to)
    return found


class Lives:
    """Services over one checkpoint, cancelled or killed one after the other, until one comes to its end."""

    def __init__(self, random: Random, folder: Path) -> None:
        self.random, self.folder, self.shown = random, folder, {"out": Shown(), "rows": Shown()}
        self.sure, self.maybe, self.given = set[int](), set[int](), 0
        self.pushed = random.random() < 0.4  # rows are pushed into a journal, else they come from a source

    async def run(self) -> None:
        sockets = [each for each in _open(self.folder) if each.startswith("socket:")]
        for number in range(MOST_LIVES):
            over = await self._live(cancel=number < MOST_LIVES - 5)
            left = [each for each in _open(self.folder) if each not in sockets]
            assert not left, f"open behind life {number}: {left}"
            if over:
                break
        self._check()

    async def _live(self, *, cancel: bool) -> bool:
        random = self.random
        disk = SlowDisk(random, random.randint(5, 200) if cancel and random.random() < 0.3 else None)
        working = 0

        async def aside(work: Callable[[], Any]) -> Any:
            def counted() -> Any:
                nonlocal working
                working += 1
                try:
                    return work()
                finally:
                    working -= 1

            return await on_thread(counted)

        pushed, clients = Pushed(), list[asyncio.Task[None]]()
        journal = Journal(pushed, self.folder / "journal", disk=disk, aside=aside, segment_bytes=500)
        source = journal if self.pushed else Numbers(random)
        service = Service(
            _counts("a"),
            {"a": source},
            {name: Epochs(shown, disk) for name, shown in self.shown.items()},
            folder=CheckpointFolder(self.folder / "state", keep=2, disk=disk),
            every_s=random.choice([0.0005, 0.002, 0.01]),
            aside=aside,
        )
        task = asyncio.create_task(service.run(asyncio.Event()))
        if self.pushed:
            clients = [asyncio.create_task(self._client(pushed)) for _ in range(2)]
        for _ in range(random.randint(1, 4) if cancel else 0):
            for _ in range(random.choice([3, 30, 300])):
                await asyncio.sleep(0 if random.random() < 0.97 else random.uniform(0, 0.002))
                if task.done():
                    break
            ENDS["cancelled while a thread works" if working else "cancelled"] += task.cancel()
        over = False
        with suppress(asyncio.CancelledError, Killed):
            try:
                over = (await task).over
            except UsageError as error:
                over = "all results are out" in str(error)
                if not over:
                    raise
        assert not working, "a thread still works"
        assert not disk.inside, "a thread still writes"
        before = _files(self.folder)
        ENDS["killed"] += disk.dead
        ENDS["over"] += over
        pushed.end()
        await asyncio.gather(*clients)
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left: {left}"
        await asyncio.sleep(0.001)
        assert _files(self.folder) == before, "it writes on"
        return over

    async def _client(self, pushed: Pushed) -> None:
        """Push rows, and end the stream when there are enough."""
        try:
            while self.given < ROWS:
                n, self.given = self.given, self.given + 1
                self.maybe.add(n)
                await pushed.push({"ts": n // 4, "n": n}, kept=True)
                self.sure.add(n)
            pushed.end()
        except (UsageError, Killed):
            pass

    def _check(self) -> None:
        found = Counter(row["n"] for rows in self.shown["rows"].rows.values() for row in rows)
        wanted = self.sure if self.pushed else set(range(ROWS))
        assert max(found.values(), default=1) == 1, "a row is there twice"
        if not self.pushed:
            counted = sum(row["rows"] for rows in self.shown["out"].rows.values() for row in rows)
            assert counted == ROWS, f"{counted} of {ROWS} rows are counted"
        assert wanted <= set(found) <= wanted | self.maybe, "a row that was accepted is lost"


def cancel_on_threads(seed: int) -> None:
    """Run the lives of a seed; an ``AssertionError`` names the law that is broken."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="oop-engine-", dir=memory if memory.is_dir() else None))
    try:
        run_async(Lives(Random(seed), folder).run())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    seeds, first = int(sys.argv[1]), int(os.environ.get("FROM", "0"))
    logging.disable(logging.WARNING)
    began = perf_counter()
    for seed in range(first, first + seeds):
        try:
            cancel_on_threads(seed)
        except BaseException:
            words = "seed %d breaks a law: FROM=%d python -m tests.simulation.cancelled_threads 1\n"
            sys.stderr.write(words % (seed, seed))
            raise
    ends = ", ".join(f"{count:,} {how}" for how, count in sorted(ENDS.items()))
    print(f"{seeds:,} seeds from {first}: all laws hold; {ends} ({perf_counter() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
