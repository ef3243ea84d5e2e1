"""The world around a service, driven by one seed: processes, a disk, sources, sinks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from oop_engine import Page, Schema
from oop_engine.connectors.sink import LiveSink, Prepared
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.system.disk import Disk

__all__ = ["Broker", "Killed", "Log", "Process", "Queue", "SimulatedDisk", "Store", "Table", "World"]


class Killed(Exception):  # noqa: N818
    """The process is dead: nothing that it does has an effect."""


class World:
    """What outlives processes: the disk, the seed, the clock."""

    def __init__(self, seed: int, *, unsynced: bool = False) -> None:
        self.random = Random(seed)
        self.disk = Platter(unsynced)
        self.alive: set[Process] = set()

    def power_loss(self) -> None:
        for process in list(self.alive):
            process.die()
        self.disk.lose(self.random)


class Process:
    """A process: it dies at the ``kill``-th thing that it does, with the power (``tears``) or alone."""

    def __init__(self, world: World, kill: int | None, *, tears: bool, stall: int | None = None) -> None:
        self.world, self.tears = world, tears
        self._left, self._until_stall = kill, stall
        self.stalled = asyncio.Event()
        self.is_dead = False
        self.task: asyncio.Task[Any] | None = None
        world.alive.add(self)

    def die(self) -> None:
        self.is_dead = True
        self.world.alive.discard(self)
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()

    def step(self) -> None:
        """Do one thing, unless dead."""
        if self.is_dead:
            raise Killed
        if self._left is None:
            return
        self._left -= 1
        if self._left < 0:
            if self.tears:
                self.world.power_loss()
            else:
                self.die()
            raise Killed

    async def pause(self, most: float = 0.05) -> None:
        """Let time pass; once in a life, perhaps, very much of it."""
        if self._until_stall is not None:
            self._until_stall -= 1
            if self._until_stall == 0:
                self.stalled.set()
                await asyncio.sleep(self.world.random.uniform(1, 30))
        await asyncio.sleep(self.world.random.uniform(0, most))
        self.step()

    async def aside(self, work: Callable[..., Any], *args: Any) -> Any:
        """Do some work beside the event loop, with time before and behind it."""
        await self.pause(0.02)
        found = work(*args)
        await self.pause(0.02)
        return found


@dataclass
class Platter:
    """Files: their bytes, and their names as they are now and as they are after a loss of power."""

    unsynced: bool = False
    contents: list[bytes] = field(default_factory=list)
    synced: list[int] = field(default_factory=list)  # bytes of each that are on the disk
    locks: dict[Path, Process] = field(default_factory=dict)
    now: dict[Path, int] = field(default_factory=dict)
    kept: dict[Path, int] = field(default_factory=dict)
    waiting: list[dict[Path, int | None]] = field(default_factory=list)
    folders: set[Path] = field(default_factory=set)

    def put(self, data: bytes) -> int:
        self.contents.append(data)
        self.synced.append(0)
        return len(self.contents) - 1

    def force(self, number: int) -> None:
        """Bring the bytes of a file to the disk."""
        if not self.unsynced:
            self.synced[number] = len(self.contents[number])

    def rename(self, names: dict[Path, int | None]) -> None:
        """Change names at once, for those who look now; the disk learns of it later."""
        _apply(self.now, names)
        self.waiting.append(names)

    def sync(self, folder: Path) -> None:
        if folder in self.now:  # a file
            self.force(self.now[folder])
        done = [names for names in self.waiting if any(path.parent == folder for path in names)]
        for names in done:
            _apply(self.kept, names)
            self.waiting.remove(names)

    def lose(self, random: Random) -> None:
        """Lose what is not on the disk: any of the names, any end of bytes."""
        for names in self.waiting:
            if random.random() < 0.5:
                _apply(self.kept, names)
        self.waiting, self.now = [], dict(self.kept)
        for number, synced in enumerate(self.synced):
            data = self.contents[number]
            if synced < len(data):
                cut = random.randint(synced, len(data))
                zeros = (
                    len(data) - cut if random.random() < 0.3 else 0
                )  # the length is there, the bytes are not
                self.contents[number] = data[:cut] + bytes(zeros)
                self.synced[number] = cut + zeros


def _apply(names: dict[Path, int], change: dict[Path, int | None]) -> None:
    for path, number in change.items():
        if number is None:
            names.pop(path, None)
        else:
            names[path] = number


class SimulatedDisk(Disk):
    """The disk as one process sees it."""

    def __init__(self, process: Process) -> None:
        self._process, self._platter = process, process.world.disk

    def write(self, path: Path, data: bytes) -> None:
        self._process.step()
        number = self._platter.put(data)
        self._platter.rename({path: number})
        self._process.step()
        self._platter.force(number)

    def append(self, path: Path, data: bytes) -> None:
        self._process.step()
        number = self._platter.now[path]
        self._platter.contents[number] += data
        self._process.step()
        self._platter.force(number)

    def lock(self, path: Path) -> Callable[[], None] | None:
        self._process.step()
        if self._platter.locks.get(path) in self._process.world.alive - {self._process}:
            return None
        self._platter.locks[path] = self._process
        return lambda: None

    def create(self, path: Path, data: bytes) -> bool:
        self._process.step()
        if path in self._platter.now:
            return False
        number = self._platter.put(data)
        self._platter.force(number)  # before it has this name
        self._platter.rename({path: number})
        self._process.step()
        self.sync(path.parent)
        return True

    def replace(self, old: Path, new: Path) -> None:
        self._process.step()
        if old not in self._platter.now:
            raise FileNotFoundError(old)
        self._platter.rename({old: None, new: self._platter.now[old]})
        self._process.step()
        self.sync(new.parent)

    def sync(self, folder: Path) -> None:
        self._process.step()
        self._platter.sync(folder)

    def make(self, folder: Path) -> None:
        self._process.step()
        self._platter.folders.add(folder)

    def read(self, path: Path) -> bytes:
        self._process.step()
        if path not in self._platter.now:
            raise FileNotFoundError(path)
        return self._platter.contents[self._platter.now[path]]

    def exists(self, path: Path) -> bool:
        self._process.step()
        return path in self._platter.now

    def names(self, folder: Path) -> list[str]:
        self._process.step()
        start = f"{folder}/"
        below = [name.removeprefix(start) for name in map(str, self._platter.now) if name.startswith(start)]
        return sorted({name.partition("/")[0] for name in below})

    def remove(self, path: Path) -> None:
        self._process.step()
        if path in self._platter.now:
            self._platter.rename({path: None})


class Log(LiveSource):
    """A log that can be read from any place; pieces are cut anew each time, and some are long in coming."""

    replayable: ClassVar[bool] = True

    def __init__(self, process: Process, items: list[Any]) -> None:
        self._process, self._items = process, items

    async def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        random, at = self._process.world.random, int(position or 0)
        while at < len(self._items):
            await self._process.pause(2.0 if random.random() < 0.05 else 0.05)
            to = at + random.randint(1, 4)
            yield self._items[at:to], min(to, len(self._items))
            at = min(to, len(self._items))


class Broker:
    """Keeps items until they are acknowledged, and no longer."""

    def __init__(self, items: list[Any]) -> None:
        self.items = dict(enumerate(items, 1))
        self.count = len(items)


class Queue(LiveSource):
    """The consumer of a broker; items that come again are known by their numbers."""

    def __init__(self, process: Process, broker: Broker) -> None:
        self._process, self._broker = process, broker

    async def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        last = int(position or 0)
        while last < self._broker.count:
            await self._process.pause()
            first = next((number for number in self._broker.items if number > last), None)
            if first is None:  # they have been acknowledged, and nobody has them: lost
                return
            last = first
            yield self._broker.items[last], last

    async def acknowledge(self, position: Position) -> None:
        self._process.step()
        for number in [number for number in self._broker.items if number <= position]:
            del self._broker.items[number]


class Store:
    """A system with transactions, outside of all processes."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.prepared: dict[tuple[str, int], list[dict[str, Any]]] = {}


class Table(LiveSink):
    """The client of a store; now and then a commit is done, and the answer is lost."""

    def __init__(self, process: Process, store: Store) -> None:
        self._process, self._store = process, store
        self._rows: dict[int, list[dict[str, Any]]] = {}
        self._run = ""

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        await self._process.pause()
        kept, self._run = {tuple(each) for each in prepared}, run
        self._store.prepared = {key: rows for key, rows in self._store.prepared.items() if key in kept}

    async def write(self, epoch: int, page: Page) -> None:
        await self._process.pause(0.01)
        self._rows.setdefault(epoch, []).extend(page.to_pylist())

    async def prepare(self, epoch: int) -> Prepared:
        await self._process.pause()
        if epoch not in self._rows:
            return None
        self._store.prepared[self._run, epoch] = self._rows.pop(epoch)
        return [self._run, epoch]

    async def commit(self, prepared: Prepared) -> None:
        await self._process.pause()
        self._store.rows += self._store.prepared.pop(tuple(prepared), [])
        await self._process.pause()
        if self._process.world.random.random() < 0.02:
            msg = "the store has not answered"
            raise TimeoutError(msg)
