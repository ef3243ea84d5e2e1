"""Every method of a ``Local`` tells a caller before its block, and behind it, that it is not inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Linear, Local, Schema, UsageError

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
ROW = {"ts": 1}
CALLS: dict[str, Callable[[Local], Any]] = {
    "push": lambda local: local.push("in", ROW),
    "push of punctuation": lambda local: local.push("in", Linear(3)),
    "push_row": lambda local: local.push_row("in", ROW),
    "push_threadsafe": lambda local: local.push_threadsafe("in", ROW),
    "end": lambda local: local.end("in"),
    "clock": lambda local: local.clock(3),
    "settle": lambda local: local.settle(),
    "snapshot": lambda local: local.snapshot(),
}


def passing() -> Local:
    graph = Graph("passing")
    graph.sink("out", graph.source("in", SCHEMA))
    return Local(graph, lambda result: None)


async def refused(call: Callable[[Local], Any], local: Local) -> str:
    async def called() -> None:
        await call(local)

    with pytest.raises(UsageError) as caught:
        await called()
    return str(caught.value)


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_outside_of_the_block_is_refused(name: str) -> None:
    local, place = passing(), "graph 'passing': its block (`async with Local(...)`)"
    assert await refused(CALLS[name], local) == f"{place} has not begun"
    async with local:
        await local.push("in", ROW)
    assert await refused(CALLS[name], local) == f"{place} has ended; nothing can follow"


@pytest.mark.parametrize("name", CALLS)
async def test_behind_an_error_it_is_that_error(name: str) -> None:
    local = passing()
    with pytest.raises(ZeroDivisionError):
        async with local:
            1 / 0  # noqa: B018
    with pytest.raises(ZeroDivisionError):
        await CALLS[name](local)


async def test_it_runs_once_and_is_restored_before() -> None:
    local = passing()
    async with local:
        saved = await local.snapshot()
        with pytest.raises(UsageError, match="restore is for before its block"):
            local.restore(saved)
    with pytest.raises(UsageError, match="a Local runs once: make another one"):
        await local.__aenter__()
    passing().restore(saved)
