"""Tasks that push at once share turns of the event loop, in their order, and are counted until they are in."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, UsageError
from oop_engine.operators import BoundedDisorder, Punctuate
from oop_engine.runners.dispatch import Result
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.local import Local
from oop_engine.system import turn

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
MANY = 300


def graph() -> Graph:
    made = Graph("rows")
    made.sink("out", made.add("edge", Punctuate(BoundedDisorder(0)), made.source("log", SCHEMA)))
    return made


def page(ts: int) -> Page:
    return Page.of(SCHEMA, {"ts": [ts]})


FORMS = {
    "pages": page,
    "lists": lambda ts: [{"ts": ts}],
    "lists of three": lambda ts: [{"ts": ts}] * 3,
    "rows": lambda ts: {"ts": ts},
}


@pytest.fixture(autouse=True)
def each_turn_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "TURN_S", 0.0)


def taken(found: list[Result]) -> list[int]:
    return [ts for r in found if isinstance(r.message, Page) for ts in r.message.column("ts").to_pylist()]


@pytest.mark.parametrize("form", FORMS)
def test_a_turn_takes_a_few_of_the_tasks_that_push_at_once(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, now, push = Counter[int](), [0], Local._push
    found: list[Result] = []

    async def counted(local: Local, *given: Any, **more: Any) -> None:
        turns[now[0]] += 1
        await push(local, *given, **more)

    monkeypatch.setattr(Local, "_push", counted)

    async def beside() -> None:
        while True:
            await asyncio.sleep(0)
            now[0] += 1

    async def main() -> None:
        other = asyncio.create_task(beside())
        async with Local(graph(), found.append) as local:
            await asyncio.gather(*[local.push("log", FORMS[form](ts)) for ts in range(MANY)])
        other.cancel()

    run_async(main())
    rows = [ts for ts in range(MANY) for _ in range(3 if form == "lists of three" else 1)]
    assert taken(found) == rows, "in the order of the calls: else rows are late"
    assert max(turns.values()) <= 3, "pushes in a turn of the event loop"


@pytest.mark.parametrize("room", [1, 2**21], ids=["full", "room"])
def test_the_end_waits_for_pushes_in_line(room: int) -> None:
    found: list[Result] = []

    async def main() -> None:
        async with Local(graph(), found.append, capacity=1, room=room) as local:
            pushes = [asyncio.ensure_future(local.push("log", page(ts))) for ts in range(MANY)]
            await asyncio.sleep(0)
            await local.end("log")
            with pytest.raises(UsageError, match="has ended"):
                await local.push("log", page(MANY))
        await asyncio.gather(*pushes)

    run_async(main())
    assert taken(found) == [*range(MANY)]


def test_a_graph_settles_behind_pushes_in_line() -> None:
    found: list[Result] = []

    async def main() -> list[int]:
        async with Local(graph(), found.append) as local:
            pushes = [asyncio.ensure_future(local.push("log", page(ts))) for ts in range(MANY)]
            await asyncio.sleep(0)
            await local.settle()
            settled = taken(found)
            await asyncio.gather(*pushes)
        return settled

    assert run_async(main()) == [*range(MANY)]


@pytest.mark.parametrize("step", [2, 3, 7])
def test_pushes_that_are_cancelled_in_line_hold_up_nobody(step: int) -> None:
    found: list[Result] = []

    async def main() -> set[int]:
        async with Local(graph(), found.append) as local:
            pushes = [asyncio.ensure_future(local.push("log", page(ts))) for ts in range(MANY)]
            for turns, push in enumerate(pushes[::step]):
                if turns % 5 == 0:
                    await asyncio.sleep(0)
                push.cancel()
            await asyncio.wait(pushes)
            return {ts for ts, push in enumerate(pushes) if not push.cancelled()}

    accepted = run_async(main())
    assert accepted <= {*taken(found)}
    assert taken(found) == sorted({*taken(found)}), "once, and in order"
    assert len(accepted) >= MANY - len(range(0, MANY, step))


def test_pushes_in_line_end_with_the_block_that_is_left() -> None:
    async def main() -> Counter[str]:
        async with Local(graph(), lambda result: None) as local:
            pushes = [asyncio.ensure_future(local.push("log", page(ts))) for ts in range(MANY)]
            await asyncio.sleep(0)
            local.leave()
        ended = await asyncio.gather(*pushes, return_exceptions=True)
        return Counter(type(each).__name__ for each in ended)

    ended = run_async(main())
    assert {*ended} <= {"NoneType", "UsageError"}
    assert ended["UsageError"] >= MANY - 5
