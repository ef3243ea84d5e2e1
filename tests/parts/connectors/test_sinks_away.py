"""A sink whose server goes away waits until it is back: nothing is lost, nothing is there twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Schema, serve
from oop_engine.connectors.link import UnreachableError
from oop_engine.errors import SetupError
from oop_engine.operators import Punctuate, Upstream
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import Replayed
from tests.children import MOST_S

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


class Away(Gathered):
    """Its server goes away at random, before or behind some work; ``for_good``: from its first commit on."""

    def __init__(self, seed: int, *, for_good: bool = False) -> None:
        super().__init__()
        self.random, self.for_good, self.tries = Random(seed), for_good, 0

    async def prepare(self, epoch: int) -> Any:
        self.break_off()
        return await super().prepare(epoch)

    async def commit(self, prepared: Any) -> None:
        self.tries += 1
        if self.for_good:
            msg = "it is gone"
            raise UnreachableError(msg)
        self.break_off()
        await super().commit(prepared)
        self.break_off()

    def break_off(self) -> None:
        if self.random.random() < 0.4:
            msg = "it is gone"
            raise UnreachableError(msg)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oop_engine.connectors.link._FIRST_S", 0.001)
    monkeypatch.setattr("oop_engine.connectors.link._MOST_S", 0.002)


def graph() -> Graph:
    found = Graph("numbers")
    found.sink("out", found.add("edge", Punctuate(Upstream()), found.source("in", SCHEMA)))
    return found


def numbers(most: int, read: list[int] | None = None) -> Replayed:
    async def rest(start: int) -> AsyncIterator[Any]:
        for ts in range(start, most):
            if read is not None:
                read.append(ts)
            await asyncio.sleep(0)
            yield {"ts": ts}

    return Replayed(rest)


def times(sink: Gathered) -> list[int]:
    return [row["ts"] for row in sink.rows]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("durable", [True, False])
def test_each_result_is_there_once(
    seed: int, durable: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Away(seed)
    options: dict[str, Any] = {"checkpoint": tmp_path} if durable else {}
    with caplog.at_level(logging.WARNING, "oop_engine"):
        served = run_async(
            serve(graph(), {"in": numbers(200)}, {"out": sink}, every_s=0.002, signals=False, **options)
        )
    assert served.over
    assert times(sink) == [*range(200)]
    lines = [line for line in caplog.messages if line.startswith("sink 'out'")]
    lost = "sink 'out': the connection is lost (it is gone): trying again until it is back"
    assert lines[:1] == [lost] * min(1, sink.link.losses)
    assert all(line.startswith("sink 'out': is back after ") for line in lines[1:2])
    assert len(lines) == 2 * min(1, sink.link.losses)  # once a minute
    assert not sink.link.away


def test_sources_are_not_read_meanwhile(tmp_path: Path) -> None:
    """A sink that is away for hours fills no memory."""
    sink, read, stop = Away(0, for_good=True), list[int](), asyncio.Event()

    async def main() -> Any:
        serving = asyncio.create_task(
            serve(
                graph(), {"in": numbers(1 << 60, read)}, {"out": sink}, checkpoint=tmp_path, every_s=0.01,
                stop=stop, signals=False,
            )
        )  # fmt: skip
        while sink.tries < 20 and not serving.done():
            await asyncio.sleep(0.001)
        before = len(read)
        while sink.tries < 40 and not serving.done():
            await asyncio.sleep(0.001)
        assert len(read) - before <= 1024  # the rows that wait in front of the graph
        stop.set()
        return await serving

    served = run_async(main())
    assert not served.over


@pytest.mark.parametrize("drain", [True, False])
def test_a_service_is_stopped_while_a_server_is_away_and_the_next_one_goes_on(
    drain: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Away(0, for_good=True)

    async def life(most: int) -> Any:
        stop = asyncio.Event()
        serving = asyncio.create_task(
            serve(
                graph(), {"in": numbers(most)}, {"out": sink}, checkpoint=tmp_path, every_s=0.01, stop=stop,
                signals=False, drain=drain,
            )
        )  # fmt: skip
        while not serving.done() and not (sink.for_good and sink.tries > 3):
            await asyncio.sleep(0.001)
        stop.set()
        return await asyncio.wait_for(serving, MOST_S)

    with caplog.at_level(logging.WARNING, "oop_engine"):
        assert not run_async(life(1 << 60)).over
    assert caplog.messages[-1] == (
        "sink 'out': stopped while its server is away: its results come with the next service"
    )
    sink.for_good = False
    assert run_async(life(3000)).over
    assert times(sink) == [*range(3000)]


def test_without_a_checkpoint_results_that_are_lost_are_told() -> None:
    async def main() -> None:
        sink, stop = Away(0, for_good=True), asyncio.Event()
        serving = asyncio.create_task(
            serve(graph(), {"in": numbers(1 << 60)}, {"out": sink}, every_s=0.01, stop=stop, signals=False)
        )
        while sink.tries < 3 and not serving.done():
            await asyncio.sleep(0.001)
        stop.set()
        await serving

    with pytest.raises(
        SetupError, match=r"^sink 'out': stopped while its server is away, so without a checkpoint"
    ):
        run_async(main())
