"""A block that one client sends at once, a long list or a long message, is read beside the event loop, or in parts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from oop_engine import serve
from oop_engine.connectors.sources import generated, journal, pushed
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.feeds import of_now
from oop_engine.service import inlet
from oop_engine.service.letters.record_reader import RecordReader
from oop_engine.sinks import Gathered
from oop_engine.sources import Journal, Pushed
from tests.parts.service.test_turns import Source, counts

MANY = 60_000
LINES = b"".join(b'{"ts": %d, "host": "a"}\n' % (n // 50) for n in range(MANY))
WITH_BAD = LINES.replace(b'{"ts": 7, "host": "a"}', b'{"ts": "x", "host": "a"}')
CSV = b"ts,host\n" + b"".join(b"%d,a\n" % (n // 50) for n in range(MANY))


MESSAGES = {
    "lines": ("jsonl", [LINES, LINES[:23]], 0),
    "bad lines": ("jsonl", [WITH_BAD], 50),
    "csv": ("csv", [CSV], 0),
}


@pytest.mark.parametrize("dead_letters", [False, True], ids=["", "dead-letters"])
@pytest.mark.parametrize("kind", MESSAGES)
def test_a_long_message_is_read_on_a_thread(
    kind: str, dead_letters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, read = list[int](), RecordReader.messages

    def noted(reader: RecordReader, *given: Any) -> Any:
        threads.append(threading.get_ident())
        return read(reader, *given)

    monkeypatch.setattr(RecordReader, "messages", noted)
    found, letters = Gathered(), Gathered()
    more: Any = {"dead_letters": letters} if dead_letters else {}
    format, messages, bad = MESSAGES[kind]
    served = run_async(serve(counts(), {"log": Source(messages, format)}, {"out": found}, **more))
    assert threads[0] != threading.get_ident()
    assert sum(each["n"] for each in found.rows) == MANY - bad + len(messages) - 1 - (len(messages) > 1)
    assert sum(served.unreadable.get("log", {}).values()) == bad
    assert len(letters.rows) == bad * dead_letters


def test_a_message_that_is_read_aside_waits_for_a_service_that_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes in as a whole, with its position, or not at all."""
    inside, going, read = threading.Event(), threading.Event(), RecordReader.messages

    def slow(reader: RecordReader, *given: Any) -> Any:
        inside.set()
        going.wait(60)
        return read(reader, *given)

    monkeypatch.setattr(RecordReader, "messages", slow)

    async def main() -> int:
        found, stop = Gathered(), asyncio.Event()
        task = asyncio.create_task(
            serve(counts(), {"log": Source([LINES], "jsonl")}, {"out": found}, stop=stop, drain=True)
        )
        await asyncio.to_thread(inside.wait)
        stop.set()
        for _ in range(20):
            await asyncio.sleep(0)
        going.set()
        await task
        return sum(each["n"] for each in found.rows)

    assert run_async(main()) == MANY


@pytest.mark.parametrize("in_journal", [False, True])
def test_a_long_list_is_copied_in_parts_and_stays_in_order(
    in_journal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushed, "_PART", 100)
    monkeypatch.setattr(journal, "_PART", 100)
    copied, one = list[int](), of_now._one  # type: ignore[attr-defined]

    def noted(*given: Any) -> Any:
        copied[-1] += 1
        return one(*given)

    async def beside() -> None:
        while True:
            copied.append(0)
            await asyncio.sleep(0)

    monkeypatch.setattr(of_now, "_one", noted)

    async def main() -> tuple[int, list[Any]]:
        calls, found, turns = Pushed(), Gathered(), asyncio.create_task(beside())
        await asyncio.sleep(0)
        source = Journal(calls, tmp_path) if in_journal else calls
        service = asyncio.create_task(serve(counts(), {"log": source}, {"out": found}))
        rows = [{"ts": n, "host": "a"} for n in range(1_050)]
        pushes = [calls.push(rows), calls.push({"ts": 2_000, "host": "b"}), calls.push(rows[:2])]
        tasks = [asyncio.ensure_future(each) for each in pushes]
        await asyncio.sleep(0)
        late = asyncio.ensure_future(calls.push([{"ts": 1, "host": "a"}] * 1_000))
        late.cancel()  # before it was handed over: nothing of it is
        await asyncio.wait([*tasks, late])
        calls.end()
        served = await service
        turns.cancel()
        return served.tuples["log"], found.rows

    tuples, rows = run_async(main())
    assert max(copied) <= 2 * 100 + 2, (
        "rows in a turn of the event loop: one part each of push and of the journal"
    )
    assert tuples == 1_053
    assert sum(each["n"] for each in rows) == 1_051, (
        "those behind the last row are late: pushes stay in order"
    )


def test_a_push_in_parts_is_refused_where_the_service_ends_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed, "_PART", 10)

    async def main() -> str:
        calls = Pushed()
        pushing = asyncio.ensure_future(calls.push([{"ts": 1, "host": "a"}] * 100))
        await asyncio.sleep(0)
        calls.end()
        (error,) = await asyncio.gather(pushing, return_exceptions=True)
        return str(error)

    assert "has ended" in run_async(main())


@pytest.mark.parametrize("turns", [0, 4, 11, 40])
def test_a_service_that_stops_while_a_long_list_goes_into_its_journal_has_it_all(
    turns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pushed rows have left their giver, so a stop does not lose them."""
    monkeypatch.setattr(journal, "_PART", 10)
    inside, packer = threading.Event(), journal.packer_of_parts  # type: ignore[attr-defined]

    def noted() -> Any:
        inside.set()
        return packer()

    monkeypatch.setattr(journal, "packer_of_parts", noted)

    async def life(rows: list[Any]) -> int:
        calls, found, stop = Pushed(), Gathered(), asyncio.Event()
        source, checkpoint = Journal(calls, tmp_path / "journal"), tmp_path / "checkpoint"
        service = asyncio.create_task(
            serve(counts(), {"log": source}, {"out": found}, stop=stop, checkpoint=checkpoint)
        )
        if rows:
            await calls.push(rows)
            while not inside.is_set():
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            stop.set()
        else:
            calls.end()
        await service
        return sum(each["n"] for each in found.rows)

    assert run_async(life([{"ts": n, "host": "a"} for n in range(1_050)])) + run_async(life([])) == 1_050


async def lists(sizes: list[int]) -> AsyncIterator[Any]:
    """Gives one list again and again, with other rows each time."""
    rows, n = list[Any](), 0
    for size in sizes:
        rows[:] = [{"ts": each, "host": "a"} for each in range(n, n + size)]
        n += size
        yield rows


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("in_journal", [False, True])
def test_a_long_list_of_an_asynchronous_generator_is_copied_in_parts(
    in_journal: bool, stopped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that is stopped meanwhile has the whole list."""
    for module in (generated, inlet):
        monkeypatch.setattr(module, "RING", 100)
    monkeypatch.setattr(journal, "_PART", 100)
    copied, one, stop = [0], of_now._one, asyncio.Event()  # type: ignore[attr-defined]

    def noted(*given: Any) -> Any:
        copied[-1] += 1
        if stopped and sum(copied) > 300:
            stop.set()
        return one(*given)

    async def beside() -> None:
        while True:
            copied.append(0)
            await asyncio.sleep(0)

    monkeypatch.setattr(of_now, "_one", noted)

    async def main() -> tuple[int, int]:
        feed, found, turns = lists([1_050, 1, 1_100]), Gathered(), asyncio.create_task(beside())
        source = Journal(feed, tmp_path) if in_journal else feed
        served = await serve(counts(), {"log": source}, {"out": found}, stop=stop, drain=stopped)
        turns.cancel()
        return served.tuples["log"], sum(row["n"] for row in found.rows)

    tuples, rows = run_async(main())
    assert tuples == rows
    assert (
        tuples == 2_151
        if not stopped
        else tuples in ((0, 1_050, 1_051, 2_151) if in_journal else (1_050, 1_051, 2_151))
    )
    if not stopped:
        assert max(copied) <= 2 * 100 + 2, "rows in a turn of the event loop"
