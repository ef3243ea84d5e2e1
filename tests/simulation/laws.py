"""One life of a service in a simulated world, and the laws that hold in all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from oop_engine import Graph, GroupWise, Linear, Page, Schema, UsageError
from oop_engine.connectors.sinks.part_files import PartFiles
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Meld,
    Punctuate,
    Sum,
    Tumbling,
    Upstream,
    WindowAggregate,
)
from oop_engine.service.checkpoint_folder import CheckpointFolder, OwnerGone
from oop_engine.service.checkpoint_manifest import CheckpointManifest
from oop_engine.service.epochs import read_entry
from oop_engine.service.service import Service
from oop_engine.testing import multiset
from tests.simulation.virtual_time import run_virtual
from tests.simulation.world import (
    Broker,
    Killed,
    Log,
    Process,
    Queue,
    SimulatedDisk,
    Store,
    Table,
    World,
)

__all__ = ["BUGS", "Broken", "simulate"]

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string(), "n": pa.int64()}, "ts", "s")
SLACK, LENGTH, MESSAGES = 6, 10, 24
CHECKPOINT, OUT = Path("/checkpoint"), Path("/out")
MOST_LIVES = 40


class Broken(AssertionError):  # noqa: N818
    """A law does not hold."""


def counts() -> Graph:
    graph = Graph("counts")
    edges = [
        graph.add("log-edge", Punctuate(BoundedDisorder(SLACK)), graph.source("log", SCHEMA)),
        graph.add("queue-edge", Punctuate(Upstream()), graph.source("queue", SCHEMA)),
    ]
    sums = {"rows": Count(), "sum": Sum("n")}
    count = WindowAggregate(Tumbling(LENGTH), sums, by=("key",))
    graph.sink("out", graph.add("count", count, graph.add("both", Meld(2), *edges)))
    return graph


def stream(random: Random, *, punctuated: bool) -> list[Any]:
    """Return pages whose times are at most ``SLACK`` out of order, with punctuation if nobody else makes it.

    Without punctuation, a clock is wrong now and then: some tuples are late.
    """
    found: list[Any] = []
    times = [now + random.randint(0, SLACK - 1) for now in range(3 * MESSAGES)]
    if not punctuated:
        times = [ts if random.random() < 0.85 else max(ts - 4 * SLACK, 0) for ts in times]
    for at in range(0, len(times), 3):
        rows = [
            (ts, random.choice("xyz"), random.randint(0, 9)) for ts in times[at : at + random.randint(1, 3)]
        ]
        names = ("ts", "key", "n")
        found.append(Page.of(SCHEMA, dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))))
        if punctuated and random.random() < 0.4:
            found.append(Linear(at + 3))
        elif punctuated and random.random() < 0.3:
            found.append(GroupWise.of({"key": [random.choice("xyz")]}, [at + 3]))
    return found


def in_time(items: list[Any], slack: int) -> list[dict[str, Any]]:
    """Return the rows that are not more than ``slack`` behind the largest time before them."""
    found, largest = [], 0
    for page in items:
        for row in page.to_pylist() if isinstance(page, Page) else ():
            if row["ts"] >= largest - slack:
                found.append(row)
            largest = max(largest, row["ts"])
    return found


def oracle(log: list[Any], queue: list[Any]) -> object:
    """Return the results by the definition: rows and sums of each window and key."""
    found: dict[tuple[int, str], list[int]] = {}
    for row in [*in_time(log, SLACK), *in_time(queue, 10**6)]:
        found.setdefault((row["ts"] // LENGTH, row["key"]), []).append(row["n"])
    rows = [
        {
            "key": key,
            "window_start": at * LENGTH,
            "window_end": (at + 1) * LENGTH,
            "rows": len(n),
            "sum": sum(n),
        }
        for (at, key), n in found.items()
    ]
    return multiset(rows)


class AcknowledgesFirst(Service):
    """Acknowledges before the record."""

    async def _record(self, manifest: CheckpointManifest, packed: dict[str, bytes]) -> None:
        await self._acknowledge(manifest.positions)
        await super()._record(manifest, packed)


class ForgetsProgress(Service):
    """Restores operators without the progress of their inputs."""

    def _restore(self, manifest: CheckpointManifest, states: dict[str, bytes]) -> None:
        self._without = ("log-edge", "queue-edge", "both")
        super()._restore(manifest, states)
        self._without = ()


class LooksNoFurther(CheckpointFolder):
    """A process that falls asleep between its look at the log and its entry, where it makes one."""

    def _check_mine(self) -> None:
        pass


class TakesAnyNumber(LooksNoFurther):
    """Takes a number that was free again for the next one."""

    def _overtaken(self, number: int) -> bool:
        return False


BUGS = {
    "a sync is missing",
    "acknowledged before the record",
    "restored without progress",
    "no look behind an entry",
}
_SERVICES: dict[str | None, type[Service]] = {
    "acknowledged before the record": AcknowledgesFirst,
    "restored without progress": ForgetsProgress,
}


class Life:
    """Processes, one after the other and now and then two at a time, until all results are out."""

    def __init__(self, seed: int, bug: str | None) -> None:
        self.world = World(seed, unsynced=bug == "a sync is missing")
        random = self.world.random
        self.log = stream(random, punctuated=False)
        self.broker = Broker(stream(random, punctuated=True))
        self.expected = oracle(self.log, [*self.broker.items.values()])
        self.in_files = random.random() < 0.5
        self.store = Store()
        self.bounds: dict[str, int] = {}
        self._service = _SERVICES.get(bug, Service)
        self._folder = TakesAnyNumber if bug == "no look behind an entry" else None
        self._kills = random.randint(0, 6)

    async def run(self) -> None:
        background: list[asyncio.Task[bool]] = []
        for number in range(MOST_LIVES):
            process = self._process(number)
            process.task = task = asyncio.create_task(self._live(process, number))
            stalled = asyncio.create_task(process.stalled.wait())
            await asyncio.wait({task, stalled}, return_when=asyncio.FIRST_COMPLETED)
            stalled.cancel()
            self._check()
            if not task.done():
                background.append(task)
            elif not task.cancelled() and task.result():
                break
        else:
            msg = f"all results are not out after {MOST_LIVES} lives"
            raise Broken(msg)
        for error in await asyncio.gather(*background, return_exceptions=True):
            if isinstance(error, Exception):
                raise error
        self._check(last=True)

    def _process(self, number: int) -> Process:
        random = self.world.random
        if number >= self._kills:
            return Process(self.world, None, tears=False)
        stall = random.randint(2, 60) if random.random() < 0.3 else None
        return Process(self.world, random.randint(3, 400), tears=random.random() < 0.6, stall=stall)

    async def _live(self, process: Process, number: int) -> bool:
        """Run a service; return whether all results are out."""
        disk, loop = SimulatedDisk(process), asyncio.get_running_loop()
        kind = self._folder or self.world.random.choice([CheckpointFolder, LooksNoFurther])
        folder = kind(CHECKPOINT, keep=2, disk=disk, clock=loop.time, owner=f"process {number}")
        sink = (
            PartFiles(OUT, "jsonl", disk=disk, aside=process.aside)
            if self.in_files
            else Table(process, self.store)
        )
        aside: Callable[[Callable[[], Any]], Awaitable[Any]] = process.aside
        try:
            served = await self._service(
                counts(),
                {"log": Log(process, self.log), "queue": Queue(process, self.broker)},
                {"out": sink},
                folder=folder,
                every_s=self.world.random.uniform(0.05, 0.6),
                clock=loop.time,
                aside=aside,
            ).run(asyncio.Event())
        except (Killed, TimeoutError, OwnerGone):
            return False
        except UsageError as error:
            if "all results are out" in str(error):  # the process before died in its last commit
                return True
            raise
        finally:
            self.world.alive.discard(process)
        return served.over

    def _check(self, *, last: bool = False) -> None:
        found = multiset(self._rows())
        if any(count > self.expected.get(row, 0) for row, count in found.items()):  # type: ignore[attr-defined]
            msg = "a result is wrong, or there twice"
            raise Broken(msg)
        if last and found != self.expected:
            msg = "results are lost"
            raise Broken(msg)
        self._check_owners()
        for edge, below in self._last_bounds().items():
            if below < self.bounds.get(edge, below):
                msg = f"the bound of {edge} went back"
                raise Broken(msg)
            self.bounds[edge] = below
        if last:
            self._check_files()

    def _check_owners(self) -> None:
        """Whoever claims the log is the only one to record, until the next claim.

        An entry that is younger than one behind it counts for nothing: its process found that it was too late.  Where
        one before it has been removed, a claim may have been.
        """
        disk, owner, before = self.world.disk, None, 0
        paths = sorted(path for path in disk.now if path.parent == CHECKPOINT / "epochs")
        made = [disk.now[path] for path in paths]
        for at, path in enumerate(paths):
            if any(later < made[at] for later in made[at:]):
                continue
            if (entry := read_entry(int(path.stem), disk.contents[disk.now[path]])) is None:
                msg = f"{path} is half-written"
                raise Broken(msg)
            follows = entry.number == before + 1
            if entry.kind == "record" and follows and owner not in (None, entry.owner):
                msg = f"{entry.owner} has recorded while {owner} was the owner"
                raise Broken(msg)
            owner, before = entry.owner, entry.number

    def _rows(self) -> list[dict[str, Any]]:
        if not self.in_files:
            return self.store.rows
        disk = self.world.disk
        files = [number for path, number in disk.now.items() if path.parent == OUT and path.name[0] != "."]
        return [json.loads(line) for number in files for line in disk.contents[number].splitlines()]

    def _last_bounds(self) -> dict[str, int]:
        """Return the bounds in the manifest that the last entry of the log names."""
        entries = sorted(path for path in self.world.disk.now if path.parent == CHECKPOINT / "epochs")
        if not entries or not (manifest := self._json(entries[-1])["manifest"]):
            return {}
        found: dict[str, int] = self._json(CHECKPOINT / manifest)["standing"]["bounds"]
        return found

    def _json(self, path: Path) -> Any:
        disk = self.world.disk
        return json.loads(disk.contents[disk.now[path]])

    def _check_files(self) -> None:
        """No file of a state is there that no manifest names, once garbage has been collected."""
        disk = self.world.disk
        sweeper = Process(self.world, None, tears=False)
        CheckpointFolder(CHECKPOINT, keep=2, disk=SimulatedDisk(sweeper)).collect()
        states = {path for path in disk.now if path.is_relative_to(CHECKPOINT / "states")}
        manifests = {path for path in states if path.name == "manifest.json"}
        named = {
            CHECKPOINT / state["file"]
            for path in manifests
            for state in json.loads(disk.contents[disk.now[path]])["states"].values()
        }
        if left := {path for path in disk.now if path in states} - manifests - named:
            msg = f"files are left that no manifest names: {sorted(map(str, left))}"
            raise Broken(msg)


def simulate(seed: int, bug: str | None = None) -> None:
    """Run the world of a seed to its end; raise ``Broken``, or whatever else went wrong."""
    life = Life(seed, bug)
    run_virtual(life.run())
