"""Bad rows that are pushed into a running graph: left out one by one, whoever they came with."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import ContractError, Graph, Local, Page, Schema, UsageError
from oop_engine.outcomes import BadRow
from oop_engine.runners.dispatch import Result

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int32()}, "ts", "s")
ROWS: list[Any] = [(1, 1), {"ts": 2, "n": "two"}, (None, 3), {"n": 4}, (5, 2**40), {"ts": 6, "m": 1}, (7, 7)]
GOOD = [{"ts": 1, "n": 1}, {"ts": 7, "n": 7}]


def graph() -> Graph:
    made = Graph("as they come")
    made.sink("out", made.source("in", SCHEMA))
    return made


async def pushed(rows: list[Any], one_by_one: bool, **options: Any) -> tuple[list[dict[str, Any]], Local]:
    found: list[dict[str, Any]] = []

    def keep(result: Result) -> None:
        if isinstance(result.message, Page):
            found.extend(result.message.to_pylist())

    async with Local(graph(), keep, **options) as local:
        if one_by_one:
            for row in rows:
                await local.push_row("in", row)
        else:
            await local.push("in", rows)
    return found, local


@pytest.mark.parametrize("one_by_one", [True, False])
def test_bad_rows_are_counted_and_the_others_go_in(one_by_one: bool) -> None:
    found, local = asyncio.run(pushed(ROWS, one_by_one, bad_rows="count"))
    assert found == GOOD
    assert sum(local.refused["in"].values()) == 5
    assert all(reason for reason in local.refused["in"])


@pytest.mark.parametrize("one_by_one", [True, False])
def test_bad_rows_are_handed_over(one_by_one: bool) -> None:
    seen: list[BadRow] = []
    found, _ = asyncio.run(pushed(ROWS, one_by_one, bad_rows=seen.append))
    assert found == GOOD
    assert {each.source for each in seen} == {"in"}
    assert sorted(str(each.record) for each in seen if "two" in str(each.record)) == [
        str({"ts": 2, "n": "two"})
    ]
    assert len(seen) == 5


def test_without_a_choice_a_bad_row_is_an_error() -> None:
    with pytest.raises(ContractError, match="row 2 of 2 that waited"):
        asyncio.run(pushed(ROWS[:2], one_by_one=True))

    async def two_clients() -> list[int]:
        found: list[int] = []

        def keep(result: Result) -> None:
            found.append(len(result.message) if isinstance(result.message, Page) else 0)

        async with Local(graph(), keep) as local:
            with pytest.raises(ContractError):
                await local.push("in", ROWS[1:2])
            await local.push("in", ROWS[:1])  # the graph goes on
        return found

    assert sum(asyncio.run(two_clients())) == 1


def test_another_choice_is_refused() -> None:
    with pytest.raises(UsageError, match="Local: bad_rows must be"):
        Local(graph(), lambda result: None, bad_rows="skip")  # type: ignore[arg-type]


def test_arrivals_stay_with_their_rows() -> None:
    async def main() -> tuple[list[int], dict[str, dict[str, int]]]:
        found: list[int] = []

        def keep(result: Result) -> None:
            if isinstance(result.message, Page) and result.message.arrival is not None:
                found.extend(result.message.arrival.tolist())

        async with Local(graph(), keep, bad_rows="count") as local:
            for row, arrival in (((1, 1), 10), ((2, "x"), 11), ((3, 3), 12)):
                await local.push_row("in", row, arrival)
        return found, local.refused

    found, refused = asyncio.run(main())
    assert found == [10, 12]
    assert sum(refused["in"].values()) == 1
