"""A journal in worlds with a seed: all that was handed on is there again, though processes die and the power fails."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import pytest

from oop_engine.errors import TraceError
from oop_engine.extend import LiveSource
from oop_engine.sources import Journal
from tests.simulation.virtual_time import run_virtual
from tests.simulation.world import Killed, Process, SimulatedDisk, World


class Calls(LiveSource):
    """A caller that never repeats itself: its numbers go up over all processes."""

    def __init__(self, process: Process, numbers: list[int]) -> None:
        self._process, self._numbers = process, numbers

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        random = self._process.world.random
        while True:
            await self._process.pause(0.03)
            first = len(self._numbers)
            self._numbers += range(first, first + random.randint(1, 3))
            rows = self._numbers[first:]
            yield random.choice([[{"n": n} for n in rows], [{"n": n, "text": "x" * 50} for n in rows]]), first


class Lives:
    """Processes that read a journal and die, one after the other; each goes on from a checkpoint."""

    def __init__(self, seed: int, *, unsynced: bool = False) -> None:
        self.world = World(seed, unsynced=unsynced)
        self.called: list[int] = []
        self.checkpoint: tuple[Any, list[int]] = (None, [])
        self.handed: list[int] = []

    async def run(self) -> None:
        for _ in range(8):
            before = self.handed
            self.handed = [*self.checkpoint[1]]
            random = self.world.random
            process = Process(self.world, random.randint(5, 120), tears=random.random() < 0.6)
            with suppress(Killed, ExceptionGroup):
                await self._live(process)
            self.world.alive.discard(process)
            assert self.handed == sorted({*self.handed}), "a row came twice, or in another order"
            if len(self.handed) >= len(before):
                assert self.handed[: len(before)] == before, "a row that was handed on is lost"
            else:
                assert before[: len(self.handed)] == self.handed
                self.handed = before

    async def _live(self, process: Process) -> None:
        random, disk = self.world.random, SimulatedDisk(process)
        calls = Calls(process, self.called)
        journal = Journal(calls, "/journal", segment_bytes=200, disk=disk, aside=process.aside)
        async with aclosing(journal.read(self.checkpoint[0])) as pieces:  # type: ignore[type-var]
            async for data, position in pieces:
                self.handed += [row["n"] for row in data]
                if random.random() < 0.1:
                    self.checkpoint = position, [*self.handed]
                    await journal.acknowledge(position)


def lived(seed: int, *, unsynced: bool = False) -> Lives:
    lives = Lives(seed, unsynced=unsynced)
    run_virtual(lives.run())
    return lives


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_whatever_was_handed_on_is_there_after_any_death() -> None:
    logging.getLogger("oop_engine").setLevel(logging.ERROR)
    try:
        handed = sum(len(lived(seed).handed) for seed in range(80))
    finally:
        logging.getLogger("oop_engine").setLevel(logging.NOTSET)
    assert handed > 600


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_sync_that_is_missing_is_found() -> None:
    def fails(seed: int) -> bool:
        try:
            lived(seed, unsynced=True)
        except (AssertionError, TraceError):
            return True
        return False

    assert any(fails(seed) for seed in range(100))
