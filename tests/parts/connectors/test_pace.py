"""The pace of a source: one pause does not slow it for good; one that blocks again and again is answered each time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from oop_engine.connectors import pace
from oop_engine.connectors.link import ServerLink
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async


class Numbers(LiveSource):
    """Gives numbers and never awaits; ``now`` jumps before those in ``pauses``."""

    def __init__(self, count: int, pauses: set[int]) -> None:
        self.count, self.pauses, self.now = count, pauses, 0.0
        self.link = ServerLink("source 'in'")

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        for number in range(self.count):
            self.now += 0.1 if number in self.pauses else 1e-7
            yield number, number


def alone(monkeypatch: pytest.MonkeyPatch, count: int, pauses: set[int]) -> list[int]:
    """Return behind which data the event loop ran before the source was asked for more."""
    source, found = Numbers(count, pauses), list[int]()
    monkeypatch.setattr(pace, "wall", lambda: source.now)
    turns = 0

    async def give_way(self: Any) -> None:
        nonlocal turns
        turns += 1

    monkeypatch.setattr(pace.Pace, "give_way", give_way)

    async def main() -> None:
        before, last = 0, -1
        async for data, _ in pace.read_on(source, None):
            if turns > before:
                found.append(last)
            before, last = turns, data

    run_async(main())
    return found


def test_a_pause_slows_a_source_for_some_data_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = alone(monkeypatch, 5_000, {1_000})
    assert found[:16] == list(range(16))
    assert {*range(1_000, 1_030)} <= {*found}
    assert len(found) < 100


def test_a_source_that_blocks_again_and_again_is_answered_before_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bursts of 40 data, with a block before each: from the second on all data of a burst are answered."""
    found = alone(monkeypatch, 2_000, set(range(100, 2_000, 40)))
    assert {*range(180, 1_999)} <= {*found}
