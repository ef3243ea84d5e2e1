"""A source whose server goes away is read on when it is back: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Schema, serve
from oop_engine.connectors.link import ServerLink, UnreachableError
from oop_engine.errors import SetupError
from oop_engine.extend import LiveSource
from oop_engine.operators import Punctuate, Upstream
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import Journal

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


class Shaky(LiveSource):
    """The numbers 0 to 9; the connection breaks behind each in ``breaks``, and ``tries`` times it is not made again."""

    def __init__(self, *breaks: int, tries: int = 0, known: bool = True) -> None:
        self.breaks, self.tries, self.known, self.refusals = {*breaks}, tries, known, 0

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        if self.refusals or not self.known:
            self.refusals -= 1
            msg = "nobody answers"
            raise UnreachableError(msg)
        self.link.here()
        for number in range(position or 0, 10):
            yield {"ts": number}, number + 1
            if number in self.breaks:
                self.breaks.remove(number)
                self.refusals = self.tries
                msg = "broken"
                raise UnreachableError(msg)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses, whose seconds pass at once."""
    found = list[float]()

    yielding = asyncio.sleep

    async def sleep(seconds: float) -> None:
        found.append(seconds)
        await yielding(0)  # other tasks sleep so, too

    monkeypatch.setattr("oop_engine.connectors.link.wall", lambda: sum(found))
    monkeypatch.setattr("oop_engine.connectors.link.asyncio.sleep", sleep)
    return found


def graph() -> Graph:
    found = Graph("numbers")
    found.sink("out", found.add("edge", Punctuate(Upstream()), found.source("in", SCHEMA)))
    return found


async def times(source: LiveSource) -> list[int]:
    results = Gathered()
    await serve(graph(), {"in": source}, {"out": results})
    return [row["ts"] for row in results.rows]


@pytest.mark.parametrize("journaled", [False, True])
def test_a_source_is_read_on_behind_its_last_data(
    journaled: bool, pauses: list[float], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shaky = Shaky(0, 3, 9, tries=2)
    with caplog.at_level(logging.WARNING, "oop_engine"):
        found = run_async(times(Journal(shaky, tmp_path / "journal") if journaled else shaky))
    assert found == [*range(10)]
    assert shaky.link.losses == 3
    assert not shaky.link.away
    told = [
        record.getMessage() for record in caplog.records if record.getMessage().startswith("source 'in': ")
    ]
    lost = "source 'in': the connection is lost (broken): trying again until it is back"
    assert told == [lost, "source 'in': is back after 0.7 s"]  # the others came within a minute
    assert [each for each in pauses if each] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]


def test_a_connection_that_lasts_is_made_again_at_once_and_losses_are_logged_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now, pauses = [0.0], list[float]()

    async def sleep(seconds: float) -> None:
        now[0] += seconds
        pauses.append(seconds)

    async def losses() -> None:
        found = ServerLink("sink 'out'")
        found.here()
        for lasts_s in (0.0, 1.0, 1.0, 20.0, 0.0, 30.0, 1.0):
            now[0] += lasts_s
            found.gone("it breaks")
            await found.pause()
            found.here()
        assert found.losses == 7

    monkeypatch.setattr("oop_engine.connectors.link.asyncio.sleep", sleep)
    monkeypatch.setattr("oop_engine.connectors.link.wall", lambda: now[0])
    with caplog.at_level(logging.WARNING, "oop_engine"):
        run_async(losses())
    assert pauses == [0.1, 0.2, 0.4, 0.1, 0.2, 0.1, 0.2]
    first = "sink 'out': the connection is lost (it breaks): trying again until it is back"
    assert caplog.messages == [first, "sink 'out': is back after 0.1 s"]
    now[0] += 60


def test_a_server_that_was_never_there_is_an_error_at_once(pauses: list[float]) -> None:
    with pytest.raises(SetupError, match="nobody answers"):
        run_async(times(Shaky(known=False)))
    assert not any(pauses)


def test_the_pause_grows_up_to_ten_seconds(pauses: list[float]) -> None:
    found = ServerLink()

    async def wait() -> None:
        for _ in range(9):
            await found.pause()

    run_async(wait())
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
