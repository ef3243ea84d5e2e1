"""Tasks that push at once share turns of the event loop, in their order, and are counted until they are in."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import ContractError, Graph, Page, Schema, UsageError
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


FORMS_OF_MANY: dict[str, Any] = {
    "a list": lambda: [{"ts": ts} for ts in range(MANY)],
    "a table": lambda: pa.table({"ts": range(MANY)}),
    "columns": lambda: {"ts": [*range(MANY)]},
}


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21, 40])
@pytest.mark.parametrize("form", FORMS_OF_MANY)
def test_rows_of_one_push_are_in_as_a_whole_or_not_at_all_if_it_is_cancelled(
    form: str, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if their giver changes them then; pushes behind it, and the end of the source, come behind them."""
    monkeypatch.setattr("oop_engine.runners.feeds.forms.RING", 7)
    found: list[Result] = []

    async def slow(result: Result) -> None:
        await asyncio.sleep(0)
        found.append(result)

    async def main() -> None:
        async with Local(graph(), slow, capacity=1, room=1) as local:
            rows = FORMS_OF_MANY[form]()
            pushing = asyncio.ensure_future(local.push("log", rows))
            for _ in range(turns):
                await asyncio.sleep(0)
            pushing.cancel()
            await asyncio.wait([pushing])
            if isinstance(rows, list):
                rows.clear()

    run_async(main())
    assert taken(found) in ([], [*range(MANY)])


@pytest.mark.parametrize("turns", [1, 5, 20])
def test_of_an_iterator_nothing_more_is_read_once_its_push_is_cancelled(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oop_engine.runners.feeds.forms.RING", 7)
    found, read = list[Result](), list[int]()

    async def main() -> int:
        async with Local(graph(), found.append, capacity=1, room=1) as local:
            rows = ({"ts": read.append(ts) or ts} for ts in range(1 << 40))  # type: ignore[func-returns-value]
            pushing = asyncio.ensure_future(local.push("log", rows))
            for _ in range(turns):
                await asyncio.sleep(0)
            pushing.cancel()
            await asyncio.wait([pushing])
            return len(read)

    assert run_async(main()) == len(read)
    assert taken(found) == [*range(len(taken(found)))]


def test_a_bad_row_of_a_later_page_is_the_error_of_its_push() -> None:
    found: list[Result] = []

    async def main() -> None:
        async with Local(graph(), found.append) as local:
            with pytest.raises(ContractError, match="row 3,001: 'ts' must be int64"):
                await local.push("log", [{"ts": ts} for ts in range(3_000)] + [{"ts": "x"}])
            await local.push("log", {"ts": 5_000})

    run_async(main())
    assert taken(found)[-1] == 5_000
