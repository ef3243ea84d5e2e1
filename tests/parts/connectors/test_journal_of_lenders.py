"""A journal over a source that lends its lists: they and their rows are others once it is asked for more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from oop_engine import Graph, Schema, serve
from oop_engine.connectors.sources import journal
from oop_engine.extend import LiveSource
from oop_engine.operators import BoundedDisorder, Punctuate
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import Journal

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64(), "tags": pa.list_(pa.int64())}, "ts", "s")
LIFE = 100_000
"""Rows of a life of the service have numbers from a multiple of it on."""


class Row(NamedTuple):
    ts: int
    n: int
    tags: list[int]


def changed(row: Any) -> None:
    """Let a row be another one."""
    (row["tags"] if isinstance(row, dict) else row[2]).append(-1)
    if isinstance(row, dict):
        row["n"] = -1
    elif isinstance(row, list):
        row[1] = -1


ROWS: dict[str, Callable[[int], Any]] = {
    "dictionaries": lambda n: {"ts": n // 50, "n": n, "tags": [n]},
    "lists": lambda n: [n // 50, n, [n]],
    "tuples": lambda n: (n // 50, n, [n]),
    "named tuples": lambda n: Row(n // 50, n, [n]),
}


class Lender(LiveSource):
    lends = True

    def __init__(self, make: Callable[[int], Any], sizes: list[int], first: int) -> None:
        self.make, self.sizes, self.first = make, sizes, first

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        rows, number = list[Any](), self.first
        for size in self.sizes:
            rows[:] = map(self.make, range(number, number + size))
            number += size
            yield rows, number
            for row in rows:
                changed(row)
            rows.clear()


def copies() -> Graph:
    graph = Graph("copies")
    graph.sink("out", graph.add("edge", Punctuate(BoundedDisorder(LIFE)), graph.source("log", SCHEMA)))
    return graph


async def feed(lender: Lender) -> AsyncIterator[Any]:
    async for rows, _ in lender.read(None):
        yield rows


async def lived(folder: Path, source: Any, found: Gathered, turns: int | None, *, cancel: bool) -> None:
    """Serve to the end, or for some turns of the event loop."""
    stop, sources = asyncio.Event(), {"log": Journal(source, folder / "journal")}
    task = asyncio.ensure_future(
        serve(copies(), sources, {"out": found}, checkpoint=folder / "state", every_s=0.01, stop=stop, signals=False)
    )  # fmt: skip
    if turns is not None:
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel() if cancel else stop.set()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


@pytest.mark.parametrize("of_ones_own", [False, True], ids=["a feed", "a source"])
@pytest.mark.parametrize("kind", ROWS)
def test_rows_are_those_that_were_given(
    kind: str, of_ones_own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its size a list is there once, as a whole or not at all, also if the service ends while it is copied."""
    random = Random(f"{kind} {of_ones_own}")
    for case in range(4):
        monkeypatch.setattr(journal, "_PART", random.choice([1, 7, 100, 1024]))
        folder, found = tmp_path / str(case), Gathered()
        for life in range(3):
            sizes = [random.choice([1, 2, 101, 1023, 1024, 1025, 2000]) for _ in range(random.randint(1, 4))]
            lender = Lender(ROWS[kind], sizes, life * LIFE)
            turns = None if life == 2 else random.randint(0, 60)
            source = lender if of_ones_own else feed(lender)
            run_async(lived(folder, source, found, turns, cancel=random.random() < 0.5))
        by_number = {row["n"]: row for row in found.rows}
        assert len(by_number) == len(found.rows), "a row is there twice"
        assert all(row["tags"] == [n] for n, row in by_number.items()), "a row is another one"
        for life in range(3):
            numbers = sorted(n for n in by_number if n // LIFE == life)
            assert numbers == [*range(life * LIFE, life * LIFE + len(numbers))], "a row is missing"
        assert len([n for n in by_number if n // LIFE == 2]) == sum(sizes), "the last life reads all"
